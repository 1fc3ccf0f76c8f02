# SPDX-License-Identifier: Apache-2.0
"""python -m hvrun.doctor: would training work in this environment? What it has, and what is missing for what.

Exit status 0: two ranks were started here and have added up numbers, and a framework that hvrun has a binding for can be
imported. Else 1.
"""

import argparse
import ctypes
import importlib.metadata
import os
import platform
import subprocess
import sys

from hvrun import __version__, exceptions
from hvrun._library import open_library
from hvrun._programs import find_program
from hvrun.basics import stated_backends

GOOD, PLAIN, BAD = "ok", "--", "NO"
# framework: (its distributions, the binding, the oldest that works)
FRAMEWORKS = {
    "PyTorch": (("torch",), "hvrun.torch", (2, 1)),
    "TensorFlow": (("tensorflow", "tensorflow-cpu"), None, None),
    "JAX": (("jax",), None, None),
    "MXNet": (("mxnet",), None, None),
}
# MPI: its libraries, and hvrun's part for it, beside libhvrun. As HVRUN_MPI names them.
MPIS = {
    "openmpi": ("Open MPI", ("libmpi.so.40", "libmpi.so.80"), "libhvrun-openmpi.so"),
    "mpich": ("MPICH", ("libmpich.so.12", "libmpi.so.12"), "libhvrun-mpich.so"),
}
FAILED = "failed: "
# PyTorch brings the one that its ranks then use.
TRY_NCCL = """
try:
    import torch
except Exception:  # told where PyTorch is looked at
    pass
from hvrun import doctor
doctor.tell_nccl()
"""
TRY_RANKS = f"""
import sys
from hvrun import basics, exceptions, inflight, _abi
try:
    basics.init()
    print(inflight.reduce_numbers("doctor", [basics.rank() + 1], _abi.SUM)[0], basics.size())
except (exceptions.HorovodInternalError, exceptions.LibraryError) as error:
    print("{FAILED}" + " ".join(str(error).split()), flush=True)
    sys.exit(1)
"""


class Finding:
    """What was looked at, whether it is well, what was found, and what mends it."""

    def __init__(self, what, verdict, found, mend=""):
        self.what, self.verdict, self.found, self.mend = what, verdict, found, mend

    def text(self):
        lines = [f"  {self.verdict}  {self.what:<12} {self.found}"]
        return lines + ([f"{'':18}try: {self.mend}"] if self.mend else [])


def version_of(names):
    """Of the first distribution that is installed; None: none is."""
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def look_at_library():
    try:
        library = open_library()
    except exceptions.LibraryError as error:
        return Finding("libhvrun", BAD, str(error).replace("\n", "\n                  "))
    version = library.version().decode()
    if version != __version__:
        return Finding("libhvrun", BAD, f"{version} at {library.path}, but this package is {__version__}",
                       "unset HVRUN_LIBRARY, or pip install --force-reinstall hvrun")
    return Finding("libhvrun", GOOD, f"{version} at {library.path} ({library.origin})")


def look_at_hvrun():
    hvrun = find_program("hvrun")
    if hvrun is None:
        return Finding("hvrun", BAD, "not beside this python, and not on PATH", "pip install hvrun in this environment")
    done = _run([hvrun, "--version"])
    if done.returncode != 0:
        return Finding("hvrun", BAD, f"{hvrun}: {(done.stderr or done.stdout).strip()}",
                       "pip install . on this machine: it was built for another system")
    return Finding("hvrun", GOOD, f"{done.stdout.strip()} at {hvrun}")


def look_at_libssh():
    """hvrun opens it for hosts that it reaches over SSH, and for nothing else."""
    path = _loaded("libssh.so.4")[1]
    if path is None:
        return Finding("libssh", PLAIN, "not found: hvrun reaches hosts over SSH with --rsh ssh alone",
                       "apt-get install libssh-4, or dnf install libssh")
    return Finding("libssh", PLAIN, f"for hosts over SSH, at {path}")


def look_at_agent():
    """The program that hvrun copies to hosts, so what counts is the machine that it is for."""
    agent, mend = find_program("hvrun-agent"), "pip install --force-reinstall hvrun"
    if agent is None:
        return Finding("hvrun-agent", BAD, "not beside this python, and not on PATH", mend)
    done = _run([agent, "--version"])
    if done.returncode != 0:
        return Finding("hvrun-agent", BAD, f"{agent}, for {machine_of(agent)}: {(done.stderr or done.stdout).strip()}", mend)
    version = done.stdout.split()[1]  # hvrun-agent VERSION BUILD
    if version != __version__:
        return Finding("hvrun-agent", BAD, f"{version} at {agent}, but this package is {__version__}", mend)
    return Finding("hvrun-agent", GOOD, f"{version} at {agent}, for {machine_of(agent)}")


