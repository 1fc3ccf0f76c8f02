# SPDX-License-Identifier: Apache-2.0
"""Links that are slow, lose packets, or bring them late and out of order: no error, and right results."""

import pytest

from harness import programs, relay
from harness.jobs import on
from harness.network import shape

pytestmark = pytest.mark.usefixtures("hvrun")

SEED = 1
TOO_SLOW_S = 120


@pytest.fixture(scope="module")
def sums():
    """Programs that check their results themselves."""
    return [str(programs.hvrun_folder() / name) for name in ("c_ranks_test", "c_operations_test")]


@pytest.fixture
def relayed(cluster):
    """relayed(...): a way between node1 and node2 that is as bad as told; see harness.relay.Relay."""
    if reason := relay.why_not():
        pytest.skip(reason)
    return lambda **how: relay.Relay([cluster["node1"], cluster["node2"]], seed=SEED, **how)


def expect_good(cluster, sums, **env):
    for program in sums:
        result = cluster.run([*on("node1", "node2", ranks_per_host=2), program], env=env, timeout=TOO_SLOW_S)
        assert result.code == 0, str(result)


def test_a_slow_link(cluster, sums):
    for node in cluster.nodes:
        shape(node, "lan", "20mbit")
    expect_good(cluster, sums)


@pytest.mark.parametrize("percent", [1, 10])
def test_a_link_that_loses_packets(cluster, sums, relayed, percent):
    with relayed(loss_percent=percent) as link:
        expect_good(cluster, sums)
        packets = link.end()
    assert packets["lost"] > 0 and packets["carried"] > packets["lost"], packets


@pytest.mark.parametrize("streams", ["1", "3"])
@pytest.mark.parametrize("jitter_us", [0, 3000], ids=["late", "out of order"])
def test_a_link_that_brings_packets_late_or_out_of_order(cluster, sums, relayed, jitter_us, streams):
    with relayed(delay_us=2000 if not jitter_us else 200, jitter_us=jitter_us) as link:
        expect_good(cluster, sums, HVRUN_STREAMS=streams)
        packets = link.end()
    assert packets["carried"] > 0 and (packets["overtaken"] > 0) == (jitter_us > 0), packets
