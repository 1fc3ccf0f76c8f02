# SPDX-License-Identifier: Apache-2.0
"""The same training as DistributedDataParallel over Gloo, in the same processes."""

import copy

import pytest
import torch
import torch.distributed as dist

import hvrun.torch as hvd


@pytest.fixture(scope="module")
def gloo(job):
    dist.init_process_group("gloo", rank=hvd.rank(), world_size=hvd.size())
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=0.01)],
                         ids=["sgd", "adamw"])
def test_weights_after_20_steps(gloo, make):
    torch.manual_seed(12)
    model = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.Tanh(), torch.nn.Linear(50, 50), torch.nn.Tanh(), torch.nn.Linear(50, 3))
    peer = torch.nn.parallel.DistributedDataParallel(copy.deepcopy(model))
    optimizer = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters())
    other = make(peer.parameters())
    draw = torch.Generator().manual_seed(100 + hvd.rank())
    for _ in range(20):
        inputs, targets = torch.randn(8, 20, generator=draw), torch.randn(8, 3, generator=draw)
        for one, stepper in ((model, optimizer), (peer, other)):
            stepper.zero_grad()
            torch.nn.functional.mse_loss(one(inputs), targets).backward()
            stepper.step()
    for one, two in zip(model.parameters(), peer.parameters()):
        assert torch.allclose(one, two, rtol=1e-4, atol=1e-6)
        assert torch.equal(one, hvd.broadcast(one.detach().clone(), 0))
