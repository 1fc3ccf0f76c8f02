"""Batch normalisation over the batches of all ranks, where each rank's is too small for good statistics.

SPDX-License-Identifier: Apache-2.0

    hvrun -np 4 python sync_batch_norm.py

Each rank has two images of digits at a time. With torch's own BatchNorm2d (--local) the statistics are those of two.
"""

import argparse

import torch
from sklearn.datasets import load_digits

import hvrun.torch as hvd


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--local", action="store_true", help="every rank by itself")
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()

    hvd.init()
    torch.manual_seed(1)
    norm = torch.nn.BatchNorm2d if arguments.local else hvd.SyncBatchNorm
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1, bias=False), norm(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1, bias=False), norm(32), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(512, 10))
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9), model.named_parameters())
    digits = load_digits()
    images, labels = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(digits.target)
    draw = torch.Generator().manual_seed(10 + hvd.rank())
    for step in range(arguments.steps):
        chosen = torch.randint(1440, (2,), generator=draw)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(images[1440:]).argmax(1) == labels[1440:]).float().mean()
    if hvd.rank() == 0:
        print(f"test accuracy {accuracy:.3f} with statistics of {2 if arguments.local else 2 * hvd.size()} images")


if __name__ == "__main__":
    main()
