# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/ranks, and tests/python/ranks with all tensors on a GPU, in ranks that share the GPUs of this machine."""

import pathlib
import re
import subprocess

import pytest

from harness import torch_environment, torch_jobs

OWN = pathlib.Path(__file__).parent / "ranks"
OF_THE_HOST = pathlib.Path(__file__).parents[1] / "python" / "ranks"
SLOW = "test_memory.py"  # 2,000 steps, for which ranks that share a GPU take minutes
SHARES_FROM = 23000  # of NCCL


@pytest.fixture(scope="module", autouse=True)
def nccl(tmp_path_factory):
    """The version that PyTorch brings, on a machine with a GPU that PyTorch can use."""
    done = subprocess.run([str(torch_environment.interpreter()), "-c", "import torch, hvrun.torch as hvd; "
                           "print(torch.cuda.is_available(), hvd.nccl_built())"], capture_output=True, text=True, check=False,
                          env=torch_jobs.environment(tmp_path_factory.mktemp("asked")), timeout=120)
    assert done.returncode == 0, done.stderr
    has_gpu, version = done.stdout.split()
    if has_gpu != "True":
        pytest.skip("this PyTorch sees no GPU")
    return int(version)


@pytest.mark.parametrize("folder, variables", [(OWN, {}), (OWN, {"HVRUN_NCCL_WINDOWS": "1"}), (OF_THE_HOST, {"HVRUN_TEST_DEVICE": "cuda"})],
                         ids=["gpu", "gpu in windows", "python"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_in_every_rank(ranks, folder, variables, nccl, tmp_path):
    if ranks > 1 and nccl < SHARES_FROM:
        pytest.skip(f"ranks share a GPU from NCCL 2.30 on, and this is {nccl}")
    variables = {"HVRUN_SHARE_GPU": "1", "NCCL_MAX_CTAS": "2", **variables}
    words = ["-np", str(ranks), "--oversubscribe", *[word for name, value in variables.items() for word in ("-x", f"{name}={value}")]]
    left_out = ["--deselect", str(folder / SLOW)] if ranks > 1 else []
    done = torch_jobs.run(words, ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder), *left_out], tmp_path, timeout=900)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    assert len(re.findall(r"\d+ passed", done.stdout)) == ranks, done.stdout[-4000:]
