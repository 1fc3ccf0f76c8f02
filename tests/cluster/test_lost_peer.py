# SPDX-License-Identifier: Apache-2.0
"""A rank dies: through the real agents, every other rank's pending call returns an error that names it within 2 s.

One that only stands still is waited for.
"""

import re
import signal
import time

import pytest

from harness import programs
from harness.jobs import on
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

PEER_LOST = 5  # hvrun_status
WITHIN = 2  # seconds
SHAPES = {"three hosts": on("node1", "node2", "node3"), "one host": on("node1", ranks_per_host=3)}
TOLD = re.compile(r"^\[(\d)\] (ready|pending|later) status (\d+) at ([0-9.]+): (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def lost_peer():
    program = programs.hvrun_folder() / "c_lost_peer"
    assert program.exists(), f"{program} is not built"
    return str(program)


def ranks_that_are_in_the_middle(running):
    return {rank for rank, what, *_ in TOLD.findall(running.out) if what == "ready"}


def rank_process(cluster, number):
    return next(process for process in cluster.newcomers()
                if process.name == "c_lost_peer" and process.environment.get("HVRUN_RANK") == str(number))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_killed_rank_ends_every_pending_call_with_its_name_within_two_seconds(cluster, lost_peer, shape):
    with cluster.start([*SHAPES[shape], lost_peer]) as running:
        wait_for(lambda: len(ranks_that_are_in_the_middle(running)) == 3, 60, lambda: f"three ranks sum: {running.out}")
        victim = rank_process(cluster, 1)
        killed = time.monotonic()
        victim.kill()
        result = running.wait(30)
    assert result.code == 137, str(result)
    for rank in "02":
        said = {what: (int(status), float(at), words) for told, what, status, at, words in TOLD.findall(result.out)
                if told == rank}
        for what in ("pending", "later"):
            assert what in said, f"rank {rank} did not tell how its {what} call ended: {result}"
            status, at, words = said[what]
            assert status == PEER_LOST and "rank 1" in words, f"rank {rank}, {what}: {words}"
            assert at - killed < WITHIN, f"rank {rank}, {what}: {at - killed:.2f} s after the death"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rank_that_stands_still_is_not_lost(cluster, lost_peer, scaled, shape):
    """For over 20 s under --full: no timer of TCP's takes a peer that reads nothing for a dead one."""
    with cluster.start([*SHAPES[shape], lost_peer]) as running:
        def times_told():
            return [sum(rank == told for told, *_ in TOLD.findall(running.out)) for rank in "012"]

        wait_for(lambda: min(times_told()) >= 1, 60, lambda: f"three ranks sum: {running.out}")
        victim = rank_process(cluster, 1)
        victim.kill(signal.SIGSTOP)
        time.sleep(scaled(25))  # sleep-ok: the silence itself is under test
        before = times_told()
        victim.kill(signal.SIGCONT)
        wait_for(lambda: min(times_told()) > max(before), 60, lambda: f"three ranks go on: {running.out}")
        assert not running.ended
        victim.kill()
        result = running.wait(30)
    assert result.code == 137, str(result)
