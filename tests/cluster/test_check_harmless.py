# SPDX-License-Identifier: Apache-2.0
"""Dry runs (100 with --full) of healthy hosts that are unequal in what harms no job: not one finding, and nothing is left out."""

import resource
import subprocess

import pytest

from harness import wrong_clock
from harness.checks import dry_run, expect_healthy
from harness.network import ip_batch

pytestmark = pytest.mark.usefixtures("hvrun")

RUNS = 20  # with --full, of each of the five kinds below
WORDS = ["-np", "3", "/usr/bin/python3", "-c", "pass"]


A_TENTH_OF_A_CORE = """
import time
while True:
    end = time.monotonic() + 0.002
    while time.monotonic() < end: pass
    time.sleep(0.02)  # sleep-ok: what this program is for
"""


@pytest.fixture
def repeated(cluster, scaled):
    """repeated(words...): dry runs with these words and WORDS, all healthy."""
    def run(*words):
        for _ in range(scaled(RUNS)):
            expect_healthy(dry_run(cluster, *words, *WORDS))

    return run


def bash_lines(node, *lines):
    node.set_login_shell("/bin/bash")
    node.write_file(f"{node.users['root'].home}/.bashrc", "".join(line + "\n" for line in lines))


def test_other_shells_and_homes(cluster, repeated):
    cluster["node1"].set_login_shell("/bin/bash")
    cluster["node1"].make_login_noisy()
    cluster["node2"].limit_home("400m")
    cluster["node3"].set_login_shell("/usr/bin/zsh")
    cluster["node3"].shell("mkdir -p /run/elsewhere/root; cp -a /run/home/root/. /run/elsewhere/root")
    cluster["node3"].set_home("/run/elsewhere/root")
    repeated("--wdir", "/")


def test_other_networks(cluster, repeated):
    """An interface more, an address that all have, another name and a second address of the interface in use."""
    for node in cluster.nodes:
        ip_batch(node, ["link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "link set docker0 up"])
    ip_batch(cluster["node2"], ["link add virbr0 type bridge", "addr add 192.168.122.1/24 dev virbr0", "link set virbr0 mtu 9000 up"])
    ip_batch(cluster["node1"], ["link set eth-lan down", "link set eth-lan name ens3f0", "link set ens3f0 up"])
    ip_batch(cluster["node3"], ["addr add 10.78.5.3/24 dev eth-lan"])
    repeated()


def test_other_environments(cluster, repeated):
    """Another language, order of PATH, temporary folder, umask and niceness."""
    bash_lines(cluster["node1"], "export LANG=de_DE.UTF-8 LC_ALL=C TZ=Asia/Tokyo", "export PATH=/bin:/usr/bin:/sbin:/usr/sbin")
    bash_lines(cluster["node2"], "export LC_ALL=C.UTF-8 TMPDIR=/var/tmp OMP_NUM_THREADS=1", "umask 077")
    bash_lines(cluster["node3"], "export PATH=/opt/none:$PATH EDITOR=vi LESS=-R", "renice 5 $$ > /dev/null")
    repeated()


def test_other_limits_and_room(cluster, repeated):
    """All of them enough for three ranks."""
    for which, value in ((resource.RLIMIT_NOFILE, 512), (resource.RLIMIT_STACK, 4 << 20), (resource.RLIMIT_CORE, 0)):
        resource.prlimit(cluster["node1"].sshd.pid, which, (value, value))
    resource.prlimit(cluster["node2"].sshd.pid, resource.RLIMIT_MEMLOCK, (64 << 10, 64 << 10))  # no RDMA here
    cluster["node2"].shell("mount -o remount,size=16m /dev/shm")  # one rank shares nothing
    cluster["node3"].shell("mount -o remount,size=200m /tmp; mount -o remount,size=300m,nr_inodes=4000 /var/tmp")
    repeated("--wdir", "/var/tmp")


def test_other_work_and_clocks(cluster, repeated):
    """Idle programs, memory in use, less than a core of work by others, and a clock a second ahead."""
    script = cluster.shared / "reach"
    ahead = f"/usr/bin/python3 {wrong_clock.__file__} 1"
    script.write_text(f'#!/bin/sh\ncase "$*" in *node2*) exec {ahead} ssh -o BatchMode=yes "$@";; esac\nexec ssh -o BatchMode=yes "$@"\n')
    script.chmod(0o755)
    cluster["node1"].shell("fallocate -l 100m /tmp/in-memory")
    idle = "import sys\nheld = bytearray(64 << 20)\nsys.stdin.read()"
    with (cluster["node3"].start(["/usr/bin/python3", "-c", idle], stdin=subprocess.PIPE),
          cluster["node1"].start(["/usr/bin/python3", "-c", A_TENTH_OF_A_CORE])):
        repeated("--rsh", str(script))
