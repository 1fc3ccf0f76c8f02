"""A rank that the kernel's OOM killer ends, and shared memory that does not fit: named, ended, nothing left.

The rank moves into a memory cgroup of its own before it becomes the program.
SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re

import pytest

from harness import programs
from harness.waiting import wait_for
from launching import run, two_hosts

LOST_PEER = str(programs.hvrun_folder() / "c_lost_peer")
PEER_LOST = 5  # hvrun_status
KILLED = 128 + 9
WITHIN = 2  # seconds
ROOTS = {1: pathlib.Path("/sys/fs/cgroup/memory"), 2: pathlib.Path("/sys/fs/cgroup")}
IN_ITS_OWN_SHM = 'mount -t tmpfs none /dev/shm && "$@"; code=$?; ls -A /dev/shm | sed "s/^/left in shm: /"; exit $code'
TOLD = re.compile(r"^\[(\d)\] (\w+) status (\d+) at ([0-9.]+): (.*)$", re.MULTILINE)


def version_with_memory():
    """Of the cgroups here that limit memory, or None."""
    for version, probe in ((1, "memory.limit_in_bytes"), (2, "cgroup.subtree_control")):
        file = ROOTS[version] / probe
        if file.exists() and (version == 1 or "memory" in file.read_text().split()):
            return version
    return None


def log_can_be_read():
    """With these processes' own numbers in it."""
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"


def told_by_kernel(err):
    """A rank that has left its cgroup for another one is known by the log alone."""
    if not log_can_be_read():
        return "SIGKILL" in err
    return re.search(r"^hvrun: the kernel ended it for want of memory: .*Killed process \d+ \(c_lost_peer\)", err, re.MULTILINE)


class MemoryGroup:
    """An empty cgroup, and the words with which a shell moves into it."""

    def __init__(self, name, limit):
        version = version_with_memory()
        if version is None:
            pytest.skip("no cgroup here limits memory (neither a v1 memory hierarchy nor memory in v2's subtree_control)")
        self.path = ROOTS[version] / name
        try:
            self.path.mkdir()
            (self.path / ("memory.limit_in_bytes" if version == 1 else "memory.max")).write_text(str(limit))
        except OSError as error:
            pytest.skip(f"no cgroup can be made here: {error}")
        swap = self.path / "memory.swap.max"
        if swap.exists():
            swap.write_text("0")

    def program(self, rank, *words):
        return ["sh", "-c", f'[ "$HVRUN_RANK" != {rank} ] || echo $$ > {self.path}/cgroup.procs; exec "$@"', "sh", *words]

    def remove(self):
        """Works only once nobody is in it."""
        wait_for(lambda: not (self.path / "cgroup.procs").read_text(), 10, f"nobody is left in {self.path}")
        self.path.rmdir()


@pytest.fixture
def memory_group():
    """memory_group(bytes)."""
    made = []

    def make(limit):
        made.append(MemoryGroup(f"hvrun-test-{os.getpid()}-{len(made)}", limit))
        return made[-1]

    yield make
    for group in made:
        group.remove()


@pytest.mark.parametrize("place", ["one host", "two hosts"])
def test_a_rank_that_the_oom_killer_ends_is_named_within_two_seconds(hvrun, memory_group, tmp_path, place):
    group = memory_group(64 << 20)
    where = ["-np", "4"] if place == "one host" else two_hosts(tmp_path, slots=2)
    alone = ["--mount", "sh", "-c", IN_ITS_OWN_SHM, "sh"]  # tests beside this one use the machine's
    result = run("unshare", *alone, hvrun, *where, *group.program(1, LOST_PEER, "grow"))
    out, err = result.stdout.decode(), result.stderr.decode()
    assert result.returncode == KILLED, (out, err)
    assert "rank 1" in err and told_by_kernel(err), err
    said = {(rank, what): (int(status), float(at), words) for rank, what, status, at, words in TOLD.findall(out)}
    _, last_sign, _ = said["1", "grown"]
    for rank in "023":
        for what in ("pending", "later"):
            status, at, words = said[rank, what]
            assert status == PEER_LOST and "rank 1" in words, (rank, what, words)
            assert at - last_sign < WITHIN, (rank, what, at - last_sign)
    assert "left in shm" not in out, out


@pytest.mark.parametrize("mebibytes", [1, 3, 5, 8, 12])
def test_memory_that_does_not_even_suffice_to_join_ends_the_job_in_words(hvrun, memory_group, mebibytes):
    """Somewhere between exec and the first sum: whoever touches the shared memory first pays for it."""
    group = memory_group(mebibytes << 20)
    result = run(hvrun, "-np", "3", *group.program(1, LOST_PEER, "grow"))
    err = result.stderr.decode()
    assert result.returncode == KILLED, (result.stdout, err)
    assert "rank 1" in err and told_by_kernel(err), err


def test_a_job_whose_cgroup_is_too_small_is_told_the_cgroup_and_its_limit(hvrun, memory_group):
    group = memory_group(64 << 20)

    def enter():
        (group.path / "cgroup.procs").write_text(str(os.getpid()))

    hog = "import time; b = bytearray(200 << 20); time.sleep(60)"  # sleep-ok: a rank that is busy
    result = run(hvrun, "-np", "1", "/usr/bin/python3", "-c", hog, enter=enter)
    err = result.stderr.decode()
    assert result.returncode == KILLED, err
    assert f"the kernel ended it for want of memory: cgroup {group.path}: limit 64 MiB, 1 oom_kill since the job began" in err, err
    assert "  try: more memory for the job (Slurm: --mem)" in err, err


def test_a_rank_whose_worker_the_kernel_killed_is_told_so(hvrun, memory_group):
    group = memory_group(64 << 20)

    def enter():
        (group.path / "cgroup.procs").write_text(str(os.getpid()))

    hog = "b = bytearray(200 << 20)"
    result = run(hvrun, "-np", "1", "sh", "-c", '/usr/bin/python3 -c "$0"; exit 3', hog, enter=enter)
    err = result.stderr.decode()
    assert result.returncode == 3, err
    assert f"the kernel ended a process beside it for want of memory: cgroup {group.path}: limit 64 MiB" in err, err


def test_a_rank_that_somebody_killed_is_not_laid_to_memory(hvrun):
    result = run(hvrun, "-np", "1", "sh", "-c", "kill -KILL $$")
    err = result.stderr.decode()
    assert result.returncode == KILLED and "the kernel ended" not in err, err
    if log_can_be_read():
        assert "hvrun: a person or a program killed it, not the kernel for want of memory: the kernel's log does not" in err, err
