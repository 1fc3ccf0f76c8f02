# SPDX-License-Identifier: Apache-2.0
"""hvrun inside jobs of a real Slurm: three nodes with slurmd, a login host with slurmctld, munge."""

import os
import re
import signal

import pytest

from harness import programs
from harness.jobs import expect_error, lines_of
from harness.slurm import Slurm, why_not
from harness.syscalls import MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_REMOUNT, mount
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

EXAMPLES = programs.hvrun_folder() / "examples"
VARIABLES = "SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_NTASKS SLURM_NPROCS SLURM_STEP_NUM_TASKS SLURM_STEP_NUM_NODES"


def ranks_of(output):
    """{rank: what it said} of labelled lines."""
    return {line[1:line.index("]")]: line[line.index("]") + 2:] for line in sorted(output.splitlines()) if line.startswith("[")}


def done(job, timeout=60):
    state, code, output = job.wait(timeout)
    assert (state, code) == ("COMPLETED", "0:0"), f"{state} {code}\n{output}\n{job.slurm.logs()}"
    return output


def steps(slurm):
    """What runs beside the batch scripts themselves."""
    listed = slurm.cluster.run(["squeue", "-h", "-s", "-o", "%i"]).out.split()
    return [step for step in listed if not step.endswith((".batch", ".extern"))]


def is_clean(slurm):
    """Nothing of a job runs on any node but Slurm's own."""
    own = ("munged", "slurmd", "slurmstepd", "slurm_script", "sleep")
    return not [one for one in slurm.cluster.newcomers() if not one.name.startswith(own)]


def test_sbatch_needs_no_host_option(slurm):
    output = done(slurm.batch("hvrun hostname", "-N", "3"))
    assert ranks_of(output) == {"0": "node1", "1": "node2", "2": "node3"}, output
    assert not steps(slurm)


def test_slots_are_the_tasks_that_were_asked_for(slurm):
    """Uneven: Slurm itself says how many each node has."""
    output = done(slurm.batch("echo tasks $SLURM_TASKS_PER_NODE; hvrun hostname", "-N", "3", "-n", "4"))
    assert "tasks 2,1(x2)" in output
    assert sorted(ranks_of(output).values()) == ["node1", "node1", "node2", "node3"], output


def test_one_step_starts_all_agents_and_has_a_shell_in_it_no_longer_than_the_job(slurm):
    job = slurm.batch("hvrun sh -c 'echo here; sleep 1000'", "-N", "3")
    job.wait_for_output("[2] here", 30)
    assert len(steps(slurm)) == 1
    slurm.cluster.run(["scancel", str(job.number)])
    assert job.wait(30)[0] == "CANCELLED"
    wait_for(lambda: is_clean(slurm), 15, lambda: slurm.cluster.report())
    assert not steps(slurm)


def test_ranks_meet_and_compute(slurm):
    sums = programs.hvrun_folder() / "c_ranks_test"
    output = done(slurm.batch(f"hvrun -np 6 --oversubscribe {sums}", "-N", "3"))
    assert output.count("all good") == 6, output


@pytest.mark.parametrize("options", [["--hint=nomultithread", "--exclusive"], ["--hint=nomultithread", "-c", "2"], ["-c", "2"],
                                     ["--distribution=cyclic", "--exclusive"], ["--ntasks-per-node=1", "--cpus-per-task=2"]])
def test_what_sbatch_was_told_takes_no_core_from_the_ranks(slurm, options):
    """Each is alone on its node, which has two."""
    output = done(slurm.batch("hvrun nproc", "-N", "3", "-n", "3", *options))
    assert set(ranks_of(output).values()) == {"2"} and len(ranks_of(output)) == 3, output


# Each makes a plain srun fail, or wait, or change its step.
INPUTS = {"SLURM_MEM_PER_CPU": "100", "SLURM_MEM_PER_NODE": "100", "SLURM_CONSTRAINT": "none-such", "SLURM_CLUSTERS": "elsewhere",
          "SLURM_PARTITION": "none-such", "SLURM_RESERVATION": "none-such", "SLURM_GRES": "gpu:8", "SLURM_GPUS_PER_NODE": "8",
          "SLURM_TASK_PROLOG": "/bin/false", "SLURM_THREADS_PER_CORE": "9", "SLURM_STDINMODE": "none", "SLURM_STDERRMODE": "/none/such",
          "SLURM_NNODES": "1", "SLURM_JOB_NUM_NODES": "1", "SLURM_TIMELIMIT": "never", "SLURM_TEST_EXEC": "1", "SRUN_CONTAINER": "/none"}


