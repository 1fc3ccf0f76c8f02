# SPDX-License-Identifier: Apache-2.0
"""Hosts that cannot or must not be reached: each its own message, in time, naming host, reason and mend."""

import subprocess

import pytest

from harness import sshd
from harness.jobs import START, TIMEOUT, errors, expect_error, expect_hosts, on
from harness.keys import key_pair
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

ALL = ("node1", "node2", "node3")
PATIENT = 6  # seconds of --start-timeout: enough for good hosts, even on a busy machine
BY_THEN = PATIENT + 4
WITHIN = ["--start-timeout", str(PATIENT)]


def forget(cluster, name):
    known = [host for host in cluster.nodes if host.name != name]
    sshd.write_known_hosts(cluster.login, "root", sshd.known_hosts_lines(known))


def change_key(cluster, name):
    sshd.set_host_key(cluster[name], f"other-{name}")
    sshd.restart(cluster[name])


def test_an_unknown_name_beside_good_hosts(cluster):
    result = cluster.run([*on("node1", "nowhere", "node2"), "hostname"])
    expect_error(result, START, "nowhere", "not known")
    assert result.seconds < BY_THEN


def test_an_unknown_name_does_not_delay_hosts_while_the_resolver_is_silent(cluster):
    cluster.add_unanswered("void")
    cluster.login.resolve_through(cluster.extra_names["void"])
    result = cluster.run([*on("node1", "nowhere", "node2"), *WITHIN, "hostname"])
    expect_error(result, TIMEOUT, "nowhere", f"{PATIENT} s")
    assert result.seconds < BY_THEN
    assert "node1" not in result.err and "node2" not in result.err


def test_an_address_that_drops_every_packet_beside_good_hosts(cluster):
    cluster.add_unanswered("void")
    result = cluster.run([*on("node1", "void", "node2"), *WITHIN, "hostname"])
    expect_error(result, TIMEOUT, "void", f"{PATIENT} s")
    assert result.seconds < BY_THEN
    assert "node1" not in result.err and "node2" not in result.err


def test_a_host_that_is_switched_off(cluster):
    cluster["node2"].link_down()
    result = cluster.run([*on(*ALL), *WITHIN, "hostname"])
    told = errors(result)
    assert result.code in (START, TIMEOUT) and len(told) == 1 and "node2" in told[0][0] and told[0][1], str(result)
    assert result.seconds < BY_THEN


def test_a_port_that_refuses(cluster):
    sshd.stop(cluster["node2"])
    result = cluster.run([*on(*ALL), "hostname"])
    expect_error(result, START, "node2", "refused")
    assert result.seconds < BY_THEN


def test_a_port_that_a_firewall_resets(cluster):
    cluster["node2"].firewall.refuse(22)
    expect_error(cluster.run([*on(*ALL), "hostname"]), START, "node2", "refused")


def test_a_port_where_something_else_answers(cluster):
    sshd.stop(cluster["node2"])
    answer = ("import socket; s = socket.create_server(('', 22)); s.listen(9)\n"
              "while 1: s.accept()[0].sendall(b'220 mail ready\\r\\n' * 100)")
    with cluster["node2"].start(["/usr/bin/python3", "-c", answer]):
        sshd.await_listening(cluster["node2"])
        result = cluster.run([*on(*ALL), *WITHIN, "hostname"])
    told = errors(result)
    assert result.code in (START, TIMEOUT) and len(told) == 1 and "node2" in told[0][0], str(result)


def test_a_port_that_accepts_and_never_speaks(cluster):
    sshd.stop(cluster["node2"])
    silence = "import socket; s = socket.create_server(('', 22)); s.listen(9); input()"
    with cluster["node2"].start(["/usr/bin/python3", "-c", silence], stdin=subprocess.PIPE):
        sshd.await_listening(cluster["node2"])
        result = cluster.run([*on(*ALL), *WITHIN, "hostname"])
    expect_error(result, TIMEOUT, "node2", f"{PATIENT} s")
    assert result.seconds < BY_THEN


def test_a_host_that_stops_answering_while_the_agent_starts(cluster):
    cluster["node2"].write_file("/run/home/root/.bashrc", "kill -STOP $$\n")
    cluster["node2"].set_login_shell("/bin/bash")
    result = cluster.run([*on(*ALL), *WITHIN, "hostname"])
    expect_error(result, TIMEOUT, "node2", f"{PATIENT} s")
    assert result.seconds < BY_THEN


def test_a_key_that_the_host_does_not_take(cluster):
    sshd.authorize(cluster["node2"], "root", key_pair("somebody-else").public)
    result = cluster.run([*on(*ALL), "hostname"])
    expect_error(result, START, "node2", "denied")
    assert result.seconds < BY_THEN


def test_a_user_whom_the_host_does_not_know(cluster):
    result = cluster.run([*on("node1"), "-l", "nobody-of-that-name", "hostname"])
    expect_error(result, START, "node1", "nobody-of-that-name", "denied")


def test_an_identity_file_that_is_not_there_is_told(cluster):
    """ssh itself warns and goes on with other keys; either will do, but not silence."""
    result = cluster.run([*on("node1"), "-i", "/no/such/key", "hostname"])
    assert "/no/such/key" in result.err, str(result)


def test_a_key_with_a_passphrase_is_not_asked_for_it(cluster):
    cluster.login.shell("ssh-keygen -q -p -P '' -N secret-phrase -f ~/.ssh/id_ed25519")
    result = cluster.run([*on("node1"), "hostname"])
    told = errors(result)
    assert result.code == START and len(told) == 1 and "node1" in told[0][0] and told[0][1], str(result)
    assert result.seconds < BY_THEN


