# SPDX-License-Identifier: Apache-2.0
"""PyTorch in a virtual environment under build/, made where it is not there: for hvrun.torch, the peers of the bench, and programs
of a user's that know nothing of hvrun. HVRUN_TEST_TORCH=torch==2.1.2 takes another PyTorch, in a folder of its own.

As a program: makes it, and says on stderr why where it cannot.
"""

import fcntl
import functools
import os
import pathlib
import subprocess
import sys

USUAL = "torch==2.13.0"  # its CPU build has Gloo; later ones may not
TORCH = os.environ.get("HVRUN_TEST_TORCH") or USUAL
VERSION = TORCH.partition("==")[2]
OTHERS = ("numpy", "pytest", "cloudpickle", "scikit-learn", "pillow")  # of tests and examples
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "build" / ("torch" if TORCH == USUAL else f"torch-{VERSION}")
PYTHON = FOLDER / "bin" / "python"
INSTALL_S = 900


class NoTorch(RuntimeError):
    """Why there is none, with the command that failed."""


def version():
    """That is there: '2.13.0+cpu'; '' where there is none."""
    words = [str(PYTHON), "-c", "import importlib.metadata as m; print(m.version('torch'))"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() if PYTHON.exists() else ""


@functools.lru_cache(maxsize=None)
def interpreter():
    """The Python that has PyTorch. Raises NoTorch where it cannot be had."""
    if not VERSION:
        raise NoTorch(f"HVRUN_TEST_TORCH={TORCH} is no release; try HVRUN_TEST_TORCH={USUAL}")
    FOLDER.parent.mkdir(exist_ok=True)
    with open(f"{FOLDER}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run at once make one
        if "torch==" + version().split("+")[0] != TORCH or not _has_others():
            _make()
    return PYTHON


def _has_others():
    words = [str(PYTHON), "-c", f"import importlib.metadata as m; [m.version(name) for name in {OTHERS!r}]"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def _wanted():
    """What pip is asked for. Before 2.3 PyTorch was built for the first NumPy."""
    is_old = tuple(map(int, VERSION.split(".")[:2])) < (2, 3)
    return [TORCH, *("numpy<2" if name == "numpy" and is_old else name for name in OTHERS)]


def _make():
    print(f"making {FOLDER.parent.name}/{FOLDER.name} with {TORCH}", file=sys.stderr, flush=True)
    for words in (["/usr/bin/python3", "-m", "venv", str(FOLDER)],
                  [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_wanted()]):
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoTorch(f"{' '.join(words)}: {error}") from error
        if done.returncode != 0:
            raise NoTorch(f"{' '.join(words)}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")


if __name__ == "__main__":
    try:
        interpreter()
    except NoTorch as error:
        print(error, file=sys.stderr)
