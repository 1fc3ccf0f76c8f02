"""The end of a job in words, now and by hvrun explain later: cores, equal traces, an hvrun that was killed.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import resource
import signal

import pytest

from harness.waiting import wait_for
from launching import run, start

TRACE = ("import os, sys; rank = os.environ['HVRUN_RANK']; sys.stderr.write(f'[rank{rank}] pid {os.getpid()}\\n'); "
         "raise ValueError('no ideas')")
PYTHON = "/usr/bin/python3"


def words_of_end(result):
    """hvrun's own of the end, with what it quotes."""
    return [line for line in result.stderr.decode().splitlines() if not re.match(r"\[\d+\] |hvrun: warning: ", line)]


def explained(hvrun, *words):
    result = run(hvrun, "explain", *map(str, words))
    assert result.returncode == 0 and result.stderr == b"", result
    return result.stdout.decode()


def allow_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def test_the_core_of_a_rank_is_named(hvrun, tmp_path):
    try:
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    except OSError:
        hard = 0
    if hard != resource.RLIM_INFINITY and os.getuid() != 0:
        pytest.skip("cores are forbidden here by a hard limit")
    result = run(hvrun, "-np", "1", "sh", "-c", "kill -SEGV $$", cwd=str(tmp_path), enter=allow_cores)
    err = result.stderr.decode()
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    assert result.returncode == 139 and "core dumped" in err, err
    if pattern.startswith("|"):
        assert f"its core was piped to {pattern[1:].split()[0]}" in err, err
    else:
        core = re.search(r"^hvrun: its core file is (\S+)$", err, re.MULTILINE)
        assert core and pathlib.Path(core.group(1)).is_file(), err


def test_a_rank_without_a_core_is_told_why(hvrun):
    result = run(hvrun, "-np", "1", "sh", "-c", "kill -SEGV $$", enter=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    is_piped = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().startswith("|")
    assert (b"it left no core file, as RLIMIT_CORE is 0" in result.stderr) == (not is_piped), result


def test_a_trace_of_all_ranks_is_told_once_with_the_ranks(hvrun, tmp_path):
    all_there = (f"import time; open('{tmp_path}/' + os.environ['RANK'], 'w')\n"
                 f"while len(os.listdir('{tmp_path}')) < 4: time.sleep(0.01)\n")  # sleep-ok: a barrier
    result = run(hvrun, "-np", "4", PYTHON, "-c", "import os\n" + all_there + TRACE)
    words = words_of_end(result)
    assert sum("ValueError: no ideas" in line for line in words) == 1, words
    assert any(re.fullmatch(r"hvrun: ranks 0-3 said, here as rank [0-3]:", line) for line in words), words


@pytest.mark.parametrize("script", [TRACE, "import os; os.kill(os.getpid(), 11)", "import os; os._exit(int(os.environ['HVRUN_RANK']) * 3)"])
def test_explain_says_what_the_end_of_the_job_said(hvrun, tmp_path, script):
    folder = tmp_path / "out"
    result = run(hvrun, "--output-dir", str(folder), "-np", "3", PYTHON, "-c", script)
    assert result.returncode != 0
    assert explained(hvrun, folder).splitlines() == words_of_end(result)
    record = json.loads(explained(hvrun, "--format", "json", folder))
    assert record == json.loads((folder / "job.json").read_text())
    assert record["state"] == "rank_failed" and record["exit_code"] == result.returncode
    assert record["command"] == [PYTHON, "-c", script]


def test_explain_of_a_time_limit_and_of_a_start_that_failed_says_their_errors(hvrun, tmp_path):
    for number, words in enumerate((["--timeout", "0.3", "sleep", "30"], ["/no/such/program"])):
        folder = tmp_path / str(number)
        result = run(hvrun, "--output-dir", str(folder), "-np", "1", *words)
        error = [line for line in words_of_end(result) if line.startswith("hvrun: error: ")]
        later = explained(hvrun, folder)
        assert len(error) == 1 and error[0] + "\n  try: " in later, result
        assert later.startswith("hvrun: where the ranks stand:\n  rank 0 on host" if number == 0 else error[0]), later


def test_whoever_names_the_record_means_its_folder(hvrun, tmp_path):
    run(hvrun, "-np", "1", "--output-dir", tmp_path / "out", "false")
    assert explained(hvrun, tmp_path / "out" / "job.json") == explained(hvrun, tmp_path / "out") != ""


def test_explain_of_a_job_that_ended_well_has_nothing_to_say(hvrun, tmp_path):
    folder = tmp_path / "out"
    assert run(hvrun, "--output-dir", str(folder), "-np", "2", "true").returncode == 0
    assert re.fullmatch(r"hvrun: the job ended well after [0-9.]+ s: there is nothing to explain\n", explained(hvrun, folder))


def test_explain_of_a_job_that_runs_and_of_one_whose_hvrun_was_killed(hvrun, tmp_path):
    folder = tmp_path / "out"
    process = start(hvrun, "--output-dir", str(folder), "-np", "2", PYTHON, "-c",
                    "import sys, time; sys.stderr.write('Traceback (most recent call last):\\nValueError: odd\\n'); "
                    "sys.stderr.flush(); time.sleep(60)")  # sleep-ok: a rank that is busy
    wait_for(lambda: all((folder / f"rank.{rank}/stderr").exists() and (folder / f"rank.{rank}/stderr").read_text().endswith("odd\n")
                         for rank in (0, 1)), 20, "both ranks have written")
    assert explained(hvrun, folder).startswith(f"hvrun: the job still runs: hvrun is process {process.pid} on host ")
    record = json.loads((folder / "job.json").read_text())
    assert record["state"] == "running" and len(record["ranks"]) == 2 and record["ranks"][1]["pid"] > 0
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    told = explained(hvrun, folder)
    assert told.startswith(f"hvrun: error: hvrun did not see the end of this job: process {process.pid} on host "), told
    assert "hvrun: what ranks 0-1 wrote ends in an error\nhvrun: ranks 0-1 said:\n    Traceback" in told, told
    assert json.loads(explained(hvrun, "--format", "json", folder))["still_runs"] is False


@pytest.mark.parametrize("words", [["/no/such"], [], ["a", "b"], ["--format", "xml", "."], ["."]])
def test_what_cannot_be_explained_is_a_mistake_of_its_user(hvrun, tmp_path, words):
    result = run(hvrun, "explain", *words, cwd=str(tmp_path))
    assert result.returncode == 2 and result.stdout == b"" and b"  try: " in result.stderr, result


def test_a_record_that_cannot_be_written_keeps_the_job_from_starting(hvrun, tmp_path):
    (tmp_path / "job.json").mkdir()
    result = run(hvrun, "--output-dir", str(tmp_path), "-np", "1", "echo", "started")
    assert result.returncode == 2 and result.stdout == b"", result
    assert f"write {tmp_path}/job.json: Is a directory".encode() in result.stderr, result


def test_a_record_that_cannot_be_written_at_the_end_is_an_error(hvrun, tmp_path):
    folder = tmp_path / "out"
    result = run(hvrun, "--output-dir", str(folder), "-np", "1", "sh", "-c",
                 f"until grep -q '\"rank\": 0' {folder}/job.json; do :; done; rm {folder}/job.json; mkdir {folder}/job.json")
    assert result.returncode == 3 and b"hvrun: error: write " in result.stderr, result


def test_the_help_of_explain_is_printed(hvrun):
    assert "Usage: hvrun explain" in explained(hvrun, "--help")
