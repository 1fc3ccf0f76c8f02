# SPDX-License-Identifier: Apache-2.0
"""As tests/python/ranks: every rank runs the same ones, in the same order. Ranks share GPUs where there are fewer."""

import os
import pathlib
import sys

import pytest
import torch

import hvrun.torch as hvd

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python" / "ranks"))
torch.cuda.set_device(int(os.environ.get("HVRUN_LOCAL_RANK", 0)) % torch.cuda.device_count())


@pytest.fixture(scope="session", autouse=True)
def job():
    hvd.init()
    yield
    hvd.shutdown()


@pytest.fixture(autouse=True)
def begin_together(job, request):
    torch.manual_seed(1234)
    hvd.allreduce(torch.zeros(1, device="cuda"), name=f"begin {request.node.name}")
