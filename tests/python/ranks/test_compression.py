# SPDX-License-Identifier: Apache-2.0
"""Compressors that users write: whatever they are derived from, their compress and decompress are called."""

import pytest
import torch

import hvrun.torch as hvd
from hvrun.torch import operations
from hvrun.torch.compression import BF16Compressor, Compressor, FP16Compressor, NoneCompressor

called = []


def compressor_from(base):
    """One that sends halves of what there is, and doubles what comes."""

    class Halving(base):
        @staticmethod
        def compress(tensor):
            called.append("compress")
            return tensor / 2, "context"

        @staticmethod
        def decompress(tensor, ctx):
            called.append("decompress")
            assert ctx == "context"
            return tensor * 2

    return Halving


@pytest.fixture(params=[object, Compressor, NoneCompressor, FP16Compressor, BF16Compressor])
def halving(request):
    called.clear()
    return compressor_from(request.param)


def test_allreduce_calls_them(halving):
    made = hvd.allreduce(torch.full((3,), hvd.rank() + 1.0), op=hvd.Sum, compression=halving)
    assert made.tolist() == [sum(range(1, hvd.size() + 1))] * 3
    assert called == ["compress", "decompress"]


@pytest.mark.parametrize("op", [hvd.Sum, hvd.Adasum])
@pytest.mark.parametrize("is_instance", [False, True])
def test_an_allreduce_in_place_calls_them(halving, op, is_instance):
    tensor = torch.ones(4)
    compressor = halving() if is_instance else halving
    operations.compressed_allreduce_async_(tensor, "own", op, compressor).wait()
    assert tensor.tolist() == [hvd.size() if op is hvd.Sum else 1.0] * 4
    assert called == ["compress", "decompress"]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_the_optimizer_calls_them(halving, op):
    parameter = torch.nn.Parameter(torch.zeros(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), compression=halving, op=op)
    for step in range(3):
        optimizer.zero_grad()
        parameter.sum().backward()
        optimizer.step()
    assert torch.allclose(parameter.detach(), torch.full((3,), -3.0))
    assert called == ["compress", "decompress"] * 3
