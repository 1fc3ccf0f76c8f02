# SPDX-License-Identifier: Apache-2.0
"""Tensors of 8-bit floats: PyTorch computes little with them, so what is expected is computed in float32 and rounded."""

import pytest
import torch

import hvrun.torch as hvd
from hvrun.torch.tensors import TYPES

FLOAT8 = [getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)]


def of_rank(rank, rows=12):
    return ((torch.arange(rows * 3).reshape(rows, 3) + rank) % 5 - 2).float()


def all_of(rows=12):
    return torch.stack([of_rank(rank, rows) for rank in range(hvd.size())])


def assert_same(made, expected, dtype):
    assert made.dtype is dtype
    torch.testing.assert_close(made.float(), expected.to(dtype).float(), rtol=0, atol=0)


def test_they_travel():
    assert set(FLOAT8) <= set(TYPES)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_reductions_are_those_of_float32_rounded(dtype):
    mine, everyone = of_rank(hvd.rank()).to(dtype), all_of()
    expected = {hvd.Sum: everyone.sum(0), hvd.Average: everyone.mean(0), hvd.Min: everyone.amin(0), hvd.Max: everyone.amax(0),
                hvd.Product: everyone.prod(0)}
    for op, values in expected.items():
        assert_same(hvd.allreduce(mine, op=op), values, dtype)
        assert_same(hvd.allreduce(mine.t(), op=op), values.t(), dtype)
    assert_same(hvd.allreduce(mine, op=hvd.Sum, prescale_factor=0.5, postscale_factor=2.0), everyone.sum(0), dtype)
    assert_same(hvd.reducescatter(mine, op=hvd.Sum), everyone.sum(0).tensor_split(hvd.size())[hvd.rank()], dtype)
    for made in hvd.grouped_allreduce([mine, mine], op=hvd.Sum):
        assert_same(made, everyone.sum(0), dtype)
    hvd.allreduce_(mine, op=hvd.Max)
    assert_same(mine, everyone.amax(0), dtype)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_they_are_moved_as_they_are(dtype):
    """All 256 of them, of which some are NaNs."""
    bits = torch.arange(256, dtype=torch.uint8)
    mine = (bits + hvd.rank()).view(dtype)

    def bits_of(tensor):
        assert tensor.dtype is dtype
        return tensor.view(torch.uint8)

    everyone = [bits + rank for rank in range(hvd.size())]
    assert torch.equal(bits_of(hvd.allgather(mine)), torch.cat(everyone))
    assert torch.equal(bits_of(hvd.broadcast(mine, 0)), bits)
    splits = [rank + 1 for rank in range(hvd.size())]
    received, counts = hvd.alltoall(mine, splits)
    begin = sum(splits[:hvd.rank()])
    assert torch.equal(bits_of(received), torch.cat([one[begin:begin + splits[hvd.rank()]] for one in everyone]))
    assert counts.tolist() == [splits[hvd.rank()]] * hvd.size()


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_compression_leaves_them_as_they_are(dtype):
    mine, everyone = of_rank(hvd.rank()).to(dtype), all_of()
    for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
        assert compression.compress(mine) == (mine, None)
        assert_same(hvd.allreduce(mine, op=hvd.Sum, compression=compression), everyone.sum(0), dtype)
