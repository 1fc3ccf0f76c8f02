"""Fashion-MNIST: 60,000 images of clothes, read ahead while the ranks compute.

SPDX-License-Identifier: Apache-2.0

    apt-get install dataset-fashion-mnist
    hvrun -np 2 python fashion_mnist.py --epochs 2
"""

import argparse
import gzip
import pathlib
import time

import torch

import hvrun.torch as hvd
from hvrun.data import DistributedSampler, Prefetcher

FOLDER = "/usr/share/datasets/fashion-mnist"  # of Debian's package


def read(path):
    """An array of the idx format: two zero bytes, type 8 (bytes), the number of extents, the extents, the elements."""
    content = gzip.decompress(path.read_bytes())
    if content[:3] != b"\0\0\x08":
        raise SystemExit(f"{path} is no file of bytes in the idx format")
    extents = [int.from_bytes(content[4 + 4 * i:8 + 4 * i], "big") for i in range(content[3])]
    return torch.frombuffer(bytearray(content[4 + 4 * len(extents):]), dtype=torch.uint8).reshape(extents)


def load(folder, part):
    (images,), (labels,) = [list(pathlib.Path(folder).rglob(f"{part}-{what}-idx*-ubyte.gz")) for what in ("images", "labels")]
    return read(images).unsqueeze(1).float() / 255, read(labels).long()


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 5, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 5, stride=2), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(512, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default=FOLDER)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=128, help="of each rank")
    parser.add_argument("--samples", type=int, default=60000, help="of the training set")
    parser.add_argument("--synthetic", action="store_true", help="noise instead of images: what the ranks could do without reading")
    arguments = parser.parse_args()

    hvd.init()
    torch.manual_seed(1)
    if arguments.synthetic:
        images, labels = torch.rand(arguments.samples, 1, 28, 28), torch.randint(10, (arguments.samples,))
        test_images, test_labels = images[:1000], labels[:1000]
    else:
        images, labels = load(arguments.folder, "train")
        test_images, test_labels = load(arguments.folder, "t10k")
    sampler = DistributedSampler(range(arguments.samples), drop_last=True)
    model = network()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    # As many times the samples in a step, so a larger learning rate (Goyal et al., 2017).
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02 * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), compression=hvd.Compression.bf16)

    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        chosen = torch.tensor(list(sampler)).split(arguments.batch_size)
        begun = time.perf_counter()
        for inputs, targets in Prefetcher((images[one], labels[one]) for one in chosen):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
        rate = len(sampler) * hvd.size() / (time.perf_counter() - begun)
        with torch.no_grad():
            share = slice(hvd.rank(), None, hvd.size())
            right = (model(test_images[share]).argmax(1) == test_labels[share]).sum()
        accuracy = hvd.allreduce(right, op=hvd.Sum).item() / len(test_labels)
        if hvd.rank() == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}, test accuracy {accuracy:.3f}, {rate:.0f} images/s")


if __name__ == "__main__":
    main()
