# SPDX-License-Identifier: Apache-2.0
"""This machine under any of its names and addresses: ranks run here without SSH, and no sshd is needed."""

import re

import pytest

from harness import sshd
from harness.jobs import USAGE, expect_error, expect_hosts, on
from harness.keys import key_pair

pytestmark = pytest.mark.usefixtures("hvrun")

HOME = "/run/home/root"


@pytest.fixture
def alone(cluster):
    """The login host, where no sshd runs, with a long name and one that only /etc/hosts has."""
    cluster.add_name("login.lab.example", cluster.login.address)
    cluster.add_name("trainer", "127.0.1.1")
    return cluster


@pytest.mark.parametrize("name", ["127.0.0.1", "[::1]", "own address", "login.lab.example", "LOGIN", "Localhost", "trainer",
                                  "login.unknown.example"])
def test_this_machine_under_another_name(alone, name):
    host = alone.login.address if name == "own address" else name
    result = alone.run(["hvrun", "-v", "-H", f"{host}:2", "hostname"])
    expect_hosts(result, "login", "login")
    assert f"host {host.strip('[]')}: this machine" in result.err, str(result)


@pytest.fixture
def own_sshd(alone):
    """The login host's own, on port 22 and by every name."""
    sshd.set_up(alone.login)
    sshd.start(alone.login)
    names = f"127.0.0.1,here,login.lab.example,{alone.login.address}"
    sshd.write_known_hosts(alone.login, "root", f"{names} {key_pair('host-login').public}\n" + alone.known_hosts())
    return alone


@pytest.mark.parametrize("words", [("--ssh-user", "root"), ("-p", "22"), ("-i", f"{HOME}/.ssh/id_ed25519"), ("--rsh", "ssh")])
def test_a_login_that_is_requested_is_made(own_sshd, words):
    result = own_sshd.run(["hvrun", "-v", *words, "-H", "127.0.0.1:1", "hostname"])
    expect_hosts(result, "login")
    assert re.search("host 127.0.0.1: (SSH|ssh .--rsh.)", result.err), str(result)


@pytest.mark.parametrize("line, name, route", [
    ("HostName 127.0.0.1", "here", "SSH"), ("ProxyJump node1", "login.lab.example", "the system's ssh"),
    ("IdentitiesOnly yes", "login.lab.example", "this machine")])
def test_a_route_of_the_ssh_configuration_is_taken(own_sshd, line, name, route):
    """And what has nothing to do with the route is none."""
    own_sshd.login.write_file(f"{HOME}/.ssh/config", f"Host {name}\n  {line}\n", mode=0o600)
    result = own_sshd.run(["hvrun", "-v", "-H", f"{name}:1", "hostname"])
    expect_hosts(result, "login")
    assert f"host {name}: {route}" in result.err, str(result)


def test_another_port_of_the_ssh_configuration_is_taken(own_sshd):
    sshd.restart(own_sshd.login, port=2222)
    sshd.write_known_hosts(own_sshd.login, "root", f"[127.0.0.1]:2222 {key_pair('host-login').public}\n")
    own_sshd.login.write_file(f"{HOME}/.ssh/config", "Host 127.0.0.1\n  Port 2222\n", mode=0o600)
    result = own_sshd.run(["hvrun", "-v", "-H", "127.0.0.1:1", "hostname"])
    expect_hosts(result, "login")
    assert "host 127.0.0.1: SSH" in result.err, str(result)


def test_a_port_for_all_hosts_is_for_those_that_have_an_sshd(alone):
    """As with horovodrun -p, whose users run no sshd on the machine where they type it."""
    sshd.restart(alone["node1"], port=2222)
    sshd.write_known_hosts(alone.login, "root", f"[node1]:2222 {key_pair('host-node1').public}\n")
    expect_hosts(alone.run([*on("localhost", "node1"), "-p", "2222", "hostname"]), "login", "node1")


def test_an_address_of_another_host_is_reached_by_ssh(alone):
    result = alone.run([*on("login.lab.example", "node1"), "-v", "hostname"])
    expect_hosts(result, "login", "node1")
    assert "host login.lab.example: this machine" in result.err and "host node1: SSH" in result.err, str(result)


def test_one_machine_under_two_of_its_names_is_an_error(alone):
    result = alone.run(["hvrun", "-H", "localhost:1,login.lab.example:1", "hostname"])
    expect_error(result, USAGE, "localhost,login.lab.example (-H) are one machine")


def test_a_host_is_chosen_by_its_address(alone):
    """--exclude, -H beside a hostfile, and a rankfile place addresses as names."""
    first, second = alone["node1"].address, alone["node2"].address
    alone.login.write_file(f"{HOME}/hosts", "node1\nnode2\nnode3\n")
    expect_hosts(alone.run(["hvrun", "--hostfile", f"{HOME}/hosts", "--exclude", f"{first}@NODE3", "hostname"]), "node2")
    expect_hosts(alone.run(["hvrun", "--hostfile", f"{HOME}/hosts", "-H", f"{second}:1,node1.lab", "hostname"]), "node2", "node1")
    alone.login.write_file(f"{HOME}/ranks", f"rank 0={second}\nrank 1=node1\n")
    result = alone.run(["hvrun", "--hostfile", f"{HOME}/hosts", "--rankfile", f"{HOME}/ranks", "hostname"])
    expect_hosts(result, "node2", "node1")
