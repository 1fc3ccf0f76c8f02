"""One rank of the peer that is PyTorch's Gloo: times collectives as bench/ranks/timing.h does. SPDX-License-Identifier: Apache-2.0

Started by gloo.py, in the virtual environment that has PyTorch, once for many rounds: every line on standard input is
a request in JSON, the same for all ranks; rank 0 answers each with a line, {"figures": [...]} or {"error": "..."}. An
answer bears the request's "number".
"""

import argparse
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from buckets import buckets_of

MOST_REPETITIONS, LEAST_REPETITIONS, MOST_IN_BATCH, BATCH_SECONDS, SETTLE_SECONDS = 200, 3, 50, 500e-6, 0.5


def take_greatest(values):
    greatest = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(greatest, op=dist.ReduceOp.MAX)
    return greatest.tolist()


def repeat(repetitions, batch, call):
    seconds = []
    for number in range(repetitions):
        dist.barrier()
        begun = time.perf_counter()
        for k in range(batch):
            call(number * batch + k)
        seconds.append((time.perf_counter() - begun) / batch)
    return take_greatest(seconds)


def settle():
    """Calls until the system has spread the ranks over the cores."""
    spent = 0
    while spent < SETTLE_SECONDS:
        spent += sum(repeat(1, MOST_IN_BATCH, lambda number: dist.barrier())) * MOST_IN_BATCH


def median_us(budget, call):
    """Of repetitions that take about budget seconds, the slowest rank's median."""
    one = max(min(repeat(2, 1, call)), 1e-7)
    batch = min(max(int(BATCH_SECONDS / one), 1), MOST_IN_BATCH)
    repetitions = min(max(int(budget / (one * batch)), LEAST_REPETITIONS), MOST_REPETITIONS)
    some = max(repetitions // 8, LEAST_REPETITIONS)
    if one < budget:
        repeat(min(some, 20), batch, call)
    every = []
    while len(every) < repetitions and sum(every) * batch < 2 * budget:  # the same on all ranks
        every += repeat(some, batch, call)
    return sorted(every)[len(every) // 2] * 1e6


class Collective:
    """An operation on a tensor of about so many bytes, as bench/ranks/operation.h has it."""

    def __init__(self, name, size):
        self.name, self.rank, self.ranks = name, dist.get_rank(), dist.get_world_size()
        parts = 1 if name in ("allreduce", "broadcast") else self.ranks
        self.part = max(1, size // 4 // parts)
        whole = self.part * parts
        self.input = torch.full((self.part if name == "allgather" else whole,), float(self.rank + 1))
        self.output = torch.zeros(self.part if name == "reducescatter" else whole)

    def __call__(self, number):
        if self.name == "allreduce":
            dist.all_reduce(self.input)
        elif self.name == "broadcast":
            dist.broadcast(self.input, number % self.ranks)
        elif self.name == "allgather":
            dist.all_gather_into_tensor(self.output, self.input)
        elif self.name == "alltoall":
            dist.all_to_all_single(self.output, self.input)
        else:
            dist.reduce_scatter_tensor(self.output, self.input)

    def check(self):
        """One more call, of fresh numbers."""
        self.input.fill_(self.rank + 1)
        self(self.ranks - 1)
        total = self.ranks * (self.ranks + 1) / 2
        result = self.input if self.name in ("allreduce", "broadcast") else self.output
        if self.name in ("allgather", "alltoall"):
            right = torch.arange(1, self.ranks + 1, dtype=torch.float32).repeat_interleave(self.part)
        else:
            right = torch.full_like(result, self.ranks if self.name == "broadcast" else total)
        if not torch.equal(result, right):
            raise RuntimeError(f"{self.name}: a wrong result")


def time_collective(request):
    settle()
    figures = []
    for name in request["operations"]:
        for size in request["sizes"]:
            collective = Collective(name, size)
            figures.append({"op": name, "bytes": size, "median_us": median_us(request["budget"], collective)})
            collective.check()
    return figures


def read_gradients(path):
    with open(path) as lines:
        shapes = [line.split()[1:] for line in lines if line.strip() and not line.startswith("#")]
    return [torch.full([int(extent) for extent in shape], float(dist.get_rank() + 1)) for shape in shapes]


class Exchange:
    """What DistributedDataParallel does with a step's gradients once they are all there, without its hooks.

    form: 'copies', each bucket's gradients copied into a flat tensor and back, its default; 'views', the gradients lie
    in the buckets (gradient_as_bucket_view=True).
    """

    def __init__(self, gradients, form):
        self.form, self.ranks = form, dist.get_world_size()
        self.buckets = [[gradients[index] for index in bucket] for bucket in buckets_of([4 * one.numel() for one in gradients])]
        self.flats = [torch.cat([gradient.reshape(-1) for gradient in bucket]) for bucket in self.buckets]
        self.pieces = [flat.split([gradient.numel() for gradient in bucket]) for flat, bucket in zip(self.flats, self.buckets)]

    def __call__(self, _):
        works = []
        for flat, pieces, bucket in zip(self.flats, self.pieces, self.buckets):
            if self.form == "copies":
                for piece, gradient in zip(pieces, bucket):
                    piece.copy_(gradient.reshape(-1))
            flat.div_(self.ranks)
            works.append(dist.all_reduce(flat, async_op=True))
        for work, pieces, bucket in zip(works, self.pieces, self.buckets):
            work.wait()
            if self.form == "copies":
                for piece, gradient in zip(pieces, bucket):
                    gradient.reshape(-1).copy_(piece)

    def check(self):
        mean = (self.ranks + 1) / 2
        if any(not torch.all(flat == mean) for flat in self.flats):
            raise RuntimeError("a wrong mean of gradients")


def time_gradients(request):
    exchange = Exchange(read_gradients(request["gradients"]), request["form"])
    figure = median_us(request["budget"], exchange)
    exchange.check()
    return [{"op": "gradients", "bytes": sum(4 * flat.numel() for flat in exchange.flats), "median_us": figure}]


def answer(request):
    return time_gradients(request) if "gradients" in request else time_collective(request)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--meet", required=True, help="file that all ranks see and none has made")
    parser.add_argument("--pin", type=int, help="core of this rank, of those that it may use")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.pin is not None:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[arguments.pin % len(cores)]})
    torch.set_num_threads(arguments.threads)
    dist.init_process_group("gloo", init_method=f"file://{arguments.meet}", rank=arguments.rank, world_size=arguments.ranks)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"figures": answer(request)}
        except Exception as error:  # told to whoever asked
            reply = {"error": f"{type(error).__name__}: {error}"}
        if arguments.rank == 0 or "error" in reply:
            print(json.dumps({"number": request["number"], **reply}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
