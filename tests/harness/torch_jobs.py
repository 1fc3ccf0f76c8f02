# SPDX-License-Identifier: Apache-2.0
"""Jobs of Python programs that use hvrun.torch of this checkout."""

import os
import subprocess

from harness import programs, torch_environment

PACKAGE = programs.SOURCE / "python"
WITH_HOROVODS_NAMES = f"{PACKAGE}:{PACKAGE / 'horovod-compat'}"  # for PYTHONPATH
RSH = str(programs.SOURCE / "tests" / "c" / "rsh_to_here.sh")
TWO_HOSTS = ["--oversubscribe", "--rsh", RSH, "-H", "a:2,b:1"]  # two names for this machine: ranks meet over TCP


def settings(**more):
    """Variables with which a Python finds the package of this checkout, and its library and programs."""
    return {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "HVRUN_STALL_SECONDS": "20",
            "HVRUN_STALL_SHUTDOWN_SECONDS": "60", "HVRUN_LIBRARY": str(programs.hvrun_folder().parent / "lib" / "libhvrun.so"),
            "HVRUN_BIN_DIR": str(programs.hvrun_folder()), **more}


def environment(home, **more):
    """As a user's that has built this checkout."""
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", **settings(**more)}


def run(options, words, home, timeout=300, **more):
    """hvrun with these options and a Python program; its CompletedProcess, as text."""
    argv = [str(programs.hvrun()), *options, str(torch_environment.interpreter()), *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, env=environment(home, **more), check=False,
                          cwd=os.fspath(home))
