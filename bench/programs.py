"""The programs that are measured, and how one run is timed. SPDX-License-Identifier: Apache-2.0"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import time

from rounds import NotRun

SOURCE = pathlib.Path(__file__).resolve().parents[1]
# OpenMPI refuses to start as root unless told twice.
PEER_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# What changes how programs buffer or start, and is none of what is measured.
LEFT_OUT = ("PYTHON", "LD_PRELOAD", "HVRUN_")
LONGEST_RUN_S = 300


def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
    return {**kept, **PEER_ENVIRONMENT}


def shown(words):
    """A command line that can be pasted; programs of this tree by their place in it."""
    return shlex.join(str(word) for word in words).replace(f"{SOURCE}/", "")


def exported(settings):
    """hvrun's words that give NAME=VALUE settings to the ranks."""
    return [word for setting in settings for word in ("-x", setting)]


def need_program(name):
    path = shutil.which(name)
    if not path:
        raise NotRun(f"{name} is not installed ('./dev bench' installs it)")
    return path


def run(words, more_environment=None):
    """Standard output of a run that must end with 0."""
    try:
        done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", env={**environment(), **(more_environment or {})}, timeout=LONGEST_RUN_S)
    except OSError as error:
        raise NotRun(f"{shlex.join(map(str, words))}: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise NotRun(f"{shlex.join(map(str, words))}: not done after {LONGEST_RUN_S} s") from error
    if done.returncode != 0:
        raise NotRun(f"{shlex.join(map(str, words))}: exit {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def seconds(words, times=1):
    """Wall time of `times` runs one after the other, of one."""
    begun = time.perf_counter()
    for _ in range(times):
        run(words)
    return (time.perf_counter() - begun) / times


def json_lines(text, words):
    """What a measuring program printed, one object a line."""
    try:
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    except ValueError as error:
        raise NotRun(f"{shown(words)}: printed no result: {error}") from error


def first_line(words):
    try:
        return run(words).splitlines()[0]
    except (NotRun, IndexError):
        return "absent"


def median_us(words, more_environment=None):
    """The figure of a program that measures one thing."""
    results = json_lines(run(words, more_environment), words)
    if not results:
        raise NotRun(f"{shown(words)}: printed no result")
    return results[-1]["median_us"]


def usable_cores():
    return len(os.sched_getaffinity(0))
