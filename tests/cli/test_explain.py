"""The end of a job in words, now and by hvrun explain later: cores, equal traces, an hvrun that was killed.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import resource
import signal
import subprocess

import pytest

from harness.waiting import wait_for
from launching import run, start

TRACE = ("import os, sys; rank = os.environ['HVRUN_RANK']; sys.stderr.write(f'[rank{rank}] pid {os.getpid()}\\n'); "
         "raise ValueError('no ideas')")
PYTHON = "/usr/bin/python3"


def words_of_end(result):
    """hvrun's own of the end, with what it quotes."""
    return [line for line in result.stderr.decode().splitlines() if not re.match(r"\[\d+\] |hvrun: warning: ", line)]


def without_quotes(lines):
    """hvrun's own words, alike whether it quotes a rank or says that its lines stand above."""
    return [line.removesuffix(" see above") for line in lines if not line.startswith("    ")]


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
    """Rank 4's text stands below the traces, so that hvrun has to quote one; then the others end, all at once."""
    os.mkfifo(tmp_path / "go")
    hook = """import os, signal, sys
def show(*it):
    sys.__excepthook__(*it)
    while True: signal.pause()
sys.excepthook = show
signal.signal(signal.SIGUSR1, lambda *_: os._exit(1))
"""
    below = f"trap '' USR1; read x < {tmp_path}/go; echo below >&2; exec sleep 60"
    with open(tmp_path / "err", "wb") as err:
        job = start(hvrun, "-np", "4", PYTHON, "-c", hook + TRACE, ":", "-np", "1", "sh", "-c", below, stderr=err)
    said = (tmp_path / "err").read_text
    wait_for(lambda: said().count("ValueError: no ideas\n") == 4, 30, "four traces")
    (tmp_path / "go").write_text("\n")
    wait_for(lambda: said().endswith("[4] below\n"), 30, "the text below them")
    job.send_signal(signal.SIGUSR1)
    assert job.wait(30) == 1
    _, _, report = said().partition("[4] below\n")
    assert report.count("ValueError: no ideas\n") == 1, report
    assert re.search(r"^hvrun: ranks 0-3 said, here as rank ([0-3]):\n    \[rank\1\] pid ", report, re.MULTILINE), report


@pytest.mark.parametrize("is_one_file", [True, False])
def test_a_text_on_standard_output_stands_above_only_where_the_report_goes_to_the_same_file(hvrun, tmp_path, is_one_file):
    with open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
        job = start(hvrun, "-np", "1", "sh", "-c", "echo it fails; exit 7", stdout=out, stderr=subprocess.STDOUT if is_one_file else err)
    assert job.wait(30) == 7
    told = (tmp_path / ("out" if is_one_file else "err")).read_text()
    assert (tmp_path / "out").read_text().startswith("[0] it fails\n"), told
    assert ("hvrun: its last lines: see above\n" in told) == is_one_file, told
    assert ("hvrun: its last lines:\n    it fails\n" in told) != is_one_file, told


@pytest.mark.parametrize("options, is_above", [((), True), (("--timestamp", "--label", "host"), True), (("--no-label",), True),
                                               (("--ranks", "1"), False)])
def test_a_trace_that_stands_right_above_is_not_quoted_again(hvrun, tmp_path, options, is_above):
    alone = "import os, sys, threading\nif os.environ['RANK'] == '1': threading.Event().wait()\n"
    result = run(hvrun, *options, "-np", "2", PYTHON, "-c", alone + "raise ValueError('no ideas')")
    assert result.stderr.count(b"ValueError: no ideas\n") == 1, result
    assert (b"hvrun: its last lines: see above\n" in result.stderr) == is_above, result
    assert (b"hvrun: its last lines:\n    Traceback" in result.stderr) != is_above, result


