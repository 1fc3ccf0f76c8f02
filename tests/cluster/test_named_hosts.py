# SPDX-License-Identifier: Apache-2.0
"""What a hostfile says of each host, and ranks that are not placed host by host, on real hosts."""

import pytest

from harness import programs, sshd
from harness.jobs import expect_error, expect_hosts, lines_of
from harness.keys import key_pair
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

FILE = "/run/home/root/hosts"


@pytest.fixture(scope="module")
def sums():
    """A program that checks sums of every kind among its ranks."""
    return str(programs.hvrun_folder() / "c_ranks_test")


def test_each_host_is_reached_as_its_line_says(cluster):
    """Its own port, user and address, with a name that nobody else knows."""
    sshd.stop(cluster["node2"])
    sshd.start(cluster["node2"], port=2222)
    places = {node.name: node.name if node.name != "node2" else "[node2]:2222" for node in cluster.nodes}
    known = "".join(f"{places[node.name]} {key_pair(f'host-{node.name}').public}\n" for node in cluster.nodes)
    known += f"{cluster['node3'].address} {key_pair('host-node3').public}\n"
    sshd.write_known_hosts(cluster.login, "root", known)
    cluster.login.write_file(FILE, "node1 user=ada\nnode2 port=2222\n"
                                   f"rack7-blue address={cluster['node3'].address} slots=2\n")
    result = cluster.run(["hvrun", "--hostfile", FILE, "sh", "-c", "echo $(hostname) $(id -un)"])
    assert lines_of(result) == ["[0] node1 ada", "[1] node2 root", "[2] node3 root", "[3] node3 root"], str(result)


def test_a_line_says_with_which_key(cluster):
    """Each lets one key in only, and neither is the user's own."""
    for host in ("node1", "node2"):
        sshd.authorize(cluster[host], "root", key_pair(f"of-{host}").public)
        sshd.give_key(cluster.login, "root", key_pair(f"of-{host}"), f"key_of_{host}")
    cluster.login.write_file(FILE, "node1 identity=~/.ssh/key_of_node1\nnode2 identity=/run/home/root/.ssh/key_of_node2\n")
    expect_hosts(cluster.run(["hvrun", "--hostfile", FILE, "hostname"]), "node1", "node2")
    cluster.login.write_file(FILE, "node1 identity=~/.ssh/key_of_node2\n")
    expect_error(cluster.run(["hvrun", "--hostfile", FILE, "hostname"]), 3, "log in to host node1", "permission denied")


def test_a_host_that_fails_is_named_as_in_the_file(cluster):
    cluster.login.write_file(FILE, f"rack7-blue address={cluster['node1'].address} port=2299\n")
    expect_error(cluster.run(["hvrun", "--hostfile", FILE, "true"]), 3, "rack7-blue", "Connection refused")


def test_a_node_expression_in_front_of_real_hosts(cluster):
    expect_hosts(cluster.run(["hvrun", "-H", "node[1-3]:2", "hostname"]), *(["node1"] * 2 + ["node2"] * 2 + ["node3"] * 2))


@pytest.mark.parametrize("words", [("--map-by", "node"), ("--rank-by", "node"), ("--npernode", "2", "--rank-by", "node")])
def test_ranks_that_hosts_take_in_turn_work_together(cluster, sums, words):
    names = cluster.run(["hvrun", "-H", "node[1-3]:2", *words, "hostname"])
    expect_hosts(names, "node1", "node2", "node3", "node1", "node2", "node3")
    result = cluster.run(["hvrun", "-H", "node[1-3]:2", "-np", "5", *words, sums], timeout=60)
    assert result.code == 0, str(result)


def test_a_rankfile_puts_each_rank_where_it_says(cluster, sums):
    cluster.login.write_file(FILE, "rank 0=node3\nrank 1=node1\nrank 2=node3\nrank 3=node2\n")
    names = cluster.run(["hvrun", "--rankfile", FILE, "hostname"])
    expect_hosts(names, "node3", "node1", "node3", "node2")
    result = cluster.run(["hvrun", "--rankfile", FILE, sums], timeout=60)
    assert result.code == 0, str(result)


def test_hosts_without_a_rank_are_let_go(cluster, roll_call, payload):
    """The rankfile uses the second host only; the first one's agent is gone while the job runs."""
    cluster.login.write_file(FILE, "rank 0=node2\n")
    words = ["hvrun", "-H", "node1,node2", "--rankfile", FILE, payload("orphan_maker"), str(roll_call), "plain"]
    with cluster.start(words):
        roll_call.wait_for(2, 10)
        wait_for(lambda: not cluster["node1"].newcomers(), 5, "node1 is free")
        assert cluster["node2"].newcomers()
