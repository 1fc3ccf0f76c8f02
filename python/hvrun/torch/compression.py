# SPDX-License-Identifier: Apache-2.0
"""What gradients are made of on their way between ranks.

Compression.none, .fp16 and .bf16 are hvrun's own: float32 and float64 tensors are rounded inside the runtime, and summed in
float32. Any class with compress(tensor) -> (tensor, context) and decompress(tensor, context) may be used beside them, also one
that is derived from theirs.
"""

import torch

from hvrun import _abi
from hvrun.torch.tensors import require_tensor


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
        """Floating tensors are rounded, but those of 8 bits, which would become larger; the context is their own dtype."""
        is_rounded = tensor.dtype.is_floating_point and tensor.dtype.itemsize > 1
        return (tensor.to(cls.dtype), tensor.dtype) if is_rounded else (tensor, None)

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


_OWN = (NoneCompressor, FP16Compressor, BF16Compressor)


def require_compressor(compression):
    """ValueError for what has no compress and no decompress, with what to give instead."""
    if not all(callable(getattr(compression, name, None)) for name in ("compress", "decompress")):
        name = "none" if compression is None else compression
        is_known = isinstance(name, str) and hasattr(Compression, name)
        advice = f"hvd.Compression.{name}" if is_known else ("hvd.Compression.none, .fp16 or .bf16, or a class with compress and "
                                                             "decompress")
        raise ValueError(f"compression={compression!r} is no compressor; give {advice}")


def compressed(tensor, compression):
    """What travels, and what decompress() needs to know. Raises ValueError and TypeError in the caller's words."""
    require_compressor(compression)
    require_tensor(tensor)
    return compression.compress(tensor)


def wire_of(compressor):
    """What the runtime is told, so that it does itself what one of these does. None: it is a user's, perhaps made of one of
    these, whose compress() and decompress() are to be called."""
    own = compressor if isinstance(compressor, type) else type(compressor)
    return own.wire if own in _OWN else None
