# SPDX-License-Identifier: Apache-2.0
"""MPIs that hvrun was not built beside: Open MPI 5 and MPICH 5, as Python packages bring them."""

import os
import shutil

import pytest

from harness import mpi_environments, programs
from harness.running import run

BIN = programs.hvrun_folder()
WORDS = {"openmpi": "(Open MPI v5.0.11)", "mpich": "(MPICH 5.0.2)"}
WAYS = {"mpirun": ["mpirun", "-np", "3"], "hvrun --wire-mpi": [BIN / "hvrun", "--wire-mpi", "--oversubscribe", "-np", "3"],
        "hvrun --mpi": [BIN / "hvrun", "--mpi", "--oversubscribe", "-np", "3"]}


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


@pytest.mark.parametrize("way", WAYS)
def test_ranks_exchange_by_it(mpi, way):
    name, variables = mpi
    words = WAYS[way] + (["--oversubscribe"] if (name, way) == ("openmpi", "mpirun") else [])
    for program, said in ([BIN / "mpi_pieces"], "summed"), ([BIN / "mpi_programs", "20", "20261126"], "played"):
        result = run([*words, *program], env=variables, timeout=120)
        assert result.code == 0 and result.out.count(said) == 3, str(result)
        assert WORDS[name] in result.err + result.out, str(result)
