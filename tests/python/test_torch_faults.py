# SPDX-License-Identifier: Apache-2.0
"""A rank ends in the middle of a training: the others hear of it within seconds, and hvrun says why."""

import re
import signal

import pytest

from harness import programs, torch_jobs

FAULT = programs.SOURCE / "tests" / "payload" / "torch_fault.py"
NO_LIMIT = ["--lost-after", "60"]  # nor does a stall end a job before 60 s
MOST_SECONDS = 30  # so it is the end itself that tells the others, however busy the machine is


@pytest.mark.one_of("place")
@pytest.mark.parametrize("place", ["forward", "backward", "exchange"])
@pytest.mark.parametrize("way", ["raise", "sys.exit", "exit", "kill"])
def test_the_others_hear_of_it(way, place, tmp_path):
    done = torch_jobs.run(["-np", "3", "--grace", "4", *NO_LIMIT], [str(FAULT), way, place], tmp_path, timeout=120, warm=True)
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


# By the first words of their rows in docs/pytorch.md.
ENDINGS = {"raises an exception": "raise", "calls `sys.exit(3)`": "sys.exit", "calls `os._exit(7)`": "os._exit", "is killed": "kill",
           "gets SIGINT alone": "interrupt", "ends early, with 0": "early", "raises an exception in another thread": "thread",
           "and all others: Ctrl-C in hvrun's terminal": "ctrl-c"}


def table_of_endings():
    """{first cell: the others} as docs/pytorch.md has them."""
    page = (programs.SOURCE / "docs" / "pytorch.md").read_text()
    table = page[page.index("| rank 1 | prints |"):].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]
    return {first: others for first, *others in rows}


def test_the_table_of_endings_has_a_row_for_each():
    assert set(table_of_endings()) == set(ENDINGS)


def finds(cell, text):
    """Whether the text has each `quoted words ... with a gap` of the cell."""
    return all(re.search(".*".join(map(re.escape, words.split("..."))), text) for words in re.findall("`([^`]*)`", cell))


@pytest.mark.parametrize("row", ENDINGS)
def test_an_ending_is_as_the_table_has_it(row, tmp_path):
    by_rank_1, by_others, by_hvrun, code = table_of_endings()[row]
    program = [str(programs.SOURCE / "tests" / "payload" / "torch_endings.py"), ENDINGS[row]]
    options = ["-np", "2", *NO_LIMIT]
    if ENDINGS[row] == "ctrl-c":
        with torch_jobs.start(options, program, tmp_path) as running:
            running.wait_for_output("[1] has begun", MOST_SECONDS)
            running.process.send_signal(signal.SIGINT)
            done = running.wait(MOST_SECONDS)
        exit_code, err = done.code, done.err
    else:
        done = torch_jobs.run(options, program, tmp_path, timeout=120, warm=True)
        exit_code, err = done.returncode, done.stderr
    of_rank = ["\n".join(line for line in err.splitlines() if line.startswith(f"[{rank}]")) for rank in range(2)]
    of_hvrun = err[max(err.find("hvrun: "), 0):]
    assert str(exit_code) == code, err
    assert finds(by_rank_1, of_rank[1]) and bool(by_rank_1) == bool(of_rank[1]), err
    assert finds(by_others, of_rank[0]) and bool(by_others) == bool(of_rank[0]), err
    assert finds(by_hvrun, of_hvrun) and bool(by_hvrun) == ("hvrun: e" in err), err


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
