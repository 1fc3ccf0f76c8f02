"""What libhvrun asks of its machine and does not get, and many jobs at once: words, never a hang, nothing left behind.

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal

import pytest

from harness import programs
from harness.processes import below
from harness.waiting import wait_for
from launching import run, start, two_hosts

SUMS = str(programs.hvrun_folder() / "c_ranks_test")
LOST_PEER = str(programs.hvrun_folder() / "c_lost_peer")
ABORTED = 128 + signal.SIGABRT
FEW = 9  # descriptors: a rank needs more
STEP = 5_000  # KiB of address space, which is less than a thread's stack


def limited(limit):
    """A rank's program under that limit of the shell."""
    return ["sh", "-c", f"{limit} && exec {SUMS}"]


def is_enough(result, *words):
    """Whether all went well; else it is an error of libhvrun that says these."""
    told = result.stderr.decode()
    assert result.returncode != ABORTED and "hvrun: bug" not in told, told
    assert result.returncode == 0 or all(word in told for word in words), told
    return result.returncode == 0


@pytest.mark.one_of("hosts")
@pytest.mark.parametrize("hosts", [1, 2])
def test_a_rank_without_descriptors_says_so(hvrun, tmp_path, scaled, chance, hosts):
    """From hardly any to enough: whatever libhvrun opens is the one that fails once, with --full."""
    where = [] if hosts == 1 else two_hosts(tmp_path, slots=2)
    count = ["-np", "2"] if hosts == 1 else []
    limits = sorted({4, FEW, 23, *chance.sample(range(5, 23), min(18, scaled(20)))})
    enough = {limit: is_enough(run(hvrun, *count, *where, *limited(f"ulimit -n {limit}")), "Too many open files", "ulimit -n")
              for limit in limits}
    assert list(enough.values()) == sorted(enough.values()), f"fewer descriptors did where more did not: {enough}"
    assert not any(enough[limit] for limit in limits if limit < FEW) and enough[23], enough


def test_one_rank_without_descriptors_ends_the_job(hvrun):
    """The others learn of it; nobody waits for ever."""
    for descriptors in (5, 7, FEW, 64):
        few = f'if [ "$HVRUN_RANK" = 1 ]; then ulimit -n {descriptors}; fi'
        result = run(hvrun, "-np", "3", *limited(few))
        assert is_enough(result, "ulimit -n") == (descriptors > FEW), descriptors


def test_a_limit_on_the_size_of_files_is_told_and_kills_nobody(hvrun):
    """A memfd counts as a file: SIGXFSZ would end the program."""
    result = run(hvrun, "-np", "2", *limited("ulimit -f 64"))
    told = result.stderr.decode()
    assert result.returncode not in (0, 128 + signal.SIGXFSZ), told
    assert "limit on the size of files" in told and "ulimit -f" in told, told


def test_a_rank_without_memory_says_so(hvrun):
    """Less and less from enough: too little for one thread or the other, then for the ranks' shared memory."""
    hello = str(programs.hvrun_folder() / "examples" / "hello_ranks")

    def run_within(kibibytes):
        return run(hvrun, "-np", "2", "sh", "-c", f"ulimit -v {kibibytes} && exec {hello}")

    few, enough = 20_000, 4_000_000  # how much is enough depends on the machine
    while enough - few > STEP:
        middle = (few + enough) // 2
        few, enough = (few, middle) if run_within(middle).returncode == 0 else (middle, enough)
    missing, words = {"start a thread", "shared memory"}, []
    while missing and few > 20_000:
        result = run_within(few)
        if not is_enough(result, "hello_ranks: ", ": ", "; try "):
            words.append(result.stderr.decode())
            missing -= {what for what in missing if what in words[-1] and "ulimit -v" in words[-1]}
        few -= STEP
    assert not missing, words


def maps_of(pid):
    """What a process maps; nothing once it has ended."""
    try:
        with open(f"/proc/{pid}/maps") as maps:
            return maps.read()
    except OSError:
        return ""


def sharing(pids):
    """Those of these processes that map the ranks' shared memory."""
    return {pid for pid in pids if "memfd:hvrun" in maps_of(pid)}


def test_no_shared_memory_is_left_after_kill_9(hvrun):
    job = start(hvrun, "-np", "3", LOST_PEER)
    ranks = wait_for(lambda: (found := sharing(process.pid for process in below(job.pid))) and len(found) == 3 and found,
                     60, "three ranks share memory")
    named = [line for rank in ranks for line in maps_of(rank).splitlines() if "/dev/shm" in line]
    assert not named, "memory that has a name outlives its processes"
    os.kill(job.pid, signal.SIGKILL)
    job.communicate(timeout=30)
    wait_for(lambda: not sharing(ranks), 10, lambda: f"nobody maps the memory any more: {sharing(ranks)}")


def test_many_jobs_at_once(hvrun, scaled):
    """All on one host, 100 of them under --full."""
    jobs = [start(hvrun, "-np", "2", SUMS) for _ in range(scaled(100))]
    for job in jobs:
        out, err = job.communicate(timeout=300)
        assert job.returncode == 0, err
