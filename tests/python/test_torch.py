# SPDX-License-Identifier: Apache-2.0
"""tests/python/ranks, in the ranks of jobs of several sizes, and on two hosts."""

import pathlib
import re
import subprocess

import pytest

from harness import torch_environment, torch_jobs

RANKS = pathlib.Path(__file__).parent / "ranks"
JOBS = {"1 rank": ["-np", "1"], "2 ranks": ["-np", "2"], "3 ranks": ["-np", "3"], "4 ranks": ["-np", "4"],
        "2 hosts": torch_jobs.TWO_HOSTS}


@pytest.mark.drawn_among("launcher", torch_jobs.LAUNCHERS)
@pytest.mark.parametrize("launcher", JOBS)
def test_in_every_rank(launcher, tmp_path):
    """Over MPI, and on two real hosts: test_torch_mpi.py and tests/cluster/test_torch.py."""
    done = torch_jobs.run(JOBS[launcher], ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", str(RANKS)], tmp_path, warm=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    counts = re.findall(r"(\d+) passed", done.stdout)
    ranks = 3 if "hosts" in launcher else int(launcher[0])
    assert len(counts) == ranks and len(set(counts)) == 1, done.stdout[-4000:]


def test_in_one_process(tmp_path):
    """tests/python/alone: what needs no job, with the distribution of Horovod's names beside the package."""
    words = [str(torch_environment.interpreter()), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(RANKS.parent / "alone")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
                          env=torch_jobs.environment(tmp_path, PYTHONPATH=torch_jobs.WITH_HOROVODS_NAMES))
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
