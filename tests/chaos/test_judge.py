# SPDX-License-Identifier: Apache-2.0
"""Each thing that must hold, broken once in made-up observations, is reported; what faults may lead to is not."""

import dataclasses
import json
import subprocess

import pytest

from chaos.judge import Done, Rest, Seen, expected, hosts_in, is_late, judge, leftovers
from chaos.plan import LOGIN, Fault, Plan

LENGTH, LINES = 24, 5
NONE = Fault("stop", "guard", "node1", "middle")  # which ends nothing
KILL_RANK = Fault("kill", "rank", "node2", "middle", rank=1)
CUT = Fault("cut", "link", "node2", "middle", rank=1)
TERM = Fault("term", "hvrun", LOGIN, "middle", signal="SIGTERM")
DISK = Fault("disk", "disk", LOGIN, "middle")
KILL_HVRUN = Fault("kill", "hvrun", LOGIN, "middle")
PAIR = Fault("kill", "agent and guard", "node2", "middle", rank=1)
STOP_RANK = Fault("stop", "rank", "node2", "middle", rank=1)
STOP_AGENT = Fault("stop", "agent", "node2", "middle", rank=1)


def plan_of(*faults, **changes):
    """Two ranks on two hosts."""
    return dataclasses.replace(Plan("a", 0, (1, 1), "lines", "exit0", LENGTH, 10, 2.0, 1.0, "", True, False, 0.1, faults), **changes)


def stdout_of(rank, count=LINES):
    return b"".join(expected(rank, number, LENGTH) for number in range(count))


def labelled(rank, text):
    return b"".join(b"[%d] " % rank + line for line in text.splitlines(keepends=True))


def ended(state="ok", code=0, cause=None, lost=0):
    return {"state": state, "exit_code": code, "cause": cause, "lost_output_bytes": lost,
            "ranks": [{"rank": rank, "exit_code": code} for rank in range(2)]}


def seen_of(*faults, **changes):
    """A job that ended well."""
    files = {rank: stdout_of(rank) for rank in range(2)}
    seen = Seen(summary=ended(), journals={rank: "." * LINES + "d" for rank in range(2)}, files=files, vanished_after=0.1,
                out=b"".join(labelled(rank, text) for rank, text in files.items()), err="hvrun: 0.1 s  ranks run\n",
                done=[Done(fault, (), True) for fault in faults])
    return dataclasses.replace(seen, **changes)


def rank_failed(**changes):
    cause = {"rank": 1, "host": "node2", "reason": "SIGKILL", "loss_reason": None}
    values = {"code": 137, "summary": ended("rank_failed", 137, cause),
              "err": "hvrun: error: rank 1 on host node2 ended with SIGKILL (Killed) after 1.0 s\n"}
    return seen_of(KILL_RANK, **{**values, **changes})


def rank_lost(**changes):
    cause = {"rank": 1, "host": "node2", "reason": "not responding", "loss_reason": "not responding"}
    values = {"code": 5, "summary": ended("rank_failed", 5, cause), "err": "hvrun: error: rank 1 on host node2 was lost\n"}
    return seen_of(STOP_RANK, **{**values, **changes})


def host_lost(*faults, **changes):
    values = {"code": 5, "summary": ended("host_lost", 5, {"host": "node2"}),
              "err": "hvrun: error: host node2 with rank 1 was lost: it was silent for 2 s (--lost-after)\n"}
    return seen_of(*faults, **{**values, **changes})


def interrupted(**changes):
    return seen_of(TERM, **{"code": 143, "summary": ended("interrupted", 143), "err": "hvrun: ended by SIGTERM (Terminated)\n", **changes})


def full(**changes):
    return seen_of(DISK, **{"code": 3, "summary": ended("output_failed", 3), "err": "hvrun: error: No space left on device\n", **changes})


