# SPDX-License-Identifier: Apache-2.0
"""Reaching hosts by SSH: the good way, and what a user's ssh configuration may ask for."""

import pytest

from harness import sshd
from harness.cluster import HostPlan
from harness.jobs import USAGE, expect_error, expect_hosts, lines_of, on
from harness.keys import key_pair
from harness.network import address

pytestmark = pytest.mark.usefixtures("hvrun")

HOME = "/run/home/root"


def configure(cluster, text):
    cluster.login.write_file(f"{HOME}/.ssh/config", text, mode=0o600)


def test_ranks_run_on_three_hosts(cluster):
    result = cluster.run([*on("node1", "node2", "node3", ranks_per_host=2), "hostname"])
    expect_hosts(result, "node1", "node1", "node2", "node2", "node3", "node3")
    assert result.err == ""


def test_ranks_know_their_place(cluster):
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
    script = "echo " + " ".join(f"$HVRUN_{name}" for name in names) + " $GROUP_RANK $WORLD_SIZE"
    result = cluster.run(["hvrun", "-np", "5", "-H", "node1:2,node2:1,node3:2", "--no-label", "sh", "-c", script])
    assert lines_of(result) == ["0 5 0 2 0 3 0 5", "1 5 1 2 0 2 0 5", "2 5 0 1 1 3 1 5", "3 5 0 2 2 3 2 5", "4 5 1 2 1 2 2 5"]


def test_ranks_meet_at_an_address_that_all_hosts_reach(cluster, payload, roll_call):
    result = cluster.run([*on("node1", "node2", "node3", ranks_per_host=2), payload("tcp_peers"), str(roll_call), "3", "eof"])
    roll_call.wait_for(6, 1)
    assert result.code == 137 and "rank 3 on host node2" in result.err, str(result)


def test_one_machine_under_two_names_is_an_error(cluster):
    other = cluster["node1"].address
    hosts = f"node1:1,node2:1,{other}:1,node3:1"
    text, hint = expect_error(cluster.run(["hvrun", "-H", hosts, "hostname"]), USAGE, "node1", other, " (-H) are one machine")
    assert "node2" not in text and "--oversubscribe" in hint
    expect_hosts(cluster.run(["hvrun", "--oversubscribe", "-H", hosts, "hostname"]), "node1", "node2", "node1", "node3")


def test_a_user_before_a_host(cluster):
    result = cluster.run(["hvrun", "-np", "2", "-H", "ada@node1:1,node2:1", "sh", "-c", "echo $(hostname) $(id -un) $HOME"])
    assert lines_of(result) == ["[0] node1 ada /run/home/ada", "[1] node2 root /run/home/root"], str(result)


def test_a_user_for_all_hosts(cluster):
    result = cluster.run([*on("node1", "node2"), "-l", "ada", "id", "-un"])
    assert lines_of(result) == ["[0] ada", "[1] ada"], str(result)


def test_a_user_before_a_host_goes_before_a_user_for_all(cluster):
    result = cluster.run(["hvrun", "-np", "2", "-H", "root@node1:1,node2:1", "--ssh-user", "ada", "id", "-un"])
    assert lines_of(result) == ["[0] root", "[1] ada"], str(result)


def test_hvrun_runs_for_users_other_than_root(cluster):
    result = cluster.run([*on("node1", "node2"), "sh", "-c", "echo $(hostname) $(id -un)"], user="ada")
    assert lines_of(result) == ["[0] node1 ada", "[1] node2 ada"], str(result)


@pytest.mark.parametrize("option", ["-p", "--ssh-port"])
def test_a_port(cluster, option):
    for node in cluster.nodes[:2]:
        sshd.stop(node)
        sshd.start(node, port=2222)
    known = "".join(f"[{node.name}]:2222 {key_pair(f'host-{node.name}').public}\n" for node in cluster.nodes)
    sshd.write_known_hosts(cluster.login, "root", known)
    expect_hosts(cluster.run([*on("node1", "node2"), option, "2222", "hostname"]), "node1", "node2")


@pytest.mark.parametrize("option", ["-i", "--ssh-identity-file"])
def test_an_identity_file(cluster, option):
    cluster.login.shell(f"mkdir {HOME}/elsewhere && mv {HOME}/.ssh/id_ed25519 {HOME}/elsewhere/key && rm {HOME}/.ssh/*.pub")
    expect_hosts(cluster.run([*on("node1", "node2"), option, f"{HOME}/elsewhere/key", "hostname"]), "node1", "node2")


