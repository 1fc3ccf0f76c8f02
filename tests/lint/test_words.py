"""Licence lines, one reader of the environment, nothing unfinished, telling names. SPDX-License-Identifier: Apache-2.0"""

import pytest

import tree
import words

TEXT = (*words.HEADED, ".txt", ".md", ".1", ".3", ".7")
# The rules name what they forbid; this folder is read for everything else.
ALL = {p: tree.read(p) for p in tree.files() if p.endswith(TEXT) or p in ("dev", ".ci/run")}
NOT_LINT = {path: text for path, text in ALL.items() if not path.startswith("tests/lint/")}


@pytest.mark.parametrize("rule", [words.spdx_errors, words.environment_errors, words.name_errors,
                                  words.test_name_errors, words.flag_access_errors])
def test_every_file_keeps(rule):
    assert list(rule(ALL)) == []


@pytest.mark.parametrize("rule", [words.unfinished_errors, words.sleep_errors])
def test_every_file_but_the_rules_keeps(rule):
    assert list(rule(NOT_LINT)) == []


def stdout_errors(texts):
    return words.stdout_errors(texts, {})


def test_only_output_writes_to_stdout():
    assert list(words.stdout_errors(ALL, words.excepted(tree.read("tests/lint/stdout_writers.txt")))) == []


def test_an_exception_that_is_none_any_more_is_red():
    listed = words.excepted("# who\nsrc/x.cc: it must\nsrc/y.cc:\n")
    assert listed == {"src/x.cc": "it must", "src/y.cc:": ""}
    assert list(words.stdout_errors({"src/x.cc": "puts(a);\n"}, {"src/x.cc": "it must"})) == []
    assert list(words.stdout_errors({"src/x.cc": "f(a);\n"}, {"src/x.cc": "it must"})) != []
    assert list(words.stdout_errors({"src/x.cc": "puts(a);\n"}, {"src/x.cc": ""})) != []


BAD = [
    (words.spdx_errors, "src/x.cc", "int a;\n"),
    (words.spdx_errors, "go", "#!/bin/sh\necho\n"),
    (words.environment_errors, "src/net/x.cc", 'auto a = std::getenv("A");\n'),
    (words.environment_errors, "launcher/x.cc", "extern char** environ;\n"),
    (words.unfinished_errors, "README.md", "TODO: write\n"),
    (words.test_name_errors, "tests/unit/a/x_test.cc", 'TEST_CASE(\n    "it works; "\n    "then not") {\n'),
    (words.name_errors, "src/common/x.cc", ""),
    (words.name_errors, "src/net/utils.h", ""),
    (words.name_errors, "src/net/x.h", "class RankManager {\n"),
    (words.name_errors, "src/net/x.h", "class RankManager final : public Base {\n"),
    (words.name_errors, "src/net/x.h", "struct Impl final {\n"),
    (words.name_errors, "src/net/rank_manager.h", ""),
    (words.name_errors, "src/net/impl.cc", ""),
    *[(stdout_errors, "launcher/supervise/x.cc", line) for line in (
        "std::cout << a;", "  printf(\"%d\", a);", "std::puts(a);", "fputs(a, stdout);", "::write(1, a, 2);",
        "write_all(STDOUT_FILENO, a);", "std::fwrite(a, 1, 2, stdout);", "std::print(a);")],
    (stdout_errors, "runtime/engine/x.cc", "std::printf(a);"),
    (words.sleep_errors, "tests/unit/a/x_test.cc", "std::this_thread::sleep_for(1ms);\n"),
    (words.sleep_errors, "tests/cli/test_x.py", "    time.sleep(1)\n"),
    (words.sleep_errors, "tests/payload/x.c", "sleep(3);  // sleep-ok:\n"),
    (words.flag_access_errors, "runtime/transport/shm/x.cc", "at_flag_access();\na.load();\nb.fetch_or(1);\n"),
    (words.flag_access_errors, "runtime/transport/shm/x.h", "a.store(1);\n"),
    (words.flag_access_errors, "runtime/transport/shm/x.h", "at_flag_access();\nx = a.load() - b.load();\n"),
]


@pytest.mark.parametrize("rule, path, text", BAD)
def test_a_bad_sample_is_red(rule, path, text):
    assert list(rule({path: text})) != []


GOOD = [
    (words.test_name_errors, "tests/unit/a/x_test.cc", 'TEST_CASE("it works") { CHECK(f(";").ok()); }\n'),
    (words.environment_errors, "src/base/environment.cc", "extern char** environ;\n"),
    (words.environment_errors, "src/net/x.cc", '// getenv is elsewhere\nauto a = "/proc/1/environ";\n'),
    (words.sleep_errors, "tests/cli/test_x.py", "# sleep-ok: the payload must outlive the test\ntime.sleep(60)\n"),
    (words.sleep_errors, "tests/cli/test_x.py", 'run("sleep 30")\n'),
    (words.name_errors, "src/net/x.h", "struct DataType {\n"),
    (words.name_errors, "src/net/x.h", "class RankManager;\n"),
    (words.name_errors, "src/net/database.h", ""),
    (words.name_errors, "examples/data/digits.txt", ""),
    (stdout_errors, "launcher/output/x.cc", "write(1, a, 2); std::cout << a;"),
    (stdout_errors, "launcher/cli/x.cc", "// std::cout\nstd::snprintf(a, 1, \"stdout\"); fprintf(stderr, a); write(fd, 1, 2);"),
    (stdout_errors, "tests/x.cc", "std::cout << a;"),
    (words.flag_access_errors, "runtime/transport/shm/x.cc", "at_flag_access();\nif (a.load() > b) c();\n"),
    (words.flag_access_errors, "runtime/transport/shm/x.cc", "f();\nmoved->shared_memory.fetch_add(1);\n"),
    (words.flag_access_errors, "runtime/engine/x.cc", "a.load();\n"),
    (words.spdx_errors, "src/x.cc", "// What.\n// SPDX-License-Identifier: Apache-2.0\n"),
]


@pytest.mark.parametrize("rule, path, text", GOOD)
def test_a_good_sample_is_green(rule, path, text):
    assert list(rule({path: text})) == []
