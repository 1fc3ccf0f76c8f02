"""Handwritten digits: a small network on all ranks, with a checkpoint that any number of ranks can go on from.

SPDX-License-Identifier: Apache-2.0

    pip install torch scikit-learn
    hvrun -np 2 python digits.py --checkpoint digits.pt

The data are scikit-learn's: 1,797 images of 8 x 8 (UCI). Rank 0 writes the checkpoint after each epoch; started again, the
job goes on from it.
"""

import argparse
import os

import torch
from sklearn.datasets import load_digits

import hvrun.torch as hvd


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(512, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))


def data():
    """(training, test), shuffled alike on all ranks."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, test = order[:1440], order[1440:]
    return torch.utils.data.TensorDataset(images[train], labels[train]), (images[test], labels[test])


def load(path, model, optimizer):
    """Rank 0's checkpoint, for all ranks; the epoch to go on with."""
    epoch = 0
    if path and hvd.rank() == 0 and os.path.exists(path):
        saved = torch.load(path, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        epoch = saved["epoch"]
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return hvd.broadcast_object(epoch, root_rank=0)


def save(path, model, optimizer, epoch):
    """Whole or not at all: a job may end at any time."""
    if path and hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path + ".new")
        os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=64, help="of all ranks together")
    parser.add_argument("--checkpoint", default="", help="file to go on from, and to write")
    parser.add_argument("--synthetic", action="store_true", help="one batch again and again: what the ranks could do without reading")
    arguments = parser.parse_args()

    hvd.init()
    torch.manual_seed(1)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    train, (images, labels) = data()
    sampler = torch.utils.data.DistributedSampler(train, num_replicas=hvd.size(), rank=hvd.rank())
    loader = torch.utils.data.DataLoader(train, arguments.batch_size // hvd.size(), sampler=sampler)
    if arguments.synthetic:
        loader = [next(iter(loader))] * len(loader)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    first = load(arguments.checkpoint, model, optimizer)
    if first and hvd.rank() == 0:
        print(f"going on with epoch {first}" if first < arguments.epochs else
              f"nothing left to train: {arguments.checkpoint} has {first} epochs")

    for epoch in range(first, arguments.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
        save(arguments.checkpoint, model, optimizer, epoch + 1)
        mean = hvd.allreduce(loss.detach(), name="loss")
        if hvd.rank() == 0:
            print(f"epoch {epoch}: loss {mean:.4f}")

    model.eval()
    mine = slice(hvd.rank(), None, hvd.size())
    with torch.no_grad():
        right = (model(images[mine]).argmax(1) == labels[mine]).sum()
    accuracy = hvd.allreduce(right, op=hvd.Sum, name="right").item() / len(labels)
    if hvd.rank() == 0:
        print(f"test accuracy {accuracy:.3f} with {hvd.size()} ranks")


if __name__ == "__main__":
    main()
