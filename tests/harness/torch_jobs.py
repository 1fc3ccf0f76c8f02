# SPDX-License-Identifier: Apache-2.0
"""Jobs of Python programs that use hvrun.torch of this checkout."""

import fcntl
import functools
import os
import pathlib
import socket
import subprocess
import tempfile

from harness import processes, programs, running, torch_environment

PACKAGE = programs.SOURCE / "python"
WITH_HOROVODS_NAMES = f"{PACKAGE}:{PACKAGE / 'horovod-compat'}"  # for PYTHONPATH
WARM_PYTHON = str(programs.SOURCE / "tests" / "harness" / "warm_python.py")
RSH = str(programs.SOURCE / "tests" / "c" / "rsh_to_here.sh")
# Who starts the ranks in which tests/python/ranks run: hvrun, in jobs of several sizes (python/test_torch.py), an mpirun
# (python/test_torch_mpi.py), or hvrun on two real hosts (cluster/test_torch.py).
LAUNCHERS = ("1 rank", "2 ranks", "3 ranks", "4 ranks", "2 hosts", "openmpi", "mpich", "2 real hosts")
TWO_HOSTS = ["--oversubscribe", "--rsh", RSH, "-H", "a:2,b:1"]  # two names for this machine: ranks meet over TCP


def settings(**more):
    """Variables with which a Python finds the package of this checkout, and its library and programs."""
    return {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "HVRUN_STALL_SECONDS": "20",
            "HVRUN_STALL_SHUTDOWN_SECONDS": "60", "HVRUN_LIBRARY": str(programs.hvrun_folder().parent / "lib" / "libhvrun.so"),
            "HVRUN_BIN_DIR": str(programs.hvrun_folder()), **more}


def environment(home, **more):
    """As a user's that has built this checkout."""
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", **settings(**more)}


def _owner():
    """The ctest whose test this process is: one warm Python serves all of its tests. Else this process."""
    parent = os.getppid()
    return parent if pathlib.Path(f"/proc/{parent}/comm").read_text() == "ctest\n" else os.getpid()


@functools.lru_cache(maxsize=None)
def _warm_python():
    """The words that stand for a Python that has imported PyTorch, which lives as long as its owner. See warm_python.py."""
    owner = _owner()
    directory = pathlib.Path(tempfile.gettempdir(), f"hvrun-warm-{owner}-{processes.look_at(owner).start}")
    directory.mkdir(mode=0o700, exist_ok=True)
    words = ["/usr/bin/python3", "-I", "-S", WARM_PYTHON, str(directory / "socket")]
    with open(directory / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "socket").exists():
            python = directory / "python"  # for PATH
            python.write_text(f"#!/bin/sh\nexec {' '.join(words)} \"$@\"\n")
            python.chmod(0o755)
            _start_warm_python(directory, owner)
    return words


def _start_warm_python(directory, owner):
    """It keeps none of this test's pipes, for ctest waits until they are closed, and gets none of its signals."""
    until = os.pidfd_open(owner)
    with socket.socket(socket.AF_UNIX) as listener, open(directory / "errors", "w") as errors:
        listener.bind(str(directory / "socket"))
        listener.listen(64)
        fds = [listener.fileno(), until]
        subprocess.Popen([str(torch_environment.interpreter()), WARM_PYTHON, "--serve", *map(str, fds)], pass_fds=fds,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
                         env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"})
    os.close(until)


def directory_with_warm_python():
    """For PATH: its `python` is that one."""
    return pathlib.Path(_warm_python()[-1]).parent


def start(options, words, home, **more):
    """hvrun with these options and a Python program, which has just begun."""
    argv = [str(programs.hvrun()), *options, str(torch_environment.interpreter()), *words]
    return running.Running(argv, env=environment(home, **more), cwd=os.fspath(home))


def run(options, words, home, timeout=300, warm=False, **more):
    """hvrun with these options and a Python program; its CompletedProcess, as text. warm: by a Python that has imported PyTorch
    already, which no signal reaches."""
    python = _warm_python() if warm else [str(torch_environment.interpreter())]
    argv = [str(programs.hvrun()), *options, *python, *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, env=environment(home, **more), check=False,
                          cwd=os.fspath(home))
