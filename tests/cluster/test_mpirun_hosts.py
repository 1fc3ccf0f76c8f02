# SPDX-License-Identifier: Apache-2.0
"""MPI on three SSH hosts, in ranks that an MPI's own mpirun starts there, and in those of hvrun --mpi."""

import shutil

import pytest

from harness import programs
from harness.mpich import run_past_standstill

pytestmark = pytest.mark.usefixtures("hvrun")

BIN = programs.hvrun_folder()
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# How each MPI's own mpirun is told of hosts and of variables.
MPIRUN = {"openmpi": ["mpirun.openmpi", "-x", "HVRUN_BACKEND", "-x", "HVRUN_MPI", "-x", "HVRUN_LOG_LEVEL", "--host"],
          "mpich": ["mpirun.mpich", "-hosts"]}
STOOD_STILL = 124  # timeout's exit code


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request):
    if not shutil.which(f"mpirun.{request.param}"):
        pytest.skip(f"no {request.param}")
    return request.param


@pytest.fixture(params=["mpirun", "hvrun"])
def start(request, cluster, mpi):
    """start(hosts, *words, seconds=N, log_level=...): the result."""
    launcher = ["hvrun", "--mpi", "--no-label", "-H"] if request.param == "hvrun" else MPIRUN[mpi]
    of_mpirun = {} if request.param == "hvrun" else {"HVRUN_BACKEND": "mpi,native", **AS_ROOT}
    return lambda hosts, *words, seconds, log_level="warn": cluster.run(
        ["timeout", str(seconds), *launcher, hosts, *words], env={"HVRUN_MPI": mpi, "HVRUN_LOG_LEVEL": log_level, **of_mpirun}, timeout=100)


@pytest.mark.one_of("mpi", "start")
def test_ranks_know_their_places(mpi, start):
    expected = [f"rank {rank} of 5, {rank % 2} of {2 if rank < 4 else 1} here, host {rank // 2} of {3 - rank % 2}" for rank in range(5)]
    result = start("node1:2,node2:2,node3:1", "-np", "5", str(BIN / "mpi_cases"), "place", seconds=15)
    assert sorted(line for line in result.out.splitlines() if line.startswith("rank ")) == expected, str(result)
    # MPICH 4.0 may stand still in MPI_Finalize then (docs/mpi.md), with two ranks a host more often than not.
    stands_still = mpi == "mpich" and result.code == STOOD_STILL and result.out.count("ended") == 5
    assert result.code == 0 or stands_still, str(result)


@pytest.mark.one_of("mpi", "start")
def test_mpi_carries_between_hosts(mpi, start):
    result = run_past_standstill(
        mpi,
        lambda: start("node1:1,node2:1,node3:1", "-np", "3", str(BIN / "mpi_programs"), "20", "7", seconds=40, log_level="trace"),
        lambda result: result.code == STOOD_STILL and result.out.count("played") == 3)
    carriers = {line.split("engine: ")[1].split()[0] for line in result.err.splitlines() if " starts " in line}
    assert result.code == 0 and result.out.count("played") == 3 and "mpi" in carriers, str(result)
