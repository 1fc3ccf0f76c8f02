# SPDX-License-Identifier: Apache-2.0
"""Trains with a loader or a model that is slow on purpose, and knows nothing of being measured. See --help."""

import argparse
import os
import time

import torch

import hvrun.torch as hvd


def parsed():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--data-ms", type=float, default=0, help="that reading a batch takes more")
    parser.add_argument("--compute-ms", type=float, default=0, help="that a forward pass takes more")
    parser.add_argument("--only-rank", type=int, help="the others are not slow")
    parser.add_argument("--parameters", type=int, default=1000)
    parser.add_argument("--fail-after", type=int, help="steps, on rank 0")
    parser.add_argument("--meet-again-after", type=int, help="steps, after which all ranks leave the job and join it anew")
    parser.add_argument("--adasum", action="store_true")
    parser.add_argument("--own-loop", action="store_true", help="batches come from a generator instead of a DataLoader")
    parser.add_argument("--train-on", type=int, help="so many ranks from 0 on, in a process set; the others wait for their end")
    parser.add_argument("--join-after", type=int, help="steps, on all ranks but rank 0")
    parser.add_argument("--infinite-every", type=int, help="steps, of which a GradScaler skips the last")
    return parser.parse_args()


def pause(milliseconds):
    if milliseconds:
        time.sleep(milliseconds / 1000)  # sleep-ok: what a test calls slow


class Samples(torch.utils.data.Dataset):
    """A batch is a sample."""

    def __init__(self, count, milliseconds):
        self.count, self.milliseconds = count, milliseconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        pause(self.milliseconds)
        return torch.full((1,), float(index))


class Model(torch.nn.Module):
    def __init__(self, parameters, milliseconds):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.zeros(parameters))
        self.milliseconds = milliseconds

    def forward(self, batch):
        pause(self.milliseconds)
        return (self.weights * batch.sum()).mean()


def train(arguments, members):
    is_slow = arguments.only_rank in (None, hvd.rank())
    model = Model(arguments.parameters, arguments.compute_ms * is_slow)
    op = hvd.Adasum if arguments.adasum else hvd.Average
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1e-9), model.named_parameters(), op=op,
                                         process_set=members)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0) if arguments.infinite_every else None
    samples = Samples(arguments.steps, arguments.data_ms * is_slow)
    batches = (samples[i] for i in range(arguments.steps)) if arguments.own_loop else torch.utils.data.DataLoader(samples)
    for number, batch in enumerate(batches):
        if number == arguments.fail_after and hvd.rank() == 0:
            raise RuntimeError("something is wrong with this batch")
        if number == arguments.meet_again_after:
            hvd.shutdown()
            hvd.init()
        if number == arguments.join_after and hvd.rank() != 0:
            break
        optimizer.zero_grad()
        if scaler is None:
            model(batch).backward()
            optimizer.step()
        else:
            is_infinite = number % arguments.infinite_every == arguments.infinite_every - 1
            scaler.scale(model(batch) * (float("inf") if is_infinite else 1.0)).backward()
            scaler.step(optimizer)
            scaler.update()
    if arguments.join_after:
        hvd.join()


def main():
    arguments = parsed()
    torch.set_num_threads(1)
    hvd.init()
    members = hvd.add_process_set(range(arguments.train_on)) if arguments.train_on else hvd.global_process_set
    if members.included():
        train(arguments, members)
    if arguments.train_on:
        hvd.barrier()  # a rank that leaves ends the others' operations
    print(f"rank {hvd.rank()} of {hvd.size()} is through, pid {os.getpid()}", flush=True)


main()
