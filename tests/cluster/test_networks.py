# SPDX-License-Identifier: Apache-2.0
"""Ranks of different hosts find a way to each other: ports, several networks, IPv6."""

import subprocess

import pytest

from harness import programs
from harness.cluster import HostPlan
from harness.jobs import on
from harness.network import address, in_network_of, ip_batch
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

TWO_NETS = [HostPlan("node1", ("lan", "inner")), HostPlan("node2", ("lan", "inner"))]


@pytest.fixture(scope="module")
def sums():
    """A program that checks sums of every kind among its ranks."""
    program = programs.hvrun_folder() / "c_ranks_test"
    assert program.exists(), f"{program} is not built"
    return str(program)


def expect_good(result):
    assert result.code == 0, str(result)
    return result


def expect_words(result, *parts):
    assert result.code != 0, str(result)
    missing = [part for part in parts if part not in result.err]
    assert not missing, f"{missing} not told: {result}"


def test_ranks_listen_on_the_ports_that_a_firewall_lets_pass(cluster, sums):
    for node in cluster.nodes:
        node.firewall.only("22, 20100-20107")
    job = [*on("node1", "node2", ranks_per_host=2), sums]
    expect_good(cluster.run(job, env={"HVRUN_PORT_RANGE": "20100-20107"}, timeout=60))


def test_hvrun_itself_keeps_to_those_ports(cluster):
    """Its look at which hosts reach each other passes the firewall, or it would warn; MASTER_PORT is one of them, too."""
    for node in cluster.nodes:
        node.firewall.only("22, 20100-20107")
    job = [*on("node1", "node2"), "--no-label", "sh", "-c", "echo $MASTER_ADDR $MASTER_PORT"]
    result = expect_good(cluster.run(job, env={"HVRUN_PORT_RANGE": "20100-20107"}, timeout=60))
    assert result.err == "", str(result)
    assert set(result.out.splitlines()) == {f"{cluster['node1'].address} 20107"}, str(result)


def test_a_range_whose_ports_are_all_taken_is_told(cluster, sums):
    taken = "import socket; s = socket.create_server(('', 20100)); print('there', flush=True); input()"
    with cluster["node2"].start(["python3", "-c", taken], stdin=subprocess.PIPE) as holder:
        holder.wait_for_output("there", 10)
        result = cluster.run([*on("node1", "node2"), sums], env={"HVRUN_PORT_RANGE": "20100"}, timeout=60)
    expect_words(result, "no port of 20100 is free", "HVRUN_PORT_RANGE")


@pytest.mark.parametrize("knob", [("HVRUN_PORT_RANGE", "9-8"), ("HVRUN_INTERFACES", "10.0.0.0/40")])
def test_a_bad_value_is_told_before_anything_starts(cluster, sums, knob):
    result = cluster.run([*on("node1", "node2"), sums], env=dict([knob]), timeout=60)
    assert result.code == 2, str(result)
    expect_words(result, *knob, "such as")


def test_a_dead_network_is_passed_over(make_cluster, sums):
    """The first address of each host answers nothing; nobody waits for it."""
    hosts = make_cluster(TWO_NETS)
    for node in hosts.nodes:
        for other in hosts.nodes:
            node.firewall.drop(peer=other.addresses["lan"])
    expect_good(hosts.run([*on("node1", "node2", ranks_per_host=2), sums], timeout=60))


def test_interfaces_choose_the_network(make_cluster, sums):
    hosts = make_cluster(TWO_NETS)
    for node in hosts.nodes:
        node.firewall.drop(peer=hosts["node1"].addresses["lan"])
        node.firewall.drop(peer=hosts["node2"].addresses["lan"])
    job = [*on("node1", "node2"), sums]
    for good in ("eth-inner", "10.77.1.0/24", "^eth-lan,lo", "eth-*,!10.77.0.0/24"):
        expect_good(hosts.run(job, env={"HVRUN_INTERFACES": good}, timeout=60))
    expect_words(hosts.run(job, env={"HVRUN_INTERFACES": "eth-third"}, timeout=60),
                 "HVRUN_INTERFACES=eth-third allows none", "eth-lan 10.77.0.", "eth-inner 10.77.1.")


def test_the_master_address_is_of_the_network_that_is_named(make_cluster):
    hosts = make_cluster(TWO_NETS)
    print_it = ["--no-label", "sh", "-c", "echo $MASTER_ADDR"]
    file = hosts.shared / "hosts"
    file.write_text("node1 ifname=eth-inner\nnode2 ifname=eth-inner\n")
    by_variable = hosts.run([*on("node1", "node2"), *print_it], env={"HVRUN_INTERFACES": "eth-inner"})
    by_file = hosts.run(["hvrun", "--hostfile", str(file), *print_it])
    for result in (by_variable, by_file):
        assert set(expect_good(result).out.splitlines()) == {hosts["node1"].addresses["inner"]}, str(result)


