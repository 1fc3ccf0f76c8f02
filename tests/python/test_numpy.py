"""All operations of hvrun.h from Python, with NumPy as the reference. SPDX-License-Identifier: Apache-2.0"""

import subprocess
import sys
from pathlib import Path

import pytest
from harness import programs

HERE = Path(__file__).parent
BIN = programs.hvrun_folder()
LIBRARY = BIN.parent / "lib" / "libhvrun.so"
PROGRAM = [sys.executable, "-B", str(HERE / "operations.py"), str(LIBRARY)]
RSH = str(HERE.parent / "c" / "rsh_to_here.sh")


@pytest.mark.parametrize("options", [["-np", "1"], ["-np", "2"], ["-np", "4"], ["--oversubscribe", "--rsh", RSH, "-H", "a:2,b:1"]],
                         ids=" ".join)
def test_every_operation_yields_what_numpy_does(options, tmp_path):
    argv = [str(BIN / "hvrun"), *options, "--no-label", *PROGRAM]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    size = 3 if "--rsh" in options else int(options[1])
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} of {size}: all is as NumPy has it" for rank in range(size)]


def test_without_hvrun_it_is_alone(tmp_path):
    done = subprocess.run(PROGRAM, capture_output=True, text=True, timeout=300, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert (done.returncode, done.stdout) == (0, "rank 0 of 1: all is as NumPy has it\n"), done.stderr
