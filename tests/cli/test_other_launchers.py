# SPDX-License-Identifier: Apache-2.0
"""Programs that another launcher has started: their own libhvrun meets the other ranks through it."""

import os
import shutil

import pytest

from harness import programs
from harness.running import run

EXAMPLES = programs.hvrun_folder() / "examples"
RANKS = 3
LAUNCHERS = {
    "OpenMPI, PMIx": ["mpirun", "--oversubscribe", "-np"],
    "MPICH, PMI": ["mpiexec.hydra", "-n"],
}
ENVIRONMENT = {**{name: value for name, value in os.environ.items() if not name.startswith(("HVRUN_RANK", "PMI", "OMPI"))},
               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture(params=LAUNCHERS)
def launcher(request):
    words = LAUNCHERS[request.param]
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not there")
    return [*words, str(RANKS)]


def test_one_alone_meets_nobody(launcher):
    """Nor does what runs after it, although the launcher's server has seen the first one go."""
    result = run([*launcher[:-1], "1", "sh", "-c", f"{EXAMPLES}/reductions && {EXAMPLES}/exchanges"], env=ENVIRONMENT, timeout=60)
    assert result.code == 0 and result.out.count("rank 0 of 1") == 2, str(result)


@pytest.mark.parametrize("example", ["reductions", "exchanges", "process_sets"])
def test_ranks_meet(launcher, example):
    result = run([*launcher, EXAMPLES / example], env=ENVIRONMENT, timeout=60)
    assert result.code == 0 and len(result.out.splitlines()) == RANKS, str(result)


def test_a_program_that_joins_again_and_again(launcher):
    """init and shutdown a hundred times: the launcher is greeted once."""
    result = run([*launcher, EXAMPLES.parent / "c_rejoin"], env=ENVIRONMENT, timeout=60)
    assert result.code == 0 and result.out.count("joined 100 times") == RANKS, str(result)
