# SPDX-License-Identifier: Apache-2.0
"""Tensors of types that the runtime does not know (hvrun.moved_types): their memory as tensors of a type that it knows, and back.

Complex numbers are summed as pairs, unsigned whole numbers as signed ones of the same width, whose sums and products have the
same bits. What such an arithmetic would make wrong is refused.
"""

import typing

import torch

from hvrun import _abi
from hvrun.exceptions import of_status
from hvrun.moved_types import MOVED_TYPES


class Form(typing.NamedTuple):
    """How tensors of a type travel."""

    carrier: torch.dtype
    is_pair: bool
    is_quantized: bool
    mark: tuple  # extents behind the carrier's
    reductions: tuple  # names of hvd.ReduceOp
    advice: str

    def carrier_of(self, tensor):
        """A tensor of the carrier's type: over the same memory, or a copy where that has the conj or neg bit."""
        one = tensor.detach()
        if self.is_pair:
            return torch.view_as_real(one.resolve_conj().resolve_neg())
        return one.view(self.carrier)

    def restored(self, carrier, dtype):
        """The inverse of carrier_of, of contiguous results."""
        return torch.view_as_complex(carrier) if self.is_pair else carrier.view(dtype)

    def require_reduction(self, dtype, op, is_scaled=False):
        """UnsupportedError where the carrier's arithmetic is not the type's."""
        if op.name in self.reductions and (self.is_pair or not is_scaled):
            return
        able = f"reduces them by {' and '.join(self.reductions)}" if self.reductions else "only moves them"
        unscaled = " without scaling" if self.reductions and not self.is_pair else ""
        raise of_status(_abi.ERROR_UNSUPPORTED, "unsupported",
                        f"hvrun has no {op.name}{' with a scale' if is_scaled else ''} of tensors of {dtype}: it {able}{unscaled}. "
                        f"Try {self.advice}")


def _form_of(name, moved):
    carrier = getattr(torch, moved.carrier)
    if moved.is_pair:
        return Form(carrier, True, False, moved.mark, ("Average", "Sum"), "tensor.abs(), tensor.real or tensor.imag")
    if name.startswith("uint"):
        return Form(carrier, False, False, moved.mark, ("Sum", "Product"), "tensor.to(torch.int64)")
    is_quantized = name.startswith("q")
    advice = "tensor.dequantize()" if is_quantized else "tensor.float()" if name.startswith("float8") else "tensor.view(torch.uint8)"
    return Form(carrier, False, is_quantized, moved.mark, (), advice)


FORMS = {getattr(torch, name): _form_of(name, moved) for name, moved in MOVED_TYPES.items() if hasattr(torch, name)}


# ---- quantized tensors ------------------------------------------------------------------------------------------------


def quantizer_of(tensor):
    """What its values mean, as float64 numbers: (scale, zero point), or (axis, number of channels, whether zero points are
    floats, the channels' scales, their zero points)."""
    if tensor.qscheme() == torch.per_tensor_affine:
        return torch.tensor([tensor.q_scale(), tensor.q_zero_point()], dtype=torch.float64, device=tensor.device)
    scales, zero_points = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    lead = [tensor.q_per_channel_axis(), len(scales), zero_points.is_floating_point()]
    return torch.cat([torch.tensor(lead, dtype=torch.float64, device=tensor.device), scales.double(), zero_points.double()])


def quantized(values, quantizer):
    """A quantized tensor of whole numbers and what quantizer_of() gave. A quantizer of two numbers has one scale for all."""
    if len(quantizer) == 2:
        scale, zero_point = quantizer.tolist()
        return torch._make_per_tensor_quantized_tensor(values, scale, int(zero_point))
    axis, channels, has_float_points = (int(one) for one in quantizer[:3].tolist())
    scales, zero_points = quantizer[3:3 + channels], quantizer[3 + channels:]
    if has_float_points:
        scales, zero_points = scales.float(), zero_points.float()
    else:
        scales, zero_points = scales.clone(), zero_points.long()
    return torch._make_per_channel_quantized_tensor(values, scales, zero_points, axis)


def pack(values, numbers):
    """One flat tensor of whole numbers, with float64 numbers about them in front. It travels as one operation: of two, one could
    wait for ranks whose tensors are not quantized."""
    head = torch.tensor([len(numbers) + 2, values.numel(), *numbers], dtype=torch.float64, device=values.device)
    return torch.cat([head.view(values.dtype), values.reshape(-1)])


def unpack(flat):
    """[(values, numbers)] of what pack() has made, one behind the other."""
    width, begin, found = 8 // flat.element_size(), 0, []
    while begin < len(flat):
        length, count = _numbers(flat, begin, 2)
        numbers = _numbers(flat, begin, int(length))[2:]
        begin += int(length) * width
        found.append((flat[begin:begin + int(count)], numbers))
        begin += int(count)
    return found


def _numbers(flat, begin, count):
    return flat[begin:begin + count * (8 // flat.element_size())].clone().view(torch.float64).tolist()


def pack_rows(tensor):
    """Rows of a quantized tensor that are to be put behind those of other ranks."""
    return pack(tensor.int_repr(), [len(tensor), *quantizer_of(tensor).tolist(), *tensor.shape[1:]])


def unpack_rows(flat, what):
    """(a quantized tensor, how many of its rows came from each rank). MismatchError, on all ranks, where they have not one scale."""
    parts = unpack(flat)
    kinds = sorted({tuple(numbers[1:]) for _, numbers in parts})
    if len(kinds) > 1:
        told = ", ".join(f"scale {scale}, zero point {int(point)} and rows of {[int(one) for one in row]}" for scale, point, *row in kinds)
        raise of_status(_abi.ERROR_MISMATCH, "mismatch between ranks",
                        f"{what} of quantized tensors needs one scale, zero point and shape of rows on all ranks, and they have {told}; "
                        "try tensor.dequantize()")
    scale, zero_point, *row = kinds[0]
    row = [int(one) for one in row]
    rows = [int(numbers[0]) for _, numbers in parts]
    values = torch.cat([part.reshape(count, *row) for (part, _), count in zip(parts, rows)])
    return torch._make_per_tensor_quantized_tensor(values, scale, int(zero_point)), rows


def require_one_quantizer(tensor, what):
    """UnsupportedError where channels have scales of their own, for operations that put ranks' rows together."""
    if tensor.is_quantized and tensor.qscheme() != torch.per_tensor_affine:
        raise of_status(_abi.ERROR_UNSUPPORTED, "unsupported",
                        f"{what} takes quantized tensors of one scale, not {tensor.qscheme()}; try tensor.dequantize()")
