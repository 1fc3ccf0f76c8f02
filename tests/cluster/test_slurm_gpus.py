# SPDX-License-Identifier: Apache-2.0
"""Nodes with GPUs in a real Slurm: what srun hides from whom. Its GPUs are device nodes that nobody opens."""

import pytest

from harness import programs

pytestmark = pytest.mark.usefixtures("hvrun")

REDUCTIONS = programs.hvrun_folder() / "examples" / "reductions"
HIDDEN = "srun shows each rank 1 of the 2 GPUs that the job has on this host"


@pytest.fixture
def slurm(slurm_with_gpus):
    return slurm_with_gpus


def output_of(job):
    state, code, output = job.wait(100)
    assert (state, code) == ("COMPLETED", "0:0"), f"{state} {code}\n{output}\n{job.slurm.logs()}"
    return output


@pytest.mark.parametrize("asked, is_told", [("--gpus-per-task=1", True), ("--gpus-per-node=2", False)])
def test_ranks_that_cannot_see_each_others_gpus_are_told_what_to_change(slurm, asked, is_told):
    script = f"srun --mpi=none sh -c 'echo sees $CUDA_VISIBLE_DEVICES; exec {REDUCTIONS}'"
    output = output_of(slurm.batch(script, "-N", "2", "-n", "4", asked))
    assert output.count("is right") == 4, output
    assert output.count("sees 0,1\n") == (0 if is_told else 4), output
    assert output.count(HIDDEN) == (2 if is_told else 0), output  # one rank a host says so


@pytest.mark.parametrize("asked", ["--gpus-per-task=1", "--gpus-per-node=2", "--gres=gpu:2"])
def test_hvrun_shows_all_of_a_nodes_gpus_to_its_ranks(slurm, asked):
    output = output_of(slurm.batch(f"hvrun --no-label sh -c 'echo sees $CUDA_VISIBLE_DEVICES; exec {REDUCTIONS}'",
                                   "-N", "2", "-n", "4", asked))
    assert (output.count("is right"), output.count("sees 0,1\n"), HIDDEN in output) == (4, 4, False), output


IDR_TORCH = """
import os
rank, local_rank, size = (int(os.environ[f"SLURM_{name}"]) for name in ("PROCID", "LOCALID", "NTASKS"))
cores = int(os.environ["SLURM_CPUS_PER_TASK"])
nodes = os.environ["SLURM_JOB_NODELIST"]
gpus = os.environ["SLURM_STEP_GPUS"].split(",")
print(rank, local_rank, size, cores, nodes, 12345 + int(min(gpus)), flush=True)
"""


def test_programs_that_read_slurms_variables_as_idr_torch_does_find_them(slurm):
    """Jean Zay's module: who a rank is, the first node, and a port by the first of the step's GPUs."""
    (slurm.cluster.shared / "idr.py").write_text(IDR_TORCH)
    script = f"hvrun --no-label /usr/bin/python3 {slurm.cluster.shared}/idr.py"
    output = output_of(slurm.batch(script, "-N", "2", "--ntasks-per-node=1", "--cpus-per-task=2", "--gres=gpu:2"))
    lines = sorted(line for line in output.splitlines() if "2 of the 4 GPUs of this Slurm job" not in line)
    assert lines == ["0 0 2 2 node[1-2] 12345", "1 0 2 2 node[1-2] 12345"], output
