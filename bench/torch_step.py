"""One rank of a training step with hvrun.torch, with DistributedDataParallel over Gloo, and alone: torch_step.py MODEL --rounds N.

SPDX-License-Identifier: Apache-2.0

All three train in the same processes, in turn, so that what a round compares has met the same machine. MODEL is a file of
bench/gradients, whose parameters get gradients in backward order at little cost, or 'mlp', a real network of ten million
parameters. Every rank must be started by hvrun. Rank 0 prints a line of JSON: seconds of a step, by round and side, the
slowest rank's.
"""

import argparse
import copy
import json
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hvrun.torch as hvd

WARM_UP = 4


class Listed(torch.nn.Module):
    """Parameters of a list; in the backward pass the last one's gradient comes first. No result on the way is large: what the
    C library's heap makes of those would outweigh what is compared."""

    def __init__(self, path):
        super().__init__()
        with open(path, encoding="utf-8") as lines:
            shapes = [[int(one) for one in line.split()[1:]] for line in lines if line.strip() and line[0] != "#"]
        self.listed = torch.nn.ParameterList(torch.nn.Parameter(torch.full(shape, 0.01)) for shape in shapes)

    def forward(self, x):
        for one in self.listed:
            x = x * 1.0 + one.sum() * x
        return x


def mlp():
    width = 1280
    layers = [torch.nn.Linear(width, width) for _ in range(6)]
    return torch.nn.Sequential(*[one for layer in layers for one in (layer, torch.nn.ReLU())])


class Side:
    """A model, its optimizer, and what comes in."""

    def __init__(self, model, input, wrap):
        self.model, self.optimizer = wrap(copy.deepcopy(model))
        self.input = input

    def step(self):
        self.optimizer.zero_grad()
        self.model(self.input).sum().backward()
        self.optimizer.step()

    def seconds(self, steps):
        dist.barrier()
        begun = time.perf_counter()
        for _ in range(steps):
            self.step()
        slowest = torch.tensor([(time.perf_counter() - begun) / steps], dtype=torch.float64)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        return float(slowest)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=1e-12)


SIDES = {
    "alone": lambda model: (model, sgd(model)),
    "ddp": lambda model: (DistributedDataParallel(model), sgd(model)),
    "ddp_views": lambda model: (DistributedDataParallel(model, gradient_as_bucket_view=True), sgd(model)),
    "hvrun": lambda model: (model, hvd.DistributedOptimizer(sgd(model), model.named_parameters())),
}


def pss_mib():
    """Of all ranks together: what is shared counts in parts."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as lines:
        mine = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))
    together = torch.tensor([mine], dtype=torch.float64)
    dist.all_reduce(together)
    return float(together)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--batch", type=int, default=32)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    dist.init_process_group("gloo", rank=hvd.rank(), world_size=hvd.size())
    torch.manual_seed(0)
    model = mlp() if arguments.model == "mlp" else Listed(arguments.model)
    input = torch.randn(arguments.batch, 1280) if arguments.model == "mlp" else torch.tensor(0.5)
    names = arguments.sides.split(",")
    sides = {name: Side(model, input, SIDES[name]) for name in names}
    for side in sides.values():
        side.seconds(WARM_UP)
    rounds = []
    for number in range(arguments.rounds):
        order = names[number % len(names):] + names[:number % len(names)]
        taken = {name: sides[name].seconds(arguments.steps) for name in order}
        rounds.append({name: taken[name] for name in names})
    memory = pss_mib()
    if hvd.rank() == 0:
        print(json.dumps({"model": os.path.basename(arguments.model), "ranks": hvd.size(), "rounds": rounds, "pss_mib": memory}),
              flush=True)
    dist.destroy_process_group()


main()
