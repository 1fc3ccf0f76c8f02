"""A small GPT that learns to write letter by letter, from a text that ships with Debian.

SPDX-License-Identifier: Apache-2.0

    apt-get install fortunes
    hvrun -np 2 python gpt.py --steps 300

With --autocast the layers compute in bfloat16. Gradients are clipped after optimizer.synchronize(), as those of all ranks.
"""

import argparse
import contextlib
import math
import pathlib

import torch

import hvrun.torch as hvd

TEXTS = "/usr/share/games/fortunes"


def read(path):
    """One text of all files in a folder, or of one file, as the bytes of its letters."""
    path = pathlib.Path(path)
    files = sorted(one for one in path.rglob("*") if one.is_file() and not one.suffix) if path.is_dir() else [path]
    text = b"\n".join(one.read_bytes() for one in files)
    if len(text) < 10000:
        raise SystemExit(f"{path} has {len(text)} bytes of text; a few hundred thousand are wanted: apt-get install fortunes")
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (one.view(batch, length, self.heads, -1).transpose(1, 2) for one in self.qkv(self.norm1(x)).chunk(3, -1))
        seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Gpt(torch.nn.Module):
    def __init__(self, width=128, heads=4, layers=4, length=64):
        super().__init__()
        self.letters, self.places = torch.nn.Embedding(256, width), torch.nn.Embedding(length, width)
        self.blocks = torch.nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, 256, bias=False)

    def forward(self, x):
        x = self.letters(x) + self.places(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", default=TEXTS, help="a file, or a folder of files")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=16, help="of each rank")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--autocast", action="store_true", help="compute in bfloat16")
    parser.add_argument("--synthetic", action="store_true", help="one batch again and again: what the ranks could do without reading")
    arguments = parser.parse_args()

    hvd.init()
    torch.manual_seed(1)
    text, length = read(arguments.text), 64
    model = Gpt(arguments.width, length=length)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.AdamW(model.parameters(), lr=1e-3), model.named_parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 20) * (0.1 + 0.9 * (1 + math.cos(math.pi * step / arguments.steps)) / 2))
    places = torch.Generator().manual_seed(100 + hvd.rank())  # every rank reads elsewhere
    precision = torch.autocast("cpu", torch.bfloat16) if arguments.autocast else contextlib.nullcontext()

    for step in range(arguments.steps):
        if step == 0 or not arguments.synthetic:
            begins = torch.randint(len(text) - length - 1, (arguments.batch_size,), generator=places)
            letters = torch.stack([text[begin:begin + length + 1] for begin in begins]).long()
        optimizer.zero_grad()
        with precision:
            guesses = model(letters[:, :-1])
            loss = torch.nn.functional.cross_entropy(guesses.flatten(0, 1), letters[:, 1:].flatten())
        loss.backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with optimizer.skip_synchronize():
            optimizer.step()
        schedule.step()
        if step % 20 == 0 or step == arguments.steps - 1:
            mean = hvd.allreduce(loss.detach().float(), name="loss")
            if hvd.rank() == 0:
                print(f"step {step}: loss {mean:.3f}")


if __name__ == "__main__":
    main()
