"""What rank 0 writes to HVRUN_RESULT_FD arrives at the descriptor of --result-fd, and nowhere else.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import os
import signal
import subprocess
import threading
import time

from harness import processes
from launching import start, two_hosts


class Job:
    """hvrun with a pipe for --result-fd, which is read from the start on."""

    def __init__(self, hvrun, *words):
        ours, hvruns = os.pipe()
        self.pipe = os.readlink(f"/proc/self/fd/{hvruns}")  # "pipe:[inode]"
        self._results = None
        self._reader = threading.Thread(target=self._read, args=[ours], daemon=True)
        self.process = start(hvrun, "--result-fd", str(hvruns), *words, pass_fds=[hvruns])
        os.close(hvruns)
        self._reader.start()

    def _read(self, ours):
        with os.fdopen(ours, "rb") as pipe:
            self._results = pipe.read()

    def results(self):
        """All that came, once nobody holds the other end any more."""
        self._reader.join(60)
        return self._results

    def ended(self):
        """Exit code, results, stdout, stderr."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, self.results(), out, err


def test_what_ranks_print_is_output_and_only_the_pipe_carries_results(hvrun, tmp_path):
    script = ("echo [$RANK] ${HVRUN_RESULT_FD-none}; echo hvrun-result-1234 spoof; [ $RANK = 0 ] || exit 0; "
              "head -c 5000000 /dev/zero >/dev/fd/$HVRUN_RESULT_FD; printf end >/dev/fd/$HVRUN_RESULT_FD; echo said")
    code, results, out, err = Job(hvrun, *two_hosts(tmp_path), "--no-label", "sh", "-c", script).ended()
    assert (code, results) == (0, bytes(5000000) + b"end"), (out[:1000], err)
    assert b"[1] none\n" in out and b"[0] none\n" not in out and out.count(b"hvrun-result-1234 spoof\n") == 2 and b"said\n" in out


def test_with_terminals_it_is_the_same(hvrun):
    script = "echo out; echo result >/dev/fd/$HVRUN_RESULT_FD"
    code, results, out, err = Job(hvrun, "--pty", "-np", "1", "--no-label", "sh", "-c", script).ended()
    assert (code, results, out) == (0, b"result\n", b"out\r\n"), err


def test_nothing_that_hvrun_starts_inherits_the_descriptor(hvrun):
    job = Job(hvrun, "-np", "1", "--no-label", "sh", "-c", "echo $$ $PPID; exec sleep 1000")
    rank, agent = map(int, job.process.stdout.readline().split())
    guard = processes.look_at(agent).parent
    holders = {pid for pid in (job.process.pid, guard, agent, rank)
               for number in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{number}") == job.pipe}
    assert holders == {job.process.pid}
    job.process.terminate()
    assert job.ended()[:2] == (143, b"")


def test_a_rank_that_is_killed_in_the_middle_fails_the_job(hvrun):
    script = "[ $RANK = 1 ] && exec sleep 1000; printf begin >/dev/fd/$HVRUN_RESULT_FD; kill -9 $$"
    code, results, _, err = Job(hvrun, "-np", "2", "sh", "-c", script).ended()
    assert (code, results) == (137, b"begin"), err


def test_a_reader_that_goes_away_ends_the_job_before_anything_is_written(hvrun):
    """The caller of hvrun.run was killed, say: nobody wants the results any more."""
    ours, hvruns = os.pipe()
    process = start(hvrun, "--result-fd", str(hvruns), "-np", "2", "--no-label", "sh", "-c", "echo up; exec sleep 1000", pass_fds=[hvruns])
    os.close(hvruns)
    assert [process.stdout.readline() for _ in range(2)] == [b"up\n"] * 2
    os.close(ours)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3 and b"(--result-fd): Broken pipe" in err and b"keep the reading end open" in err, err


def test_a_killed_hvrun_closes_the_descriptor(hvrun):
    job = Job(hvrun, "-np", "1", "--no-label", "sh", "-c", "printf begin >/dev/fd/$HVRUN_RESULT_FD; echo begun; exec sleep 1000")
    assert job.process.stdout.readline() == b"begun\n"
    job.process.send_signal(signal.SIGKILL)
    assert job.results() in (b"", b"begin")


def test_a_reader_that_stands_still_stops_the_rank_and_no_signal(hvrun):
    ours, hvruns = os.pipe()
    process = start(hvrun, "--result-fd", str(hvruns), "-np", "1", "--no-label", "sh", "-c",
                    "echo begun; head -c 30000000 /dev/zero >/dev/fd/$HVRUN_RESULT_FD; echo written", pass_fds=[hvruns])
    os.close(hvruns)
    assert process.stdout.readline() == b"begun\n"
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:  # the second one waits for no reader
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
    assert (process.wait(1), process.stdout.read()) == (130, b""), process.stderr.read()
    os.close(ours)


def test_a_reader_that_has_gone_ends_the_job_with_words(hvrun):
    ours, hvruns = os.pipe()
    os.close(ours)
    process = start(hvrun, "--result-fd", str(hvruns), "-np", "2", "sh", "-c",
                    "[ $RANK = 1 ] || head -c 3000000 /dev/zero >/dev/fd/$HVRUN_RESULT_FD; exec sleep 1000", pass_fds=[hvruns])
    os.close(hvruns)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3 and f"write what rank 0 returns to descriptor {hvruns} (--result-fd): Broken pipe".encode() in err, err


def test_a_descriptor_that_cannot_take_results_is_refused(hvrun):
    reading = os.open("/dev/null", os.O_RDONLY)
    for passed, problem in [([], b"Bad file descriptor"), ([reading], b"it is not open for writing")]:
        process = start(hvrun, "--result-fd", str(reading), "true", pass_fds=passed)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2 and b" names no descriptor for results: " + problem in err, err
    os.close(reading)


def test_a_dry_run_writes_nothing_to_it(hvrun):
    code, results, _, err = Job(hvrun, "--dry-run", "-np", "1", "true").ended()
    assert (code, results) == (0, b""), err
