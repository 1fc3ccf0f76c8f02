"""A reader that stands still longer than --lost-after slows the job; no host counts as lost for it.

SPDX-License-Identifier: Apache-2.0
"""
import signal
import subprocess

import pytest

from harness.waiting import stays, wait_for
from launching import lines_by_rank, start, two_hosts

LOST_AFTER = 2  # seconds
LINES = 500_000  # of each rank: much more than pipe, buffers and credit hold


@pytest.fixture(params=["one host", "two hosts"])
def hosts(request, tmp_path):
    return ["-np", "2"] if request.param == "one host" else two_hosts(tmp_path)


def write_much(hvrun, hosts, tmp_path, stdout):
    """The job, once both ranks are writing; a rank leaves a file when all that it wrote was taken."""
    script = f": >{tmp_path}/began.$RANK; seq 1 {LINES}; : >{tmp_path}/wrote.$RANK"
    job = start(hvrun, *hosts, "--lost-after", str(LOST_AFTER), "sh", "-c", script, stdout=stdout, HOME=str(tmp_path))
    wait_for(lambda: len(list(tmp_path.glob("began.*"))) == 2, 20, "both ranks")
    return job


def lives_on(job, tmp_path):
    stays(lambda: job.poll() is None, 3 * LOST_AFTER, "the job")
    assert not list(tmp_path.glob("wrote.*")), "the reader holds nobody up: this test shows nothing"


def check_all_arrived(out):
    by_rank = lines_by_rank(out)
    for rank in (0, 1):
        assert by_rank[rank] == [b"%d" % i for i in range(1, LINES + 1)]


@pytest.mark.one_of("hosts")
def test_a_reader_that_begins_late_gets_everything(hvrun, hosts, tmp_path):
    job = write_much(hvrun, hosts, tmp_path, subprocess.PIPE)
    lives_on(job, tmp_path)
    out, err = job.communicate(timeout=120)
    assert (job.returncode, err) == (0, b"")
    check_all_arrived(out)


@pytest.mark.one_of("hosts")
def test_a_reader_that_is_stopped_gets_everything_when_it_goes_on(hvrun, hosts, tmp_path):
    with open(tmp_path / "all", "wb") as everything:
        reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=everything)
    reader.send_signal(signal.SIGSTOP)
    job = write_much(hvrun, hosts, tmp_path, reader.stdin)
    reader.stdin.close()  # the job's alone now
    lives_on(job, tmp_path)
    reader.send_signal(signal.SIGCONT)
    _, err = job.communicate(timeout=120)
    assert (job.returncode, err, reader.wait(20)) == (0, b"", 0)
    check_all_arrived((tmp_path / "all").read_bytes())
