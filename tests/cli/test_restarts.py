"""--restarts: which ends of a job start it again, what is written of each attempt, and what ends the wait between.

SPDX-License-Identifier: Apache-2.0
"""
import fcntl
import json
import os
import resource
import signal
import termios

import pytest

from harness.waiting import wait_for
from launching import run, start

NOW = {"HVRUN_RESTART_DELAY": "0"}
FAILS_TWICE = 'echo attempt $HVRUN_RESTART of $HVRUN_JOB_ID; [ $HVRUN_RESTART = 2 ] || exit 7'
COUNTS = 'echo "$HVRUN_RESTART" $(ls /proc/$LAUNCHER/fd | wc -l) $(ls /proc/$LAUNCHER/task | wc -l) ' \
         '$(wc -w </proc/$LAUNCHER/task/$LAUNCHER/children); exit 7'


def await_restart(process):
    """What hvrun has said until then."""
    said = b""
    for line in process.stderr:
        said += line
        if b"the job starts again" in line:
            return said
    raise AssertionError(said)


def test_a_job_that_fails_twice_is_started_three_times_each_with_its_files(hvrun, tmp_path):
    logs, summary = tmp_path / "logs", tmp_path / "end.json"
    result = run(hvrun, "--restarts", "3", "--output-dir", str(logs), "--summary", str(summary), "-np", "1", "sh", "-c", FAILS_TWICE, **NOW)
    assert result.returncode == 0, result
    attempts = [line.split() for line in result.stdout.splitlines()]
    assert [words[2] for words in attempts] == [b"0", b"1", b"2"] and len({words[4] for words in attempts}) == 3, result.stdout
    for number in (1, 2):
        told = b"hvrun: the job starts again now (restart %d of 3): rank 0 on host localhost ended with exit code 7 after " % number
        assert told in result.stderr, result
    folders = [logs, logs / "restart.1", logs / "restart.2"]
    for number, folder in enumerate(folders):
        assert (folder / "rank.0/stdout").read_bytes().startswith(b"attempt %d of " % number)
        record = json.loads((folder / "job.json").read_text())
        assert (record["restarts"], record["is_restarted"]) == (number, number < 2)
        assert (record["state"], record["exit_code"]) == (("rank_failed", 7) if number < 2 else ("ok", 0))
    assert summary.read_text() == (folders[2] / "job.json").read_text()
    explained = run(hvrun, "explain", str(logs)).stdout.decode()
    assert f"the job was started 3 times; the last attempt, which follows, is in {folders[2]}\n  attempt 1: rank 0 " in explained
    assert "the job ended well" in explained
    assert b"exit code 7" in run(hvrun, "explain", str(folders[1])).stdout


@pytest.mark.parametrize("program,code,said", [
    ("exit 7", 7, b"the job does not start again: its restarts are used up (--restarts 1)"),
    ("kill -SEGV $$", 139, b"its restarts are used up"),
    ("exit 2", 2, b"the job does not start again: exit code 2"),
    ("exit 0", 0, b""),
])
def test_the_exit_code_is_that_of_the_last_attempt(hvrun, program, code, said):
    result = run(hvrun, "--restarts", "1", "-np", "2", "sh", "-c", "echo up; " + program, **NOW)
    assert result.returncode == code and said in result.stderr, result
    assert result.stdout.count(b"up") == (4 if b"used up" in said else 2), result


def test_a_start_that_fails_and_output_that_cannot_be_written_start_nothing_again(hvrun):
    result = run(hvrun, "--restarts", "3", "-np", "1", "./not-there", **NOW)
    assert result.returncode == 3 and b"the job does not start again: it never ran" in result.stderr, result
    with open("/dev/full", "wb") as full:
        process = start(hvrun, "--restarts", "3", "-np", "1", "sh", "-c", "echo up; exit 7", stdout=full, **NOW)
        _, err = process.communicate(timeout=60)
    assert process.returncode != 0 and b"starts again" not in err, err
    result = run(hvrun, "--restarts", "3", "--stdin", "-np", "1", "true")
    assert result.returncode == 2 and b"--stdin hands to a rank can be read only once" in result.stderr, result


def test_a_restart_that_cannot_begin_is_told_in_the_summary(hvrun, tmp_path):
    logs, summary = tmp_path / "logs", tmp_path / "end.json"
    words = ["--restarts", "1", "--output-dir", str(logs), "--summary", str(summary), "-np", "1"]
    result = run(hvrun, *words, "sh", "-c", f"mkdir -p {logs}/restart.1/job.json; exit 7", **NOW)
    error = f"write {logs}/restart.1/job.json: Is a directory"
    assert result.returncode == 2 and f"hvrun: error: {error}\n  try: ".encode() in result.stderr, result
    record = json.loads(summary.read_text())
    assert (record["state"], record["exit_code"], record["restarts"], record["error"]) == ("not_started", 2, 1, error)


@pytest.mark.parametrize("number,code,state,said", [
    (signal.SIGINT, 130, "interrupted", b"hvrun: ended by SIGINT"),
    (signal.SIGTERM, 143, "interrupted", b"hvrun: ended by SIGTERM"),
    (signal.SIGUSR1, 7, "rank_failed", b"the job does not start again: the job was sent SIGUSR1"),
])
def test_a_signal_ends_the_wait_and_the_job(hvrun, tmp_path, number, code, state, said):
    summary = tmp_path / "end.json"
    files = ["--output-dir", str(tmp_path / "logs"), "--summary", str(summary)]
    process = start(hvrun, "--restarts", "3", *files, "-np", "1", "sh", "-c", "exit 7", HVRUN_RESTART_DELAY="3600")
    await_restart(process)
    assert json.loads((tmp_path / "logs/job.json").read_text())["is_restarted"] is True and summary.read_text() == ""
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code and said in err, err
    record = json.loads(summary.read_text())
    assert (record["state"], record["exit_code"], record["is_restarted"], record["cause"]["rank"]) == (state, code, False, 0)
    assert (tmp_path / "logs/job.json").read_text() == summary.read_text()


def test_a_signal_ends_the_wait_for_a_reader_that_stands_still(hvrun, tmp_path):
    """The end of the first attempt fills the pipe, and the message on the restart waits for a reader."""
    reader, writer = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)  # each write takes a page
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, resource.getpagesize())
    with open(reader, "rb") as unread, open(writer, "wb") as file:
        options = ["--restarts", "3", "--output-dir", str(tmp_path / "logs")]
        process = start(hvrun, *options, "-np", "1", "sh", "-c", "exit 7", stderr=file, **NOW)
        wait_for(lambda: any(fcntl.ioctl(unread, termios.FIONREAD, bytes(4))), 60, "the end of the first attempt")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (130, 143)
        # Where both were written at once, nothing was left to wait for.
        assert b"starts again" in unread.read1() or not (tmp_path / "logs/restart.1").exists()


def test_restarts_leave_no_descriptor_thread_or_child_behind(hvrun):
    """The ranks count those of hvrun, whose process number the shell has before it becomes hvrun."""
    words = ["-c", 'LAUNCHER=$$ exec "$@"', "sh", hvrun, "--no-label", "--restarts", "8", "-np", "1", "sh", "-c", COUNTS]
    process = start("/bin/sh", *words, **NOW)
    out, err = process.communicate(timeout=60)
    counts = [tuple(map(int, line.split()[1:])) for line in out.splitlines()]
    assert process.returncode == 7 and len(counts) == 9, (out, err)
    assert counts[8][:2] == counts[2][:2], counts
    assert counts[8][2] < 6, counts  # the agent, and one or two of earlier attempts that have just ended