@pytest.mark.parametrize("names", [("SLURM_MEM_PER_CPU", "SLURM_MEM_PER_NODE"), ("SLURM_CONSTRAINT",), ("SLURM_CLUSTERS",), tuple(INPUTS)],
                         ids=["memory", "constraint", "clusters", "all"])
def test_variables_that_act_as_options_of_srun_do_not_change_hvruns_step(slurm, names):
    """Ranks have them: hvrun(1) says that its environment is theirs."""
    script = "".join(f"export {name}={INPUTS[name]}\n" for name in names) + f"hvrun -v sh -c 'echo $(hostname) ${names[0]}'"
    output = done(slurm.batch(script, "-N", "3"))
    assert ranks_of(output) == {str(rank): f"node{rank + 1} {INPUTS[names[0]]}" for rank in range(3)}, output
    assert "assuming that Slurm signals" not in output, output


def test_a_job_with_an_empty_environment(slurm):
    hvrun = programs.hvrun_folder() / "hvrun"
    output = done(slurm.batch(f"{hvrun} hostname", "-N", "3", "--export=NONE"))
    assert len(ranks_of(output)) == 3, output


def test_salloc_on_the_login_host(slurm):
    result = slurm.cluster.run(["salloc", "-N", "3", "hvrun", "hostname"], timeout=60)
    assert result.code == 0 and sorted(lines_of(result)) == ["[0] node1", "[1] node2", "[2] node3"], str(result)


def test_the_shell_of_salloc_that_is_a_step_still_has_the_tasks_of_each_node(cluster):
    if reason := why_not():
        pytest.skip(reason)
    more = 'LaunchParameters=use_interactive_step\nInteractiveStepOptions="--interactive --preserve-env /bin/sh"\n'
    with Slurm(cluster, more=more):
        script = "echo 'echo step $SLURM_STEP_NUM_TASKS; hvrun hostname' | salloc -N 3 --ntasks-per-node=2 --overcommit"
        result = cluster.run(["sh", "-c", script], timeout=60)
    lines = lines_of(result)
    assert "step 1" in lines, str(result)
    assert sorted(line for line in lines if line[0] == "[") == [f"[{rank}] node{rank // 2 + 1}" for rank in range(6)], str(result)


def test_part_of_the_nodes(slurm):
    output = done(slurm.batch("hvrun -H node3,node1 hostname", "-N", "3"))
    assert ranks_of(output) == {"0": "node3", "1": "node1"}, output


def test_nodes_by_long_names_and_addresses_are_reached_by_srun(slurm):
    address = slurm.cluster["node2"].address
    output = done(slurm.batch(f"hvrun -v -H NODE3.lab.example,{address} hostname", "-N", "3"))
    assert ranks_of(output) == {"0": "node3", "1": "node2"}, output
    assert "hosts node3,node2: srun" in output or "hosts node[2-3]: srun" in output, output


def test_localhost_is_the_node_on_which_hvrun_runs(slurm):
    for hosts in ("localhost,node2", "node2 --include localhost@node2", "127.0.0.1,node2"):
        option = "-H node1," if "include" in hosts else "-H "
        output = done(slurm.batch(f"hvrun -v {option}{hosts} hostname", "-N", "3"))
        assert ranks_of(output) == {"0": "node1", "1": "node2"}, output
        assert "hosts node[1-2]: srun" in output, output


# As programs do that meet by Slurm's variables (idr_torch, Lightning): where rank 0 is, how many there are, and where.
MEET = """
import os
first, *others = os.popen("scontrol show hostnames $SLURM_JOB_NODELIST").read().split()
names = ("NODELIST", "NNODES", "JOB_NUM_NODES", "NTASKS", "NTASKS_PER_NODE", "TASKS_PER_NODE", "NODEID", "LOCALID")
print(first, *others, *(os.environ.get(f"SLURM_{name}", "none") for name in names), os.environ.get("HVRUN_JOB_NODELIST"), flush=True)
"""


@pytest.mark.parametrize("options, expected", [
    ("-H node3:2,node1:2", ["node3 node1 node3,node1 2 2 4 2 2(x2) 0 0", "node3 node1 node3,node1 2 2 4 2 2(x2) 0 1",
                        "node3 node1 node3,node1 2 2 4 2 2(x2) 1 0", "node3 node1 node3,node1 2 2 4 2 2(x2) 1 1"]),
    ("-np 3", ["node1 node2 node1,node2 2 2 3 none 2,1 0 0", "node1 node2 node1,node2 2 2 3 none 2,1 0 1",
               "node1 node2 node1,node2 2 2 3 none 2,1 1 0"]),
    ("-H node3 -np 1", ["node3 node3 1 1 1 1 1 0 0"])], ids=["order", "fewer", "last"])