def test_an_unknown_host_key(cluster):
    forget(cluster, "node2")
    before = cluster.login.outside("/run/home/root/.ssh/known_hosts").read_text()
    _, hint = expect_error(cluster.run([*on(*ALL), "hostname"]), START, "node2", "key")
    assert "--ssh-accept-new" in hint
    assert cluster.login.outside("/run/home/root/.ssh/known_hosts").read_text() == before


def test_an_unknown_host_key_is_accepted_and_remembered_where_asked(cluster):
    forget(cluster, "node2")
    expect_hosts(cluster.run([*on(*ALL), "--ssh-accept-new", "hostname"]), *ALL)
    expect_hosts(cluster.run([*on(*ALL), "hostname"]), *ALL)
    assert cluster.run(["ssh", "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "node2", "true"]).code == 0


def test_first_contact_with_every_host_remembers_every_host(cluster):
    cluster.login.shell("rm -r ~/.ssh/known_hosts")
    expect_hosts(cluster.run([*on(*ALL), "--ssh-accept-new", "hostname"]), *ALL)
    for name in ALL:
        assert cluster.run(["ssh", "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", name, "true"]).code == 0


@pytest.mark.parametrize("options", [[], ["--ssh-accept-new"]], ids=["as-it-is", "accept-new"])
def test_a_changed_host_key_is_always_refused(cluster, options):
    change_key(cluster, "node2")
    before = cluster.login.outside("/run/home/root/.ssh/known_hosts").read_text()
    _, hint = expect_error(cluster.run([*on(*ALL), *options, "hostname"]), START, "node2", "chang")
    assert "ssh-keygen -R" in hint and "--ssh-accept-new" not in hint
    assert cluster.login.outside("/run/home/root/.ssh/known_hosts").read_text() == before


@pytest.mark.parametrize("options", [[], ["ControlPath none-here"]], ids=["libssh", "ssh"])
def test_a_changed_key_that_ssh_would_take_is_refused_and_the_advice_helps(cluster, options):
    def configure(*lines):
        cluster.login.write_file("/run/home/root/.ssh/config", "\n  ".join(["Host node*", *options, *lines, ""]), mode=0o600)

    change_key(cluster, "node2")
    configure("StrictHostKeyChecking no")
    assert cluster.run(["ssh", "-o", "BatchMode=yes", "node2", "true"]).code == 0
    _, hint = expect_error(cluster.run([*on(*ALL), "hostname"]), START, "node2", "chang")
    assert "ssh would go on (StrictHostKeyChecking no)" in hint, hint
    advised = ["UserKnownHostsFile /dev/null", "GlobalKnownHostsFile /dev/null"]
    assert all(line in hint for line in advised), hint
    configure("StrictHostKeyChecking no", *advised)
    expect_hosts(cluster.run([*on(*ALL), "hostname"]), *ALL)


def test_a_changed_key_of_another_kind_is_not_a_new_one(cluster):
    """The host has lost its known key and offers one of another kind: still not the host that was known."""
    folder = cluster["node2"].folder / "etc/ssh"
    (folder / "ssh_host_ed25519_key").unlink()
    sshd.set_host_key(cluster["node2"], kind="ecdsa")
    sshd.restart(cluster["node2"])
    result = cluster.run([*on(*ALL), "--ssh-accept-new", "hostname"])
    told = errors(result)
    assert result.code == START and len(told) == 1 and "node2" in told[0][0], str(result)


def test_a_revoked_host_key_is_refused(cluster):
    known = sshd.known_hosts_lines(cluster.nodes)
    sshd.write_known_hosts(cluster.login, "root", known + f"@revoked * {key_pair('host-node2').public}\n")
    result = cluster.run([*on(*ALL), "--ssh-accept-new", "hostname"])
    told = errors(result)
    assert result.code == START and len(told) == 1 and "node2" in told[0][0], str(result)


def test_a_host_authority_does_not_vouch_for_other_names(cluster):
    authority = key_pair("authority")
    for node in cluster.nodes:
        sshd.certify(node, authority, ["node1", "node3"])
        sshd.restart(node)
    sshd.write_known_hosts(cluster.login, "root", f"@cert-authority * {authority.public}\n")
    result = cluster.run([*on(*ALL), "hostname"])
    told = errors(result)
    assert result.code == START and len(told) == 1 and "node2" in told[0][0], str(result)


def test_an_rsh_command_that_is_not_there(cluster):
    expect_error(cluster.run([*on("node1"), "--rsh", "/no/such/rsh", "hostname"]), START, "/no/such/rsh", "No such file")


def test_an_rsh_command_that_fails_is_quoted(cluster):
    text, _ = expect_error(cluster.run([*on("node1"), "--rsh", "sh -c 'echo the reason >&2; exit 4'", "hostname"]), START, "node1")
    assert "the reason" in text


def test_several_failed_hosts_are_all_named(cluster):
    sshd.stop(cluster["node1"])
    forget(cluster, "node2")
    result = cluster.run([*on(*ALL, "nowhere"), "hostname"])
    told = " / ".join(text for text, _ in errors(result))
    assert result.code == START and all(name in told for name in ("node1", "node2", "nowhere")), str(result)


def test_nothing_is_left_on_good_hosts_when_one_fails(cluster):
    sshd.stop(cluster["node2"])
    cluster.run([*on(*ALL), "sleep", "100"])
    wait_for(lambda: not cluster.newcomers(), 5, lambda: f"nothing runs on the nodes: {cluster.newcomers()}")
