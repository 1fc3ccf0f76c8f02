# SPDX-License-Identifier: Apache-2.0
"""Trains for 20 steps on all ranks' samples, and beside that in each process on all of them; says what the weights are."""

import hashlib

import torch

import hvrun.torch as hvd

SAMPLES, STEPS = 96, 20


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))


def samples():
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(SAMPLES, 8, generator=generator)
    return inputs, inputs.sum(1, keepdim=True).sin()


def train(model, optimizer, inputs, targets):
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def main():
    torch.set_num_threads(1)
    hvd.init()
    inputs, targets = samples()
    model, alone = network(), network()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), model.named_parameters())
    train(model, optimizer, inputs[hvd.rank()::hvd.size()], targets[hvd.rank()::hvd.size()])
    train(alone, torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9), inputs, targets)
    for ours, theirs in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    bits = b"".join(bytes(one.detach().view(torch.uint8).flatten().tolist()) for one in model.parameters())
    print(f"rank {hvd.rank()} of {hvd.size()}: as one process alone, weights {hashlib.sha256(bits).hexdigest()[:16]}")


main()