def test_an_error_lists_each_address_with_its_reason(make_cluster, sums):
    """One address refuses; the other is that of a stranger which several hosts have."""
    hosts = make_cluster(TWO_NETS)
    for node in hosts.nodes:
        node.firewall.refuse("20100-20107")
    result = hosts.run([*on("node1", "node2"), sums], env={"HVRUN_PORT_RANGE": "20100-20107"}, timeout=60)
    number = hosts["node1"].number
    expect_words(result, "rank 0 on node1", f"{address('lan', number)}:2010", f"{address('inner', number)}:2010",
                 "Connection refused", "HVRUN_INTERFACES")


def test_an_address_that_several_hosts_have_is_no_way_between_them(cluster, sums):
    for node in cluster.nodes:
        ip_batch(node, ["link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "link set docker0 up"])
    expect_good(cluster.run([*on("node1", "node2"), sums], timeout=60))


def test_hosts_with_many_interfaces_connect_at_once(cluster, sums):
    """Each host has 96 link-local addresses more, which lead nowhere: trying them all takes longer than any start may."""
    for node in cluster.nodes:
        ip_batch(node, [line for i in range(48) for line in (
            f"link add v{i} type veth peer name w{i}", f"link set v{i} up", f"link set w{i} up")])
    with_link_local = cluster["node1"].run(["sh", "-c", "until [ $(ip -6 addr show tentative | wc -l) = 0 ]; do sleep 0.1; done; "
                                            "ip -6 addr | grep -c fe80"], timeout=30)
    assert int(with_link_local.out) >= 96, str(with_link_local)
    late_rank = str(programs.hvrun_folder() / "c_late_rank")  # one allreduce, once rank 0 has read a byte
    with_input = ["sh", "-c", 'echo | exec "$@"', "sh", *on("node1", "node2", ranks_per_host=32), "--stdin", late_rank]
    expect_good(cluster.run(with_input, timeout=60))


@pytest.mark.one_of("only")
@pytest.mark.parametrize("only", [None, "fe80::/10", "fd00::/8"])
def test_hosts_with_ipv6_only(make_cluster, sums, only):
    hosts = make_cluster(ipv6=True)
    job = [*on("node1", "node2", "node3"), sums]
    expect_good(hosts.run(job, env={"HVRUN_INTERFACES": only}, timeout=60))


@pytest.mark.parametrize("hosts", ["node2:1,node1:1", "address"])
def test_master_addr_is_a_name_where_there_is_no_ipv4(make_cluster, hosts):
    """Where all hosts resolve it to the first host. node3 does not."""
    cluster = make_cluster(ipv6=True)
    show = ["--no-label", "sh", "-c", "echo $MASTER_ADDR"]
    if hosts == "address":
        hosts = f"[{cluster['node2'].address}]:1,node1:1"
    assert set(expect_good(cluster.run(["hvrun", "-H", hosts, *show])).out.split()) == {
        "node2" if hosts.startswith("node2") else cluster["node2"].address}
    (cluster["node3"].folder / "etc" / "hosts").write_text("::1 localhost\n")
    result = expect_good(cluster.run(["hvrun", "-H", f"{hosts},node3:1", *show]))
    assert set(result.out.split()) == {cluster["node2"].address}, str(result)


def test_an_ipv6_address_is_told_in_brackets(make_cluster, sums):
    hosts = make_cluster(["node1", "node2"], ipv6=True)
    for node in hosts.nodes:
        node.firewall.refuse("20100-20107")
    result = hosts.run([*on("node1", "node2"), sums], env={"HVRUN_PORT_RANGE": "20100-20107"}, timeout=60)
    expect_words(result, f"[{hosts['node1'].address}]:2010", "[fe80::", "%eth-lan]:2010", "Connection refused")


@pytest.mark.one_of("streams")
@pytest.mark.parametrize("streams", [1, 3, 16])
def test_streams(cluster, sums, streams):
    expect_good(cluster.run([*on("node1", "node2"), sums], env={"HVRUN_STREAMS": str(streams)}, timeout=60))


def test_connections_are_as_many_as_streams(cluster):
    """Counted on the host, while the ranks are in the middle."""
    lost_peer = str(programs.hvrun_folder() / "c_lost_peer")
    with cluster.start([*on("node1", "node2"), lost_peer], env={"HVRUN_STREAMS": "5", "HVRUN_PORT_RANGE": "20100-20107"}) as job:
        wait_for(lambda: job.out.count("ready") >= 2, 60, lambda: f"two ranks sum: {job.out}")
        lines = in_network_of(cluster["node1"], ["ss", "-Htn", "state", "established", "sport >= 20100 and sport <= 20107"])
    assert len(lines.splitlines()) == 5, lines