FITTING = {
    "a good end": seen_of(NONE),
    "a killed rank": rank_failed(),
    "a killed rank, whose last line is not in its journal": rank_failed(journals={0: "." * LINES, 1: "." * (LINES - 1)}),
    "a lost host": host_lost(CUT),
    "an agent that has ended the job": host_lost(CUT, err="hvrun: error: the job was ended on host node2 with rank 1: its agent\n"),
    "a lost host, of which the last lines are missing": host_lost(CUT, files={0: stdout_of(0), 1: stdout_of(1)[:-9]},
                                                                  out=labelled(0, stdout_of(0)) + labelled(1, stdout_of(1, 3))),
    "the second of two faults": dataclasses.replace(rank_failed(), done=[Done(CUT), Done(KILL_RANK)]),
    "a signal": interrupted(),
    "a full disk": full(),
    "a full disk at the end, where the record cannot be written": full(summary=ended("ok", 0)),
    "a killed hvrun": seen_of(KILL_HVRUN, code=-9, summary=None, err=""),
    "a host that was lost before its start": host_lost(CUT, summary=ended("not_started", 5), err="hvrun: error: host node2: gone\n"),
}


@pytest.mark.parametrize("name", FITTING)
def test_what_a_fault_may_lead_to_is_no_violation(name):
    assert judge(plan_of(), FITTING[name]) == ([], False)


def test_a_login_may_fail_whose_sshd_was_stopped():
    short = Fault("stop", "sshd", "node2", "connect", seconds=0.1)
    failed = host_lost(summary=ended("not_started", 3), code=3, err="hvrun: error: log in to host node2: disconnected\n")
    failed.done = [Done(short)]
    assert judge(plan_of(), failed) == ([], False)
    failed.done = [Done(short, (), True)]
    assert [each.kind for each in judge(plan_of(), failed)[0]] == ["cause"]


def test_lines_that_were_old_when_hvrun_was_killed_are_not_missing():
    def kinds_of(written, *before, **changes):
        done = [*(Done(fault, (), True) for fault in before), Done(KILL_HVRUN, (), True, written)]
        seen = seen_of(**{"code": -9, "summary": None, "done": done, **changes})
        return [each.kind for each in judge(plan_of(), seen)[0]]

    assert kinds_of((LINES, LINES)) == []
    assert kinds_of((LINES, LINES + 1)) == ["output", "output"]  # on the console and in its file
    assert kinds_of((LINES + 1, LINES), CUT) == ["output", "output"]
    for excused in (kinds_of((LINES, LINES + 1), CUT), kinds_of((LINES, LINES + 1), stall=0.6), kinds_of(())):
        assert excused == []


def test_a_rank_that_stands_still_is_lost_where_others_wait_for_it():
    assert judge(plan_of(program="sum"), rank_lost()) == ([], False)
    assert [each.kind for each in judge(plan_of(), rank_lost())[0]] == ["cause"]
    went_on = rank_lost(done=[Done(dataclasses.replace(STOP_RANK, seconds=2.5), (), True)])
    went_on.summary["cause"]["loss_reason"] = None
    assert judge(plan_of(program="sum"), went_on) == ([], False)
    unexplained = rank_lost()
    unexplained.summary["cause"]["loss_reason"] = None
    assert [each.kind for each in judge(plan_of(program="sum"), unexplained)[0]] == ["cause"]


def test_the_judge_reads_the_members_that_hvrun_writes(hvrun, tmp_path):
    """Nothing else compares the made-up summaries here with real ones."""
    subprocess.run([hvrun, "--summary", tmp_path / "end.json", "-np", "2", "sh", "-c", "exit 7"], capture_output=True, check=False)
    real = json.loads((tmp_path / "end.json").read_text())
    for made in (rank_lost().summary, host_lost(CUT).summary):
        assert set(made) <= set(real)
    assert set(rank_lost().summary["cause"]) <= set(real["cause"]) and set(ended()["ranks"][0]) <= set(real["ranks"][0])


