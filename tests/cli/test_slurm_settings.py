"""What hvrun learns from `scontrol show config` in a step of Slurm, by a scontrol that is a script.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib

import pytest

from launching import clean_environment, run

ASSUMED = "assuming that Slurm signals the agents alone: "
CGROUP = "echo 'ProctrackType = proctrack/cgroup'"


def run_in_step(hvrun, tmp_path, script, *words, program=("/bin/echo", "done"), **more):
    """stderr of a job of two ranks that has run well, in a step whose scontrol is this script; None: there is no scontrol."""
    commands = tmp_path / "commands"
    commands.mkdir()
    path = str(commands)
    if script is not None:
        known = '[ "$*" = "show config" ] || [ "$*" = "-o show partition fast" ] || exit 9'
        (commands / "scontrol").write_text(f"#!/bin/sh\n{known}\n{script}\n")
        (commands / "scontrol").chmod(0o755)
        path += ":" + clean_environment()["PATH"]
    result = run(hvrun, "-np", "2", *words, *program, **{"PATH": path, "SLURM_STEP_ID": "0", **more})
    assert (result.returncode, sorted(result.stdout.splitlines())) == (0, [b"[0] done", b"[1] done"]), result.stderr
    return result.stderr.decode()


@pytest.mark.parametrize("script,reported", [
    ("echo 'ProctrackType = proctrack/linuxproc'", "every process of a step: ProctrackType is linuxproc"),
    (CGROUP, "the agents alone: ProctrackType is cgroup"),
    (f"{CGROUP}; echo; echo 'Cgroup Support Configuration:'; echo 'SignalChildrenProcesses = yes'",
     "every process of a step: ProctrackType is cgroup"),
])
def test_verbose_says_which_processes_slurm_signals(hvrun, tmp_path, script, reported):
    assert f"s  Slurm signals {reported}\n" in run_in_step(hvrun, tmp_path, script, "-v")


@pytest.mark.parametrize("script,reason", [
    ("exec tail -f /dev/null", "scontrol show config has not answered within 1 s"),
    ("trap '' TERM; tail -f /dev/null; tail -f /dev/null", "scontrol show config has not answered within 1 s"),
    ("echo no controller >&2; exit 1", "scontrol ended with exit code 1: no controller"),
    ("kill -9 $$", "scontrol ended with SIGKILL"),
    (r"printf '\000\377=\nProctrackType = \033[31m\n'", "scontrol show config printed no ProctrackType"),
    ("exec yes 'ProctrackType = linuxproc'", "scontrol show config printed more than 256 KiB"),
    (None, "ask Slurm: find program scontrol: "),
])
def test_without_an_answer_the_job_starts_and_verbose_says_what_is_assumed(hvrun, tmp_path, script, reason):
    note = f"echo $$ >{tmp_path}/pid\n{script}" if script else None
    err = run_in_step(hvrun, tmp_path, note, "-v")
    assert f"s  {ASSUMED}{reason}" in err
    assert "ranks run" in err
    if script:
        assert not pathlib.Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_without_verbose_an_unknown_answer_is_not_reported(hvrun, tmp_path):
    assert run_in_step(hvrun, tmp_path, "exit 1") == ""


PREEMPTS = 'if [ "$1" = -o ]; then echo "PartitionName=fast GraceTime=45 Hidden=NO"; else ' \
           f"{CGROUP}; echo 'KillWait = 30 sec'; echo 'PreemptType = preempt/qos'; fi"


@pytest.mark.parametrize("script,partition,seconds", [
    (PREEMPTS, "fast", 45), (PREEMPTS, "", 30), (PREEMPTS, "slow", 30), (PREEMPTS.replace("qos", "none"), "fast", 30)])
def test_verbose_says_how_long_slurm_lets_a_job_end(hvrun, tmp_path, script, partition, seconds):
    err = run_in_step(hvrun, tmp_path, script, "-v", SLURM_JOB_PARTITION=partition)
    assert f"s  Slurm leaves a job {seconds} s between SIGTERM and SIGKILL\n" in err


LINUXPROC = "echo 'ProctrackType = proctrack/linuxproc'; echo 'KillWait = 30 sec'"


def test_that_slurm_signals_every_process_itself_is_said_once(hvrun, tmp_path):
    err = run_in_step(hvrun, tmp_path, LINUXPROC)
    assert err.count("\n") == 1 and err.startswith("hvrun: warning: Slurm signals every process of a step itself here"), err
    assert "(ProctrackType=linuxproc)" in err and err.endswith("; with proctrack/cgroup ranks alone get them\n"), err


def test_of_cgroup_the_setting_is_named_by_which_it_does(hvrun, tmp_path):
    err = run_in_step(hvrun, tmp_path, f"{CGROUP}; echo 'SignalChildrenProcesses = yes'")
    assert "(ProctrackType=cgroup, SignalChildrenProcesses=yes)" in err and err.endswith("; with SignalChildrenProcesses=no "
                                                                                         "ranks alone get them\n"), err


@pytest.mark.parametrize("hosts,more", [([], {"SLURM_STEP_ID": "", "SLURM_JOB_ID": "7"}), (["-H", "a:2"], {})], ids=["batch", "ssh"])
def test_where_no_agent_is_in_a_step_slurm_signals_no_rank(hvrun, tmp_path, hosts, more):
    """In the job's batch script, and on a host that ssh reaches. -v says it all the same."""
    rsh = tmp_path / "rsh"
    rsh.write_text("#!/bin/sh\nshift; exec sh -c \"$*\"\n")
    rsh.chmod(0o755)
    words = ["--spawner", "ssh", "--rsh", str(rsh), *hosts]
    assert "Slurm signals" not in run_in_step(hvrun, tmp_path, LINUXPROC, *words, **more)


def test_a_job_that_starts_again_does_not_repeat_what_was_said_of_slurm(hvrun, tmp_path):
    rank = ["sh", "-c", "test $HVRUN_RESTART = 1 || exit 9; echo done"]
    err = run_in_step(hvrun, tmp_path, LINUXPROC, "--restarts", "1", "--grace", "31", HVRUN_RESTART_DELAY="0.1", program=rank)
    assert "(restart 1 of 1)" in err and err.count("itself here (ProctrackType=linuxproc)") == 1, err
    assert err.count("is longer than Slurm's KillWait") == 1, err


def test_outside_of_a_step_scontrol_does_not_run(hvrun, tmp_path):
    assert "Slurm" not in run_in_step(hvrun, tmp_path, f"touch {tmp_path}/ran", "-v", SLURM_STEP_ID="")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("grace,warns", [("31", True), ("30", False)])
def test_a_grace_that_slurm_cuts_short_is_warned_of(hvrun, tmp_path, grace, warns):
    err = run_in_step(hvrun, tmp_path, f"{CGROUP}; echo 'KillWait = 30 sec'", "--grace", grace)
    assert (f"warning: --grace {grace} s is longer than Slurm's KillWait, 30 s: " in err) == warns
