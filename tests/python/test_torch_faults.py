# SPDX-License-Identifier: Apache-2.0
"""A rank ends in the middle of a training: the others hear of it within seconds, and hvrun says why."""

import re

import pytest

from harness import programs, torch_jobs

FAULT = programs.SOURCE / "tests" / "payload" / "torch_fault.py"
MOST_SECONDS = 5


@pytest.mark.parametrize("place", ["forward", "backward", "exchange"])
@pytest.mark.parametrize("way", ["raise", "exit", "kill"])
def test_the_others_hear_of_it(way, place, tmp_path):
    done = torch_jobs.run(["-np", "3", "--grace", "4"], [str(FAULT), way, place], tmp_path, timeout=120)
    assert done.returncode == {"raise": 1, "exit": 7, "kill": 137}[way], done.stderr
    gone = float(re.search(r"gone at ([\d.]+)", done.stdout).group(1))
    heard = re.findall(r"\[(\d)\] heard at ([\d.]+): (.*)", done.stdout)
    assert sorted(rank for rank, _, _ in heard) == ["0", "2"], done.stdout + done.stderr
    for _, at, words in heard:
        assert float(at) - gone < MOST_SECONDS
        assert "rank 1" in words
    cause = done.stderr[done.stderr.index("hvrun: error"):]
    assert "rank 1" in cause.splitlines()[0], cause
    if way == "raise":
        assert "RuntimeError: something is wrong with this batch" in cause  # its traceback, in the summary


def test_ctrl_c_ends_a_wait(tmp_path):
    """SIGINT to a rank that waits for one that does not come."""
    program = tmp_path / "wait.py"
    program.write_text('''
import os, signal, sys, threading, time
import torch
import hvrun.torch as hvd
hvd.init()
if hvd.rank() == 0:
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        hvd.allreduce(torch.ones(1), name="nobody else comes")
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    hvd.broadcast_object("go on", 0)
else:
    assert hvd.broadcast_object(None, 0) == "go on"
''')
    done = torch_jobs.run(["-np", "2", "--no-label"], [str(program)], tmp_path, timeout=60)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
