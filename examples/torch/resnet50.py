"""ResNet-50 as for ImageNet, on a folder of images (one folder for each class) or on noise.

SPDX-License-Identifier: Apache-2.0

    pip install torch pillow
    hvrun -np 8 -H node1:4,node2:4 python resnet50.py --folder /data/imagenet/train --epochs 90 --checkpoint resnet50.pt
    hvrun -np 2 python resnet50.py --synthetic --steps 20

--synthetic gives the ceiling: what the ranks could do if no image had to be read. The network: He et al., 2015; the learning
rate that grows with the number of ranks and is warmed up: Goyal et al., 2017.
"""

import argparse
import os
import pathlib
import time

import torch

import hvrun.torch as hvd
from hvrun.data import DistributedSampler


class Bottleneck(torch.nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        outside = 4 * width
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(inside, width, 1, bias=False), torch.nn.BatchNorm2d(width), torch.nn.ReLU(inplace=True),
            torch.nn.Conv2d(width, width, 3, stride, 1, bias=False), torch.nn.BatchNorm2d(width), torch.nn.ReLU(inplace=True),
            torch.nn.Conv2d(width, outside, 1, bias=False), torch.nn.BatchNorm2d(outside))
        self.side = torch.nn.Identity() if stride == 1 and inside == outside else torch.nn.Sequential(
            torch.nn.Conv2d(inside, outside, 1, stride, bias=False), torch.nn.BatchNorm2d(outside))

    def forward(self, x):
        return torch.relu(self.body(x) + self.side(x))


def resnet(blocks=(3, 4, 6, 3), width=64, classes=1000):
    layers = [torch.nn.Conv2d(3, width, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(width), torch.nn.ReLU(inplace=True),
              torch.nn.MaxPool2d(3, 2, 1)]
    inside = width
    for stage, count in enumerate(blocks):
        for number in range(count):
            layers.append(Bottleneck(inside, width << stage, 2 if number == 0 and stage > 0 else 1))
            inside = 4 * (width << stage)
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(inside, classes))


class Folder(torch.utils.data.Dataset):
    """Images of a folder that has a folder for each class."""

    def __init__(self, path, size):
        self.size = size
        self.classes = sorted(one.name for one in pathlib.Path(path).iterdir() if one.is_dir())
        self.images = [(file, number) for number, name in enumerate(self.classes)
                       for file in sorted(pathlib.Path(path, name).iterdir())]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        from PIL import Image

        file, label = self.images[index]
        with Image.open(file) as image:
            image = image.convert("RGB").resize((self.size, self.size))
        pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(self.size, self.size, 3)
        return pixels.permute(2, 0, 1).float().div(255).sub(0.45).div(0.225), label


class Noise(torch.utils.data.Dataset):
    """One image, as often as is wanted."""

    def __init__(self, count, size):
        self.count, self.image = count, torch.rand(3, size, size)
        self.classes = range(1000)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.image, index % 1000


def arguments_of():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", help="a folder for each class, with images")
    parser.add_argument("--synthetic", action="store_true", help="noise instead of images")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--steps", type=int, default=0, help="end after so many")
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--workers", type=int, default=4, help="processes of each rank that read")
    parser.add_argument("--width", type=int, default=64, help="of the first layer; the paper's is 64")
    parser.add_argument("--checkpoint", default="", help="file to go on from, and to write")
    arguments = parser.parse_args()
    if not arguments.synthetic and not arguments.folder:
        parser.error("name a folder of images by --folder, or say --synthetic")
    return arguments


def main():
    arguments = arguments_of()
    hvd.init()
    torch.manual_seed(1)
    if torch.cuda.is_available():
        torch.cuda.set_device(hvd.local_rank())
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    size = arguments.image_size
    data = Noise(100000, size) if arguments.synthetic else Folder(arguments.folder, size)
    sampler = DistributedSampler(data, drop_last=True)
    loader = torch.utils.data.DataLoader(data, arguments.batch_size, sampler=sampler, drop_last=True,
                                         num_workers=0 if arguments.synthetic else arguments.workers)
    model = resnet(width=arguments.width, classes=len(data.classes)).to(device)
    rate = 0.1 * arguments.batch_size * hvd.size() / 256
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-5)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    warm_up = 5 * max(len(loader), 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / warm_up) * 0.1 ** (step // (30 * max(len(loader), 1))))
    state = {"epoch": 0, "sampler": sampler.state_dict()}
    if arguments.checkpoint and hvd.rank() == 0 and os.path.exists(arguments.checkpoint):
        state = torch.load(arguments.checkpoint, weights_only=True)
        model.load_state_dict(state.pop("model"))
        optimizer.load_state_dict(state.pop("optimizer"))
        schedule.load_state_dict(state["schedule"])
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    state = hvd.broadcast_object(state)
    sampler.load_state_dict(state["sampler"])
    if "schedule" in state:
        schedule.load_state_dict(state["schedule"])

    if state["epoch"] >= arguments.epochs and hvd.rank() == 0:
        print(f"nothing left to train: {arguments.checkpoint} has {state['epoch']} epochs")

    steps, begun, is_over = 0, time.perf_counter(), False
    for epoch in range(state["epoch"], arguments.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            schedule.step()
            sampler.advance(len(labels))
            steps += 1
            is_over = steps == arguments.steps
            if is_over:
                break
        if hvd.rank() == 0:
            speed = steps * arguments.batch_size * hvd.size() / (time.perf_counter() - begun)
            print(f"epoch {epoch}: loss {loss.item():.3f}, {speed:.1f} images/s")
            if arguments.checkpoint:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + (not is_over),
                            "sampler": sampler.state_dict(), "schedule": schedule.state_dict()}, arguments.checkpoint + ".new")
                os.replace(arguments.checkpoint + ".new", arguments.checkpoint)
        if is_over:
            break


if __name__ == "__main__":
    main()