def machine_of(program):
    """By its ELF header: what uname -m says on the machines that it runs on."""
    with open(program, "rb") as file:
        number = int.from_bytes(file.read(20)[18:], sys.byteorder)
    return {62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64le"}.get(number, f"machine type {number} of ELF")


def look_at_framework(name):
    distributions, binding, oldest = FRAMEWORKS[name]
    version = version_of(distributions)
    if version is None:
        return Finding(name, PLAIN, "not installed")
    if binding is None:
        return Finding(name, PLAIN, f"{version}; hvrun has no binding for it yet, but starts its programs as they are")
    if tuple(int(one) for one in version.split("+")[0].split(".")[:2]) < oldest:
        return Finding(name, BAD, f"{version} is older than {'.'.join(map(str, oldest))}, which {binding} needs",
                       f"pip install --upgrade {distributions[0]}")
    done = _run([sys.executable, "-c", f"import {binding}"])
    if done.returncode != 0:
        return Finding(name, BAD, f"{version} is installed, but import {binding} fails: {_last_line(done.stderr)}",
                       f"python -c 'import {distributions[0]}' shows whether PyTorch itself is broken")
    return Finding(name, GOOD, f"{version}: import {binding} as hvd")


def look_at_numpy():
    version = version_of(("numpy",))
    if version is None:
        return Finding("NumPy", PLAIN, "not installed: PyTorch warns of that on every rank, and many programs want it", "pip install numpy")
    return Finding("NumPy", PLAIN, version)


def look_at_cuda():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Finding("CUDA", PLAIN, "no driver (libcuda.so.1): ranks work on CPUs")
    number, count = ctypes.c_int(), ctypes.c_int()
    code = driver.cuInit(0) or driver.cuDriverGetVersion(ctypes.byref(number)) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code != 0:
        return Finding("CUDA", PLAIN, f"the driver is there, but cuInit says {code}: no GPU that works", "nvidia-smi")
    version = f"{number.value // 1000}.{number.value % 1000 // 10}"
    return Finding("CUDA", PLAIN, f"{count.value} GPUs, driver for CUDA {version}")


def look_at_nccl():
    """The one that ranks would use, which libhvrun finds; in a process of its own, for it may be large, or broken."""
    done = _run([sys.executable, "-c", TRY_NCCL], PYTHONPATH=os.pathsep.join(one for one in sys.path if one))
    names, stated = stated_backends(), f"HVRUN_BACKEND={os.environ.get('HVRUN_BACKEND', '')}"
    note = "" if not names or "nccl" in names else f"; not needed, for {stated}"
    told = (done.stdout.strip().splitlines() or [f"{FAILED}asking for it fails: {_last_line(done.stderr)}"])[-1]
    if not told.startswith(FAILED):
        return Finding("NCCL", GOOD if "nccl" in names else PLAIN, told + note)
    words, mend = _taken_apart(told[len(FAILED):])
    if set(names) == {"nccl"}:
        return Finding("NCCL", BAD, f"{stated} needs it: {words}", f"{mend or 'pip install hvrun again'}; or HVRUN_BACKEND=nccl,native")
    is_wanted = "nccl" in names or (not names and _loaded("libcuda.so.1")[0] is not None)
    note = note or "; only GPUs need it, whose tensors go through the host's memory without it, which is slow"
    return Finding("NCCL", PLAIN, words + note, mend if is_wanted else "")


def tell_nccl():
    """For TRY_NCCL: its version and place on stdout, or why there is none."""
    try:
        asked, number = open_library(), ctypes.c_int32()
        asked.check(asked.nccl_version(ctypes.byref(number)))
    except exceptions.HorovodInternalError as error:
        print(FAILED + " ".join(str(error).split()))
        return
    except exceptions.LibraryError:  # told where that is looked at
        print(f"{FAILED}not known: libhvrun, which looks for it, cannot be loaded")
        return
    version = f"{number.value // 10000}.{number.value % 10000 // 100}.{number.value % 100}"
    print(f"{version} at {_mapped('libnccl.so')}, by {_mapped('libhvrun-nccl.so')}")


def look_at_mpi():
    paths = {mpi: _loaded(*libraries)[1] for mpi, (_, libraries, _) in MPIS.items()}
    backend, wanted = os.environ.get("HVRUN_BACKEND", ""), os.environ.get("HVRUN_MPI", "").lower()
    if "mpi" not in stated_backends():
        found = [f"{MPIS[mpi][0]} at {path}" for mpi, path in paths.items() if path]
        return Finding("MPI", PLAIN, (", ".join(found) or "not found") + "; not needed")
    folder, words, works = _folder_of_library(), [], False
    for mpi in [wanted] if wanted in MPIS else MPIS:
        name, _, part = MPIS[mpi]
        is_there = folder is not None and os.path.exists(os.path.join(folder, part))
        works = works or (is_there and paths[mpi] is not None)
        words.append(f"{name} {f'at {paths[mpi]}' if paths[mpi] else 'is not found'}, and {part} is {'' if is_there else 'not '}there")
    return Finding("MPI", GOOD if works else BAD, f"HVRUN_BACKEND={backend} needs it: {'; '.join(words)}",
                   "" if works else "install openmpi-bin and libopenmpi-dev, or mpich, and hvrun again, which is built beside them; "
                   "or HVRUN_BACKEND=native")


def _folder_of_library():
    """Where libhvrun's parts lie; None where it cannot be loaded."""
    try:
        open_library()
    except exceptions.LibraryError:
        return None
    path = _mapped("libhvrun.so")
    return path and os.path.dirname(path)


def _mapped(start):
    """The file of this process whose name begins so."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps}
    return next((path for path in sorted(paths) if os.path.basename(path).startswith(start)), None)


def _loaded(*names):
    """The first of these libraries that the system finds, and its path; or twice None."""
    for name in names:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return library, _mapped(name) or name
    return None, None


def try_two_ranks():
    """The thing itself, on this machine."""
    hvrun = find_program("hvrun")
    if hvrun is None:
        return Finding("two ranks", BAD, "there is no hvrun to start them")
    words = [hvrun, "-np", "2", "--oversubscribe", "--no-label", sys.executable, "-c", TRY_RANKS]
    done = _run(words, PYTHONPATH=os.pathsep.join(one for one in sys.path if one))
    if done.returncode == 0 and done.stdout.split() == ["3", "2", "3", "2"]:
        return Finding("two ranks", GOOD, "were started here, met, and added up numbers")
    failures = dict.fromkeys(line[len(FAILED):] for line in done.stdout.splitlines() if line.startswith(FAILED))
    if failures:
        words, mends = zip(*(_taken_apart(line) for line in failures))
        return Finding("two ranks", BAD, "; ".join(words), next(filter(None, mends), ""))
    return Finding("two ranks", BAD, f"hvrun -np 2 ended with exit code {done.returncode}:\n                  "
                   + (done.stderr.strip() or done.stdout.strip()).replace("\n", "\n                  "))


def _taken_apart(line):
    """What happened, and what to try: "" where the error does not know."""
    words, _, mend = line.partition(" try: ")
    return words.rstrip(";"), mend


def _run(words, **more):
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=120, env={**os.environ, **more}, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(words, 127, "", str(error))


def _last_line(text):
    return (text.strip().splitlines() or ["no words"])[-1]


def examine():
    """Every finding, in the order in which they are told."""
    findings = [Finding("Python", GOOD, f"{platform.python_version()} at {sys.executable}"), look_at_hvrun(), look_at_libssh(),
                look_at_agent(), look_at_library()]
    findings += [look_at_framework(name) for name in FRAMEWORKS]
    findings += [look_at_numpy()]
    findings += [Finding("native", GOOD, "hvrun's own backend, by shared memory and TCP: always there"), look_at_cuda(),
                 look_at_nccl(), look_at_mpi(), try_two_ranks()]
    return findings


def would_train(findings):
    """Nothing is broken, and there is a framework to train with."""
    has_framework = any(one.what in FRAMEWORKS and one.verdict == GOOD for one in findings)
    return has_framework and all(one.verdict != BAD for one in findings)


def conclusion(findings):
    broken = [one.what for one in findings if one.verdict == BAD]
    if broken:
        return f"Training would not work here: see {', '.join(broken)}."
    if not would_train(findings):
        return "hvrun works, but there is no framework to train with. Try: pip install torch"
    return "Training would work here. Try: hvrun -np 2 python train.py"


def main():
    argparse.ArgumentParser(prog="python -m hvrun.doctor", description=__doc__).parse_args()
    print(f"hvrun {__version__} on {platform.node()}")
    findings = examine()
    for finding in findings:
        print("\n".join(finding.text()))
    print(conclusion(findings))
    return 0 if would_train(findings) else 1


if __name__ == "__main__":
    sys.exit(main())