LEFT = Rest("node2", 7, 70, 1, "chaos_rank", True, "7 chaos_rank")
BROKEN = {
    "it has not ended": (seen_of(NONE, in_time=False, code=-9), "hang"),
    "success, though a rank was killed": (seen_of(KILL_RANK, journals={0: "." * LINES + "d", 1: "." * LINES}), "code"),
    "success, though a rank failed": (seen_of(NONE, journals={0: "." * LINES + "d", 1: "." * LINES + "e"}), "code"),
    "success, though output was lost": (seen_of(NONE, summary=ended(lost=3)), "code"),
    "another code than in the summary": (rank_failed(code=1), "code"),
    "no summary": (rank_failed(summary=None), "code"),
    "hvrun died of a signal that nobody sent": (seen_of(NONE, code=-11), "code"),
    "a failure without any fault": (host_lost(NONE), "cause"),
    "a failure for a short silence": (host_lost(dataclasses.replace(CUT, kind="flap", seconds=0.3)), "cause"),
    "another host is named": (host_lost(dataclasses.replace(CUT, host="node1")), "cause"),
    "another rank is named": (dataclasses.replace(rank_failed(), done=[Done(dataclasses.replace(KILL_RANK, rank=0))]), "cause"),
    "the signal is not named": (rank_failed(err="hvrun: error: rank 1 on host node2 ended with exit code 1\n"), "cause"),
    "another signal is named": (interrupted(code=130, summary=ended("interrupted", 130)), "cause"),
    "a full disk is not named": (full(err="hvrun: error: something\n"), "cause"),
    "not started, though its ranks ran": (host_lost(CUT, summary=ended("not_started", 5),
                                                    err="hvrun: ranks run\nhvrun: error: host node2: gone\n"), "code"),
    "a process stays": (rank_failed(left=[LEFT]), "left behind"),
    "a process stays that had been stopped": (rank_failed(left_after_all=[LEFT]), "left behind"),
    "a file stays": (rank_failed(new_files=["node2: /tmp/hvrun-abc"]), "left behind"),
    "half a copy of the agent stays": (rank_failed(new_files=["node2: /run/home/root/.cache/hvrun/.agent-12ab.hv34"]), "left behind"),
    "a socket stays": (rank_failed(sockets=["node1: @hvrun-x"]), "left behind"),
    "a line is missing": (rank_failed(out=labelled(0, stdout_of(0)) + labelled(1, stdout_of(1, 3))), "output"),
    "a line comes twice": (rank_failed(out=labelled(0, stdout_of(0)) + labelled(1, stdout_of(1) + expected(1, 4, LENGTH))), "output"),
    "a line is torn": (rank_failed(out=labelled(0, stdout_of(0)) + labelled(1, stdout_of(1)[:-9] + b"\n")), "output"),
    "lines change places": (rank_failed(out=labelled(0, stdout_of(0)) + labelled(1, expected(1, 1, LENGTH) + expected(1, 0, LENGTH))),
                            "output"),
    "a hole in the output of a lost host": (host_lost(CUT, out=labelled(0, stdout_of(0)) + labelled(1, expected(1, 1, LENGTH))), "output"),
    "a line without label": (rank_failed(out=labelled(0, stdout_of(0)) + labelled(1, stdout_of(1)) + b"x\n"), "output"),
    "a file lacks a line": (rank_failed(files={0: stdout_of(0), 1: stdout_of(1, 4)}), "output"),
    "a report of a sanitizer": (rank_failed(err=rank_failed().err + "==7==ERROR: AddressSanitizer: heap-use-after-free\n"), "report"),
    "a broken invariant": (rank_failed(err=rank_failed().err + "hvrun: internal error at x.cc:3: y does not hold (z)\n"), "report"),
    "a core": (rank_failed(cores=["core.7"]), "core"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_violation_is_reported_with_its_kind(name):
    seen, kind = BROKEN[name]
    found, is_stalled = judge(plan_of(), seen)
    assert kind in [each.kind for each in found] and not is_stalled, found


def test_silence_that_the_machine_itself_may_have_made_proves_nothing():
    found, is_stalled = judge(plan_of(), host_lost(NONE, stall=1.0))
    assert [each.kind for each in found] == ["cause"] and is_stalled
    assert not judge(plan_of(), host_lost(NONE, stall=1.0, cores=["core"]))[1]  # a core does


def test_a_late_end_is_counted_apart():
    assert not is_late(plan_of(), rank_failed(vanished_after=4.9))
    assert is_late(plan_of(), rank_failed(vanished_after=5.1))
    assert not is_late(plan_of(), host_lost(CUT, vanished_after=6.9))
    assert not is_late(plan_of(), rank_failed(left=[LEFT], vanished_after=None))


def rest(name, host="node2", pid=7, parent=1, has_job=False):
    return Rest(host, pid, pid * 10, parent, name, has_job, f"{pid} {name}")


SWEPT_IN_VAIN = "hvrun: processes of this job may still run on host node2: no second agent has ended them: start: no answer\n"
EXCUSED = {
    "a session of sshd across a dead link": (rest("sshd"), host_lost(CUT)),
    "an agent that was stopped": (rest("hvrun-agent"), host_lost(done=[Done(STOP_AGENT, ((7, 70),), True)])),
    "the shell that installs an agent, across a dead link": (rest("sh"), host_lost(done=[Done(CUT, (), False)])),
    "a rank whose agent was stopped when hvrun was killed": (rest("chaos_rank", has_job=True), seen_of(STOP_AGENT, KILL_HVRUN)),
    "a rank whose agent was stopped where hvrun could not look": (rest("chaos_rank", has_job=True),
                                                                  host_lost(STOP_AGENT, err=SWEPT_IN_VAIN)),
    "what agent, guard and hvrun cannot end": (rest("chaos_rank", has_job=True), seen_of(PAIR, KILL_HVRUN)),
    "what hvrun could not sweep": (rest("chaos_rank", has_job=True), host_lost(PAIR, err=SWEPT_IN_VAIN)),
    "what it could not sweep on several hosts": (rest("chaos_rank", has_job=True),
                                                 host_lost(PAIR, err=SWEPT_IN_VAIN.replace("host node2", "hosts node[1-2]"))),
}
NOT_EXCUSED = {
    "a session of sshd elsewhere": (rest("sshd", host="node1"), host_lost(CUT)),
    "a session of sshd, though the link is up": (rest("sshd"), rank_failed()),
    "an agent across a dead link": (rest("hvrun-agent"), host_lost(CUT)),
    "an agent that was never set up, across a dead link": (rest("hvrun-agent"), host_lost(done=[Done(CUT, (), False)])),
    "a rank across a dead link": (rest("chaos_rank", has_job=True), host_lost(done=[Done(CUT, (), False)])),
    "another agent than the one that was stopped": (rest("hvrun-agent", pid=8), host_lost(done=[Done(STOP_AGENT, ((7, 70),), True)])),
    "what a guard can end": (rest("chaos_rank", has_job=True), seen_of(dataclasses.replace(PAIR, target="agent"), KILL_HVRUN)),
    "a rank whose agent was stopped, though hvrun could look after it": (rest("chaos_rank", has_job=True), host_lost(STOP_AGENT)),
    "what hvrun did not tell of": (rest("chaos_rank", has_job=True), host_lost(PAIR)),
}


@pytest.mark.parametrize("name", EXCUSED)
def test_what_nobody_can_end_is_excused(name):
    process, seen = EXCUSED[name]
    assert leftovers(plan_of(), seen, [process]) == []


def test_a_cgroup_is_excused_where_its_ranks_are():
    seen = host_lost(PAIR, new_files=["node2: cgroup hvrun-0"])
    kinds = [each.kind for each in judge(plan_of(), seen)[0]]
    seen.err += SWEPT_IN_VAIN
    assert "left behind" in kinds and "left behind" not in [each.kind for each in judge(plan_of(), seen)[0]]


def test_hosts_are_found_in_a_text_that_folds_them():
    assert hosts_in("error: start the agent on hosts node[1,3-4] and node7: not done within 6 s") == {"node1", "node3", "node4", "node7"}


@pytest.mark.parametrize("name", NOT_EXCUSED)
def test_nothing_else_is_excused(name):
    process, seen = NOT_EXCUSED[name]
    assert leftovers(plan_of(), seen, [process]) == [process]


def test_the_guard_of_an_agent_that_was_stopped_waits_for_it():
    agent, guard = rest("hvrun-agent", pid=7, parent=6), rest("hvrun-guard", pid=6)
    seen = host_lost(done=[Done(STOP_AGENT, ((7, 70),), True)])
    assert leftovers(plan_of(), seen, [agent, guard]) == []
    assert leftovers(plan_of(), seen, [guard]) == [guard]
