# SPDX-License-Identifier: Apache-2.0
"""Faults of one host's files, programs and limits, each by its verdict, with that host; and its mend, which mends it."""

import resource
import shutil
import subprocess

import pytest

from harness import sshd
from harness.checks import check, dry_run, expect, expect_healthy
from harness.syscalls import MS_BIND, mount
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

THREE = ["-np", "3"]
TRUE = [*THREE, "/usr/bin/true"]
RANGE = "20100-20103"


@pytest.fixture
def folder(cluster):
    """/run/work on every host, each with its own."""
    for node in cluster.nodes:
        node.shell("mkdir -p /run/work")
    return "/run/work"


def small(node, folder, size):
    node.shell(f"mount -t tmpfs -o mode=1777,size={size} none {folder}")


# ---- folders ----


def test_a_full_working_directory(cluster, folder):
    node = cluster["node2"]
    small(node, folder, "110m")
    expect_healthy(dry_run(cluster, "--wdir", folder, *TRUE))
    node.shell(f"fallocate -l 20m {folder}/old-checkpoint")
    finding = expect(dry_run(cluster, "--wdir", folder, *TRUE), "folder-full", "node2", mend=f"ssh node2 df -h {folder}")
    assert "90 MiB free in the working directory" in finding["fact"], finding
    node.shell(f"rm {folder}/old-checkpoint")
    expect_healthy(dry_run(cluster, "--wdir", folder, *TRUE))


def test_a_working_directory_without_inodes(cluster, folder):
    cluster["node3"].shell(f"mount -t tmpfs -o nr_inodes=500 none {folder}")
    finding = expect(dry_run(cluster, "--wdir", folder, *TRUE), "folder-full", "node3", mend=f"ssh node3 df -i {folder}")
    assert "inodes free" in finding["fact"], finding


def test_a_full_temporary_directory(cluster):
    small(cluster["node2"], "/var/tmp", "8m")
    for node in cluster.nodes:
        node.set_login_shell("/bin/bash")
        node.write_file(f"{node.users['root'].home}/.bashrc", "export TMPDIR=/var/tmp\n")
    expect(dry_run(cluster, *TRUE), "temporary-full", "node2", mend="-x TMPDIR=/var/tmp")
    expect_healthy(dry_run(cluster, "-x", "TMPDIR=/tmp", *TRUE))


def test_a_host_without_the_working_directory(cluster, folder):
    cluster["node3"].shell(f"rmdir {folder}")
    finding = expect(dry_run(cluster, "--wdir", folder, *TRUE), "folder-missing", "node3", mend=f"ssh node3 mkdir -p {folder}")
    words = finding["fix"].split(";")[0].split()
    assert cluster.run(words).code == 0
    expect_healthy(dry_run(cluster, "--wdir", folder, *TRUE))


def test_a_working_directory_with_other_content(cluster, folder):
    for node in cluster.nodes:
        text = "#!/bin/sh\necho new\n" if node.name != "node1" else "#!/bin/sh\necho old\n"
        node.write_file(f"{folder}/train", text, mode=0o755)
    words = ["--wdir", folder, *THREE, "./train"]
    expect(dry_run(cluster, *words), "folder-differs", "node1", mend="rsync -a")
    cluster["node1"].write_file(f"{folder}/train", "#!/bin/sh\necho new\n", mode=0o755)
    expect_healthy(dry_run(cluster, *words))


# ---- programs ----


def test_a_program_that_one_host_lacks(cluster):
    for node in ("node1", "node3"):
        cluster[node].write_file("/run/bin/train", "#!/bin/sh\n", mode=0o755)
    expect(dry_run(cluster, *THREE, "/run/bin/train"), "program-missing", "node2", mend="check that it lies at that path on every host")
    cluster["node2"].write_file("/run/bin/train", "#!/bin/sh\n", mode=0o755)
    expect_healthy(dry_run(cluster, *THREE, "/run/bin/train"))


