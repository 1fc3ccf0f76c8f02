# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors as the runtime knows them: a type, extents and an address; and back."""

import ctypes

import torch

from hvrun import _abi
from hvrun._called import called
from hvrun.torch import gpu
from hvrun.torch.moved import FORMS

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
TYPES |= {getattr(torch, name): number for name, number in (("float8_e4m3fn", _abi.FLOAT8_E4M3), ("float8_e5m2", _abi.FLOAT8_E5M2))
          if hasattr(torch, name)}
_DTYPES = {number: dtype for dtype, number in TYPES.items()}


def require_tensor(one):
    """TypeError, by the name of the function that the user has called, for what is none."""
    if not isinstance(one, torch.Tensor):
        raise TypeError(f"{called() or 'hvrun'} takes a torch.Tensor, not {type(one).__name__}; try torch.tensor(...)")


def type_of(tensor):
    """The number of a type of the runtime's; None of one that travels in a form of FORMS. ValueError for types that do not travel,
    and for sparse tensors; TypeError for what is no tensor."""
    try:
        number = TYPES.get(tensor.dtype)
    except AttributeError:
        number = None
    if number is None:
        require_tensor(tensor)
        if tensor.dtype not in FORMS:
            raise ValueError(f"hvrun moves no tensors of {tensor.dtype}, whose elements are smaller than a byte; try "
                             "tensor.dequantize(), or tensor.to(...) before")
    if tensor.layout is not torch.strided:
        raise ValueError("a sparse tensor is no single piece of memory; try hvd.sparse_allreduce_async, or tensor.to_dense()")
    return number


def is_readable(tensor):
    """Whether its values lie one after the other, where the runtime reads and writes."""
    return tensor.is_contiguous() and gpu.lies_directly(tensor) and not tensor.is_neg() and not gpu.lies_in_window(tensor)


def readable(tensor):
    """The same values where is_readable() holds: the very tensor, or a copy without the graph."""
    if is_readable(tensor):
        return tensor
    one = tensor.detach().resolve_neg()
    if gpu.lies_in_window(one):
        return one.clone(memory_format=torch.contiguous_format)
    return (one if gpu.lies_directly(one) else one.cpu()).contiguous()


def room_for(tensor):
    """A new tensor like it where is_readable() holds."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device if gpu.lies_directly(tensor) else None)


def over_memory(result, owner, device, marks=0):
    """A tensor over the runtime's own memory, without a copy; it keeps the memory alive. device: where the operation's input
    lay, which is where that memory does. marks: extents behind those of the tensor."""
    shape = [result.shape[i] for i in range(result.ndim - marks)]
    dtype = _DTYPES[result.type]
    if result.bytes == 0:
        return torch.empty(shape, dtype=dtype, device=device)
    return _tensor_at(result.data, result.bytes, dtype, owner, device).reshape(shape)


def indices_over_memory(result, count, owner, device):
    """The same for the indices of a sparse allreduce's result."""
    dtype = _DTYPES[result.index_type] if count else torch.int64
    if count == 0:
        return torch.empty([0], dtype=dtype, device=device)
    return _tensor_at(result.indices, count * dtype.itemsize, dtype, owner, device)


def _tensor_at(address, size, dtype, owner, device):
    owner.keep()
    if device.type != "cpu":
        return gpu.bytes_over(address, size, owner, device).view(dtype)
    memory = (ctypes.c_char * size).from_address(address)
    memory.owner = owner
    return torch.frombuffer(memory, dtype=dtype)
