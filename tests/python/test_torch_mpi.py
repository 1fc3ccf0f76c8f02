# SPDX-License-Identifier: Apache-2.0
"""tests/python/ranks, in ranks that a real mpirun has started, whose tensors MPI carries where it can."""

import os
import pathlib
import re
import shutil

import pytest

from harness import torch_environment, torch_jobs
from harness.running import run

RANKS = pathlib.Path(__file__).parent / "ranks"
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "-np", "2"], "mpich": ["mpirun.mpich", "-np", "2"]}
NEEDS_HVRUN = RANKS / "test_beside_ddp.py"  # torch.distributed's variables, which mpirun does not set


@pytest.mark.drawn_among("launcher", torch_jobs.LAUNCHERS)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_in_every_rank(launcher, tmp_path):
    if not shutil.which(LAUNCHERS[launcher][0]):
        pytest.skip(f"no {launcher}")
    words = [*LAUNCHERS[launcher], str(torch_environment.interpreter()), "-m", "pytest", "-x", "-q", "--color=no", "-p", "no:cacheprovider",
             f"--ignore={NEEDS_HVRUN}", str(RANKS)]
    environment = torch_jobs.environment(tmp_path, HVRUN_BACKEND="mpi,native", OMPI_ALLOW_RUN_AS_ROOT="1",
                                         OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = run(words, timeout=300, cwd=os.fspath(tmp_path), env=environment)  # with what they said where one waits for the other
    assert done.code == 0, str(done)
    counts = re.findall(r"(\d+) passed", done.out)
    assert len(counts) == 2 and len(set(counts)) == 1, str(done)