def test_a_script_that_one_host_lacks(cluster, folder):
    for node in ("node1", "node2"):
        cluster[node].write_file(f"{folder}/train.py", "")
    words = ["--wdir", folder, *THREE, "/usr/bin/python3", "train.py"]
    expect(dry_run(cluster, *words), "script-missing", "node3", mend="check that it lies at that path on every host")
    cluster["node3"].write_file(f"{folder}/train.py", "")
    expect_healthy(dry_run(cluster, *words))


def test_an_interpreter_that_one_host_lacks(cluster):
    for node in cluster.nodes:
        node.write_file("/run/bin/train", "#!/run/bin/interpreter\n", mode=0o755)
        node.write_file("/run/bin/interpreter", "#!/bin/sh\n", mode=0o755)
    cluster["node2"].shell("rm /run/bin/interpreter")
    expect(dry_run(cluster, *THREE, "/run/bin/train"), "program-not-executable", "node2", mend="install that interpreter on that host")
    cluster["node2"].write_file("/run/bin/interpreter", "#!/bin/sh\n", mode=0o755)
    expect_healthy(dry_run(cluster, *THREE, "/run/bin/train"))


def test_another_python_that_is_first_in_one_hosts_path(cluster):
    node = cluster["node2"]
    answer = r"hvrun-python\0/usr/local/bin/python3\0003.9.1\0/usr\0"
    node.write_file("/run/other/python3", f"#!/bin/sh\nprintf '{answer}'\n", mode=0o755)
    node.call(lambda: mount("/run/other", "/usr/local/bin", None, MS_BIND))
    words = [*THREE, "python3", "-c", "pass"]
    finding = expect(dry_run(cluster, *words), "python-differs", "node2", mend="such as /usr/bin/python3")
    assert "node2: 3.9" in finding["fact"], finding
    expect_healthy(dry_run(cluster, *THREE, "/usr/bin/python3", "-c", "pass"))


