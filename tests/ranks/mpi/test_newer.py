# SPDX-License-Identifier: Apache-2.0
"""MPIs that hvrun was not built beside: Open MPI 5 and MPICH 5, as Python packages bring them."""

import os
import shutil

import pytest

from harness import mpi_environments, programs
from harness.running import run

BIN = programs.hvrun_folder()
WORDS = {"openmpi": "(Open MPI v5.0.11)", "mpich": "(MPICH 5.0.2)"}
LIBRARIES = {"openmpi": "libmpi.so.40", "mpich": "libmpi.so.12"}
WAYS = {"mpirun": ["mpirun", "-np", "3"], "hvrun --wire-mpi": [BIN / "hvrun", "--wire-mpi", "--oversubscribe", "-np", "3"]}


@pytest.fixture(params=mpi_environments.PACKAGES)
def mpi(request):
    """Its name, and variables with which it is the first that is found."""
    if not shutil.which(f"mpicc.{request.param}"):
        pytest.skip(f"no {request.param}, beside which hvrun is built")
    try:
        folder = mpi_environments.folder(request.param)
    except mpi_environments.NoMpi as why:
        pytest.skip(str(why))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HVRUN_", "PMI", "OMPI", "PMIX"))}
    return request.param, {**inherited, "PATH": f"{folder}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{folder}/lib",
                           "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "HVRUN_BACKEND": "mpi,native",
                           "HVRUN_MPI": request.param, "HVRUN_LOG_LEVEL": "info"}


def start_of(name, way):
    return WAYS[way] + (["--oversubscribe"] if (name, way) == ("openmpi", "mpirun") else [])


JOINS_FIRST = """
import ctypes, os, sys
from hvrun import basics
basics.init()
mpi = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
begun = mpi.MPI_Init(None, None) if sys.argv[2] == "begins" else "loaded"
os.write(1, f"{basics.rank()} of {basics.size()}: {begun}\\n".encode())
if begun == 0:
    mpi.MPI_Finalize()
basics.shutdown()
"""


@pytest.mark.one_of("mpi", "way")
@pytest.mark.parametrize("way", WAYS)
def test_a_program_may_load_it_when_it_has_joined_without_it(mpi, way):
    """Open MPI's package has a libpmix of its own, which cannot be loaded beside the system's. Under its mpirun MPI_Init fails where
    the process has asked PMIx for anything before (docs/mpi.md)."""
    name, variables = mpi
    begins = name == "mpich" or "wire" in way
    more = {"HVRUN_BACKEND": "native", "HVRUN_LOG_LEVEL": "warn", "PYTHONPATH": str(programs.SOURCE / "python"),
            "HVRUN_LIBRARY": str(BIN.parent / "lib" / "libhvrun.so")}
    program = ["/usr/bin/python3", "-c", JOINS_FIRST, LIBRARIES[name], "begins" if begins else "loads"]
    result = run([*start_of(name, way), *program], env={**variables, **more}, timeout=60)
    assert result.code == 0 and result.err == "", str(result)
    assert result.out.count(" of 3: 0" if begins else " of 3: loaded") == 3, str(result)


@pytest.mark.one_of("mpi", "way")
@pytest.mark.parametrize("way", WAYS)
def test_ranks_exchange_by_it(mpi, way):
    name, variables = mpi
    for program, said in ([BIN / "mpi_pieces"], "summed"), ([BIN / "mpi_programs", "20", "20261126"], "played"):
        result = run([*start_of(name, way), *program], env=variables, timeout=120)
        assert result.code == 0 and result.out.count(said) == 3, str(result)
        assert WORDS[name] in result.err + result.out, str(result)
