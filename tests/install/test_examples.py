"""The installed examples build against the installed hvrun and run. SPDX-License-Identifier: Apache-2.0"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HVRUN_TEST_BUILD_DIR", SOURCE / "build/dev"))


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(prefix, folder of the examples built from it); neither the sources nor the build can help."""
    folder = tmp_path_factory.mktemp("examples")
    # By names below that folder, which are the same in each run.
    ccache = f"env;CCACHE_BASEDIR={folder};CCACHE_NOHASHDIR=1;ccache" if shutil.which("ccache") else ""
    run("cmake", "--install", BUILD, "--prefix", folder / "prefix")
    run("cmake", "-S", folder / "prefix/share/hvrun/examples", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={folder}/prefix",
        f"-DCMAKE_C_COMPILER_LAUNCHER={ccache}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}")
    run("cmake", "--build", folder / "build", "-j", "2")
    return folder / "prefix", folder / "build"


def test_hello_ranks_builds_and_runs(built):
    prefix, build = built
    out = run(prefix / "bin/hvrun", "-np", "2", "--no-label", build / "hello_ranks", cwd="/")
    assert sorted(out.splitlines()) == [f"I am rank {rank} of 2; all our numbers add up to 1" for rank in range(2)]


def test_process_sets_builds_and_runs(built):
    prefix, build = built
    assert run(prefix / "bin/hvrun", "-np", "3", build / "process_sets", cwd="/").count("our numbers add up to") == 3


def test_pipeline_builds_and_runs(built):
    prefix, build = built
    out = run(prefix / "bin/hvrun", "-np", "3", "--no-label", build / "pipeline", cwd="/")
    assert sorted(out.splitlines()) == [f"I am layer {rank} of 3: the gradient of my weight is {gradient}"
                                        for rank, gradient in enumerate(("252000", "168000", "126000"))]


def test_fused_allreduce_builds_and_runs(built):
    prefix, build = built
    out = run(prefix / "bin/hvrun", "-np", "2", "--no-label", build / "fused_allreduce", cwd="/")
    assert sorted(out.splitlines()) == [f"rank {rank} of 2: 64 gradients of 176000 elements are averaged" for rank in range(2)]


@pytest.mark.parametrize("source", ["hello_ranks.c", "pipeline.c", "process_sets.c", "fused_allreduce.cc", "reductions.c", "exchanges.c"])
def test_each_builds_and_runs_by_the_lines_at_its_top(built, tmp_path, source):
    """With a library that no system folder holds and no variable names, as after an install into ~/.local."""
    prefix, _ = built
    path = prefix / "share/hvrun/examples" / source
    head = re.sub(r"^ \*", "", path.read_text().partition("*/")[0], flags=re.MULTILINE)
    compile_words, start = re.search(r"^   ((?:cc|c\+\+) .*?[^\\])\n   (hvrun -np \d \./\w+)$", head, re.MULTILINE | re.DOTALL).groups()
    (tmp_path / source).write_text(path.read_text())
    (found,) = prefix.rglob("hvrun.pc")
    environment = {"PATH": f"{prefix}/bin:/usr/bin:/bin", "PKG_CONFIG_PATH": str(found.parent), "HOME": str(tmp_path)}
    run("sh", "-c", compile_words, cwd=tmp_path, env=environment)
    del environment["PKG_CONFIG_PATH"]
    assert run("sh", "-c", re.sub(r"-np \d", "-np 2", start), cwd=tmp_path, env=environment).count("\n") == 2


def test_reductions_and_exchanges_build_and_run(built, tmp_path):
    prefix, build = built
    out = run(prefix / "bin/hvrun", "-np", "3", "--no-label", build / "reductions", cwd="/")
    assert sorted(out.splitlines()) == [f"rank {rank} of 3: every reduction is right" for rank in range(3)]
    out = run(prefix / "bin/hvrun", "-np", "3", "--no-label", build / "exchanges", tmp_path / "%r.json", cwd="/")
    assert sorted(out.splitlines()) == [f"rank {rank} of 3: every exchange is right" for rank in range(3)]
    assert all("ALLTOALL" in (tmp_path / f"{rank}.json").read_text() for rank in range(3))


def test_train_digits_builds_and_finds_its_installed_data(built):
    prefix, build = built
    assert str(SOURCE) not in run("strings", build / "train_digits")
    assert run(prefix / "bin/hvrun", "-np", "2", build / "train_digits", "--epochs", "1", cwd="/").count("weights hash") == 2


def test_the_data_and_its_licence_are_installed(built):
    prefix, _ = built
    data = prefix / "share/hvrun/examples/data"
    assert (data / "digits.txt").read_text() == (SOURCE / "examples/data/digits.txt").read_text()
    assert "Creative Commons Attribution 4.0" in (data / "README.md").read_text()
