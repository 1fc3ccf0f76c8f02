# SPDX-License-Identifier: Apache-2.0
"""Ranks of a real Open MPI and a real MPICH, whose tensors MPI carries."""

import os
import shutil
import subprocess

import pytest

from harness import programs
from harness.running import run

BIN = programs.hvrun_folder()
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "-np"], "mpich": ["mpirun.mpich", "-np"]}
OF_OTHERS = ("HVRUN_", "PMI", "OMPI", "PMIX")


def environment(**more):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OF_OTHERS)}
    return {**inherited, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "HVRUN_BACKEND": "mpi,native", **more}


@pytest.fixture(params=LAUNCHERS)
def mpi(request):
    if not shutil.which(LAUNCHERS[request.param][0]):
        pytest.skip(f"no {request.param}")
    return request.param


def start(mpi, ranks, *words, **more):
    return run([*LAUNCHERS[mpi], str(ranks), *words], env=environment(**more), timeout=120)


def scaled(count):
    return str(max(1, int(count * float(os.environ.get("HVRUN_TEST_SCALE", "1")))))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_random_programs(mpi, ranks):
    result = start(mpi, ranks, BIN / "mpi_programs", scaled(400), "20261125")
    assert result.code == 0 and result.out.count("played") == ranks, str(result)


@pytest.mark.parametrize("words", [["c_types_test", "3"], ["c_operations_test"], ["examples/process_sets"]], ids=lambda words: words[0])
def test_programs_in_c(mpi, words):
    result = start(mpi, 3, BIN / words[0], *words[1:])
    assert result.code == 0, str(result)


def test_random_programs_by_one_thread(mpi):
    """As where an MPI has no MPI_THREAD_MULTIPLE."""
    result = start(mpi, 3, BIN / "mpi_programs", scaled(100), "20261126", HVRUN_MPI_THREADS_DISABLE="1")
    assert result.code == 0 and result.out.count("played") == 3, str(result)


@pytest.mark.parametrize("way", ["staged", "nccl"])
def test_random_programs_on_gpus(mpi, way):
    """The stand-in's GPUs: MPI carries what NCCL does not, through the host's memory."""
    backend = "nccl,mpi,native" if way == "nccl" else "mpi,native"
    result = start(mpi, 3, BIN / "mpi_programs", scaled(60), "20261127", HVRUN_TEST_MEMORY=way, HVRUN_BACKEND=backend)
    assert result.code == 0 and result.out.count("played") == 3, str(result)


def test_an_mpi_that_is_aware_of_cuda_gets_the_gpus_addresses(mpi):
    """No MPI here is: the stand-in's memory is within its reach, or not, and then MPI must fail on it."""
    ways = {"HVRUN_TEST_MEMORY": "staged", "HVRUN_MPI_CUDA": "always", "HVRUN_LOG_LEVEL": "info"}
    result = start(mpi, 3, BIN / "mpi_programs", scaled(60), "20261128", HVRUN_FAKE_CUDA_IN_REACH="1", **ways)
    assert result.code == 0 and result.out.count("played") == 3 and ", aware of CUDA)" in result.err, str(result)
    assert start(mpi, 3, BIN / "mpi_programs", "10", "20261128", **ways).code != 0


def test_it_is_mpi_that_carries(mpi):
    result = start(mpi, 2, BIN / "mpi_programs", "2", "1", HVRUN_LOG_LEVEL="trace")
    carriers = {line.split("engine: ")[1].split()[0] for line in result.err.splitlines() if " starts " in line}
    assert "mpi" in carriers, str(result)


# ---- the program's own MPI ----


@pytest.mark.parametrize("level", ["2", "3"])
def test_a_program_that_has_begun_mpi_itself(mpi, level):
    """MPI_THREAD_SERIALIZED and MPI_THREAD_MULTIPLE, with MPI carrying or not."""
    for backend in ("mpi", "native"):
        result = start(mpi, 2, BIN / f"own_{mpi}", level, HVRUN_BACKEND=backend)
        assert result.code == 0, str(result)
        assert sorted(result.out.splitlines()) == ["rank 0 of 2 (0 of 2 here): 3", "rank 1 of 2 (1 of 2 here): 3"], str(result)