def test_ranks_on_part_of_the_nodes_meet_at_rank_0(slurm, options, expected):
    (slurm.cluster.shared / "meet.py").write_text(MEET)
    output = done(slurm.batch(f"hvrun {options} /usr/bin/python3 {slurm.cluster.shared}/meet.py", "-N", "3", "--ntasks-per-node=2"))
    assert ranks_of(output) == {str(rank): f"{line} node[1-3]" for rank, line in enumerate(expected)}, output


def test_a_rank_on_part_of_the_nodes_reaches_the_others_by_the_jobs_own_list(slurm):
    call = "SLURM_JOB_NODELIST=$HVRUN_JOB_NODELIST srun --overlap -N 3 -n 3 hostname"
    inner = done(slurm.batch(f"hvrun -H node3 sh -c '{call}'; hvrun -H node3 --nested hvrun -np 1 -H node1 hostname", "-N", "3"))
    assert sorted(inner.splitlines()) == ["[0] [0] node1", "[0] node1", "[0] node2", "[0] node3"], inner


def test_ranks_see_slurms_variables_with_hvruns_values(slurm):
    script = f"hvrun sh -c 'for v in {VARIABLES}; do eval \"printf \\\"%s \\\" \\$$v\"; done; echo $SLURM_STEP_NODELIST $SLURMD_NODENAME'"
    output = done(slurm.batch(script, "-N", "2", "--ntasks-per-node=2"))
    assert ranks_of(output) == {"0": "0 0 0 4 4 4 2 node1,node2 node1", "1": "1 1 0 4 4 4 2 node1,node2 node1",
                                "2": "2 0 1 4 4 4 2 node1,node2 node2", "3": "3 1 1 4 4 4 2 node1,node2 node2"}, output


def test_ranks_have_nothing_of_the_agents_step(slurm):
    output = done(slurm.batch("hvrun sh -c 'env; echo end'", "-N", "2"))
    of_step = [line for line in output.splitlines()
               if any(name in line for name in ("PMI", "SLURM_GTIDS", "SLURM_CPU_BIND", "SLURM_TASK_PID", "SLURM_LAUNCH", "SLURM_SRUN"))]
    assert not of_step and "[1] end" in output, output


def test_a_rank_can_use_srun_itself(slurm):
    output = done(slurm.batch("hvrun sh -c 'test $RANK = 1 || exit 0; srun --overlap -N 3 -n 3 hostname'", "-N", "3"))
    assert sorted(line for line in output.splitlines()) == ["[1] node1", "[1] node2", "[1] node3"], output


@pytest.mark.parametrize("options", [[], ["--oversubscribe", "-np", "6"]], ids=["alone", "shared"])
def test_a_rank_can_run_a_plain_srun(slurm, options):
    """Without --overlap: hvrun's own step keeps no core of the job's from it."""
    output = done(slurm.batch(f"hvrun {' '.join(options)} sh -c 'test $RANK = 1 || exit 0; exec srun -N 1 -n 1 hostname'", "-N", "3"))
    assert [line[:8] for line in output.splitlines()] == ["[1] node"], output


def test_the_key_of_the_job_is_in_no_environment_and_no_argument(slurm):
    """Not of hvrun's, srun's, the agents' or the ranks'; 64 hex digits, or 32 bytes in base64, would be one."""
    job = slurm.batch("hvrun sh -c 'echo here; exec tail -f /dev/null'", "-N", "3")
    for rank in range(3):
        job.wait_for_output(f"[{rank}] here", 30)
    seen = slurm.cluster.newcomers()
    assert {"hvrun", "srun", "hvrun-agent", "tail"} <= {process.name for process in seen}
    words = [word for process in seen for word in (*process.arguments, *process.environment.values())]
    suspicious = [word for word in words if re.search(r"[0-9a-fA-F]{64}|[A-Za-z0-9+/]{43}=", word)]
    assert not [word for word in suspicious if "agent-" not in word], suspicious
    slurm.cluster.run(["scancel", str(job.number)])
    assert job.wait(30)[0] == "CANCELLED"


