# SPDX-License-Identifier: Apache-2.0
"""hvrun check and --dry-run on real hosts: each fault by its verdict, with the host that has it and what mends it."""

import re
import subprocess

import pytest

from harness import relay, sshd, wrong_clock
from harness.checks import ALL, check, dry_run, expect, expect_healthy
from harness.jobs import USAGE
from harness.keys import key_pair
from harness.network import ip_batch, shape
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

SLOWLY = ["--start-timeout", "5"]


# ---- nothing is wrong ----


def test_healthy_hosts_give_no_finding_and_nothing_is_left(cluster):
    report, result = check(cluster)
    expect_healthy((report, result))
    assert result.err == "", str(result)
    assert [host["name"] for host in report["hosts"]] == list(ALL) and all(host["is_reachable"] for host in report["hosts"])
    assert [(path["from"], path["to"], path["is_reachable"]) for path in report["paths"]] == [
        ("node1", "node2", True), ("node1", "node3", True), ("node2", "node3", True)], str(result)
    assert all(path["megabytes_per_s"] > 0 for path in report["paths"]), str(result)
    addresses = {host["name"]: host["addresses"] for host in report["hosts"]}
    assert all(path["address_of"] in (path["from"], path["to"]) and path["address"] in addresses[path["address_of"]]
               for path in report["paths"]), str(result)
    for node in cluster.nodes:
        wait_for(lambda node=node: not node.newcomers(), 10, cluster.report)


def test_a_dry_run_has_the_plan_and_starts_no_rank(cluster):
    mark = cluster.shared / "a rank ran"
    report, result = dry_run(cluster, "-np", "3", "touch", str(mark))
    assert report["findings"] == [] and len(report["plan"]["ranks"]) == 3, str(result)
    text = cluster.run(["hvrun", "--dry-run", "-np", "3", "-H", ",".join(ALL), "touch", str(mark)], timeout=60)
    assert text.code == 0 and "The job could start: 3 ranks on 3 hosts, in about " in text.out, str(text)
    assert not mark.exists()


