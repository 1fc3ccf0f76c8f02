# SPDX-License-Identifier: Apache-2.0
"""python -m hvrun.doctor: would training work in this environment? What it has, and what is missing for what.

Exit status 0: two ranks were started here and have added up numbers, and a framework that hvrun has a binding for can be
imported. Else 1.
"""

import argparse
import ctypes
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys

from hvrun import __version__, exceptions
from hvrun._library import open_library
from hvrun._programs import find_program
from hvrun.basics import stated_backends

GOOD, PLAIN, BAD = "ok", "--", "NO"
# framework: (hvrun's binding for it, the distribution that pip knows, the oldest that works)
BINDINGS = {"PyTorch": ("hvrun.torch", "torch", (2, 1))}
FAILED = "failed: "
MOST_SECONDS_OF_HVRUN = 600  # it gives each library, and Python, a minute
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
    """What was inspected, whether it is well, what was found, and what fixes it."""

    def __init__(self, what, verdict, found, hint=""):
        self.what, self.verdict, self.found, self.hint = what, verdict, found, hint

    def text(self):
        lines = [f"  {self.verdict}  {self.what:<12} {self.found}"]
        return lines + ([f"{'':18}try: {self.hint}"] if self.hint else [])


def inspect_library():
    try:
        library = open_library()
    except exceptions.LibraryError as error:
        return Finding("libhvrun", BAD, str(error).replace("\n", "\n                  "))
    version = library.version().decode()
    if version != __version__:
        return Finding("libhvrun", BAD, f"{version} at {library.path}, but this package is {__version__}",
                       "unset HVRUN_LIBRARY, or pip install --force-reinstall hvrun")
    return Finding("libhvrun", GOOD, f"{version} at {library.path} ({library.origin})")


def inspect_hvrun():
    hvrun = find_program("hvrun")
    if hvrun is None:
        return Finding("hvrun", BAD, "not beside this python, and not on PATH", "pip install hvrun in this environment")
    done = _run([hvrun, "--version"])
    if done.returncode != 0:
        return Finding("hvrun", BAD, f"{hvrun}: {(done.stderr or done.stdout).strip()}",
                       "pip install . on this machine: it was built for another system")
    return Finding("hvrun", GOOD, f"{done.stdout.strip()} at {hvrun}")


def ask_hvrun():
    """(facts, finding): what `hvrun env --json` has of frameworks and libraries, asked as in an environment of this python that is
    activated; None and why it does not answer."""
    here = {"PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])}
    if sys.prefix != sys.base_prefix:
        here["VIRTUAL_ENV"] = sys.prefix
    try:
        here["HVRUN_LIBRARY"] = str(open_library().path)
    except exceptions.LibraryError:  # inspect_library reports it
        pass
    hvrun = find_program("hvrun")
    if hvrun is None:  # inspect_hvrun reports it
        return None, None
    done = _run([hvrun, "env", "--json"], seconds=MOST_SECONDS_OF_HVRUN, **here)
    try:
        return json.loads(done.stdout), None
    except ValueError:
        return None, Finding("hvrun env", BAD, f"{hvrun} env --json: {_last_line(done.stderr or done.stdout)}",
                             "pip install --force-reinstall hvrun")


def inspect_libssh():
    """hvrun opens it for hosts that it reaches over SSH, and for nothing else."""
    try:
        ctypes.CDLL("libssh.so.4")
    except OSError:
        return Finding("libssh", PLAIN, "not found: hvrun reaches hosts over SSH with --rsh ssh alone",
                       "apt-get install libssh-4, or dnf install libssh")
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "/libssh.so" in line}
    return Finding("libssh", PLAIN, f"for hosts over SSH, at {min(paths)}")


def inspect_agent():
    """The program that hvrun copies to hosts, so what counts is the machine that it is for."""
    agent, hint = find_program("hvrun-agent"), "pip install --force-reinstall hvrun"
    if agent is None:
        return Finding("hvrun-agent", BAD, "not beside this python, and not on PATH", hint)
    done = _run([agent, "--version"])
    if done.returncode != 0:
        return Finding("hvrun-agent", BAD, f"{agent}, for {machine_of(agent)}: {(done.stderr or done.stdout).strip()}", hint)
    version = done.stdout.split()[1]  # hvrun-agent VERSION BUILD
    if version != __version__:
        return Finding("hvrun-agent", BAD, f"{version} at {agent}, but this package is {__version__}", hint)
    return Finding("hvrun-agent", GOOD, f"{version} at {agent}, for {machine_of(agent)}")