def test_exit_codes_come_through(slurm):
    state, code, output = slurm.batch("hvrun sh -c 'exit $((RANK * 7))'", "-N", "2").wait(60)
    assert (state, code) == ("FAILED", "7:0"), output
    assert "rank 1" in output and "node2" in output


def test_who_ends_a_job_is_told_where_it_is_slurm(slurm):
    """Whether its agents or hvrun itself hear of it first, nobody is sent to look at a host."""
    job = slurm.batch("hvrun sh -c 'echo here; sleep 1000'", "-N", "3")
    job.wait_for_output("[2] here", 30)
    slurm.cluster.run(["scancel", str(job.number)])
    state, _, output = job.wait(60)
    assert state == "CANCELLED", output
    assert "find out what ends processes" not in output, output
    assert "was lost" not in output or "scancel" in output, output


def test_a_node_that_dies(slurm):
    """Its agent falls silent; hvrun says so, and ends the others."""
    job = slurm.batch("hvrun --lost-after 2 sh -c 'echo here; sleep 1000'", "-N", "3")
    job.wait_for_output("[2] here", 30)
    slurm.cluster["node3"].link_down()
    state, code, output = job.wait(60)
    assert state in ("FAILED", "NODE_FAIL"), output
    assert "node3" in output, output
    wait_for(lambda: not [one for node in ("node1", "node2") for one in slurm.cluster[node].newcomers() if one.name == "sleep"], 20,
             lambda: slurm.cluster.report())


def test_an_agent_that_is_killed(slurm):
    job = slurm.batch("hvrun sh -c 'echo here; sleep 1000'", "-N", "3")
    job.wait_for_output("[2] here", 30)
    for one in slurm.cluster["node2"].newcomers():
        if one.name == "hvrun-agent":
            one.kill()
    state, _, output = job.wait(60)
    assert state == "FAILED" and "node2" in output, output


def test_a_job_starts_again_in_its_allocation(slurm):
    """Once after a rank's failure, and once after the loss of an agent, which ends the whole step."""
    program = "echo attempt $HVRUN_RESTART; case $HVRUN_RESTART in 0) exit 7 ;; 1) exec sleep 1000 ;; esac"
    job = slurm.batch(f"HVRUN_RESTART_DELAY=0 hvrun --restarts 2 sh -c '{program}'", "-N", "3")
    job.wait_for_output("[2] attempt 1", 60)
    for one in slurm.cluster["node2"].newcomers():
        if one.name == "hvrun-agent":
            one.kill()
    output = done(job)
    assert ranks_of(output) == {rank: "attempt 2" for rank in "012"}, output
    assert "(restart 1 of 2): " in output and " ended with exit code 7 " in output and "(restart 2 of 2): " in output, output
    wait_for(lambda: is_clean(slurm), 15, lambda: slurm.cluster.report())
    assert not steps(slurm)


def meeting_script(slurm, name):
    """Ranks that end when the test has seen both jobs run."""
    return f"hvrun sh -c 'echo {name} $SLURM_JOB_ID; while [ ! -e {slurm.cluster.shared}/both ]; do sleep 0.05; done'"


def test_the_log_of_a_job_shows_text_that_has_no_newline_yet(slurm):
    script = f"printf 'epoch 1: '; while [ ! -e {slurm.cluster.shared}/seen ]; do sleep 0.05; done; echo done"
    job = slurm.batch(f'hvrun sh -c "{script}"', "-N", "1")
    job.wait_for_output("[0] epoch 1: ", 30)
    (slurm.cluster.shared / "seen").touch()
    assert done(job) == "[0] epoch 1: done\n"


def test_two_jobs_at_once(slurm):
    jobs = [slurm.batch(meeting_script(slurm, "job"), "-N", "3") for _ in range(2)]
    for job in jobs:
        job.wait_for_output("[2] job", 30)
    (slurm.cluster.shared / "both").touch()
    for job in jobs:
        assert set(ranks_of(done(job)).values()) == {f"job {job.number}"}


def test_two_hvruns_at_once_in_one_job(slurm):
    job = slurm.batch(f"{meeting_script(slurm, 'first')} & {meeting_script(slurm, 'second')}; wait", "-N", "3")
    job.wait_for_output("[2] first", 30)
    job.wait_for_output("[2] second", 30)
    (slurm.cluster.shared / "both").touch()
    said = [line.split()[1] for line in done(job).splitlines()]
    assert sorted(said) == ["first"] * 3 + ["second"] * 3


