# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer(op=hvd.Adasum): what it has beside its steps, which test_optimizer.py looks at."""

import pytest
import torch

import hvrun.torch as hvd

pytestmark = pytest.mark.ranks(2)


def wrapped(**options):
    parameter = torch.nn.Parameter(torch.zeros(3))
    return hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), op=hvd.Adasum, **options)


def test_backward_passes_per_step_can_be_assigned():
    optimizer = wrapped(backward_passes_per_step=3)
    assert optimizer.backward_passes_per_step == 3
    optimizer.backward_passes_per_step = 2
    assert optimizer.backward_passes_per_step == 2
