"""Word vectors with sparse gradients: only the rows of the words in a batch travel.

SPDX-License-Identifier: Apache-2.0

    hvrun -np 2 python embedding.py

Learns which words stand near each other (skip-gram with negative samples, Mikolov et al., 2013) in a text that is made up
here: words of one topic come together, so in the end they lie together.
"""

import argparse

import torch

import hvrun.torch as hvd

TOPICS, WORDS_EACH = 8, 50


class SkipGram(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.inner = torch.nn.Embedding(words, width, sparse=True)
        self.outer = torch.nn.Embedding(words, width, sparse=True)
        torch.nn.init.normal_(self.inner.weight, std=0.1)
        torch.nn.init.zeros_(self.outer.weight)

    def forward(self, words, near, others):
        inner = self.inner(words)
        alike = (inner * self.outer(near)).sum(-1)
        unlike = torch.einsum("bd,bnd->bn", inner, self.outer(others))
        return -(torch.nn.functional.logsigmoid(alike).mean() + torch.nn.functional.logsigmoid(-unlike).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=256, help="of each rank")
    arguments = parser.parse_args()

    hvd.init()
    torch.manual_seed(1)
    count = TOPICS * WORDS_EACH
    model = SkipGram(count, 16)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(list(model.parameters()), lr=0.02), model.named_parameters())
    draw = torch.Generator().manual_seed(50 + hvd.rank())

    for step in range(arguments.steps):
        topics = torch.randint(TOPICS, (arguments.batch_size,), generator=draw)
        words, near = (topics * WORDS_EACH + torch.randint(WORDS_EACH, topics.shape, generator=draw) for _ in range(2))
        others = torch.randint(count, (arguments.batch_size, 4), generator=draw)
        optimizer.zero_grad()
        loss = model(words, near, others)
        loss.backward()
        optimizer.step()
        if hvd.rank() == 0 and step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}")

    vectors = torch.nn.functional.normalize(model.inner.weight.detach(), dim=1)
    nearest = (vectors @ vectors.t()).fill_diagonal_(-1).argmax(1)
    share = (nearest // WORDS_EACH == torch.arange(count) // WORDS_EACH).float().mean()
    if hvd.rank() == 0:
        print(f"{share:.2f} of the words have one of their topic as the nearest")


if __name__ == "__main__":
    main()
