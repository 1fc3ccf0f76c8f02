# SPDX-License-Identifier: Apache-2.0
"""Jobs with faults drawn from a seed: two of them, and a hundred under --full. ./dev chaos runs as many as it is told."""

import argparse
import os
import subprocess
import sys

import pytest

from chaos import campaign, plan
from conftest import SEED, is_whole_product
from harness import programs
from harness.cluster import why_not

CAMPAIGN = campaign.__file__


def run(tmp_path, *words, timeout, **environment):
    return subprocess.run([sys.executable, "-B", CAMPAIGN, "--evidence", str(tmp_path), *words], capture_output=True, text=True,
                          timeout=timeout, env={**os.environ, **environment})


@pytest.fixture
def needs_hosts():
    if reason := why_not("nft"):
        pytest.skip(reason)


def first_run(seed, *faults, program=None, hosts=1):
    """The number of the seed's first run with just these faults, as (kind, target, moment)."""
    def is_meant(drawn):
        done = tuple((fault.kind, fault.target, fault.moment) for fault in drawn.faults)
        return done == faults and program in (None, drawn.program) and len(drawn.nodes) >= hosts

    return next(number for number in range(5000) if is_meant(plan.draw(seed, number)))


@pytest.mark.usefixtures("hvrun", "needs_hosts")
def test_no_fault_breaks_what_must_hold(tmp_path):
    """Two fixed runs, so that a commit that has nothing to do with it is never red for it; under --full a hundred that the seed draws."""
    words, count = ["--seed", str(SEED), "--count", "100"], 100
    if not is_whole_product():
        runs = [first_run("plain", ("kill", "agent", "middle"), program="children", hosts=2),
                first_run("plain", ("cut", "link", "middle"), program="sum", hosts=2)]
        words, count = ["--seed", "plain", *(word for number in runs for word in ("--only", str(number)))], 2
    done = run(tmp_path, *words, timeout=5000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"chaos: {count} runs of seed {words[1]}, 0 with violations;" in done.stdout.splitlines()[-1]


# Loses a line, tells of success, and leaves a process, a directory and a listening socket on the first host.
BROKEN = """#!/bin/sh
HVRUN_BIN_DIR= {hvrun} "$@" | sed "/^.0. 0000 000000000002 /d"
ssh node1 'mkdir /tmp/hvrun-left; HVRUN_JOB_ID=x nohup {python} -c "import socket, signal
listener = socket.create_server((str(), 0))
signal.pause()" </dev/null >/dev/null 2>&1 &'
exit 0
"""


@pytest.mark.usefixtures("needs_hosts")
def test_an_hvrun_that_breaks_everything_is_found_out(tmp_path, hvrun):
    """What is looked for on hosts is seen there: each violation in made-up observations is test_judge.py's."""
    folder = tmp_path / "build" / "bin"
    folder.mkdir(parents=True)
    (folder / "hvrun").write_text(BROKEN.format(hvrun=hvrun, python=sys.executable))
    (folder / "hvrun").chmod(0o755)
    (folder / "tests").symlink_to(programs.hvrun_folder() / "tests")
    number = str(first_run("broken", ("kill", "rank", "middle")))
    done = run(tmp_path, "--seed", "broken", "--only", number, "--room", "0", timeout=120, HVRUN_BIN_DIR=str(folder))
    assert done.returncode == 1, done.stdout + done.stderr
    for kind, text in (("code", "exit code 0"), ("output", "line 2 is"), ("left behind", "processes"), ("left behind", "/tmp/hvrun-left"),
                       ("left behind", "listens at TCP port")):
        assert any(line.startswith(f"    {kind}: ") and text in line for line in done.stdout.splitlines()), (kind, text, done.stdout)


def test_the_last_line_counts_runs_violations_and_faults():
    tally = campaign.Tally()
    tally.add(campaign.Outcome(0, faults=("kill",)))
    tally.add(campaign.Outcome(1, (("cause", "x"), ("left behind", "y")), is_late=True, faults=("kill", "cut")))
    tally.add(campaign.Outcome(2, (("cause", "x"),), is_stalled=True, missed=1))
    assert tally.line("a") == ("chaos: 3 runs of seed a, 1 with violations (cause 1, left behind 1); 1 prove nothing on this busy machine, "
                               "1 ended late; faults: cut 1, kill 2; 1 found no target")
    row = campaign.ledger_row("2026-11-30", "12ab", "a", tally)
    assert row == "| 2026-11-30 | 12ab | a | 3 | 1 | cause 1, left behind 1: runs 1; 1 ended late; 1 proved nothing |"


def test_a_violation_is_told_with_what_repeats_it(tmp_path, capsys):
    campaign.tell(argparse.Namespace(seed="a"), tmp_path, campaign.Outcome(7, (("cause", "no fault fits"),)))
    told = capsys.readouterr().out
    assert told.startswith("VIOLATION run 7: ") and "cause: no fault fits" in told
    assert f"see {tmp_path}/run-7; again: ./dev chaos --seed a --only 7" in told


def test_plans_are_listed_without_being_done(tmp_path):
    listed = run(tmp_path, "--seed", "a", "--count", "3", "--list", timeout=60)
    alone = run(tmp_path, "--seed", "a", "--only", "2", "--list", timeout=60)
    assert [line.partition(":")[0] for line in listed.stdout.splitlines()] == ["run 0", "run 1", "run 2"]
    assert alone.stdout.splitlines() == listed.stdout.splitlines()[2:] and not list(tmp_path.iterdir())


@pytest.mark.parametrize("words, said", [
    (["--count", "3"], "--seed"), (["--seed", "../x"], "--seed takes letters and digits"), (["--seed", "1", "--count", "0"], "at least 1")])
def test_what_makes_no_sense_is_refused(tmp_path, words, said):
    done = run(tmp_path, *words, timeout=60)
    assert done.returncode == 2 and said in done.stderr
