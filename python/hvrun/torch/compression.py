# SPDX-License-Identifier: Apache-2.0
"""What gradients are made of on their way between ranks.

Compression.none, .fp16 and .bf16 are hvrun's own: float32 and float64 tensors are rounded inside the runtime, and summed in
float32. Any class with compress(tensor) -> (tensor, context) and decompress(tensor, context) may be used beside them.
"""

import torch

from hvrun import _abi


class Compressor:
    """What a compressor of one's own is like."""

    @staticmethod
    def compress(tensor):
        """What travels, and what decompress() needs to know."""
        raise TypeError("a compressor has a compress(tensor) that returns (tensor, context)")

    @staticmethod
    def decompress(tensor, ctx):
        """The tensor, as it was before, from what has travelled."""
        raise TypeError("a compressor has a decompress(tensor, context) that returns a tensor")


class NoneCompressor(Compressor):
    """Tensors travel as they are."""

    wire = _abi.COMPRESSION_NONE

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        del ctx
        return tensor


class _HalfCompressor(Compressor):
    @classmethod
    def compress(cls, tensor):
        """Floating tensors are rounded; the context is their own dtype."""
        return (tensor.to(cls.dtype), tensor.dtype) if tensor.dtype.is_floating_point else (tensor, None)

    @staticmethod
    def decompress(tensor, ctx):
        return tensor if ctx is None else tensor.to(ctx)


class FP16Compressor(_HalfCompressor):
    """Floating tensors travel as float16."""

    wire, dtype = _abi.COMPRESSION_FP16, torch.float16


class BF16Compressor(_HalfCompressor):
    """Floating tensors travel as bfloat16: the range of float32, and eight bits of precision."""

    wire, dtype = _abi.COMPRESSION_BF16, torch.bfloat16


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


def wire_of(compression, dtype):
    """What the runtime is told for a tensor of that type; None: it cannot do what that compressor does."""
    wire = getattr(compression, "wire", None)
    if wire and dtype not in (torch.float32, torch.float64):
        return _abi.COMPRESSION_NONE
    return wire
