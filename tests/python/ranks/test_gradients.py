# SPDX-License-Identifier: Apache-2.0
"""Gradients through operations, with the scales that docs/pytorch.md tells: test_operation_table.py holds all of them."""

import pytest
import torch

import hvrun.torch as hvd


def weights(rank, count):
    return torch.arange(1.0, count + 1) * (rank + 1)


def ranks():
    return range(hvd.size())


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


def same(made, expected):
    assert torch.allclose(made, expected), f"{made} is not {expected}"


@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum], ids=["average", "sum"])
def test_allreduce(op):
    tensor = leaf(3)
    (hvd.allreduce(tensor, op=op, prescale_factor=2.0) * weights(hvd.rank(), 3)).sum().backward()
    expected = 2 * sum(weights(rank, 3) for rank in ranks()) / (hvd.size() if op == hvd.Average else 1)
    same(tensor.grad, expected)


def test_allreduce_of_a_group_and_compressed():
    tensors = [leaf(2), leaf(3)]
    made = hvd.grouped_allreduce(tensors, op=hvd.Sum)
    sum((one * (hvd.rank() + 1)).sum() for one in made).backward()
    for tensor in tensors:
        same(tensor.grad, torch.full_like(tensor, float(sum(rank + 1 for rank in ranks()))))
    tensor = leaf(3)
    hvd.allreduce(tensor, op=hvd.Sum, compression=hvd.Compression.fp16).sum().backward()
    same(tensor.grad, torch.full((3,), float(hvd.size())))


def test_a_smallest_value_has_no_gradient():
    tensor = leaf(3)
    made = hvd.allreduce(tensor, op=hvd.Min)
    with pytest.raises(ValueError, match="not defined"):
        made.sum().backward()


def test_allgather():
    tensor = leaf(hvd.rank() + 1, 2)
    made = hvd.allgather(tensor)
    (made * (hvd.rank() + 1)).sum().backward()
    same(tensor.grad, torch.full((hvd.rank() + 1, 2), sum(rank + 1 for rank in ranks()) / hvd.size()))
    pair = [leaf(2), leaf(1)]
    sum(one.sum() for one in hvd.grouped_allgather(pair)).backward()
    for one in pair:
        same(one.grad, torch.ones_like(one))


def test_broadcast():
    tensor = leaf(2)
    (hvd.broadcast(tensor, hvd.size() - 1) * (hvd.rank() + 1)).sum().backward()
    is_root = hvd.rank() == hvd.size() - 1
    same(tensor.grad, torch.full((2,), sum(rank + 1 for rank in ranks()) / hvd.size() if is_root else 0.0))


@pytest.mark.parametrize("has_splits", [False, True])
def test_alltoall(has_splits):
    tensor = leaf(2 * hvd.size())
    made = hvd.alltoall(tensor, [2] * hvd.size())[0] if has_splits else hvd.alltoall(tensor)
    (made * (hvd.rank() + 1)).sum().backward()
    same(tensor.grad, torch.tensor([float(rank + 1) for rank in ranks() for _ in range(2)]))


def test_alltoall_of_rows_that_are_sent_to_nobody():
    tensor = leaf(hvd.size() + 2, 2)
    made, _ = hvd.alltoall(tensor, [1] * hvd.size())
    (made * (hvd.rank() + 1)).sum().backward()
    same(tensor.grad, torch.tensor([[rank + 1.0] * 2 for rank in ranks()] + [[0.0] * 2] * 2))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("has_graph", [False, True], ids=["plain", "with gradients"])
def test_rows_that_cannot_be_shared_evenly_want_splits(has_graph):
    for tensor in (torch.ones(hvd.size() + 1, 2), torch.ones(())):
        with pytest.raises(ValueError, match="give splits"):
            hvd.alltoall(tensor.requires_grad_(has_graph))


@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum, 1], ids=["average", "sum", "sum's number"])
def test_reducescatter(op):
    expected = torch.tensor([float(rank + 1) for rank in ranks()]) * (hvd.size() if op == hvd.Sum else 1)
    tensor = leaf(hvd.size())
    (hvd.reducescatter(tensor, op=op) * (hvd.rank() + 1)).sum().backward()
    same(tensor.grad, expected)
    tensor = leaf(hvd.size())
    (hvd.grouped_reducescatter([tensor], op=op)[0] * (hvd.rank() + 1)).sum().backward()
    same(tensor.grad, expected)
