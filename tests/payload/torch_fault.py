# SPDX-License-Identifier: Apache-2.0
"""Trains with four idle DataLoader workers until rank 1 meets its end: torch_fault.py WAY PLACE. Survivors say what they heard.

WAY: raise, sys.exit, exit, kill. PLACE: forward, backward, exchange, loader.
"""

import os
import signal
import sys
import time

import torch

import hvrun.torch as hvd

WAY, PLACE = sys.argv[1:]
FAULT_STEP = 3


def meet_end():
    print(f"gone at {time.time()}", flush=True)
    if WAY == "raise":
        raise RuntimeError("something is wrong with this batch")
    if WAY == "sys.exit":
        sys.exit(9)
    if WAY == "exit":
        os._exit(7)
    os.kill(os.getpid(), signal.SIGKILL)


class Trap(torch.autograd.Function):
    """Its backward pass is where a rank ends."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        meet_end()
        return gradient


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 10000

    def __getitem__(self, index):
        return torch.full((4,), float(index))


def main():
    torch.set_num_threads(1)
    hvd.init()
    model = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Linear(64, 1))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1e-9), model.named_parameters())
    loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=4, persistent_workers=True)
    try:
        for step, batch in enumerate(loader):
            is_now = step == FAULT_STEP and hvd.rank() == 1
            optimizer.zero_grad()
            if is_now and PLACE == "forward":
                meet_end()
            out = model(batch)
            (Trap.apply(out) if is_now and PLACE == "backward" else out).mean().backward()
            if is_now and PLACE == "exchange":
                meet_end()
            optimizer.step()
    except hvd.HorovodInternalError as error:
        print(f"heard at {time.time()}: {type(error).__name__}: {error}", flush=True)
        raise


main()
