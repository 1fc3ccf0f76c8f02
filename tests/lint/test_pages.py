"""The manual pages say what the program says. SPDX-License-Identifier: Apache-2.0"""

import os
import pathlib
import re
import subprocess

import pages
import tree

HVRUN = pathlib.Path(os.environ.get("HVRUN_TEST_BUILD_DIR", tree.ROOT / "build/dev"), "bin/hvrun")


def said(*words):
    return subprocess.run([HVRUN, *words], check=True, capture_output=True, text=True).stdout


def lint_of(path):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], capture_output=True, text=True)
    return done.stdout + done.stderr


def test_every_option_is_in_the_manual_page_and_the_other_way_round():
    in_help = pages.options_in_help(said("--help")) | pages.options_in_help(said("script", "--help"))
    in_page = pages.options_in_page(tree.read("man/hvrun.1"))
    assert list(pages.difference("option", in_help, in_page)) == []


def test_every_option_that_stands_for_another_programs_is_there():
    page = tree.read("docs/coming-from.md")
    named = pages.options_in_tables(page)
    there = pages.options_in_help(said("--help")) | pages.options_of_horovodrun(tree.read("man/hvrun.1"))
    assert len(named) > 60 and sorted(named - there) == []
    variables = set(re.findall(r"\bHVRUN_\w+", page))
    assert sorted(variables - pages.names_in_page(tree.read("man/hvrun-env.7"), "")) == []


def test_every_knob_is_in_its_manual_page_and_the_other_way_round():
    knobs, in_page = pages.names_in_env(said("env")), pages.names_in_page(tree.read("man/hvrun-env.7"), "KNOBS")
    assert knobs and list(pages.difference("knob", knobs, in_page)) == []


def test_every_variable_of_the_contract_is_in_its_manual_page_and_the_other_way_round():
    born_with = pages.names_in_environment(said("-np", "1", "--no-label", "--clean-env", "--", "env"))
    in_page = pages.names_in_page(tree.read("man/hvrun-env.7"), "CONTRACT")
    ours = {name for name in born_with if name.startswith("HVRUN_") or name in in_page} | {"HVRUN_RESULT_FD"}  # by --result-fd
    assert ours and list(pages.difference("variable", ours, in_page)) == []


def test_every_function_of_the_header_is_in_its_manual_page():
    header = tree.read("runtime/include/hvrun/hvrun.h")
    functions = set(re.findall(r"^HVRUN_API .*?\b(hvrun_\w+)\(", header, re.MULTILINE))
    page = tree.read("man/hvrun.3")
    assert functions and [name for name in sorted(functions) if name not in page] == []


def test_mandoc_finds_nothing_to_warn_of():
    for path in tree.files():
        if path.startswith("man/"):
            assert lint_of(tree.ROOT / path) == ""


def test_a_bad_page_is_red(tmp_path):
    page = tmp_path / "x.1"
    page.write_text(".Dd November 21, 2026\n.Dt X 1\n.Os\n.Sh NAME\n.Nm x\n.Nd y\n.Bl -tag\n.Xx\n")
    assert lint_of(page) != ""


HELP = """Usage: hvrun [options]
Ending:
  -g,--grace SECONDS       seconds, as in 'ssh -J gate'; also -gr N
  --pty                    a terminal
text with --stray
"""


def test_options_are_read_from_help_and_page():
    assert pages.options_in_help(HELP) == {"-g", "--grace", "-gr", "--pty"}
    assert pages.options_in_page(".It Fl g , Fl -grace Ar SECONDS\n.It Fl np Ar N\ntext Fl x\n") == {"-g", "--grace", "-np"}


def test_options_are_read_from_tables_of_other_programs():
    table = ("| x | hvrun | remark |\n|---|---|---|\n"
             "| `-a`, `--aa` | as it is | `--no` |\n| `--b \\| c` | `--bb -x Y`, `-z` | |\n")
    assert pages.options_in_tables(table) == {"-a", "--aa", "--bb", "-x", "-z"}
    assert pages.options_in_tables("| x | y |\n| `-a` | `--b` |\n" + table + "\n| q | `--gone` | |\n") == {"-a", "--aa", "--bb", "-x", "-z"}


def test_options_of_horovodrun_are_read_from_the_page():
    page = ".Fl a\n.Ss Options of horovodrun\n.Fl -bb , -cc .\n.It Cm --dd Ar N\nErrors, with\n.Fl -ee\n.Ss Next\n.Fl -ff\n"
    assert pages.options_of_horovodrun(page) == {"--bb", "--cc", "--dd"}


def test_knobs_are_read_from_env_and_page():
    assert pages.names_in_env("HVRUN_A  1  default\n  sentence HVRUN_B\n") == {"HVRUN_A"}
    page = ".Sh KNOBS OF X\n.It Ev HVRUN_A , HVRUN_C\n.Ev HVRUN_B\n.Sh CONTRACT\n.It Ev HVRUN_D\n"
    assert pages.names_in_page(page, "KNOBS") == {"HVRUN_A", "HVRUN_C"}


def test_a_difference_either_way_is_red():
    assert list(pages.difference("option", {"-a", "-b"}, {"-b", "-c"})) == [
        "option -a: not in the manual page", "option -c: in the manual page, unknown to the program"]
