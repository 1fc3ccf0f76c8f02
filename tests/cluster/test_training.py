# SPDX-License-Identifier: Apache-2.0
"""A real model on three real hosts: it learns, every rank ends with the same weights, and nothing survives its end.

test_digits.py holds it to its bits and its checkpoint.
"""

import re

import pytest

from harness import programs
from harness.jobs import LOST, errors, on
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

NODES = ("node1", "node2", "node3")
LONG = ("--epochs", "100000")


@pytest.fixture(scope="module")
def train_digits():
    program = programs.hvrun_folder() / "examples" / "train_digits"
    assert program.exists(), f"{program} is not built"
    return str(program)


def launch(program, *options, ranks_per_host=2):
    return [*on(*NODES, ranks_per_host=ranks_per_host), program, *options]


def hashes(result):
    return re.findall(r"^\[\d+\] weights hash ([0-9a-f]+)$", result.out, re.MULTILINE)


def accuracy(result):
    return float(re.findall(r"test accuracy ([0-9.]+)$", result.out, re.MULTILINE)[-1])


def in_the_middle(cluster, program, *options):
    """A training of many epochs that has shown its first one."""
    words = launch(program, *LONG)
    running = cluster.start([*words[:-len(LONG) - 1], *options, *words[-len(LONG) - 1:]])
    running.wait_for_output("epoch", 60)
    return running


def ranks_on(cluster, name):
    return [process for process in cluster[name].newcomers() if process.name == "train_digits"]


def expect_nothing_left(cluster, within, but_sshd=False):
    """but_sshd: across a dead link sshd's sessions wait for TCP."""
    def newcomers():
        return [process for process in cluster.newcomers() if not (but_sshd and process.name.startswith("sshd"))]

    wait_for(lambda: not newcomers(), within, lambda: f"nothing is left: {newcomers()}")


def test_six_ranks_learn_and_hold_the_same_weights(cluster, train_digits):
    result = cluster.run(launch(train_digits), timeout=120)
    assert result.code == 0, str(result)
    assert accuracy(result) >= 0.95, str(result)
    assert len(hashes(result)) == 6 and len(set(hashes(result))) == 1, str(result)


def test_sigkill_of_hvrun_in_the_middle_leaves_no_process(cluster, train_digits):
    with in_the_middle(cluster, train_digits) as running:
        assert all(len(ranks_on(cluster, name)) == 2 for name in NODES)
        running.kill()
        expect_nothing_left(cluster, within=5)


def test_a_killed_rank_ends_the_training_and_is_named(cluster, train_digits):
    with in_the_middle(cluster, train_digits) as running:
        ranks_on(cluster, "node2")[0].kill()
        result = running.wait(8)
    told = errors(result)
    assert result.code == 137 and len(told) == 1 and "node2" in told[0][0] and re.search(r"rank [23]\b", told[0][0]), str(result)
    expect_nothing_left(cluster, within=1)


def test_a_lost_host_ends_the_training_and_is_named(cluster, train_digits):
    with in_the_middle(cluster, train_digits, "--lost-after", "2") as running:
        cluster["node3"].link_down()
        result = running.wait(2 + 5)
    assert result.code == LOST and "node3" in errors(result)[0][0], str(result)
    expect_nothing_left(cluster, within=2, but_sshd=True)
