# SPDX-License-Identifier: Apache-2.0
"""The digits are learnt over real hosts: the demo, the same bits again and again, going on after a kill."""

import os
import re
import signal

import pytest

from harness import programs
from harness.running import run
from harness.waiting import wait_for

HOSTS = "node1:2,node2:2,node3:2"
RANKS = 6
SECONDS = 120
HASH = re.compile(r"weights hash ([0-9a-f]{16})$", re.MULTILINE)


def command(*arguments):
    return ["hvrun", "-H", HOSTS, str(programs.hvrun_folder() / "examples" / "train_digits"), *map(str, arguments)]


def the_hash(result):
    assert result.code == 0, str(result)
    hashes = HASH.findall(result.out)
    assert len(hashes) == RANKS and len(set(hashes)) == 1, hashes
    return hashes[0]


def train(cluster, *arguments, **variables):
    """Trains on all hosts to the end; the hash that all ranks printed."""
    return the_hash(cluster.run(command(*arguments), timeout=SECONDS, env={"HVRUN_DETERMINISTIC": "1", **variables}))


def test_the_demo_makes_three_hosts_trains_and_is_content(needs_hosts):
    result = run([programs.SOURCE / "examples" / "demo.sh", "--hosts", "3"], timeout=SECONDS,
                 env={**os.environ, "HVRUN_BIN_DIR": str(programs.hvrun_folder())})
    assert result.code == 0, str(result)
    assert f"-- hvrun -H {HOSTS} {programs.hvrun_folder()}/examples/train_digits\n" in result.out
    assert re.search(r"^demo: OK: 6 ranks on 3 hosts trained to a test accuracy of 0\.9[5-9]\d\d ", result.out, re.MULTILINE)


def test_deterministic_runs_over_hosts_repeat_bit_for_bit_with_every_fusion_threshold(cluster):
    hashes = [train(cluster, "--epochs", 3, **({"HVRUN_FUSION_THRESHOLD": threshold} if threshold else {}))
              for threshold in (None, "0", "1K", "64M", None)]
    assert len(set(hashes)) == 1, hashes


@pytest.mark.one_of("victim")
@pytest.mark.parametrize("victim", ["hvrun", "a rank"])
def test_a_killed_training_goes_on_from_its_checkpoint(cluster, victim):
    checkpoint = cluster.shared / "checkpoint"
    with cluster.start(command("--epochs", 1000000, "--checkpoint", checkpoint), env={"HVRUN_DETERMINISTIC": "1"}) as job:
        job.wait_for_output("epoch 3/", SECONDS)
        if victim == "hvrun":
            job.kill()
        else:
            cluster["node3"].shell("kill -KILL $(pgrep -o train_digits)")
            assert job.wait(SECONDS).code == 128 + signal.SIGKILL
        wait_for(lambda: not cluster.newcomers(), 5, lambda: f"an end of {cluster.newcomers()}")
    going_on = cluster.run(command("--epochs", 0, "--checkpoint", checkpoint, "--resume"), timeout=SECONDS)
    done = int(re.search(r"after epoch (\d+)$", going_on.out, re.MULTILINE)[1])
    assert done >= 2
    assert train(cluster, "--epochs", done + 1, "--checkpoint", checkpoint, "--resume") == train(cluster, "--epochs", done + 1)
