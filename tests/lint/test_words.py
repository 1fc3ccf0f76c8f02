"""Licence lines, one reader of the environment, nothing unfinished, telling names. SPDX-License-Identifier: Apache-2.0"""

import pytest

import tree
import words

TEXT = (*words.HEADED, ".txt", ".md", ".1", ".3", ".7")
# The rules name what they forbid; this folder is read for everything else.
ALL = {p: tree.read(p) for p in tree.files() if p.endswith(TEXT) or p in ("dev", ".ci/run")}
NOT_LINT = {path: text for path, text in ALL.items() if not path.startswith("tests/lint/")}


@pytest.mark.parametrize("rule", [words.spdx_errors, words.environment_errors, words.name_errors])
def test_every_file_keeps(rule):
    assert list(rule(ALL)) == []


@pytest.mark.parametrize("rule", [words.unfinished_errors, words.sleep_errors])
def test_every_file_but_the_rules_keeps(rule):
    assert list(rule(NOT_LINT)) == []


BAD = [
    (words.spdx_errors, "src/x.cc", "int a;\n"),
    (words.spdx_errors, "go", "#!/bin/sh\necho\n"),
    (words.environment_errors, "src/net/x.cc", 'auto a = std::getenv("A");\n'),
    (words.environment_errors, "launcher/x.cc", "extern char** environ;\n"),
    (words.unfinished_errors, "README.md", "TODO: write\n"),
    (words.name_errors, "src/common/x.cc", ""),
    (words.name_errors, "src/net/utils.h", ""),
    (words.name_errors, "src/net/x.h", "class RankManager {\n"),
    (words.sleep_errors, "tests/unit/a/x_test.cc", "std::this_thread::sleep_for(1ms);\n"),
    (words.sleep_errors, "tests/cli/test_x.py", "    time.sleep(1)\n"),
    (words.sleep_errors, "tests/payload/x.c", "sleep(3);  // sleep-ok:\n"),
]


@pytest.mark.parametrize("rule, path, text", BAD)
def test_a_bad_sample_is_red(rule, path, text):
    assert list(rule({path: text})) != []


GOOD = [
    (words.environment_errors, "src/base/environment.cc", "extern char** environ;\n"),
    (words.environment_errors, "src/net/x.cc", '// getenv is elsewhere\nauto a = "/proc/1/environ";\n'),
    (words.sleep_errors, "tests/cli/test_x.py", "# sleep-ok: the payload must outlive the test\ntime.sleep(60)\n"),
    (words.sleep_errors, "tests/cli/test_x.py", 'run("sleep 30")\n'),
    (words.name_errors, "src/net/x.h", "struct DataType {\n"),
    (words.spdx_errors, "src/x.cc", "// What.\n// SPDX-License-Identifier: Apache-2.0\n"),
]


@pytest.mark.parametrize("rule, path, text", GOOD)
def test_a_good_sample_is_green(rule, path, text):
    assert list(rule({path: text})) == []