def test_the_agent_goes_along_where_its_file_is_not_there(slurm):
    """hvrun lies in a folder that only the first node has."""
    here = programs.hvrun_folder()
    slurm.cluster["node1"].shell(f"mkdir /tmp/own && cp {here}/hvrun {here}/hvrun-agent /tmp/own/")
    output = done(slurm.batch("/tmp/own/hvrun hostname", "-N", "3"))
    assert ranks_of(output) == {"0": "node1", "1": "node2", "2": "node3"}, output
    for node in slurm.cluster.nodes:
        assert not node.shell("ls /tmp | grep hvrun-agent || true").strip()


def test_a_copy_of_the_agent_is_put_where_programs_may_run(slurm):
    """/tmp takes no programs on the other nodes: nothing stays there."""
    here = programs.hvrun_folder()
    slurm.cluster["node1"].shell(f"mkdir /run/own && cp {here}/hvrun {here}/hvrun-agent /run/own/")
    for name in ("node2", "node3"):
        slurm.cluster[name].call(lambda: mount("tmpfs", "/tmp", "tmpfs", MS_REMOUNT | MS_NOEXEC | MS_NOSUID | MS_NODEV))
    output = done(slurm.batch("/run/own/hvrun hostname", "-N", "3"))
    assert ranks_of(output) == {"0": "node1", "1": "node2", "2": "node3"}, output
    for node in slurm.cluster.nodes:
        assert not node.shell("ls /tmp /dev/shm /var/tmp | grep hvrun-agent || true").strip(), node


def test_ssh_instead_where_that_is_wished(slurm):
    from harness import sshd
    from harness.keys import key_pair
    node = slurm.cluster["node1"]
    sshd.give_key(node, "root", key_pair("user"))
    sshd.write_known_hosts(node, "root", slurm.cluster.known_hosts())
    output = done(slurm.batch("hvrun --spawner ssh -v hostname; squeue -h -s -o %i", "-N", "3"))
    assert sorted(ranks_of(output).values()) == ["node1", "node2", "node3"], output


def test_another_user(slurm):
    output = done(slurm.batch("hvrun sh -c 'echo $(id -un)'", "-N", "3", user="ada"))
    assert set(ranks_of(output).values()) == {"ada"}, output


def test_srun_that_fails_says_why(slurm):
    """The job is none that Slurm knows."""
    result = slurm.cluster.run(["salloc", "-N", "3", "sh", "-c", "SLURM_JOB_ID=9999 SLURM_JOBID=9999 hvrun true"], timeout=60)
    expect_error(result, 3, "srun", "9999")


def test_spawner_srun_outside_a_job_is_refused(cluster):
    expect_error(cluster.run(["hvrun", "--spawner", "srun", "-H", "node1", "true"]), 2, "--spawner srun", "nodes of a Slurm job")


# ---- without hvrun


@pytest.mark.parametrize("mpi", ["pmix", "pmi2", "none"])
def test_bare_srun(slurm, mpi):
    """The program's own libhvrun meets the others through what srun offers."""
    for example in ("reductions", "exchanges"):
        output = done(slurm.batch(f"srun --mpi={mpi} {EXAMPLES / example}", "-N", "3", "-n", "5"), 100)
        assert output.count("is right") == 5, output


@pytest.mark.parametrize("mpi", ["pmix", "none"])
def test_a_rank_of_a_bare_srun_that_stands_still_is_named_by_the_others(slurm, mpi):
    """Of one that is killed srun itself ends the step."""
    job = slurm.batch(f"HVRUN_PEER_TIMEOUT=2 srun --mpi={mpi} --label {programs.hvrun_folder()}/c_lost_peer", "-N", "3", "-n", "3")
    for rank in range(3):
        job.wait_for_output(f"{rank}: ready", 30)
    for one in slurm.cluster["node2"].newcomers():
        if one.name == "c_lost_peer":
            os.kill(one.pid, signal.SIGSTOP)
    for rank in (0, 2):
        job.wait_for_output(f"{rank}: pending status 5", 20)
    assert "rank 1" in job.output, job.output


def test_bare_srun_without_munge(slurm):
    """As in a container that has the home folder and not munge's socket."""
    script = f"export HOME={slurm.cluster.shared}\n" \
             f"srun --mpi=none unshare -m sh -c 'mount -t tmpfs none /run/munge && exec {EXAMPLES}/reductions'\nls -A $HOME"
    output = done(slurm.batch(script, "-N", "3", "-n", "4"), 100)
    assert output.count("is right") == 4, output
    assert ".hvrun-step" not in output, output


