"""What hvrun tells about itself: the phases of a start, the defaults, the help in groups.

SPDX-License-Identifier: Apache-2.0
"""
import re
import subprocess

import pytest

from harness import programs
from launching import run, start, two_hosts

PHASES = ["agents answer", "hosts are set up", "addresses are chosen", "ranks run", "ended"]
GROUPS = {
    "Ranks and hosts": ["--np", "--hosts", "--hostfile", "--hostfile-format", "--include", "--exclude"],
    "Placement": ["--map-by", "--rank-by", "--npernode", "--gpus-per-rank", "--rankfile", "--oversubscribe"],
    "Binding": ["--bind-to", "--gpu-bind", "--nic-bind", "--report-bindings"],
    "Reaching hosts": ["--ssh-port", "--ssh-identity-file", "--ssh-user", "--ssh-accept-new", "--rsh", "--spawner", "--start-timeout"],
    "What ranks are born with": ["-x", "--clean-env", "--wdir", "--nested", "--master-port", "--no-hold-port", "--mpi", "--wire-mpi"],
    "Output and input": ["--label", "--no-label", "--timestamp", "--ranks", "--no-training-summary", "--output-dir", "--stdin", "--pty",
                         "--result-fd"],
    "Ending": ["--grace", "--lost-after", "--timeout", "--restarts"],
    "Asking and telling": ["--dry-run", "--format", "--topology-html", "--topology-svg", "--verbose", "--summary",
                           "--check-build", "--version", "--help"],
}


def phases(err):
    """[(seconds, phase)] of what --verbose says; everything on stderr must be that."""
    lines = [re.fullmatch(r"hvrun: (?=.{9}  ) *([\d.]+) (us|ms|s)  (.*)", line) for line in err.decode().splitlines()]
    assert all(lines), err
    return [(float(line[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1}[line[2]], line[3]) for line in lines]


@pytest.mark.parametrize("option", ["-v", "--verbose"])
@pytest.mark.parametrize("hosts", ["one host", "two hosts"])
def test_verbose_shows_each_phase_with_its_time(hvrun, tmp_path, hosts, option):
    where = ["-np", "2"] if hosts == "one host" else two_hosts(tmp_path)
    # The rank's own time is in the last phase alone.
    result = run(hvrun, *where, option, "sh", "-c", "sleep 0.4; echo done", HOME=str(tmp_path))  # sleep-ok: a rank that works
    assert (result.returncode, sorted(result.stdout.splitlines())) == (0, [b"[0] done", b"[1] done"])
    told = phases(result.stderr)
    route = "host localhost: this machine" if hosts == "one host" else "hosts a,b: "
    assert told[0][1].startswith(route) and [phase for _, phase in told[1:]] == PHASES, told
    times = [seconds for seconds, _ in told]
    assert times == sorted(times)
    assert times[-1] - times[-2] > 0.3


def test_verbose_goes_to_stderr_and_only_where_it_was_asked_for(hvrun):
    assert run(hvrun, "-np", "1", "true").stderr == b""
    assert run(hvrun, "-np", "1", "--verbose", "true").stdout == b""


def test_verbose_shows_when_a_job_that_fails_ended(hvrun):
    err = run(hvrun, "-np", "1", "--verbose", "false").stderr
    assert phases(b"\n".join(line for line in err.splitlines() if re.search(rb"s  \w", line)))[-1][1] == "ended"


@pytest.mark.parametrize("knob, value", [("HVRUN_START_TIMEOUT", "30"), ("HVRUN_GRACE", "3"), ("HVRUN_LOST_AFTER", "15"),
                                         ("HVRUN_INVENTORY_TIMEOUT", "20")])
def test_the_defaults_that_the_manual_promises(hvrun, knob, value):
    rows = {line.split()[0]: line.split() for line in run(hvrun, "env").stdout.decode().splitlines()}
    assert rows[knob][1:3] == [value, "default"]


def options_by_group(text):
    """{heading: [names of each of its options]} of --help."""
    groups = {}
    for line in text.splitlines():
        if re.fullmatch(r"[A-Z][\w ]+:", line):
            groups[line[:-1]] = current = []
        elif re.match(r"  -", line):
            current.append(line.split()[0].partition("=")[0].split(","))
    return groups


def test_help_has_every_group_with_its_options(hvrun):
    found = options_by_group(run(hvrun, "--help").stdout.decode())
    assert found.pop("Examples") == []
    assert list(found) == list(GROUPS)
    for group, expected in GROUPS.items():
        assert [names for names in found[group] if not set(names) & set(expected)] == []
        assert len(found[group]) == len(expected)


WAITED = re.compile(rb"tensors waited ([\d.]+) s of [\d.]+ s for the last rank to have them: rank 0 ([\d.]+) s")
WORTH_A_WORD_S = 5.0  # in all, at a job's end


def test_a_rank_that_the_others_waited_for_is_named_at_the_end_of_the_job(hvrun):
    """Rank 0 goes on when what hvrun has told of it so far is enough; what comes after is the end's word."""
    late_rank = str(programs.hvrun_folder() / "c_late_rank")
    job = start(hvrun, "-np", "2", "--stdin", late_rank, stdin=subprocess.PIPE, HVRUN_STRAGGLER_SECONDS="0.5")
    told = 0.0
    while told < WORTH_A_WORD_S:
        line = job.stderr.readline()
        assert line, "the job has ended"
        if report := WAITED.search(line):
            told += float(report[1]) - 0.05  # it may be rounded up
    _, err = job.communicate(b"\n", timeout=30)
    last = WAITED.findall(err)[-1]
    assert job.returncode == 0 and min(map(float, last)) >= WORTH_A_WORD_S, err
