# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own data-parallel training over Gloo, as its tutorial has it: nothing of hvrun in it."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

SAMPLES, STEPS = 96, 20


def samples():
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(SAMPLES, 8, generator=generator)
    return inputs, inputs @ torch.arange(8.0).reshape(8, 1)


def train(model, inputs, targets):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # DDP itself gives all of them rank 0's parameters
    inputs, targets = samples()
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    train(model, inputs[rank::size], targets[rank::size])
    # One process with all of the samples comes to the same.
    torch.manual_seed(0)
    alone = torch.nn.Linear(8, 1)
    loss = train(alone, inputs, targets)
    for ours, theirs in zip(model.module.parameters(), alone.parameters()):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    print(f"rank {rank} of {size}: as one process alone, loss {loss:.3f}")
    dist.destroy_process_group()


main()