def test_two_steps_at_once_are_two_jobs(slurm):
    step = f"srun --overlap --mpi=none -N 3 -n 3 {EXAMPLES}/reductions"
    output = done(slurm.batch(f"{step} & {step} & wait", "-N", "3", "-n", "3"), 100)
    assert output.count("of 3: every reduction is right") == 6, output


def test_a_bare_srun_whose_ranks_are_another_launchers_is_refused(slurm):
    """torchrun under srun: its workers inherit the variables of the one process."""
    script = f"srun --mpi=pmix sh -c 'RANK=$((SLURM_PROCID * 2 + 1)) WORLD_SIZE=6 {EXAMPLES}/reductions'"
    state, _, output = slurm.batch(script, "-N", "3", "-n", "3").wait(60)
    assert state == "FAILED" and "are of two launchers" in output, output


def test_a_plain_program_in_a_batch_script_is_alone(slurm):
    assert "rank 0 of 1: every reduction is right" in done(slurm.batch(EXAMPLES / "reductions", "-N", "3", "-n", "5"))


# ---- endings, and what is set beside


def of(host, name):
    return [one for one in host.newcomers() if one.name == name]


@pytest.mark.parametrize("name", ["hvrun", "srun"])
def test_nothing_is_left_when_it_is_killed(slurm, name):
    job = slurm.batch("hvrun sh -c 'echo here; exec tail -f /dev/null'", "-N", "3")
    for rank in range(3):
        job.wait_for_output(f"[{rank}] here", 30)
    assert not is_clean(slurm)
    of(slurm.cluster["node1"], name)[0].kill()
    state, _, output = job.wait(30)
    assert state == "FAILED", output
    wait_for(lambda: is_clean(slurm), 5, lambda: slurm.cluster.report())
    if name == "srun":
        assert "killed" in output.lower(), output  # srun, or, where Slurm has ended its step by then, a guard


def test_a_step_that_does_not_start_in_time_is_told_with_sruns_words(slurm):
    """srun waits where all of a job's nodes are taken by a step that shares none; a stand-in says what it says."""
    script = "mkdir -p $PWD/waiting; cat > $PWD/waiting/srun <<'END'\n#!/bin/sh\n" \
             "echo 'srun: Job 1 step creation temporarily disabled, retrying (Requested nodes are busy)' >&2\n" \
             "exec tail -f /dev/null\nEND\n" \
             "chmod +x $PWD/waiting/srun; PATH=$PWD/waiting:$PATH exec hvrun --start-timeout 2 true"
    state, code, output = slurm.batch(script, "-N", "3").wait(30)
    assert (state, code) == ("FAILED", "4:0"), output
    assert "Requested nodes are busy" in output and "squeue -s" in output, output
    assert is_clean(slurm), slurm.cluster.report()


def test_agents_wait_for_an_hvrun_that_is_stopped_during_the_launch(slurm):
    """A stand-in for srun stops it once it has passed on the key, and then is the real one."""
    script = "mkdir -p $PWD/stopping; cat > $PWD/stopping/srun <<'END'\n#!/bin/sh\nread key\nkill -STOP $PPID\n" \
             "(sleep 12; kill -CONT $PPID) >/dev/null 2>&1 &\n" \
             "{ echo $key; exec cat; } | exec /usr/bin/srun \"$@\"\nEND\n" \
             "chmod +x $PWD/stopping/srun; PATH=$PWD/stopping:$PATH exec hvrun hostname"  # sleep-ok: the stop
    output = done(slurm.batch(script, "-N", "3"))
    assert ranks_of(output) == {"0": "node1", "1": "node2", "2": "node3"}, output


def test_x_takes_what_the_user_has_of_slurms_variables(slurm):
    script = "hvrun -x SLURM_JOB_NAME=mine -x 'SLURM_CPU*' sh -c 'echo $SLURM_PROCID $SLURM_JOB_NAME'"
    output = done(slurm.batch(script, "-N", "3"))
    assert ranks_of(output) == {str(rank): f"{rank} mine" for rank in range(3)}, output


def test_all_ports_are_of_the_range_that_was_given(slurm):
    script = "export HVRUN_PORT_RANGE=23000-23009\n" \
             f"hvrun --master-port 23005 sh -c 'echo $MASTER_PORT; exec {EXAMPLES}/reductions'"
    output = done(slurm.batch(script, "-N", "3"))
    assert output.count("is right") == 3 and output.count("] 23005") == 3, output
