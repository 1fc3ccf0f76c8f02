# SPDX-License-Identifier: Apache-2.0
"""Signals for ranks with processes that the user may not read or signal: the rank's own process alone gets them."""

import shutil
import signal

import pytest

from harness.syscalls import mount
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

ALONE = "may not be read or signalled, so its rank's own process alone got SIGUSR1 (User defined signal 1)"
DENIED = ", a rank's own, belongs to another user and did not get SIGUSR1 (User defined signal 1)"
# Nobody but root may read which executable that process runs.
UNREADABLE = """
import ctypes, signal
signal.signal(signal.SIGUSR1, lambda *_: print("got it", flush=True))
signal.signal(signal.SIGTERM, lambda *_: None)
ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE
print("up", flush=True)
while True:
    signal.pause()
"""


@pytest.fixture
def start(cluster):
    """start(words...): hvrun of ada's, with one rank on node1 that prints 'up'."""
    def start_there(*words):
        running = cluster.start(["hvrun", "-np", "1", "-H", "node1", *words], user="ada")
        wait_for(lambda: "[0] up\n" in running.out, 30, lambda: str(running))
        return running

    return start_there


@pytest.fixture
def as_root(cluster):
    """Words before a program that is root's then: of the real user, too, so that ada may not signal it."""
    program = cluster.shared / "setpriv"
    shutil.copy("/usr/bin/setpriv", program)
    program.chmod(0o4755)
    return [str(program), "--reuid=0", "--regid=0", "--clear-groups"]


WAITS = ["sh", "-c", "echo up; exec sleep 1000"]
WRAPPER = ["bash", "-c", '"$@"; echo the end', "bash"]


@pytest.mark.parametrize("hidepid", [0, 1, 2])
def test_a_wrapper_gets_a_signal_in_place_of_another_users_program(cluster, start, as_root, hidepid):
    cluster["node1"].call(lambda: mount("proc", "/proc", "proc", options=f"hidepid={hidepid}"))
    job = start("-v", *WRAPPER, *as_root, *WAITS)
    job.kill(signal.SIGUSR1)
    result = job.wait(30)
    assert result.code == 128 + signal.SIGUSR1 and result.err.count(ALONE) == 1, str(result)
    assert "belongs to another user and could not be ended" in result.err, str(result)


def test_who_may_not_be_signalled_is_a_detail(start, as_root):
    job = start(*WRAPPER, *as_root, *WAITS)
    job.kill(signal.SIGUSR1)
    result = job.wait(30)
    assert result.code == 128 + signal.SIGUSR1 and ALONE not in result.err, str(result)


def test_a_rank_of_another_user_gets_no_signal(start, as_root):
    job = start("-v", *as_root, *WAITS)
    job.kill(signal.SIGUSR1)
    wait_for(lambda: DENIED in job.err, 30, lambda: str(job))
    job.kill(signal.SIGINT)
    assert "belongs to another user and could not be ended" in job.wait(30).err


def test_a_wrapper_gets_a_signal_in_place_of_an_unreadable_program(start):
    job = start("-v", *WRAPPER, "/usr/bin/python3", "-c", UNREADABLE)
    job.kill(signal.SIGUSR1)
    result = job.wait(30)
    assert result.code == 128 + signal.SIGUSR1 and result.err.count(ALONE) == 1, str(result)


def test_an_unreadable_rank_with_a_handler_gets_its_signal(start):
    job = start("-v", "--grace", "0.5", "/usr/bin/python3", "-c", UNREADABLE)
    job.kill(signal.SIGUSR1)
    wait_for(lambda: "[0] got it\n" in job.out, 30, lambda: str(job))
    job.kill(signal.SIGTERM)
    result = job.wait(30)
    assert "SIGKILL ended rank 0 (host node1) after --grace 0.5 s; it caught SIGTERM\n" in result.err, str(result)
    assert "alone got" not in result.err, str(result)