def test_an_address_that_several_hosts_have_is_no_finding(cluster):
    for node in cluster.nodes:
        ip_batch(node, ["link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "link set docker0 up"])
    report, result = check(cluster)
    assert report["findings"] == [], str(result)


def test_start_up_files_that_print_are_no_finding(cluster):
    cluster["node2"].make_login_noisy()
    report, result = check(cluster)
    assert report["findings"] == [], str(result)


def test_start_up_files_that_print_without_end(cluster):
    node = cluster["node2"]
    node.write_file(f"{node.users['root'].home}/.ssh/rc", "yes noise\n")
    expect(check(cluster), "start-up-noise", "node2", mend="make them silent")


# ---- the way to a host ----


def test_an_unknown_name(cluster):
    expect(check(cluster, hosts=("node1", "nowhere")), "name-unknown", "nowhere", mend="check the spelling of nowhere")


def test_a_closed_port(cluster):
    sshd.stop(cluster["node2"])
    expect(check(cluster), "ssh-refused", "node2", mend="sshd runs on node2")


def test_a_port_that_a_firewall_drops(cluster):
    cluster["node2"].firewall.drop(port=22)
    expect(check(cluster, *SLOWLY), "ssh-filtered", "node2", mend="firewall")


def test_an_unknown_host_key(cluster):
    known = [host for host in cluster.nodes if host.name != "node3"]
    sshd.write_known_hosts(cluster.login, "root", sshd.known_hosts_lines(known))
    expect(check(cluster), "host-key-unknown", "node3", mend="ssh node3")


def test_a_changed_host_key(cluster):
    sshd.set_host_key(cluster["node2"], "other-node2")
    sshd.restart(cluster["node2"])
    expect(check(cluster), "host-key-changed", "node2", mend="ssh-keygen -R node2")


def test_a_key_that_the_host_does_not_take(cluster):
    for node in ("node1", "node3"):
        sshd.authorize(cluster[node], "root", key_pair("somebody-else").public)
    expect(check(cluster), "login-refused", "node1", "node3", mend="ssh-copy-id node1")


def test_a_home_that_can_hold_no_agent(cluster):
    node = cluster["node2"]
    node.spoil_home("noexec")
    for folder in ("/tmp", "/run/user", "/dev/shm", "/var/tmp"):
        node.shell(f"[ ! -d {folder} ] || mount -t tmpfs -o noexec none {folder}")
    expect(check(cluster), "agent-not-copied", "node2", mend="XDG_CACHE_HOME")


def test_several_faults_are_told_at_once_each_with_its_hosts(cluster):
    sshd.stop(cluster["node1"])
    sshd.authorize(cluster["node2"], "root", key_pair("somebody-else").public)
    report, result = check(cluster, hosts=(*ALL, "nowhere"))
    assert {(finding["id"], *finding["hosts"]) for finding in report["findings"]} == {
        ("ssh-refused", "node1"), ("login-refused", "node2"), ("name-unknown", "nowhere")}, str(result)
    assert [host["is_reachable"] for host in report["hosts"]] == [False, False, True, False], str(result)


def test_a_clock_that_is_five_minutes_off(cluster):
    script = cluster.shared / "reach"
    wrong = f"/usr/bin/python3 {wrong_clock.__file__} 300"
    script.write_text(f'#!/bin/sh\ncase "$*" in *node2*) exec {wrong} ssh -o BatchMode=yes "$@";; esac\nexec ssh -o BatchMode=yes "$@"\n')
    script.chmod(0o755)
    finding = expect(check(cluster, "--rsh", str(script)), "clock-skew", "node2", mend=f"{script} node2 sudo timedatectl set-ntp true")
    assert re.fullmatch(r"node2: 5 min ahead, beside this machine's clock", finding["fact"]), finding


# ---- between hosts ----


def test_interfaces_that_no_host_has(cluster):
    report, result = check(cluster, env={"HVRUN_INTERFACES": "eth9"})
    (finding,) = report["findings"]
    assert finding["id"] == "interfaces-unmet" and finding["fact"] == "node[1-3]: eth9 allows no address", str(result)


def test_hosts_that_refuse_each_other(cluster):
    cluster["node3"].firewall.only("22")
    finding = expect(check(cluster, env={"HVRUN_PORT_RANGE": "20100-20107"}), "ranks-filtered", "node3", "node1", "node2")
    assert finding["fact"].startswith("node[1-2] reach no address of node3"), finding


def test_a_host_named_twice(cluster):
    cluster.add_name("alias", cluster["node1"].address)
    sshd.write_known_hosts(cluster.login, "root", sshd.known_hosts_lines(cluster.nodes)
                           + f"alias {key_pair('host-node1').public}\n")
    report, result = check(cluster, hosts=("node1", "alias", "node2"))
    assert [finding["id"] for finding in report["findings"]] == ["one-machine-twice"], str(result)
    assert "alias" in report["findings"][0]["fact"] and "node1" in report["findings"][0]["fact"], str(result)


# ---- the words ----


def test_more_ranks_than_slots_are_told_before_any_host_is_asked(cluster):
    result = cluster.run(["hvrun", "--dry-run", "-np", "9", "-H", "node1:2,node2:2", "true"])
    assert result.code == USAGE and "9" in result.err, str(result)


def test_a_check_is_ended_by_ctrl_c(cluster):
    cluster.add_unanswered("void")
    with cluster.start(["hvrun", "check", "-H", "node1,void"], stderr=subprocess.PIPE) as running:
        wait_for(lambda: cluster["node1"].newcomers(), 20, cluster.report)
        running.process.send_signal(2)
        assert running.wait(20).code == 130
    wait_for(lambda: not cluster.newcomers(), 10, cluster.report)


@pytest.fixture
def relayed(cluster):
    """relayed(...): a way between node1 and node2 that is as bad as told; see harness.relay.Relay."""
    if reason := relay.why_not():
        pytest.skip(reason)
    return lambda **how: relay.Relay([cluster["node1"], cluster["node2"]], **how)


def facts_of(found):
    report, _ = found
    return {finding["id"]: finding["fact"] for finding in report["findings"]}


def test_a_way_with_lost_packets(cluster, relayed):
    for _ in range(3):  # now and then not one first packet of five seconds comes through
        with relayed(loss_percent=20):
            found = check(cluster, "--start-timeout", "20")
        facts = facts_of(found)
        if "ranks-filtered" not in facts:
            break
    assert "node1 to node2" in facts.get("packets-lost", "") and "node3" not in facts["packets-lost"], str(found[1])
    assert set(facts) <= {"packets-lost", "slow-way", "long-way", "full-packets-lost"} and found[0]["can_start"], str(found[1])


def test_a_long_way(cluster, relayed):
    with relayed(delay_us=50_000):
        found = check(cluster)
    facts = facts_of(found)
    # A busy machine adds to the 50 ms that the relay waits in each direction.
    assert re.match(r"node1 to node2: 0\.[1-9]\d* s ", facts["long-way"]) and "node3" not in facts["long-way"], str(found[1])
    assert set(facts) <= {"long-way", "slow-way"}, str(found[1])


def test_a_slow_link(cluster):
    shape(cluster["node2"], "lan", "100mbit", queue="500ms")  # which holds what one connection sends; the burst comes on top
    finding = expect(check(cluster), "slow-way", "node2", "node1", "node3", mend="ssh node2 ethtool eth-lan")
    about_10 = r"(1[0-5]|8\.\d|9\.\d|10\.0) MB/s"
    assert re.match(rf"node1 to node2: {about_10}, node2 to node3: {about_10}$", finding["fact"]), finding


def test_a_host_with_another_mtu(cluster):
    ip_batch(cluster["node2"], ["link set eth-lan mtu 1400"])
    expect(check(cluster), "mtu-differs", "node2", mend="ssh node2 sudo ip link set dev eth-lan mtu 1500")
