# SPDX-License-Identifier: Apache-2.0
"""Entries of a state dict: the dense tensors that one consists of, and why one cannot travel."""

import typing

import torch

from hvrun.torch.moved import FORMS, quantized, quantizer_of
from hvrun.torch.tensors import TYPES

_INDICES = {  # of compressed sparse layouts: what gives their indices
    torch.sparse_csr: ("crow_indices", "col_indices"), torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"), torch.sparse_bsc: ("ccol_indices", "row_indices"),
}
_SPARSE = {torch.sparse_coo, *_INDICES}


def is_sparse(one):
    return isinstance(one, torch.Tensor) and one.layout in _SPARSE


def refusal_of(one):
    """Why it cannot travel, and what to try; None where it can."""
    if one is None:
        return ("is None, as a gradient is before the first backward pass that reaches its parameter; try torch.zeros_like(parameter) "
                "in its place")
    if not isinstance(one, torch.Tensor):
        return f"is no tensor, but of type {type(one).__name__}; leave it out, and give it to hvd.broadcast_object"
    if isinstance(one, (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)):
        return "has no shape yet; call the model once before"
    if type(one).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return f"is of {type(one).__name__}, a subclass of torch.Tensor with memory of its own kind; leave it out"
    if one.is_nested or not (one.layout is torch.strided or one.layout in _SPARSE):
        return f"has the layout {'nested' if one.is_nested else one.layout}; leave it out"
    if one.device.type == "meta":
        return "lies on the meta device, where tensors have no values; try model.to_empty(device='cpu') before"
    if one.dtype not in TYPES and one.dtype not in FORMS:
        return f"has elements of {one.dtype}, smaller than a byte; try tensor.dequantize()"
    return None


class Composite(typing.NamedTuple):
    """What a rank says of a sparse or quantized entry."""

    form: str  # the same on all ranks
    sent: list  # of what it travels as: shapes and types, or what quantized values mean
    own: list  # the same of what it has. It differs from the root's `sent` where more than values must change


def describe(one):
    """None of a tensor that is neither sparse nor quantized."""
    if one.is_quantized:
        quantizer = quantizer_of(one).tolist()
        return Composite(f"{one.dtype} {list(one.shape)} by {one.qscheme()}", quantizer, quantizer)
    if not is_sparse(one):
        return None
    parts = take_apart(one)[1]
    form = f"{one.layout} of {one.dtype} {list(one.shape)} with indices of {parts[0].dtype} and values of {list(parts[-1].shape[1:])}"
    return Composite(form, [shape_and_type(part) for part in parts], [shape_and_type(part) for part in own_parts(one)])


def shape_and_type(tensor):
    return tuple(tensor.shape), tensor.dtype


def take_apart(one):
    """(a recipe, dense tensors), of which put_together() makes an equal tensor. A recipe can be pickled."""
    one = one.detach()
    if one.is_quantized:
        return ("quantized",), [one.int_repr(), quantizer_of(one)]
    if one.layout is torch.strided:
        return None, [one]
    if one.layout is torch.sparse_coo:
        one = one.coalesce()
        return ("sparse", one.layout, tuple(one.shape)), [one.indices(), one.values()]
    return ("sparse", one.layout, tuple(one.shape)), [getattr(one, name)() for name in _INDICES[one.layout]] + [one.values()]


def put_together(recipe, parts):
    if recipe is None:
        return parts[0]
    if recipe[0] == "quantized":
        return quantized(*parts)
    layout, shape = recipe[1:]
    if layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(*parts, shape, check_invariants=False)._coalesced_(True)
    return torch.sparse_compressed_tensor(*parts, size=shape, layout=layout, check_invariants=False)


def own_parts(one):
    """The memory that a sparse tensor lies in. A COO tensor that is not coalesced sends other parts."""
    return [one._indices(), one._values()] if one.layout is torch.sparse_coo else take_apart(one)[1]


def fill_sparse(target, recipe, parts):
    """Gives a sparse tensor these parts. Where it has as many elements, also every tensor that shares its memory, such as the
    buffer that an entry of a state_dict() stands for."""
    with torch.no_grad():
        own = own_parts(target)
        if [one.shape for one in own] == [one.shape for one in parts]:
            for one, part in zip(own, parts):
                one.copy_(part)
            return
        made = put_together(recipe, parts)
        if target.layout is not torch.sparse_coo:
            target.resize_as_sparse_(made)
        target.copy_(made)
