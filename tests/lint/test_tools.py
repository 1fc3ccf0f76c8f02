"""shellcheck and clang-format agree with every script and source. SPDX-License-Identifier: Apache-2.0"""

import re
import subprocess

import tree


def run(*words):
    return subprocess.run(words, cwd=tree.ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def scripts():
    paths = [path for path in tree.files() if "." not in path.split("/")[-1] or path.endswith(".sh")]
    return [path for path in paths if tree.is_script(path, tree.read(path)[:64])]


def shellcheck(*paths):
    return run("shellcheck", "-x", *paths)


def layout(*paths):
    return run("clang-format-16", "--dry-run", "-Werror", "--style=file:" + str(tree.ROOT / ".clang-format"), *paths)


def test_shellcheck_is_content_with_every_script():
    assert "dev" in scripts() and ".ci/run" in scripts()
    result = shellcheck(*scripts())
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_bad_script_is_red(tmp_path):
    (tmp_path / "x.sh").write_text("#!/bin/sh\nrm -r $1/*\n")
    assert shellcheck(tmp_path / "x.sh").returncode == 1


def test_every_source_is_laid_out_by_clang_format():
    paths = [path for path in tree.files() if path.endswith(tree.CXX)]
    result = layout(*paths)
    bad = sorted(set(re.findall(r"^(\S+):\d+:\d+: error", result.stderr, re.MULTILINE)))
    assert bad == [], "'./dev format' mends this"
    assert result.returncode == 0, result.stderr


def test_a_badly_laid_out_source_is_red(tmp_path):
    (tmp_path / "x.cc").write_text("int  f( ){return 1 ;}\n")
    assert layout(tmp_path / "x.cc").returncode != 0


def test_every_module_that_a_test_can_do_without_is_installed_for_the_tests():
    """As root and in CI a skipped test counts as a failure, so "./dev test" must not depend on what else was installed."""
    tests = [path for path in tree.files() if path.startswith("tests/") and path.endswith(".py")]
    modules = {module for path in tests for module in re.findall(r'\bimportorskip\("([^"]+)"', tree.read(path))}
    assert "matplotlib" in modules
    assert {f"python3-{module}" for module in modules} <= set(tree.read("packaging/test.list").split())
