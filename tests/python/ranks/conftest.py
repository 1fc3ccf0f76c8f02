# SPDX-License-Identifier: Apache-2.0
"""These tests run in every rank of a job at once: hvrun -np N python -m pytest -x. All ranks run the same ones in the same
order; what fails on one ends that rank, and with it the job."""

import os

import pytest
import torch

import hvrun.torch as hvd
from sizes import job_size

torch.set_num_threads(1)
if "HVRUN_TEST_DEVICE" in os.environ:  # "cuda": tests/gpu
    torch.set_default_device(os.environ["HVRUN_TEST_DEVICE"])


@pytest.fixture(scope="session", autouse=True)
def job():
    hvd.init()
    yield
    hvd.shutdown()


@pytest.fixture(autouse=True)
def begin_together(job, request):
    """A rank that is behind is told where the others are. What a test draws at random is equal on all ranks."""
    torch.manual_seed(1234)
    hvd.allreduce(torch.zeros(1), name=f"begin {request.node.name}")


def pytest_collection_modifyitems(items):
    size = job_size()
    for item in items:
        needed = item.get_closest_marker("ranks")
        if needed is not None and size < needed.args[0]:
            item.add_marker(pytest.mark.skip(reason=f"needs {needed.args[0]} ranks"))


def pytest_configure(config):
    config.addinivalue_line("markers", "ranks(n): needs n ranks at least")