@pytest.mark.parametrize("level", ["0", "1"])
def test_a_level_that_does_not_allow_it_is_told_with_what_does(mpi, level):
    result = start(mpi, 2, BIN / f"own_{mpi}", level)
    assert result.code != 0 and "MPI_THREAD_MULTIPLE, or mpi4py.rc.thread_level" in result.out, str(result)


@pytest.mark.parametrize("backend", ["mpi", "native"])
def test_the_ranks_of_a_communicator_are_a_job(mpi, backend):
    result = start(mpi, 5, BIN / f"own_{mpi}", "halves", HVRUN_BACKEND=backend)
    assert result.code == 0, str(result)
    assert sorted(result.out.splitlines()) == [
        "rank 0 of 2 (0 of 2 here): 3", "rank 0 of 3 (0 of 3 here): 6", "rank 1 of 2 (1 of 2 here): 3",
        "rank 1 of 3 (1 of 3 here): 6", "rank 2 of 3 (2 of 3 here): 6"], str(result)


def test_a_killed_rank_is_named_to_the_others_and_nothing_hangs(mpi, tmp_path):
    # A shell that ended before the others had spoken, or in another way, the launcher would take them down for.
    quietly = f'"$0" death; touch {tmp_path}/$$; while [ $(ls {tmp_path} | wc -l) -lt 3 ]; do sleep 0.05; done; exit 0'
    result = start(mpi, 3, "sh", "-c", quietly, BIN / f"own_{mpi}")
    told = [line for line in result.out.splitlines() if line.startswith("sum: ")]
    assert len(told) == 2 and all("rank 1" in line for line in told), str(result)


# ---- mpi4py ----

WITH_MPI4PY = """
import os
from mpi4py import MPI
from hvrun import basics, inflight, _abi
half = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)
basics.init(comm=half)
said = [basics.rank(), basics.size(), inflight.reduce_numbers("w", [1], _abi.SUM)[0], basics.mpi_enabled(), basics.mpi_threads_supported()]
os.write(1, (" ".join(map(str, said)) + "\\n").encode())
assert half.allreduce(1) == basics.size()
basics.shutdown()
"""


def test_init_with_a_communicator_of_mpi4py():
    """Debian's mpi4py is of Open MPI."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import mpi4py"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no mpi4py")
    result = start("openmpi", 3, python, "-c", WITH_MPI4PY, PYTHONPATH=str(programs.SOURCE / "python"),
                   HVRUN_LIBRARY=str(BIN.parent / "lib" / "libhvrun.so"))
    assert result.code == 0, str(result)
    assert sorted(result.out.splitlines()) == ["0 1 1 True True", "0 2 2 True True", "1 2 2 True True"], str(result)


# ---- mistakes ----


def test_ranks_that_no_mpi_connects_are_told_how_to_start():
    words = ["-np", "2", "--oversubscribe", "--wire-mpi=none"]
    result = run([BIN / "hvrun", *words, BIN / "mpi_programs", "1", "1"], env=environment(), timeout=60)
    assert result.code != 0 and "try: hvrun --wire-mpi, hvrun --mpi, mpirun, or srun --mpi=pmix" in result.err, str(result)


@pytest.mark.skipif(not all(shutil.which(words[0]) for words in LAUNCHERS.values()), reason="needs both")
@pytest.mark.parametrize("launcher, other", [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_a_launcher_of_another_mpi_is_told(launcher, other):
    result = start(launcher, 2, BIN / "mpi_programs", "1", "1", HVRUN_MPI=other)
    assert result.code != 0 and "it is not that launcher's" in result.err, str(result)


def test_what_mpi_cannot_do_names_who_can(mpi):
    result = start(mpi, 2, BIN / "mpi_programs", "20", "1", HVRUN_BACKEND="mpi")
    assert result.code != 0 and "; try: name native there, too" in result.err, str(result)