def test_a_text_is_quoted_where_another_stands_below_it(hvrun, tmp_path):
    for name in ("go.0", "go.1"):
        os.mkfifo(tmp_path / name)
    both = f"""[ $RANK = 0 ] && echo it fails >&2
read x < {tmp_path}/go.$RANK
[ $RANK = 0 ] && exit 1
echo below >&2; exec sleep 60"""
    with open(tmp_path / "err", "wb") as err:
        job = start(hvrun, "-np", "2", "sh", "-c", both, stderr=err)
    said = (tmp_path / "err").read_text
    wait_for(lambda: said() == "[0] it fails\n", 30, "rank 0's text")
    (tmp_path / "go.1").write_text("\n")
    wait_for(lambda: said() == "[0] it fails\n[1] below\n", 30, "rank 1's text")
    (tmp_path / "go.0").write_text("\n")
    assert job.wait(30) == 1 and "hvrun: its last lines:\n    it fails\n" in said(), said()


# As PyTorch has it once init_process_group has run.
PREFIXED = ("import sys, traceback\n"
            "sys.excepthook = lambda *it: sys.stderr.writelines(f'[rank1]: {line}' for line in traceback.format_exception(*it))\n")


@pytest.mark.parametrize("hook", ["", PREFIXED], ids=["plain", "prefixed"])
@pytest.mark.parametrize("script", ["input('name? ')", "breakpoint()"])
def test_a_rank_that_wants_input_is_told_how_to_get_it(hvrun, script, hook):
    result = run(hvrun, "-np", "2", PYTHON, "-c", hook + "import os\nif os.environ['RANK'] == '1': " + script)
    assert result.returncode == 1 and b"\n  try: --stdin=1 hands hvrun's standard input to this rank" in result.stderr, result
    result = run(hvrun, "-np", "2", "--stdin=1", PYTHON, "-c", "import os\nif os.environ['RANK'] == '1': " + script, stdin=b"c\n")
    assert result.returncode == 0, result


@pytest.mark.parametrize("script", [TRACE, "import os; os.kill(os.getpid(), 11)", "import os; os._exit(int(os.environ['HVRUN_RANK']) * 3)"])
def test_explain_says_what_the_end_of_the_job_said(hvrun, tmp_path, script):
    folder = tmp_path / "out"
    result = run(hvrun, "--output-dir", str(folder), "-np", "3", PYTHON, "-c", script)
    assert result.returncode != 0
    later = explained(hvrun, folder).splitlines()
    assert without_quotes(later) == without_quotes(words_of_end(result)), result
    assert all(line[4:].encode() in result.stderr for line in later if line.startswith("    ")), result
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
    assert re.fullmatch(r"hvrun: the job ended well after [0-9.]+ m?s: there is nothing to explain\n", explained(hvrun, folder))


def test_explain_of_a_job_that_runs_and_of_one_whose_hvrun_was_killed(hvrun, tmp_path):
    folder = tmp_path / "out"
    process = start(hvrun, "--output-dir", str(folder), "-np", "2", PYTHON, "-c",
                    "import sys, time; sys.stderr.write('Traceback (most recent call last):\\nValueError: odd\\n'); "
                    "sys.stderr.flush(); time.sleep(60)")  # sleep-ok: a rank that is busy
    wait_for(lambda: all((folder / f"rank.{rank}/stderr").exists() and (folder / f"rank.{rank}/stderr").read_text().endswith("odd\n")
                         for rank in (0, 1)), 20, "both ranks have written")
    assert explained(hvrun, folder).startswith(f"hvrun: the job still runs: hvrun is process {process.pid} on host ")
    assert "\nhvrun: its last sign was " in explained(hvrun, folder)
    record = json.loads((folder / "job.json").read_text())
    assert record["version"] == 2 and record["state"] == "running" and "exit_code" not in record, record
    assert len(record["ranks"]) == 2 and record["ranks"][1]["pid"] > 0, record
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    told = explained(hvrun, folder)
    assert told.startswith(f"hvrun: error: hvrun did not see the end of this job: process {process.pid} on host "), told
    assert "hvrun: what ranks 0-1 wrote ends in an error\nhvrun: ranks 0-1 said:\n    Traceback" in told, told
    later = json.loads(explained(hvrun, "--format", "json", folder))
    assert later["still_runs"] is False and later["state"] == "unknown" and later["age_seconds"] >= 0, later


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
