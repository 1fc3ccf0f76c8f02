# SPDX-License-Identifier: Apache-2.0
"""What hvrun says at a real Slurm where a job is not what its user may mean, and that its advice works."""

import pytest

from harness.jobs import lines_of

pytestmark = pytest.mark.usefixtures("hvrun")

LOGIN = "which looks like a login node"
IDLE = "GPUs of this Slurm job"


def ended(job):
    state, code, output = job.wait(60)
    assert state in ("COMPLETED", "FAILED"), f"{state} {code}\n{output}\n{job.slurm.logs()}"
    return code, output


def ranks(output):
    return sorted(line for line in output.splitlines() if line.startswith("["))


# ---- login nodes


def test_a_job_on_a_login_node_is_warned_of(slurm):
    result = slurm.cluster.run(["hvrun", "-np", "2", "--nested", "hvrun", "hostname"])
    assert result.code == 0 and result.err.count(LOGIN) == 1, result  # once, and none of an hvrun in a rank
    assert "salloc -N 2 hvrun" in result.err and "hvrun script" in result.err, result
    plan = slurm.cluster.run(["hvrun", "--dry-run=offline", "hostname"])
    assert plan.code == 0 and plan.err.count(LOGIN) == 1, plan


def test_nobody_is_warned_of_a_login_node_elsewhere(slurm):
    meant = slurm.cluster.run(["hvrun", "-H", "localhost", "hostname"])
    in_job = slurm.cluster.run(["salloc", "-N", "2", "hvrun", "hostname"], timeout=60)
    on_node = slurm.cluster["node1"].run(["hvrun", "hostname"])
    without = slurm.cluster.run(["env", "SLURM_CONF=/none", "hvrun", "hostname"])
    for result in (meant, in_job, on_node, without):
        assert result.code == 0 and LOGIN not in result.err, result
    assert lines_of(in_job) == ["[0] node1", "[1] node2"], in_job


# ---- too few tasks


def test_the_advice_for_too_few_tasks_is_slurms_and_works(slurm):
    code, output = ended(slurm.batch("hvrun -np 6 hostname", "-N", "3", "--ntasks=3"))
    assert code == "2:0" and "-np 6 asks for 6 ranks, but the hosts have 3 slots in all" in output, output
    assert "request more tasks (sbatch or salloc --ntasks=6), lower -np" in output and "-H" not in output, output
    code, output = ended(slurm.batch("hvrun -np 6 hostname", "-N", "3", "--ntasks=6"))
    assert code == "0:0" and len(ranks(output)) == 6, output


# ---- heterogeneous jobs


HETEROGENEOUS = "#!/bin/sh\n#SBATCH -N 1 -n 2\n#SBATCH hetjob\n#SBATCH -N 2 -n 2\n"


@pytest.mark.parametrize("options, expected", [
    ("", ["[0] node1 9", "[1] node1 9", "[2] node2 9", "[3] node3 9"]),
    ("-H $SLURM_JOB_NODELIST_HET_GROUP_1", ["[0] node2 9", "[1] node3 9"]),
    ("-H node3,node1", ["[0] node3 9", "[1] node1 9"])], ids=["all", "one", "both"])
def test_ranks_run_in_all_components_of_a_heterogeneous_job(slurm, options, expected):
    script = slurm.cluster.shared / "heterogeneous.sh"
    script.write_text(f"{HETEROGENEOUS}hvrun {options} sh -c 'echo $(hostname) $SLURM_JOB_ID'\n")
    job = slurm.submit(script)
    code, output = ended(job)
    assert code == "0:0" and ranks(output) == [line.replace("9", str(job.number)) for line in expected], output


def test_salloc_of_a_heterogeneous_job(slurm):
    script = "sh -c 'echo $(hostname) $SLURM_JOB_NODELIST'"
    result = slurm.cluster.run(["sh", "-c", f"salloc -N 1 -n 1 : -N 2 -n 2 hvrun {script}"], timeout=60)
    assert lines_of(result) == [f"[{rank}] node{rank + 1} node1,node2,node3" for rank in range(3)], result


# ---- GPUs without a rank


def test_gpus_of_the_job_without_a_rank_are_warned_of(slurm_with_gpus):
    script = "hvrun hostname; echo; hvrun --dry-run=offline hostname; echo; hvrun -np 1 hostname"
    code, output = ended(slurm_with_gpus.batch(script, "-N", "2", "--ntasks-per-node=1", "--gres=gpu:2"))
    launch, plan, fewer = output.split("\n\n")
    assert code == "0:0" and len(ranks(launch)) == 2, output
    for text in (launch, plan):
        assert text.count(f"warning: 2 ranks use 2 of the 4 {IDLE}: --map-by gpu starts") == 1, output
    assert f"1 rank uses 1 of the 4 {IDLE}" in fewer and "--map-by gpu without -np" in fewer, output


@pytest.mark.parametrize("options", [["--ntasks-per-node=2", "--gres=gpu:2"], ["--ntasks-per-node=2"], ["-n", "3", "--gpus-per-task=1"]],
                         ids=["each", "none", "tasks"])
def test_nobody_is_warned_of_gpus_that_have_ranks(slurm_with_gpus, options):
    code, output = ended(slurm_with_gpus.batch("hvrun hostname", "-N", "2", *options))
    assert code == "0:0" and IDLE not in output and len(ranks(output)) in (3, 4), output
