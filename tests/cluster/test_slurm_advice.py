# SPDX-License-Identifier: Apache-2.0
"""What hvrun says at a real Slurm where a job is not what its user may mean, and that its advice works."""

import pytest

pytestmark = pytest.mark.usefixtures("hvrun")


def ended(job):
    state, code, output = job.wait(60)
    assert state in ("COMPLETED", "FAILED"), f"{state} {code}\n{output}\n{job.slurm.logs()}"
    return code, output


def ranks(output):
    return sorted(line for line in output.splitlines() if line.startswith("["))


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
