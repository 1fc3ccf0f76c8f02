# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors as the runtime knows them: a type, extents and an address; and back."""

import ctypes

import torch

from hvrun import _abi

TYPES = {
    torch.uint8: _abi.UINT8,
    torch.int8: _abi.INT8,
    torch.int16: _abi.INT16,
    torch.int32: _abi.INT32,
    torch.int64: _abi.INT64,
    torch.float16: _abi.FLOAT16,
    torch.bfloat16: _abi.BFLOAT16,
    torch.float32: _abi.FLOAT32,
    torch.float64: _abi.FLOAT64,
    torch.bool: _abi.BOOL,
}
_DTYPES = {number: dtype for dtype, number in TYPES.items()}


def type_of(tensor):
    """The type's number. ValueError names those that there are."""
    number = TYPES.get(tensor.dtype)
    if number is None:
        known = ", ".join(str(dtype) for dtype in TYPES)
        raise ValueError(f"hvrun moves no tensors of {tensor.dtype}; it moves {known}. Try tensor.to(...) before, "
                         "or torch.view_as_real(tensor) for complex numbers")
    return number


def require_strided(tensor, what):
    """Of a sparse one there is no single piece of memory."""
    if tensor.layout is not torch.strided:
        raise ValueError(f"{what} takes no sparse tensor; try hvd.sparse_allreduce_async, or tensor.to_dense() before")


def readable(tensor):
    """The same values where the runtime can read them: in the host's memory, one after the other. Not a copy where they are
    so already. Without the graph."""
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    return tensor.contiguous() if not tensor.is_contiguous() else tensor


def over_memory(result, owner):
    """A tensor over the runtime's own memory, without a copy; it keeps the memory alive."""
    shape = [result.shape[i] for i in range(result.ndim)]
    dtype = _DTYPES[result.type]
    if result.bytes == 0:
        return torch.empty(shape, dtype=dtype)
    return _tensor_at(result.data, result.bytes, dtype, owner).reshape(shape)


def indices_over_memory(result, count, owner):
    """The same for the indices of a sparse allreduce's result."""
    dtype = _DTYPES[result.index_type] if count else torch.int64
    if count == 0:
        return torch.empty([0], dtype=dtype)
    return _tensor_at(result.indices, count * dtype.itemsize, dtype, owner)


def _tensor_at(address, size, dtype, owner):
    owner.keep()
    memory = (ctypes.c_char * size).from_address(address)
    memory.owner = owner
    return torch.frombuffer(memory, dtype=dtype)
