"""examples/demo.sh judges what hvrun printed; hvrun is a stand-in here. SPDX-License-Identifier: Apache-2.0"""

import os
import pathlib
import subprocess
import tempfile

import pytest
from harness import programs

DEMO = programs.SOURCE / "examples" / "demo.sh"
A, B = "0123456789abcdef", "fedcba9876543210"
GOOD = ["[0] test accuracy 0.9732", f"[0] weights hash {A}", f"[1] weights hash {A}"]


@pytest.fixture
def demo(tmp_path):
    def run(lines, code=0, arguments=()):
        hvrun = tmp_path / "hvrun"
        (tmp_path / "lines").write_text("".join(line + "\n" for line in lines))
        hvrun.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\ncat {tmp_path}/lines\nexit {code}\n')
        hvrun.chmod(0o755)
        return subprocess.run([DEMO, *arguments], env={**os.environ, "HVRUN_BIN_DIR": str(tmp_path)}, capture_output=True, text=True)

    return run


def test_a_trained_model_is_a_success_in_one_line(demo, tmp_path):
    result = demo(GOOD)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"$ {tmp_path}/hvrun -np 2 {tmp_path}/examples/train_digits"
    assert lines[1:4] == GOOD
    assert lines[4] == "demo: OK: 2 ranks on this machine trained to a test accuracy of 0.9732 and hold the same weights"
    assert (tmp_path / "arguments").read_text() == f"-np 2 {tmp_path}/examples/train_digits\n"


@pytest.mark.parametrize(
    "lines, fault",
    [
        ([], "no test accuracy was printed"),
        (["[0] test accuracy 0.9499", *GOOD[1:]], "the test accuracy is 0.9499, below 0.95"),
        (GOOD[:2], "1 of 2 ranks printed the hash of their weights"),
        ([*GOOD, f"[2] weights hash {A}"], "3 of 2 ranks printed the hash of their weights"),
        ([*GOOD[:2], f"[1] weights hash {B}"], "the ranks ended with 2 different sets of weights"),
        ([GOOD[0].replace("test", "epoch 1/2  test"), *GOOD[1:]], "no test accuracy was printed"),
    ],
)
def test_anything_less_is_a_failure_that_says_why(demo, lines, fault):
    result = demo(lines)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == f"demo: FAILED: {fault}"


def test_it_shows_a_command_that_can_be_typed_in_the_clone():
    programs.BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=programs.BUILD) as folder:
        hvrun = pathlib.Path(folder, "hvrun")
        hvrun.write_text("#!/bin/sh\n")
        hvrun.chmod(0o755)
        result = subprocess.run([DEMO], cwd="/", env={**os.environ, "HVRUN_BIN_DIR": folder}, capture_output=True, text=True)
        shown = hvrun.parent.relative_to(programs.SOURCE)
    assert result.stdout.splitlines()[0] == f"$ {shown}/hvrun -np 2 {shown}/examples/train_digits"


@pytest.mark.parametrize("code, words", [
    (3, "hvrun ended with exit code 3, see above"),
    (137, "hvrun or one of its ranks was killed by signal 9 (exit code 137)"),
])
def test_a_failing_hvrun_is_a_failure_whatever_it_printed(demo, code, words):
    result = demo(GOOD, code=code)
    assert result.returncode == 1
    assert result.stderr == f"demo: {words}\n"


@pytest.mark.parametrize("arguments", [["--hosts"], ["--hosts", "0"], ["--hosts", "many"], ["--host", "3"], ["--hosts", "3", "4"]])
def test_wrong_arguments_show_the_usage(demo, arguments):
    result = demo(GOOD, arguments=arguments)
    assert result.returncode == 2
    assert result.stderr.startswith("usage: examples/demo.sh [--hosts N]")


def test_without_hvrun_it_says_how_to_build_it(tmp_path):
    result = subprocess.run([DEMO], env={**os.environ, "HVRUN_BIN_DIR": str(tmp_path)}, capture_output=True, text=True)
    assert result.returncode == 1
    assert "./dev build" in result.stderr
