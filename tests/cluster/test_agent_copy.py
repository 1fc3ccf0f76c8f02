# SPDX-License-Identifier: Apache-2.0
"""The agent on hosts that never saw it: whatever the login shell, its start-up files and the home are like."""

import os
import pathlib

import pytest

from harness import sshd
from harness.jobs import START, expect_error, expect_hosts, on

pytestmark = pytest.mark.usefixtures("hvrun")

SHELLS = ("/bin/sh", "/bin/bash", "/usr/bin/zsh", "/usr/bin/tcsh", "/bin/csh", "/usr/bin/fish")
TWO = ("node1", "node2")
HOME = "/run/home/root"


def own_files(root):
    """The files of root's own file system: a checkout below /tmp is another one, which every host sees there."""
    device = root.stat().st_dev
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if os.lstat(os.path.join(folder, name)).st_dev == device]
        yield from (pathlib.Path(folder, name) for name in names)


def agent_files(host):
    """The files that look like an agent's, anywhere that the host has for itself."""
    roots = [host.outside(place) for place in (HOME, "/tmp", "/run/user", "/dev/shm")]
    found = [file for root in roots if root.is_dir() for file in own_files(root)]
    return sorted(file for file in found if file.is_file() and file.stat().st_size > 100_000)


def test_an_agent_is_found_wherever_the_checkout_lies(cluster):
    """Seen by every host, and no agent of it: the folder below is as a checkout in /tmp would be."""
    node = cluster["node1"]
    node.shell("mkdir -p /var/tmp/checkout /tmp/checkout; head -c 200000 /dev/zero >/var/tmp/checkout/hvrun-agent")
    node.shell("mount --bind /var/tmp/checkout /tmp/checkout")
    node.write_file("/tmp/hvrun-0/agent", "x" * 200_000)
    assert [str(file).partition("/root/")[2] for file in agent_files(node)] == ["tmp/hvrun-0/agent"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_login_shell(cluster, shell):
    cluster["node1"].set_login_shell(shell)
    result = cluster.run([*on(*TWO), "hostname"])
    expect_hosts(result, *TWO)
    assert result.err == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_start_up_files_that_print_on_both_streams(cluster, shell):
    cluster["node1"].set_login_shell(shell)
    cluster["node1"].make_login_noisy()
    result = cluster.run([*on(*TWO), "hostname"])
    expect_hosts(result, *TWO)
    assert "noise" not in result.err, f"noise of a start that went well is shown: {result}"
    expect_hosts(cluster.run([*on(*TWO), "hostname"]), *TWO)


def test_start_up_files_that_print_a_lot_without_an_end_of_line(cluster):
    cluster["node1"].set_login_shell("/bin/bash")
    cluster["node1"].write_file(f"{HOME}/.bashrc", "head -c 3000000 /dev/zero | tr '\\0' x; printf 'no end'\n")
    expect_hosts(cluster.run([*on(*TWO), "hostname"]), *TWO)


def test_start_up_files_with_odd_settings(cluster):
    cluster["node1"].set_login_shell("/bin/bash")
    cluster["node1"].write_file(f"{HOME}/.bashrc", "set -u; set -o noclobber; alias exec=false; alias cat=false; IFS=:; cd /\n")
    expect_hosts(cluster.run([*on(*TWO), "hostname"]), *TWO)


def test_start_up_files_that_fail_are_shown(cluster):
    cluster["node1"].set_login_shell("/bin/bash")
    cluster["node1"].write_file(f"{HOME}/.bashrc", "echo the licence server is down; echo call the desk >&2; exit 1\n")
    result = cluster.run([*on(*TWO), "hostname"])
    assert result.code == START and "node1" in result.err, str(result)
    assert "the licence server is down" in result.err and "call the desk" in result.err, str(result)


@pytest.mark.parametrize("how", ["full", "readonly", "noexec"])
def test_a_home_that_cannot_hold_the_agent(cluster, how):
    cluster["node1"].spoil_home(how)
    result = cluster.run([*on(*TWO), "hostname"])
    expect_hosts(result, *TWO)
    assert result.err == ""
    expect_hosts(cluster.run([*on(*TWO), "hostname"]), *TWO)


def test_a_home_that_fills_up_while_the_agent_is_copied(cluster):
    cluster["node1"].limit_home("300k")
    expect_hosts(cluster.run([*on(*TWO), "hostname"]), *TWO)
    assert not [file for file in agent_files(cluster["node1"]) if HOME in str(file)], "half a file was left"


def test_a_user_without_a_home(cluster):
    cluster["node1"].set_home("/nonexistent")
    sshd.configure(cluster["node1"], "AuthorizedKeysFile /run/keys")
    cluster["node1"].write_file("/run/keys", cluster.login.outside(f"{HOME}/.ssh/id_ed25519.pub").read_text(), mode=0o600)
    sshd.restart(cluster["node1"])
    expect_hosts(cluster.run([*on(*TWO), "--wdir", "/", "hostname"]), *TWO)


def test_no_place_that_can_run_a_program_is_an_error_naming_the_places(cluster):
    cluster["node1"].spoil_home("noexec")
    cluster["node1"].shell("for place in /tmp /run /dev/shm /var/tmp; do mount -o remount,noexec $place; done")
    text, _ = expect_error(cluster.run([*on(*TWO), "hostname"]), START, "node1", "/.cache/hvrun", "/tmp/hvrun")
    assert "ermission denied" in text or "noexec" in text, text


def test_a_folder_of_somebody_else_in_tmp_is_not_trusted(cluster):
    cluster["node1"].spoil_home("noexec")
    cluster["node1"].shell("install -d -o ada -m 777 /tmp/hvrun-0; install -o ada -m 755 /bin/false /tmp/hvrun-0/agent")
    result = cluster.run([*on(*TWO), "hostname"])
    if result.code == 0:
        expect_hosts(result, *TWO)
        assert not any("/tmp/hvrun-0/" in str(file) for file in agent_files(cluster["node1"])), "put into a stranger's folder"
    else:
        expect_error(result, START, "node1", "/tmp/hvrun-0")


def test_a_second_launch_finds_the_agent_of_the_first(cluster):
    expect_hosts(cluster.run([*on(*TWO), "hostname"]), *TWO)
    first = [(file, file.stat().st_ino, file.stat().st_mtime_ns) for file in agent_files(cluster["node1"])]
    expect_hosts(cluster.run([*on(*TWO), "hostname"]), *TWO)
    assert len(first) == 1
    assert first == [(file, file.stat().st_ino, file.stat().st_mtime_ns) for file in agent_files(cluster["node1"])]


def test_many_launches_at_once_do_not_clash(cluster, scaled):
    launches = max(4, scaled(12))
    running = [cluster.start([*on(*TWO), "hostname"]) for _ in range(launches)]
    try:
        for launch in running:
            expect_hosts(launch.wait(120), *TWO)
    finally:
        for launch in running:
            launch.kill()
    for name in TWO:
        assert len(agent_files(cluster[name])) == 1, f"left on {name}: {agent_files(cluster[name])}"


def test_a_launch_that_is_killed_while_it_copies_harms_no_later_one(cluster, chance, scaled):
    for _ in range(max(3, scaled(20))):
        with cluster.start([*on(*TWO), "hostname"]) as running:
            moment = chance.uniform(0.05, 0.6)
            try:
                running.process.wait(moment)
            except Exception:
                running.kill()
    expect_hosts(cluster.run([*on(*TWO), "hostname"]), *TWO)
    for name in TWO:
        assert len(agent_files(cluster[name])) == 1, f"left on {name}: {agent_files(cluster[name])}"


def test_the_agent_needs_no_sftp_scp_or_python(cluster):
    node = cluster["node1"]
    for program in ("/usr/bin/scp", "/usr/bin/sftp", "/usr/lib/openssh/sftp-server", "/usr/bin/python3", "/usr/bin/perl",
                    "/usr/bin/base64", "/bin/tar"):
        if os.path.exists(program):
            node.shell(f"mount --bind /bin/false $(readlink -f {program})")
    expect_hosts(cluster.run([*on(*TWO), "hostname"]), *TWO)


def test_another_machine_is_an_error_naming_both(cluster):
    cluster["node2"].pretend_machine("aarch64")
    expect_error(cluster.run([*on(*TWO), "hostname"]), START, "node2", "aarch64", os.uname().machine)
    assert not agent_files(cluster["node2"])


def test_a_session_without_a_word_is_told(cluster):
    cluster["node1"].set_login_shell("/bin/true")
    text, _ = expect_error(cluster.run([*on(*TWO), "hostname"]), START, "node1")
    assert text


def test_a_login_that_is_not_allowed_says_what_the_host_said(cluster):
    cluster["node1"].write_file("/run/no-login", "#!/bin/sh\necho This account is currently not available.\nexit 1\n", mode=0o755)
    cluster["node1"].set_login_shell("/run/no-login")
    result = cluster.run([*on(*TWO), "hostname"])
    assert result.code == START and "node1" in result.err and "currently not available" in result.err, str(result)
