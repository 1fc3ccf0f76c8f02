# SPDX-License-Identifier: Apache-2.0
"""Marks for tests of what some PyTorch since 2.1 has not, each found out by trying it."""

import os

import pytest
import torch


def _works(attempt):
    try:
        attempt()
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    return True


def _lacking(what, attempt):
    return pytest.mark.skipif(not _works(attempt), reason=f"PyTorch {torch.__version__} has no {what}")


cpu_scaler = _lacking("GradScaler for CPUs", lambda: torch.amp.GradScaler("cpu"))
fused_adam = _lacking("fused Adam on CPUs", lambda: torch.optim.Adam([torch.nn.Parameter(torch.ones(1))], fused=True))
fused_sgd = _lacking("fused SGD on CPUs", lambda: torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0, fused=True))
half_matmul = _lacking("product of float16 matrices on CPUs", lambda: torch.ones(2, 2).half() @ torch.ones(2, 2).half())
on_host = pytest.mark.skipif("HVRUN_TEST_DEVICE" in os.environ, reason="PyTorch computes too little with these types on GPUs")
# CUDA does not survive a fork, and with every tensor there PyTorch's own workers need it.
no_gpu = pytest.mark.skipif("HVRUN_TEST_DEVICE" in os.environ, reason="forked processes have no CUDA")
