# SPDX-License-Identifier: Apache-2.0
"""The same training as DistributedDataParallel over Gloo, in the same processes; and the same bits on all ranks."""

import draws
import needs
import pytest
import torch
import torch.distributed as dist

import hvrun.torch as hvd

STEPS = 20
# How far from DDP's weights, which has sent float32, those are, at least and at most: a share of the way from the beginning
COMPRESSIONS = {"none": (0, 1e-5), "fp16": (1e-4, 0.01), "bf16": (1e-3, 0.03)}


@pytest.fixture(scope="module")
def gloo(job):
    dist.init_process_group("gloo", rank=hvd.rank(), world_size=hvd.size())
    yield
    dist.destroy_process_group()


def network():
    torch.manual_seed(12)
    sizes = [20, 50, 50, 3]
    layers = [part for pair in zip(sizes, sizes[1:]) for part in (torch.nn.Linear(*pair), torch.nn.Tanh())]
    return torch.nn.Sequential(*layers[:-1])


def batches():
    draw = draws.generator(100 + hvd.rank())
    return [(torch.randn(8, 20, generator=draw), torch.randn(8, 3, generator=draw)) for _ in range(STEPS)]


def train(model, optimizer):
    for inputs, targets in batches():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def weights(model):
    return torch.cat([one.detach().flatten() for one in model.parameters()])


SGD, ADAMW = {"lr": 0.1, "momentum": 0.9}, {"lr": 0.01}
OPTIMIZERS = {
    "sgd": (torch.optim.SGD, SGD, ()),
    "sgd foreach": (torch.optim.SGD, {**SGD, "foreach": True}, ()),
    "sgd fused": (torch.optim.SGD, {**SGD, "fused": True}, needs.fused_sgd),
    "adam": (torch.optim.Adam, {"lr": 0.01}, ()),
    "adamw": (torch.optim.AdamW, ADAMW, ()),
    "adamw foreach": (torch.optim.AdamW, {**ADAMW, "foreach": True}, ()),
    "adamw fused": (torch.optim.AdamW, {**ADAMW, "fused": True}, needs.fused_adam),
}


@pytest.mark.parametrize("kind, options", [pytest.param(kind, options, marks=marks, id=name)
                                           for name, (kind, options, marks) in OPTIMIZERS.items()])
def test_weights_after_20_steps(gloo, kind, options):
    start, peer = weights(network()), torch.nn.parallel.DistributedDataParallel(network())
    train(peer, kind(peer.parameters(), **options))
    for name, (least, most) in COMPRESSIONS.items():
        model = network()
        optimizer = hvd.DistributedOptimizer(kind(model.parameters(), **options), model.named_parameters(),
                                             getattr(hvd.Compression, name))
        train(model, optimizer)
        own = weights(model)
        assert torch.equal(own.view(torch.int32), hvd.broadcast(own, 0).view(torch.int32)), name
        distance = (own - weights(peer)).norm() / (own - start).norm()
        assert (least if hvd.size() > 1 else 0) <= distance < most, name
