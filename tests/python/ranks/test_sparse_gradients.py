# SPDX-License-Identifier: Apache-2.0
"""Sparse gradients that come late, or on some ranks only."""

import pytest
import torch
from alike import assert_alike

import hvrun.torch as hvd


class Own(hvd.Compression.none):
    """A compressor of the user's: nothing lies in buckets."""

    @staticmethod
    def compress(tensor):
        return tensor.clone(), None

    @staticmethod
    def decompress(tensor, context):
        del context
        return tensor


class Late(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.last = torch.nn.Embedding(4, 2, sparse=True), torch.nn.Linear(2, 1)

    def forward(self, uses_words):
        return self.last(self.words(torch.tensor([1])) if uses_words else torch.ones(1, 2))


@pytest.mark.parametrize("unused", ["zeros", "keep_none"])
@pytest.mark.parametrize("dense", [False, True], ids=["sparse", "as dense"])
@pytest.mark.parametrize("how", ["buckets", "groups", "compressor"])
@pytest.mark.parametrize("everywhere", [True, False], ids=["all ranks", "one rank"])
def test_a_sparse_gradient_that_first_comes_in_a_later_step(unused, dense, how, everywhere):
    model = Late()
    more = {"buckets": {}, "groups": {"groups": [list(model.last.parameters())]}, "compressor": {"compression": Own}}[how]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), unused=unused,
                                         sparse_as_dense=dense, **more)
    for step in range(5):
        optimizer.zero_grad()
        uses_words = step >= 2 and (everywhere or hvd.rank() == 0)
        before = model.words.weight.detach().clone()
        model(uses_words).sum().backward()
        optimizer.step()
        assert_alike(model)
        assert torch.equal(before, model.words.weight) == (step < 2)
        if uses_words and hvd.size() > 1:
            assert model.words.weight.grad.is_sparse


def test_sparse_adam_of_what_is_used_later():
    first, later = torch.nn.Embedding(4, 2, sparse=True), torch.nn.Embedding(4, 2, sparse=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam([first.weight, later.weight]), unused="keep_none")
    for step in range(4):
        optimizer.zero_grad()
        loss = first(torch.tensor([hvd.rank() % 4])).sum()
        if step:
            loss = loss + later(torch.tensor([2])).sum()
        loss.backward()
        optimizer.step()
        assert_alike(first)
        assert_alike(later)


def test_a_gradient_that_is_sparse_on_some_ranks_and_dense_on_others():
    words = torch.nn.Embedding(4, 2, sparse=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(words.parameters(), lr=0.1), words.named_parameters())
    for _ in range(4):
        optimizer.zero_grad()
        loss = words(torch.tensor([1])).sum()
        if hvd.rank() == 0 and hvd.size() > 1:
            loss = loss + words.weight.sum()
        loss.backward()
        optimizer.step()
        assert_alike(words)
        expected = torch.full((4, 2), 1.0 / hvd.size() if hvd.size() > 1 else 0.0)
        expected[1] += 1.0
        assert torch.allclose(words.weight.grad.to_dense(), expected)


@pytest.mark.ranks(2)
def test_what_sparse_gradients_cannot_is_told_again_and_again():
    words, last = torch.nn.Embedding(4, 2, sparse=True), torch.nn.Linear(2, 1)
    parameters = [*words.parameters(), *last.parameters()]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=0.1), groups=[parameters])
    for _ in range(3):
        with pytest.raises(ValueError, match="has sparse gradients, which travel in no group"):
            optimizer.zero_grad()
            last(words(torch.tensor([1]))).sum().backward()
            optimizer.step()
