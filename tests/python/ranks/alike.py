# SPDX-License-Identifier: Apache-2.0
"""What every rank must have alike."""

import torch

import hvrun.torch as hvd


def assert_alike(model):
    """Its parameters, bit for bit, and none of them is infinite."""
    for name, one in model.named_parameters():
        assert torch.isfinite(one).all(), name
        assert torch.equal(one.detach(), hvd.broadcast(one.detach().clone(), 0)), name
