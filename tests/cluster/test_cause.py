# SPDX-License-Identifier: Apache-2.0
"""The cause is named, not the first report: a big rank is killed, and its peers end before it can be reaped."""

import json

import pytest

from harness.jobs import errors, on

pytestmark = pytest.mark.usefixtures("hvrun")

BIG = "2048"  # MiB
NODES = ("node1", "node2", "node3")


def tcp_peers(payload, roll_call, victim, mode, mebibytes=BIG):
    return [payload("tcp_peers"), str(roll_call), str(victim), mode, mebibytes]


@pytest.mark.one_of("mode")
@pytest.mark.parametrize("mode", ["eof", "told"])
def test_a_killed_rank_of_2_gib_is_the_cause_though_others_end_first(make_cluster, roll_call_of, payload, scaled, mode):
    """Survivors sit on another host; they exit 1 when its sockets end, or at the instant of the kill."""
    cluster = make_cluster(["node1", "node2"])
    roll_call = roll_call_of(cluster)
    summary = cluster.shared / "summary.json"
    blamed = []
    for _ in range(scaled(100)):
        result = cluster.run(["hvrun", "-np", "4", "-H", "node1:1,node2:3", "--summary", str(summary),
                              *tcp_peers(payload, roll_call, 0, mode)], timeout=300)
        told = errors(result)
        assert result.code == 137 and len(told) == 1, str(result)
        assert "rank 0" in told[0][0] and "node1" in told[0][0] and "SIGKILL" in told[0][0], str(result)
        blamed.append(json.loads(summary.read_text())["cause"]["rank"])
    assert blamed == [0] * len(blamed)


@pytest.mark.one_of("victim")
@pytest.mark.parametrize("victim", [0, 1, 5])
def test_the_killed_rank_is_named_wherever_it_sits(cluster, roll_call, payload, victim):
    result = cluster.run([*on(*NODES, ranks_per_host=2), *tcp_peers(payload, roll_call, victim, "eof", "256")])
    assert result.code == 137, str(result)
    assert f"rank {victim} on host node{victim // 2 + 1}" in errors(result)[0][0], str(result)


def test_a_rank_killed_from_outside_is_named(cluster, roll_call, payload):
    with cluster.start([*on(*NODES), *tcp_peers(payload, roll_call, 1, "wait", "512")]) as running:
        roll_call.wait_for(3, 30)
        roll_call.alive("victim")[0].kill()
        result = running.wait(20)
    assert result.code == 137 and "rank 1 on host node2" in errors(result)[0][0], str(result)


def test_consequences_are_told_apart_from_the_cause(cluster, roll_call, payload):
    result = cluster.run([*on(*NODES), *tcp_peers(payload, roll_call, 2, "told", "256")])
    assert "consequence" in result.err and "ranks 0-1" in result.err, str(result)


def test_the_first_of_two_bad_exits_is_the_cause(cluster):
    script = 'if [ $HVRUN_RANK = 2 ]; then exit 7; fi; trap "exit 9" TERM; sleep 60 & wait'
    result = cluster.run([*on(*NODES), "sh", "-c", script])
    assert result.code == 7 and "rank 2 on host node3" in errors(result)[0][0], str(result)


def test_the_last_lines_of_the_cause_are_shown(cluster):
    script = 'if [ $HVRUN_RANK = 1 ]; then echo "Error: out of ideas" >&2; exit 5; fi; sleep 60'
    result = cluster.run([*on("node1", "node2"), "sh", "-c", script])
    quoted = "[1] Error: out of ideas\nhvrun: error: rank 1 on host node2 ended with exit code 5 "
    assert result.code == 5 and quoted in result.err and "hvrun: its last lines: see above\n" in result.err, str(result)
