"""Pages that list what the code lists. SPDX-License-Identifier: Apache-2.0"""

import re

import tree


def registered(text):
    """{(collective, algorithm)} of the contract's table."""
    return set(re.findall(r'^ *\{"(\w+)",\s+"(\w+)",\s+"', text, re.MULTILINE))


def described(text):
    return set(re.findall(r"^\| (\w+) \| `(\w+)` \|", text, re.MULTILINE))


def limits_in_code(text):
    """{(collective, algorithm): its limits in bytes}: those that the contract's table has."""
    limits = {}
    for collective, name, row in re.findall(r'^ *\{"(\w+)",\s+"(\w+)",\s+"([^;]*?)FoldOrder', text, re.MULTILINE):
        limits.setdefault((collective, name), set()).update(int(number) << int(shift)
                                                            for number, shift in re.findall(r"(\d+) << (\d+)", row))
    return limits


def limits_in_page(text):
    """The same of a page's tables: all sizes in the column that says when."""
    units = {"KiB": 10, "MiB": 20}
    return {(collective, name): {int(number) << units[unit] for number, unit in re.findall(r"(\d+) ([KM]iB)", when)}
            for collective, name, when in re.findall(r"^\| (\w+) \| `(\w+)` \|([^|]*)\|", text, re.MULTILINE)}


def broken_links(path, text, exists):
    """Relative links of a Markdown page to what is not there."""
    folder = path.rpartition("/")[0]
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        parts = []
        for part in [*folder.split("/"), *target.split("/")]:
            parts = parts[:-1] if part == ".." else parts + [part] if part not in ("", ".") else parts
        if not exists("/".join(parts)):
            yield f"{path}: links to {target}, which is not there"


def test_every_algorithm_is_described_and_the_other_way_round():
    in_code = registered(tree.read("src/contract/algorithms.cc"))
    assert in_code and in_code == described(tree.read("docs/algorithms.md"))


def test_a_missing_algorithm_shows():
    assert registered('      {"barrier", "x", "always",') == {("barrier", "x")}
    assert described("| barrier | `y` | always |\n| text | z |\n") == {("barrier", "y")}


def test_limits_of_algorithms_are_those_of_the_table():
    in_code = limits_in_code(tree.read("src/contract/algorithms.cc"))
    assert in_code[("allreduce", "direct")] == {1 << 20, 16 << 10}
    assert in_code == limits_in_page(tree.read("docs/algorithms.md"))


def test_another_limit_shows():
    assert limits_in_code('  {"barrier", "x", "always", kLeast, {1, 1}, 4 << 10, FoldOrder::kRank},') == {("barrier", "x"): {4096}}
    assert limits_in_page("| barrier | `x` | up to 8 KiB | 4 MiB |\n") == {("barrier", "x"): {8192}}


def test_no_page_links_to_what_is_not_there():
    found = set(tree.files())
    for path in found:
        if path.endswith(".md"):
            assert list(broken_links(path, tree.read(path), found.__contains__)) == []


def test_a_broken_link_is_red():
    text = "[a](gone.md) [b](../README.md#x) [c](https://example.org/x)"
    assert list(broken_links("docs/x.md", text, {"README.md"}.__contains__)) == ["docs/x.md: links to gone.md, which is not there"]


def test_pages_say_from_how_many_steps_on_a_training_is_told_of():
    steps = re.search(r"kFewSteps = (\d+);", tree.read("launcher/record/training_split.cc")).group(1)
    for path, words in {"README.md": "at least N steps and one second", "docs/output.md": "with N steps and one second",
                        "docs/pytorch.md": "at least N steps and a second", "man/hvrun.1": "\nN of them and a second"}.items():
        assert words.replace("N", steps) in tree.read(path), path