@pytest.fixture
def program_with_library(cluster, tmp_path):
    """/run/bin/train, which finds libfault.so in /run/lib; both lie there on every host."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    (tmp_path / "fault.c").write_text("int fault(void) { return 0; }\n")
    (tmp_path / "train.c").write_text("int fault(void);\nint main(void) { return fault(); }\n")
    build = lambda *words: subprocess.run(["cc", *words], cwd=tmp_path, check=True)  # noqa: E731
    build("-shared", "-fPIC", "-Wl,-soname,libfault.so", "-o", "libfault.so", "fault.c")
    build("-o", "train", "train.c", "-L.", "-lfault", "-Wl,-rpath,/run/lib")
    for node in cluster.nodes:
        node.write_file("/run/bin/train", (tmp_path / "train").read_bytes(), mode=0o755)
        node.write_file("/run/lib/libfault.so", (tmp_path / "libfault.so").read_bytes(), mode=0o755)
    return "/run/bin/train"


def test_a_library_that_one_host_has_elsewhere(cluster, program_with_library):
    words = [*THREE, program_with_library]
    expect_healthy(dry_run(cluster, *words))
    cluster["node2"].shell("mkdir -p /run/opt; mv /run/lib/libfault.so /run/opt")
    finding = expect(dry_run(cluster, *words), "library-missing", "node2", mend="-x LD_LIBRARY_PATH=")
    assert "libfault.so" in finding["fact"], finding
    expect_healthy(dry_run(cluster, "-x", "LD_LIBRARY_PATH=/run/opt", *words))


# ---- limits, memory and ports ----


def limit_logins(node, which, value):
    """Of all that log in from now on."""
    resource.prlimit(node.sshd.pid, which, (value, value))


def test_little_memory_that_may_be_locked(cluster):
    for node in cluster.nodes:
        node.write_file("/run/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n")
        node.write_file("/run/class/infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp\n")
        node.call(lambda: mount("/run/class", "/sys/class", None, MS_BIND))
    expect_healthy(dry_run(cluster, *TRUE))  # root may lock all it likes, unless it is that of a container
    sshd.restart(cluster["node2"], before=["setpriv", "--bounding-set=-ipc_lock", "prlimit", "--memlock=65536"])
    finding = expect(dry_run(cluster, *TRUE), "memlock-low", "node2", mend="memlock unlimited' | ssh node2 sudo tee")
    assert finding["fact"].startswith("node2: 64 KiB") and "--ulimit memlock=-1" in finding["fix"], finding
    sshd.restart(cluster["node2"])
    expect_healthy(dry_run(cluster, *TRUE))


@pytest.mark.parametrize("which, value, verdict, mend", [
    (resource.RLIMIT_NOFILE, 60, "nofile-low", "nofile 1048576' | ssh node3 sudo tee"),
    (resource.RLIMIT_STACK, 512 << 10, "stack-low", "stack 8192' | ssh node3 sudo tee"),
], ids=["files", "stack"])
def test_a_low_limit(cluster, which, value, verdict, mend):
    limit_logins(cluster["node3"], which, value)
    expect(dry_run(cluster, *TRUE), verdict, "node3", mend=mend)


def test_a_small_shared_memory(cluster):
    packages = cluster.shared / "packages"
    (packages / "torch-2.13.0.dist-info").mkdir(parents=True)
    (packages / "torch-2.13.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    cluster["node2"].shell("mount -o remount,size=16m /dev/shm")
    hosts = [f"node{number}:2" for number in (1, 2, 3)]
    words = ["-np", "6", "-x", f"PYTHONPATH={packages}", "/usr/bin/python3", "-c", "pass"]
    finding = expect(dry_run(cluster, *words, hosts=hosts), "shm-small", "node2", mend="ssh node2 sudo mount -o remount,size=50% /dev/shm")
    assert "16 MiB of 16 MiB free for 2 ranks" in finding["fact"], finding
    cluster["node2"].shell("mount -o remount,size=50% /dev/shm")
    expect_healthy(dry_run(cluster, *words, hosts=hosts))


LISTENER = """
import socket, sys
sockets = [socket.create_server(("", int(port))) for port in sys.argv[1:]]
sys.stdin.read()
"""


@pytest.mark.one_of("count", "verdict", "fact")
@pytest.mark.parametrize("count, verdict, fact", [
    (3, "ports-few", f"node2: 1 of 4 ports of {RANGE} are free, and 2 are needed"),
    (4, "no-free-port", f"node2: listen for the other hosts' agents: no port of {RANGE} is free"),
])
def test_a_port_range_that_somebody_has(cluster, count, verdict, fact):
    ports = [str(20100 + number) for number in range(count)]
    with cluster["node2"].start(["/usr/bin/python3", "-c", LISTENER, *ports], stdin=subprocess.PIPE) as listener:
        wait_for(lambda: sshd.listens(cluster["node2"], int(ports[-1])), 10, cluster.report)
        found = dry_run(cluster, *TRUE, env={"HVRUN_PORT_RANGE": RANGE})
        finding = expect(found, verdict, "node2", mend="HVRUN_PORT_RANGE")
        assert finding["fact"].startswith(fact) and not found[0]["can_start"], str(found[1])
        expect_healthy(dry_run(cluster, *TRUE, env={"HVRUN_PORT_RANGE": "20000-20999"}))
        listener.process.stdin.close()
        assert listener.wait(10).code == 0
    expect_healthy(dry_run(cluster, *TRUE, env={"HVRUN_PORT_RANGE": RANGE}))


def test_a_home_that_is_full(cluster):
    node = cluster["node1"]
    node.spoil_home("full")
    for folder in ("/tmp", "/run/user", "/dev/shm", "/var/tmp"):
        node.shell(f"[ ! -d {folder} ] || mount -t tmpfs -o size=64k none {folder}")
    expect(check(cluster), "agent-not-copied", "node1", mend="free some space")
