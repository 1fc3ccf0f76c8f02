"""What ranks do not get of hvrun's environment: the code's list against the pages'. SPDX-License-Identifier: Apache-2.0"""

import re

import tree

NAME = r"_|[A-Z_][A-Z0-9_]+\*?"  # a variable, or a pattern


def patterns_in_code(text):
    """The strings of the vectors that host_variable_patterns() and step_variable_patterns() return."""
    bodies = re.findall(r"patterns\{(.*?)\};", text, re.DOTALL)
    return {name for body in bodies for name in re.findall(r'"([^"]+)"', body)}


def patterns_in_markdown(text):
    """The first column of the table whose head is 'not passed on'."""
    found, inside = set(), False
    for line in text.splitlines():
        inside = line.startswith("| not passed on |") or inside and line.startswith("|")
        if inside:
            found |= set(re.findall(rf"`({NAME})`", line.split("|")[1]))
    return found


def patterns_in_page(text):
    """What the manual page's section names before it says that these keep their value."""
    section = text.partition(".Ss Environment of the ranks\n")[2].partition("\nThese keep")[0]
    return {name for line in re.findall(r"\.(?:Ev|Pq Ev) (.*)", section) for name in re.findall(rf"(?<!\S)({NAME})(?!\S)", line)}


def differences(in_code, in_page, page):
    for name in sorted(in_code - in_page):
        yield f"{page}: does not say that {name} is not passed on"
    for name in sorted(in_page - in_code):
        yield f"{page}: says that {name} is not passed on, and it is"


def test_every_variable_that_is_not_passed_on_is_in_both_pages_and_the_other_way_round():
    in_code = patterns_in_code(tree.read("launcher/plan/common_environment.cc"))
    assert len(in_code) > 40
    for page, read in (("docs/contract.md", patterns_in_markdown), ("man/hvrun.1", patterns_in_page)):
        assert list(differences(in_code, read(tree.read(page)), page)) == []


def test_lists_are_read_from_code_and_pages():
    assert patterns_in_code('x{"A"}; patterns{\n"HOME", "_",  // why\n"SSH_*"};\n"LATER"\npatterns{"B"};') == {"HOME", "_", "SSH_*", "B"}
    table = "| `OTHER` | x |\n\n| not passed on | why |\n|---|---|\n| `_`, `A_*` | of `B_C` |\n\n| `LATER` | x |\n"
    assert patterns_in_markdown(table) == {"_", "A_*"}
    page = ".Ev EARLIER\n.Ss Environment of the ranks\ntext\n.Ev HOME , _ ,\n.Pq Ev TERM_* , STY\nThese keep\n.Ev LATER\n"
    assert patterns_in_page(page) == {"HOME", "_", "TERM_*", "STY"}


def test_a_difference_either_way_is_red():
    assert list(differences({"A", "B"}, {"B", "C"}, "x.md")) == [
        "x.md: does not say that A is not passed on", "x.md: says that C is not passed on, and it is"]
