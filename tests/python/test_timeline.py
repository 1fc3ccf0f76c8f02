"""Timelines as files: of programs in C, of a whole job, of a job that was killed. SPDX-License-Identifier: Apache-2.0"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from harness import programs

HERE = Path(__file__).parent
BIN = programs.hvrun_folder()
LIBRARY = BIN.parent / "lib" / "libhvrun.so"
RSH = str(HERE.parent / "c" / "rsh_to_here.sh")
STEPS = """
import os, signal, sys
import numpy as np
sys.path.insert(0, {here!r})
from numpy_binding import ALLREDUCE, BARRIER, Job
job = Job({library!r})
for step in range(20):
    lent = [job.start(ALLREDUCE, f"grad.{{i}}", np.ones(1000, np.float32), group=1, group_size=10) for i in range(10)]
    [job.wait(one) for one in lent]
{last}
"""


def run(folder, options, argv, **environment):
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", **environment}
    return subprocess.run([str(BIN / "hvrun"), *options, *argv], capture_output=True, text=True, timeout=300, env=environment)


def steps(last=""):
    return [sys.executable, "-B", "-c", STEPS.format(here=str(HERE), library=str(LIBRARY), last=last)]


def events_of(path):
    """As viewers do: of an array that has no end, what is there."""
    text = path.read_text()
    return json.loads(text if text.endswith("]\n") else text.rstrip(",\n") + "]")


def bars_of(events):
    """{row: [label, ...]} of bars that have an end; fails for an end without a beginning."""
    rows = {event["tid"]: event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    open_bars, closed = {}, {}
    for event in events:
        row = rows.get(event["tid"])
        if event["ph"] == "B":
            open_bars.setdefault(row, []).append(event["name"])
        elif event["ph"] == "E":
            closed.setdefault(row, []).append(open_bars[row].pop())
    return closed


@pytest.mark.parametrize("options", [["-np", "1"], ["-np", "3"], ["--oversubscribe", "--rsh", RSH, "-H", "a:2,b:1"]], ids=" ".join)
def test_counters_and_timelines_by_the_c_api(options, tmp_path):
    done = run(tmp_path, options, [str(BIN / "c_observation_test"), str(tmp_path)])
    assert done.returncode == 0, done.stderr
    size = 1 if options == ["-np", "1"] else 3
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [f"each-{rank}.json" for rank in range(size)] + ["first.json"]
    for rank in range(size):
        events = events_of(tmp_path / f"each-{rank}.json")
        assert {event["pid"] for event in events} == {rank}
        closed = bars_of(events)
        assert sorted(closed) == [f"tensor.{i}" for i in range(10)]
        for labels in closed.values():
            assert labels.count("NEGOTIATE_ALLREDUCE") == labels.count("ALLREDUCE") == labels.count("QUEUE") == 3


def test_horovods_variable_makes_rank_0_write_all_that_happens(tmp_path):
    done = run(tmp_path, ["-np", "2"], steps("job.shutdown()"), HOROVOD_TIMELINE=str(tmp_path / "t.json"))
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.glob("*.json")] == ["t.json"]
    events = events_of(tmp_path / "t.json")
    assert events[-1]["args"] == {"dropped": 0}
    closed = bars_of(events)
    assert all(closed[f"grad.{i}"].count("REDUCE") == 20 for i in range(10))
    marks = {event["name"] for event in events if event["ph"] == "i" and event["tid"] > 0}
    assert marks == {"ready: rank 0", "ready: rank 1"}
    fused = [event["args"]["fused"] for event in events if event["ph"] == "B" and "fused" in event.get("args", {})]
    begun = [event["id"] for event in events if event["ph"] == "b"]
    assert sorted(begun) == sorted(event["id"] for event in events if event["ph"] == "e")
    assert fused == [10] * 200 and len(begun) == len(set(begun)) == 20  # each step's ten are a group, and so one bucket


def test_a_killed_job_leaves_a_timeline_that_loads(tmp_path):
    """A flush is waited for, by the file itself; then every rank dies in the middle of an operation."""
    last = ("lent = job.start(ALLREDUCE, f'only.{job.rank}', np.ones(1, np.float32))\n"
            f"path = {str(tmp_path)!r} + f'/t-{{job.rank}}.json'\n"
            "while f'only.{job.rank}' not in open(path).read(): job.is_done(lent), os.sched_yield()\n"
            "os.kill(os.getpid(), signal.SIGKILL)")
    done = run(tmp_path, ["-np", "2"], steps(last), HVRUN_TIMELINE=str(tmp_path / "t-%r.json"))
    assert done.returncode == 128 + 9, done.stderr
    found = 0
    for rank in range(2):
        events = events_of(tmp_path / f"t-{rank}.json")
        found += any(event.get("args", {}).get("name") == f"only.{rank}" for event in events)
        assert all(labels.count("ALLREDUCE") == 20 for row, labels in bars_of(events).items() if row.startswith("grad."))
    assert found >= 1  # the other may have been ended first


def test_a_timeline_that_cannot_be_written_is_told_at_the_start(tmp_path):
    done = run(tmp_path, ["-np", "2"], steps(), HVRUN_TIMELINE="/no/such/folder/t.json")
    assert done.returncode != 0
    assert "/no/such/folder/t.json" in done.stderr and "No such file" in done.stderr
