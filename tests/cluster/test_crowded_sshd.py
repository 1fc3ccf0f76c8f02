# SPDX-License-Identifier: Apache-2.0
"""Many logins at once through one sshd that takes few (MaxStartups): a jump host, or one address of many names."""

import pytest

from harness import sshd
from harness.cluster import HostPlan
from harness.jobs import START, TIMEOUT, expect_error, lines_of
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

HOME = "/run/home/root"
MANY = 32


@pytest.fixture
def crowd(make_cluster):
    """A gate in front of one vault of MANY names."""
    made = make_cluster([HostPlan("gate", nets=("lan", "inner")), HostPlan("vault", nets=("inner",))])
    vault = made["vault"].addresses["inner"]
    for number in range(MANY):
        made.add_name(f"v{number}", vault)
        made.add_name(f"g{number}", made["gate"].addresses["lan"])
    return made


def limit(node, startups="10:100:10"):
    """10:100:10 refuses every login beyond ten; the default, 10:30:100, only some of them."""
    path = node.folder / "etc" / "ssh" / "sshd_config"
    path.write_text(path.read_text() + f"MaxStartups {startups}\n")  # the last one counts
    sshd.restart(node)


def configure(cluster, text):
    common = "Host *\n  StrictHostKeyChecking accept-new\n  UserKnownHostsFile /dev/null\n"
    cluster.login.write_file(f"{HOME}/.ssh/config", text + common, mode=0o600)


def launch(cluster, letter, *options):
    """One rank under each of the names."""
    names = ",".join(f"{letter}{number}:1" for number in range(MANY))
    patient = ["--start-timeout", "120", *options]
    result = cluster.run(["hvrun", "--oversubscribe", "--no-label", "-H", names, *patient, "hostname"], timeout=150)
    assert (result.code, lines_of(result)) == (0, [{"v": "vault", "g": "gate"}[letter]] * MANY), str(result)


@pytest.mark.parametrize("way", ["configuration", "rsh", "proxy-command"])
def test_many_logins_at_once_through_a_jump_host(crowd, way):
    limit(crowd["gate"])
    configure(crowd, {"configuration": "Host v*\n  ProxyJump gate\n", "rsh": "",
                      "proxy-command": "Host v*\n  ProxyCommand ssh -W %h:%p gate\n"}[way])
    options = ["--rsh", "ssh -J gate"] if way == "rsh" else []
    launch(crowd, "v", *options)


@pytest.mark.parametrize("options", [[], ["--rsh", "ssh"]], ids=["libssh", "ssh"])
def test_many_names_of_one_address(crowd, options):
    limit(crowd["gate"])
    configure(crowd, "")
    launch(crowd, "g", *options)


@pytest.mark.parametrize("way", ["libssh", "jump"])
def test_logins_are_not_all_under_way_at_once(crowd, way):
    """Of 32, eight are; sshd counts those that are through for a moment longer. It logs what it refuses."""
    limit(crowd["gate"], "24:100:24")
    configure(crowd, "Host v*\n  ProxyJump gate\n")
    launch(crowd, "g" if way == "libssh" else "v")
    assert "MaxStartups throttling" not in sshd.log(crowd["gate"]), sshd.log(crowd["gate"])


@pytest.mark.parametrize("options", [[], ["--rsh", "ssh"]], ids=["libssh", "ssh"])
def test_an_sshd_that_refuses_most_logins_is_asked_again(crowd, options):
    """One login at a time: whoever comes meanwhile is refused, so most of the eight that hvrun begins at once."""
    limit(crowd["gate"], "1:100:1")
    configure(crowd, "")
    launch(crowd, "g", *options)


@pytest.mark.parametrize("line, parts", [
    ("ProxyJump gate:2222", ["gate", "Connection refused"]), ("ProxyJump nogate", ["nogate", "Could not resolve"]),
    ("ProxyCommand /no/proxy %h", ["/no/proxy"]), ("ProxyJump gate", ["vault", "Connection refused"])])
def test_a_proxy_that_fails_is_not_tried_again(crowd, line, parts):
    """An error of the start, with the proxy's own reason, and none after --start-timeout. The last one: vault has no sshd."""
    sshd.stop(crowd["vault"])
    crowd.login.write_file(f"{HOME}/.ssh/config", f"Host vault\n  {line}\n", mode=0o600)
    result = crowd.run(["hvrun", "-H", "vault:1", "--start-timeout", "300", "hostname"], timeout=150)
    _, hint = expect_error(result, START, *parts)
    assert "MaxStartups" not in hint, str(result)


@pytest.mark.parametrize("way", ["libssh", "rsh", "jump"])
def test_an_sshd_that_refuses_all_logins_is_told_with_its_limit(crowd, way):
    """It has one place, which a client that never logs in holds."""
    limit(crowd["gate"], "1:100:1")
    configure(crowd, "Host vault\n  ProxyJump gate\n")
    silent = ("import socket, time; s = socket.create_connection(('gate', 22)); s.recv(9); "
              "print('holds', flush=True); time.sleep(600)")  # sleep-ok: the client does nothing, until the test ends it
    with crowd.login.start(["/usr/bin/python3", "-c", silent]) as holder:
        wait_for(lambda: "holds" in holder.out, 10, "a client that holds the one place")
        host = "vault" if way == "jump" else "gate"
        options = ["--rsh", "ssh"] if way == "rsh" else []
        result = crowd.run(["hvrun", "-H", f"{host}:1", *options, "--start-timeout", "4", "hostname"])
    text, hint = expect_error(result, TIMEOUT, host, "--start-timeout")
    assert "MaxStartups" in hint, text
