# SPDX-License-Identifier: Apache-2.0
"""hvrun --mpi on three SSH hosts: mpirun's own daemons there, MPI between the hosts, and their end."""

import shutil
import signal

import pytest

from harness import programs
from harness.jobs import TIMEOUT
from harness.mpich import run_past_standstill
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request):
    if not shutil.which(f"mpirun.{request.param}"):
        pytest.skip(f"no {request.param}")
    return {"HVRUN_MPI": request.param, **AS_ROOT}


def test_ranks_are_on_their_hosts_with_their_variables_and_labels(cluster, mpi):
    rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    result = cluster.run(["hvrun", "--mpi", "-np", "5", "-H", "node1:2,node2:2,node3:2", "-x", "A=two words", "sh", "-c",
                          f'echo "{rank} $(hostname) $A"'], env=mpi, timeout=60)
    hosts = ["node1", "node1", "node2", "node2", "node3"]
    assert result.code == 0, str(result)
    assert sorted(result.out.splitlines()) == [f"[{rank}] {rank} {host} two words" for rank, host in enumerate(hosts)], str(result)


def test_mpi_carries_between_hosts(cluster, mpi):
    words = [str(programs.hvrun_folder() / "mpi_programs"), "20", "7"]
    result = run_past_standstill(
        mpi["HVRUN_MPI"],
        lambda: cluster.run(["hvrun", "--mpi", "-np", "3", "-H", "node1,node2,node3", "--timeout", "40", *words],
                            env={**mpi, "HVRUN_LOG_LEVEL": "trace"}, timeout=100),
        lambda result: result.code == TIMEOUT and result.out.count("played") == 3)
    carriers = {line.split("engine: ")[1].split()[0] for line in result.err.splitlines() if " starts " in line}
    assert result.code == 0 and result.out.count("played") == 3 and "mpi" in carriers, str(result)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_on_any_host(cluster, mpi, number):
    stay = f"echo up >> {cluster.shared}/up; exec tail -f /dev/null"
    with cluster.start(["hvrun", "--mpi", "-np", "6", "-H", "node1:2,node2:2,node3:2", "sh", "-c", stay], env=mpi) as running:
        wait_for(lambda: (cluster.shared / "up").exists() and len((cluster.shared / "up").read_text().split()) == 6, 30, "six ranks")
        assert len(cluster.newcomers()) >= 6
        running.process.send_signal(number)
        running.wait(20)
        wait_for(lambda: not cluster.newcomers(), 5, cluster.report)
