# SPDX-License-Identifier: Apache-2.0
"""Links that are slow, lose packets, or bring them late and out of order: no error, and right results."""

import pytest

from harness import programs, relay
from harness.jobs import on
from harness.network import shape

pytestmark = pytest.mark.usefixtures("hvrun")

SEED = 1
TOO_SLOW_S = 120


# Programs that check their results themselves; the last sends and receives alone.
MANY_MEETINGS = "c_ranks_test"  # a hundred, and each connection whose first packet is lost takes a second more
SOME_MEETINGS = f"{MANY_MEETINGS} 10"  # where every tenth packet is lost, nearly each meeting waits for that
MANY_SETS = "c_process_sets_test"  # as slow there
FEW_PACKETS = ("c_operations_test", "examples/pipeline")
SUMS = (MANY_MEETINGS, MANY_SETS, *FEW_PACKETS)


@pytest.fixture
def relayed(cluster):
    """relayed(...): a way between node1 and node2 that is as bad as told; see harness.relay.Relay."""
    if reason := relay.why_not():
        pytest.skip(reason)
    return lambda **how: relay.Relay([cluster["node1"], cluster["node2"]], seed=SEED, **how)


def expect_good(cluster, sums, **env):
    for name in sums:
        program, *words = name.split()
        path = str(programs.hvrun_folder() / program)
        result = cluster.run([*on("node1", "node2", ranks_per_host=2), path, *words], env=env, timeout=TOO_SLOW_S)
        assert result.code == 0, str(result)


def test_a_slow_link(cluster):
    for node in cluster.nodes:
        shape(node, "lan", "20mbit")
    expect_good(cluster, SUMS)


@pytest.mark.one_of("percent", "streams", "sums")
@pytest.mark.parametrize("percent, streams, sums", [
    (1, "1", SUMS), (10, "1", (SOME_MEETINGS, *FEW_PACKETS)), (3, "3", (MANY_SETS, *FEW_PACKETS))], ids=["1", "10", "3 of 3 streams"])
def test_a_link_that_loses_packets(cluster, relayed, percent, streams, sums):
    with relayed(loss_percent=percent) as link:
        expect_good(cluster, sums, HVRUN_STREAMS=streams)
        packets = link.end()
    assert packets["lost"] > 0 and packets["carried"] > packets["lost"], packets


@pytest.mark.one_of("jitter_us", "streams")
@pytest.mark.parametrize("streams", ["1", "3"])
@pytest.mark.parametrize("jitter_us", [0, 3000], ids=["late", "out of order"])
def test_a_link_that_brings_packets_late_or_out_of_order(cluster, relayed, jitter_us, streams):
    with relayed(delay_us=2000 if not jitter_us else 200, jitter_us=jitter_us) as link:
        expect_good(cluster, SUMS, HVRUN_STREAMS=streams)
        packets = link.end()
    assert packets["carried"] > 0 and (packets["overtaken"] > 0) == (jitter_us > 0), packets
