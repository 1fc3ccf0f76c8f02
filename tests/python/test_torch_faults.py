# SPDX-License-Identifier: Apache-2.0
"""A rank ends in the middle of a training: the others hear of it within seconds, and hvrun says why."""

import re

import pytest

from harness import programs, torch_jobs

FAULT = programs.SOURCE / "tests" / "payload" / "torch_fault.py"
NO_LIMIT = ["--lost-after", "60"]  # nor does a stall end a job before 60 s
MOST_SECONDS = 30  # so it is the end itself that tells the others, however busy the machine is


@pytest.mark.one_of("place")
@pytest.mark.parametrize("place", ["forward", "backward", "exchange"])
@pytest.mark.parametrize("way", ["raise", "sys.exit", "exit", "kill"])
def test_the_others_hear_of_it(way, place, tmp_path):
    done = torch_jobs.run(["-np", "3", "--grace", "4", *NO_LIMIT], [str(FAULT), way, place], tmp_path, timeout=120)
    assert done.returncode == {"raise": 1, "sys.exit": 9, "exit": 7, "kill": 137}[way], done.stderr
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


def test_a_rank_that_takes_fewer_steps_is_told_beside_the_one_that_failed(tmp_path):
    program = tmp_path / "fewer.py"
    program.write_text("""
import torch
import hvrun.torch as hvd
hvd.init()
for step in range(3 - hvd.rank()):
    hvd.allreduce(torch.ones(1))
""")
    done = torch_jobs.run(["-np", "2"], [str(program)], tmp_path, timeout=60, warm=True)
    assert done.returncode == 1
    assert re.search(r"hvrun: error: rank 0 .* ended with exit code 1 .*\nhvrun: before that rank 1 .* had left the job "
                     r"[(]hvd.shutdown[(][)], hvrun_shutdown[)], and ended with exit code 0: if others still needed it, that is "
                     r"the reason", done.stderr)


AHEAD = """
import sys
import torch
import hvrun.torch as hvd
from hvrun.exceptions import StalledError
hvd.init()
model = torch.nn.Linear(4, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters())
try:
    for step in range(5):
        if step == 3 and hvd.rank() == 1:
            break
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    hvd.allgather_object(hvd.rank())
except StalledError as error:
    sys.exit(f"stalled: {error}")
"""


def test_a_rank_that_is_a_step_ahead_of_one_that_goes_on_is_told(tmp_path):
    program = tmp_path / "ahead.py"
    program.write_text(AHEAD)
    done = torch_jobs.run(["-np", "3"], [str(program)], tmp_path, timeout=60, warm=True, HVRUN_STALL_SECONDS="1",
                          HVRUN_STALL_SHUTDOWN_SECONDS="5")
    assert done.returncode == 1
    for rank in range(3):
        assert re.search(rf"^\[{rank}\] stalled: .*tensor '[^']*' has waited [5-9].* s for ranks? ", done.stderr, re.M), done.stderr


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