def machine_of(program):
    """By its ELF header: what uname -m says on the machines that it runs on."""
    with open(program, "rb") as file:
        number = int.from_bytes(file.read(20)[18:], sys.byteorder)
    return {62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64le"}.get(number, f"machine type {number} of ELF")


def inspect_framework(fact):
    name, text = fact["name"], fact["text"]
    if not fact["is_usable"]:
        return Finding(name, PLAIN, text)
    binding, distribution, oldest = BINDINGS[name]
    version = re.match(r"(\d+)\.(\d+)", text)
    if version and tuple(map(int, version.groups())) < oldest:
        return Finding(name, BAD, f"{text} is older than {'.'.join(map(str, oldest))}, which {binding} needs",
                       f"pip install --upgrade {distribution}")
    done = _run([sys.executable, "-c", f"import {binding}"])
    if done.returncode != 0:
        return Finding(name, BAD, f"{text} is installed, but import {binding} fails: {_last_line(done.stderr)}",
                       f"python -c 'import {distribution}' shows whether {name} itself is broken")
    return Finding(name, GOOD, f"{text}: import {binding} as hvd")


def inspect_numpy():
    try:
        return Finding("NumPy", PLAIN, importlib.metadata.version("numpy"))
    except importlib.metadata.PackageNotFoundError:
        return Finding("NumPy", PLAIN, "not installed: PyTorch warns of that on every rank, and many programs want it", "pip install numpy")


def inspect_cuda(facts):
    text, hint = _split_advice(facts["cuda"]["text"])
    if facts["cuda"]["is_usable"]:
        return Finding("CUDA", PLAIN, text)
    without_reason = text if hint else text.partition(" (")[0]  # a machine without GPUs is no fault
    return Finding("CUDA", PLAIN, without_reason + ": ranks work on CPUs", hint)


def inspect_nccl(facts):
    names, stated = stated_backends(), f"HVRUN_BACKEND={os.environ.get('HVRUN_BACKEND', '')}"
    note = "" if not names or "nccl" in names else f"; not needed, for {stated}"
    text, hint = _split_advice(facts["nccl"]["text"])
    if facts["nccl"]["is_usable"]:
        return Finding("NCCL", GOOD if "nccl" in names else PLAIN, text + note)
    if set(names) == {"nccl"}:
        return Finding("NCCL", BAD, f"{stated} needs it: {text}", f"{hint + '; or ' if hint else ''}HVRUN_BACKEND=nccl,native")
    is_wanted = "nccl" in names or (not names and facts["cuda"]["is_usable"])
    if not names and not facts["cuda"]["is_usable"] and not os.environ.get("HVRUN_NCCL"):
        return Finding("NCCL", PLAIN, "not needed: only GPUs use it")
    note = note or "; only GPUs need it, whose tensors go through the host's memory without it, which is slow"
    return Finding("NCCL", PLAIN, text + note, hint if is_wanted else "")


def inspect_mpi(facts):
    if "mpi" not in stated_backends():
        return Finding("MPI", PLAIN, "not needed: HVRUN_BACKEND does not name it")
    text, works = facts["mpi"]["text"], facts["mpi"]["is_usable"]
    text, hint = (text, "") if works else _split_advice(text)
    return Finding("MPI", GOOD if works else BAD, f"HVRUN_BACKEND={os.environ['HVRUN_BACKEND']} needs it: {text}",
                   "" if works else f"{hint}; or HVRUN_BACKEND=native")


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
        texts, hints = zip(*(_split_advice(line) for line in failures))
        return Finding("two ranks", BAD, "; ".join(texts), next(filter(None, hints), ""))
    return Finding("two ranks", BAD, f"hvrun -np 2 ended with exit code {done.returncode}:\n                  "
                   + (done.stderr.strip() or done.stdout.strip()).replace("\n", "\n                  "))


def _split_advice(line):
    """What happened, and the last advice: "" where there is none. A reason in the first part may have advice of its own."""
    text, has_advice, advice = line.rpartition(" try: ")
    return (text.rstrip(";"), advice) if has_advice else (line, "")


def _run(words, seconds=120, **more):
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=seconds, env={**os.environ, **more}, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(words, 127, "", str(error))


def _last_line(text):
    return (text.strip().splitlines() or ["no words"])[-1]


def examine():
    """Every finding, in the order in which they are printed."""
    findings = [Finding("Python", GOOD, f"{platform.python_version()} at {sys.executable}"), inspect_hvrun(), inspect_libssh(),
                inspect_agent(), inspect_library()]
    facts, trouble = ask_hvrun()
    findings += [trouble] if trouble else []
    frameworks = [fact for fact in facts["frameworks"] if fact["is_usable"] or fact["name"] in BINDINGS] if facts else []
    findings += [*map(inspect_framework, frameworks), inspect_numpy()]
    findings += [inspect(facts) for inspect in (inspect_cuda, inspect_nccl, inspect_mpi) if facts]
    return findings + [try_two_ranks()]


def would_train(findings):
    """Nothing is broken, and there is a framework to train with."""
    has_framework = any(one.what in BINDINGS and one.verdict == GOOD for one in findings)
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
