# SPDX-License-Identifier: Apache-2.0
"""This machine under any of its names and addresses: ranks run here without SSH, and no sshd is needed."""

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


def test_a_login_that_is_asked_for_is_made(alone):
    sshd.set_up(alone.login)
    sshd.start(alone.login, port=2222)
    sshd.write_known_hosts(alone.login, "root", f"[127.0.0.1]:2222 {key_pair('host-login').public}\n")
    for words in (["-p", "2222"], ["--ssh-user", "root", "-p", "2222"]):
        result = alone.run(["hvrun", "-v", *words, "-H", "127.0.0.1:1", "hostname"])
        expect_hosts(result, "login")
        assert "host 127.0.0.1: SSH" in result.err, str(result)
    alone.login.write_file(f"{HOME}/.ssh/config", "Host here\n  HostName 127.0.0.1\n  Port 2222\n", mode=0o600)
    result = alone.run(["hvrun", "-v", "-H", "here:1", "hostname"])
    assert "host here: SSH" in result.err, str(result)


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
