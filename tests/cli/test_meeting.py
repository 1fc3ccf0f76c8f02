"""Ranks that do not come to the meeting of hvrun_init are named, and nobody waits for them in vain.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import time

import pytest

from launching import run, start, two_hosts

ONE_HOST = ["-np", "2"]


def hello(hvrun):
    return str(pathlib.Path(hvrun).parent / "examples" / "hello_ranks")


@pytest.fixture(params=["one host", "two hosts"])
def hosts(request, tmp_path):
    return ONE_HOST if request.param == "one host" else two_hosts(tmp_path)


def test_a_rank_that_ends_well_without_joining_is_told_to_those_who_wait(hvrun, hosts, tmp_path):
    began = time.monotonic()
    result = run(hvrun, *hosts, "sh", "-c", f'[ "$RANK" = 1 ] && exit 0; exec {hello(hvrun)}', HOME=str(tmp_path))
    assert result.returncode != 0
    assert time.monotonic() - began < 15
    assert b"rank 1 ended with exit code 0 and had not joined the job (hvrun_init)" in result.stderr
    assert re.search(rb"hvrun: error: rank 0 on host \S+ ended with exit code [1-9]", result.stderr)
    assert re.search(rb"hvrun: before that rank 1 on host \S+ had ended with exit code 0 and had not joined the job \(hvrun_init\): "
                     rb"if others still needed it, that is the reason\n  try: let every rank join \(hvd\.init\(\), hvrun_init\)",
                     result.stderr)


def test_a_rank_that_comes_late_is_waited_for_and_named_meanwhile(hvrun, hosts, tmp_path):
    script = f'[ "$RANK" = 1 ] && while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exec {hello(hvrun)}'  # sleep-ok: a rank that is busy
    process = start(hvrun, *hosts, "sh", "-c", script, HOME=str(tmp_path), HVRUN_STALL_SECONDS="0.3")
    words = b""
    while b"not there: rank 1 on host" not in words:
        line = process.stderr.readline()
        assert line, words
        words += line
    assert re.search(rb"ranks have waited over [0-9.]+ s to meet the others \(hvrun_init\)", words), words
    (tmp_path / "go").touch()
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert b"[0] " in out and b"[1] " in out


def test_a_rank_that_never_comes_ends_the_job_where_that_is_wanted(hvrun, hosts, tmp_path):
    script = f'[ "$RANK" = 1 ] && exec tail -f /dev/null; exec {hello(hvrun)}'
    result = run(hvrun, *hosts, "sh", "-c", script, HOME=str(tmp_path), HVRUN_STALL_SECONDS="0.2", HVRUN_STALL_SHUTDOWN_SECONDS="0.5")
    assert result.returncode == 4, result.stderr.decode()
    words = result.stderr.decode()
    assert re.search(r"error: ranks have waited over [0-9.]+ s to meet the others \(hvrun_init\); not there: rank 1 on host \S+: "
                     r"the job ends.*\n  try: look what rank 1 does, on host \S+; HVRUN_STALL_SHUTDOWN_SECONDS=0 lets", words), words


def test_plain_programs_that_end_at_different_times_are_no_loss(hvrun, hosts, tmp_path):
    result = run(hvrun, *hosts, "sh", "-c", '[ "$RANK" = 1 ] && exit 0; sleep 0.3', HOME=str(tmp_path))  # sleep-ok: ends later
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


@pytest.mark.parametrize("end, words", [("kill -9 $$", b"SIGKILL"), ("exit 3", b"exit code 3"), ("exit 0", b"exit code 0")])
@pytest.mark.parametrize("place", ["one host", "two hosts"])
def test_everybody_who_waits_is_told_who_ended(hvrun, tmp_path, place, end, words):
    hosts = ["-np", "4"] if place == "one host" else two_hosts(tmp_path, slots=2)
    busy = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"  # sleep-ok: a rank that is busy
    script = f'[ "$RANK" = 1 ] || exec {hello(hvrun)}; {busy}; {end}'
    process = start(hvrun, *hosts, "--grace", "10", "sh", "-c", script, HOME=str(tmp_path), HVRUN_STALL_SECONDS="0.2")
    told = b""
    while b"not there: rank 1 on host" not in told:  # so all others wait
        line = process.stderr.readline()
        assert line, told
        told += line
    (tmp_path / "go").touch()
    _, err = process.communicate(timeout=30)
    for rank in (0, 2, 3):
        own = [line for line in err.splitlines() if line.startswith(b"[%d] hello_ranks:" % rank)]
        assert len(own) == 1 and b"rank 1 ended with " + words in own[0], err.decode()
