# SPDX-License-Identifier: Apache-2.0
"""hvrun.run where it cannot send the function; where it can, examples/torch/run_function.py shows and test_torch_examples.py runs it."""

import subprocess
import sys

import pytest

from harness import programs, torch_jobs


def test_a_function_of_a_script_is_not_sent_without_cloudpickle(tmp_path):
    (tmp_path / "script.py").write_text("import sys\nsys.modules['cloudpickle'] = None\nimport hvrun\ndef train():\n    pass\n"
                                        "hvrun.run(train, np=2)\n")
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False,
                          env=torch_jobs.environment(tmp_path))
    assert "hvrun.run: train is a function of this script or notebook, which ranks cannot import; pip install cloudpickle" in done.stderr


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_use_mpi_has_mpi_move_the_data(tmp_path, mpi):
    if not (programs.hvrun_folder() / f"wired_{mpi}").exists():
        pytest.skip(f"no {mpi}")
    script = "import hvrun, os\nprint(hvrun.run(os.getenv, ('HVRUN_BACKEND',), np=2, use_mpi=True))\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False,
                          env=torch_jobs.environment(tmp_path, HVRUN_MPI=mpi, HVRUN_LOG_LEVEL="info"))
    assert (done.returncode, done.stdout) == (0, "['mpi,nccl,native', 'mpi,nccl,native']\n"), done
    assert "collectives are carried on the host's memory mpi (" in done.stderr, done


def test_words_for_mpirun_are_refused_with_what_to_do(tmp_path):
    script = "import hvrun, os\nhvrun.run(os.getenv, ('HOME',), np=2, use_mpi=True, mpi_args='--mca btl ^openib')\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False,
                          env=torch_jobs.environment(tmp_path))
    assert done.returncode == 1 and "set Open MPI's parameters by env, as in env={'OMPI_MCA_btl': '^openib'}" in done.stderr, done
