# SPDX-License-Identifier: Apache-2.0
"""What a check does beside its report: it says for whom it waits, on a terminal, and writes nothing that ranks would."""

import os
import pty

from harness.waiting import wait_for
from launching import run, start, two_hosts

# "slow" answers once somebody writes to the FIFO.
RSH = """#!/bin/sh
[ "$1" != slow ] || read -r go <{go}
shift
exec sh -c "$*"
"""


def test_on_a_terminal_it_says_for_which_host_it_waits(hvrun, tmp_path):
    script, go = tmp_path / "rsh", tmp_path / "go"
    os.mkfifo(go)
    script.write_text(RSH.format(go=go))
    script.chmod(0o755)
    leader, follower = pty.openpty()
    process = start(hvrun, "check", "--oversubscribe", "--rsh", str(script), "-H", "quick:1,slow:1",
                    stdout=follower, stderr=follower, TERM="xterm")
    os.close(follower)
    shown = bytearray()

    def is_told():
        shown.extend(os.read(leader, 65536))
        return b"hvrun: 1 of 2 hosts answer, not yet: slow" in shown

    wait_for(is_told, 60, lambda: shown.decode())
    go.write_text("go\n")
    while not shown.endswith((b" s.\r\n", b" ms.\r\n")):  # "... in about 0.8 s."
        shown.extend(os.read(leader, 65536))
    assert process.wait(timeout=30) == 0 and b"could start" in shown, shown.decode()
    os.close(leader)


def test_elsewhere_it_says_nothing_before_its_report(hvrun, tmp_path):
    result = run(hvrun, "check", *two_hosts(tmp_path))
    assert result.returncode == 0 and result.stderr == b"", result


def test_a_job_s_time_and_files_are_not_those_of_a_dry_run(hvrun, tmp_path):
    output, summary = tmp_path / "output", tmp_path / "summary"
    result = run(hvrun, "--dry-run", "-np", "1", "--timeout", "0.01", "--output-dir", str(output), "--summary", str(summary), "true")
    assert result.returncode == 0 and b"The job could start" in result.stdout, result
    assert list(tmp_path.iterdir()) == []


def test_a_check_without_a_program_looks_at_the_folder_that_is_named(hvrun, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    assert run(hvrun, "check", "--wdir", str(gone)).returncode == 0
    result = run(hvrun, "check", *two_hosts(tmp_path), "--wdir", f"{gone}/one")
    assert result.returncode == 3 and b"mkdir -p %s/one" % os.fsencode(gone) in result.stdout, result
    assert b"; likewise for b  [folder-missing]" in result.stdout, result
    gone.rmdir()
    assert run(hvrun, "check", cwd=tmp_path).returncode == 0
