# SPDX-License-Identifier: Apache-2.0
"""MPI inside jobs of a real Slurm: wired by hvrun, and started by srun itself."""

import shutil

import pytest

from harness import programs
from harness.mpich import run_past_standstill

pytestmark = pytest.mark.usefixtures("hvrun")

BIN = programs.hvrun_folder()
OF_SRUN = {"openmpi": "pmix", "mpich": "pmi2"}  # the way that each MPI asks


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request):
    if not shutil.which(f"mpirun.{request.param}"):
        pytest.skip(f"no {request.param}")
    return request.param


def outputs(slurm, mpi, script, is_whole, ranks=3):
    """Of a job of three nodes."""
    state, code, output = run_past_standstill(
        mpi, lambda: slurm.batch(f"timeout 40 env HVRUN_MPI={mpi} {script}", "-N", "3", "-n", str(ranks)).wait(150),
        lambda ended: ended[:2] == ("FAILED", "124:0") and is_whole(ended[2]))
    assert (state, code) == ("COMPLETED", "0:0"), f"{state} {code}\n{output}\n{slurm.logs()}"
    assert is_whole(output), output


def is_world(output):
    lines = [line for line in output.splitlines() if line.startswith("[")]
    return sorted(lines) == [f"[{rank}] rank {rank} of 3, 0 of 1 here: 6" for rank in range(3)]


def are_placed(output):
    places = [f"rank {rank} of 5, {rank % 2} of {2 if rank < 4 else 1} here, host {rank // 2} of {3 - rank % 2}" for rank in range(5)]
    return sorted(line for line in output.splitlines() if line.startswith("rank ")) == places


def has_played(output):
    return output.count("played") == 3


@pytest.mark.one_of("mpi", "backend")
def test_ranks_that_hvrun_starts_are_a_world(slurm, mpi):
    outputs(slurm, mpi, f"hvrun --wire-mpi {BIN}/wired_{mpi}", is_world)


@pytest.mark.one_of("mpi", "backend")
def test_mpi_carries_for_ranks_that_hvrun_starts(slurm, mpi):
    outputs(slurm, mpi, f"hvrun --mpi {BIN}/mpi_programs 10 7", has_played)


@pytest.mark.one_of("mpi", "backend")
def test_mpi_carries_for_ranks_of_a_bare_srun(slurm, mpi):
    outputs(slurm, mpi, f"HVRUN_BACKEND=mpi,native srun --mpi={OF_SRUN[mpi]} {BIN}/mpi_programs 10 7", has_played)


@pytest.mark.one_of("mpi", "backend")
@pytest.mark.parametrize("backend", ["mpi,native", "native"])
def test_ranks_of_a_bare_srun_know_their_places(slurm, mpi, backend):
    """By MPI, and by what srun tells alone."""
    outputs(slurm, mpi, f"HVRUN_BACKEND={backend} srun -n 5 --distribution=block --mpi={OF_SRUN[mpi]} {BIN}/mpi_cases place", are_placed, 5)
