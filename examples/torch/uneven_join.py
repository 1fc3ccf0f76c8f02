"""Ranks with different amounts of data: whoever is through joins, and the others go on.

SPDX-License-Identifier: Apache-2.0

    hvrun -np 3 python uneven_join.py

Rank r has 10 + 5 r batches. A rank that has joined takes part in the others' averages with zeros.
"""

import torch

import hvrun.torch as hvd


def main():
    hvd.init()
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05), model.named_parameters())
    truth = torch.arange(8.0).unsqueeze(1) / 8
    draw = torch.Generator().manual_seed(hvd.rank())
    batches = 10 + 5 * hvd.rank()
    for _ in range(batches):
        inputs = torch.randn(16, 8, generator=draw)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), inputs @ truth).backward()
        optimizer.step()
    last = hvd.join()
    print(f"rank {hvd.rank()} had {batches} batches; the last one to join was rank {last}", flush=True)
    # From here on all are there again. The last one's model has seen all steps.
    hvd.broadcast_parameters(model.state_dict(), root_rank=last)


if __name__ == "__main__":
    main()