def test_a_key_that_only_the_agent_has(cluster):
    script = ("eval $(ssh-agent) >/dev/null; ssh-add -q ~/.ssh/id_ed25519 && rm ~/.ssh/id_ed25519*; "
              "hvrun -np 2 -H node1:1,node2:1 hostname; code=$?; ssh-agent -k >/dev/null; exit $code")
    expect_hosts(cluster.run(["sh", "-c", script]), "node1", "node2")


def test_a_host_that_offers_several_kinds_of_key_is_known_by_one(make_cluster):
    cluster = make_cluster([HostPlan("node1", key_kinds=("ed25519", "ecdsa"))])
    sshd.write_known_hosts(cluster.login, "root", sshd.known_hosts_lines(cluster.nodes, kinds=("ecdsa",)))
    expect_hosts(cluster.run([*on("node1"), "hostname"]), "node1")


def test_hosts_known_to_the_whole_machine(cluster):
    cluster.login.shell(f"mv {HOME}/.ssh/known_hosts /run/known && rm -f {HOME}/.ssh/known_hosts")
    known = cluster.login.outside("/run/known").read_text()
    (cluster.login.folder / "etc/ssh/ssh_known_hosts").write_text(known)
    expect_hosts(cluster.run([*on("node1", "node2"), "hostname"]), "node1", "node2")


def test_hosts_known_by_hash(cluster):
    cluster.login.shell("ssh-keygen -q -H && rm ~/.ssh/known_hosts.old && ! grep node ~/.ssh/known_hosts")
    expect_hosts(cluster.run([*on("node1", "node2"), "hostname"]), "node1", "node2")


def test_an_alias_of_the_users_configuration(cluster):
    configure(cluster, "Host first\n  HostName node1\n  User ada\nHost sec*\n  HostName node2\n  HostKeyAlias node2\n")
    result = cluster.run([*on("first", "second"), "sh", "-c", "echo $(hostname) $(id -un)"])
    assert lines_of(result) == ["[0] node1 ada", "[1] node2 root"], str(result)


def test_a_known_hosts_file_of_the_users_configuration(cluster):
    cluster.login.shell("mv ~/.ssh/known_hosts ~/known")
    configure(cluster, f"Host node*\n  UserKnownHostsFile {HOME}/known\n")
    expect_hosts(cluster.run([*on("node1", "node2"), "hostname"]), "node1", "node2")


def test_a_jump_host_by_the_users_configuration(make_cluster):
    cluster = make_cluster([HostPlan("gate", nets=("lan", "inner")), HostPlan("vault1", nets=("inner",)),
                            HostPlan("vault2", nets=("inner",))])
    configure(cluster, "Host vault*\n  ProxyJump gate\n")
    result = cluster.run([*on("gate", "vault1", "vault2"), "hostname"])
    expect_hosts(result, "gate", "vault1", "vault2")
    assert "ssh" in result.err and "vault[1-2]" in result.err, f"hvrun does not say that it uses the system's ssh: {result}"


def test_a_jump_host_by_rsh(make_cluster):
    cluster = make_cluster([HostPlan("gate", nets=("lan", "inner")), HostPlan("vault1", nets=("inner",))])
    expect_hosts(cluster.run([*on("vault1"), "--rsh", "ssh -J gate", "hostname"]), "vault1")


def test_a_host_authority(cluster):
    authority = key_pair("authority")
    for node in cluster.nodes[:2]:
        sshd.certify(node, authority, [node.name])
        sshd.restart(node)
    sshd.write_known_hosts(cluster.login, "root", f"@cert-authority node* {authority.public}\n")
    expect_hosts(cluster.run([*on("node1", "node2"), "hostname"]), "node1", "node2")


def test_rsh_is_any_command_that_takes_host_and_command(cluster):
    cluster.login.write_file(f"{HOME}/reach", '#!/bin/sh\necho "$1" >>~/reached\nexec ssh -o BatchMode=yes "$@"\n', mode=0o755)
    expect_hosts(cluster.run([*on("node1", "node2"), "--rsh", f"{HOME}/reach", "hostname"]), "node1", "node2")
    assert sorted(cluster.login.shell("sort -u ~/reached").split()) == ["node1", "node2"]


def test_the_login_host_can_be_one_of_the_hosts(cluster):
    expect_hosts(cluster.run([*on("localhost", "node1"), "hostname"]), "login", "node1")


def test_hosts_by_their_addresses(cluster):
    expect_hosts(cluster.run([*on(address("lan", 11), address("lan", 12)), "hostname"]), "node1", "node2")
