# SPDX-License-Identifier: Apache-2.0
"""A table of hvrun.torch's operations, each beside what one process computes from all ranks' tensors; and of what they are given:
types, layouts, process sets."""

import functools
import os
import typing

import torch

import hvrun.torch as hvd

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
NUMBERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, *FLOATS]
ALL_TYPES = [*NUMBERS, torch.bool]
# Since PyTorch 2.3, which computes little with it on GPUs.
UNSIGNED = [getattr(torch, "uint16")] if hasattr(torch, "uint16") and "HVRUN_TEST_DEVICE" not in os.environ else []
MOVED = [*ALL_TYPES, torch.complex64, *UNSIGNED]  # one for each way in which others travel: test_moved_types.py has all
DIFFERENTIABLE = [*FLOATS, torch.complex64]

ROWS = 12  # that 1, 2, 3 and 4 ranks share evenly
LAYOUTS = {  # from a function that fills a shape
    "scalar": lambda fill: fill(()),
    "vector": lambda fill: fill((ROWS,)),
    "matrix": lambda fill: fill((ROWS, 3)),
    "empty": lambda fill: fill((0,)),
    "no columns": lambda fill: fill((ROWS, 0)),
    "transposed": lambda fill: fill((3, ROWS)).t(),
    "every other column": lambda fill: fill((ROWS, 4))[:, ::2],
    "inner": lambda fill: fill((ROWS + 2, 4))[1:-1, 1:],
    "channels_last": lambda fill: fill((ROWS, 2, 3, 2)).contiguous(memory_format=torch.channels_last),
}


def values(shape, dtype, rank):
    """What a rank has: small whole numbers, exact in every type, as are their sums and products."""
    numbers = (torch.arange(torch.Size(shape).numel()) * 3 + rank) % 7
    if dtype not in (torch.uint8, torch.bool, *UNSIGNED):
        numbers = numbers - 3
    made = (numbers % 2 if dtype is torch.bool else numbers).reshape(shape).to(dtype)
    return made * (1 - 2j) if dtype.is_complex else made


def tensor_of(layout, dtype, rank):
    return LAYOUTS[layout](lambda shape: values(shape, dtype, rank))


def process_sets():
    """{name: ranks} of all ranks, of every second one and of the last alone, where they are not the same."""
    size, found = hvd.size(), {}
    for name, ranks in (("all", range(size)), ("even", range(0, size, 2)), ("single", [size - 1])):
        if list(ranks) not in found.values():
            found[name] = list(ranks)
    return found


class Operation(typing.NamedTuple):
    start: typing.Callable  # (this rank's tensor, or two of them, and the set): the handle of what hvrun makes of it
    waiting: typing.Callable  # the same, but returns what it makes, through which gradients flow
    alone: typing.Callable  # (the members' tensors, which member): the list of what one process makes of them
    types: list = MOVED
    is_grouped: bool = False
    is_in_place: bool = False
    is_exact: bool = True
    takes_scalars: bool = True
    gradient: typing.Callable = None  # of the set's size: hvrun's is so many times that of the sum of the members' losses


# ---- what one process computes -----------------------------------------------------------------------------------------


def _sum(tensors, me=0):
    del me
    return [torch.stack(tensors).sum(0).to(tensors[0].dtype)]


def _average(tensors, me=0):
    total, = _sum([one if one.is_floating_point() or one.is_complex() else one.long() for one in tensors], me)
    if total.is_floating_point() or total.is_complex():
        return [total / len(tensors)]
    return [torch.div(total, len(tensors), rounding_mode="trunc").to(tensors[0].dtype)]


def _one_by_one(combine):
    return lambda tensors, me: [functools.reduce(combine, tensors)]


def _product(one, other):
    return (one.long() * other.long()).to(one.dtype) if one.dtype in UNSIGNED else one * other


def _rows(tensor):
    return tensor.reshape(1) if tensor.dim() == 0 else tensor


def _gathered(tensors, me):
    del me
    return [torch.cat([_rows(one) for one in tensors])]


def _of_last(tensors, me):
    del me
    return [tensors[-1]]


def _sent_evenly(tensors, me):
    each = len(tensors[0]) // len(tensors)
    return [torch.cat([one.narrow(0, me * each, each) for one in tensors])]


def _splits(tensor, member, size):
    """How many rows a member sends to each; some are left over."""
    return [(member + to) % 3 if len(tensor) else 0 for to in range(size)]


def _sent_in_splits(tensors, me):
    size = len(tensors)
    splits = [_splits(one, member, size) for member, one in enumerate(tensors)]
    parts = [one.narrow(0, sum(to[:me]), to[me]) for one, to in zip(tensors, splits)]
    return [torch.cat(parts), torch.tensor([to[me] for to in splits], dtype=torch.int32, device="cpu")]


def _share_of(reduce):
    def alone(tensors, me):
        whole = _rows(reduce(tensors)[0])
        each, more = divmod(len(whole), len(tensors))
        return [whole.narrow(0, me * each + min(me, more), each + (me < more))]

    return alone


# ---- the table ------------------------------------------------------------------------------------------------------------


def fewer_by_rank(tensor, member):
    """A row less for each member before: their numbers differ."""
    return tensor if tensor.dim() == 0 else tensor[:max(len(tensor) - member, 0)]


def one_fewer(tensor, member):
    """So many rows that two ranks and more do not share evenly."""
    del member
    return tensor if tensor.dim() == 0 else tensor[:max(len(tensor) - 1, 0)]


def _row(name, alone, cut=lambda tensor, member: tensor, more=lambda tensor, members: (), op=None, **options):
    """name: of the function that waits. cut(tensor, member): what is given of a tensor; more(tensor, set): what behind it."""

    def call(function):
        words = {} if op is None else {"op": op}

        def made(tensor, members):
            tensor = tensor if options.get("is_grouped") else cut(tensor, members.rank())
            return function(tensor, *more(tensor, members), **words, process_set=members)

        return made

    start = name[:-1] + "_async_" if name.endswith("_") else name + "_async"
    return Operation(call(getattr(hvd, start)), call(getattr(hvd, name)),
                     lambda tensors, me: alone([cut(one, member) for member, one in enumerate(tensors)], me), **options)


def _once(size):
    del size
    return 1


def _divided(size):
    return 1 / size


def _times(size):
    return size


MEAN = {"types": [*NUMBERS, torch.complex64], "is_exact": False}
ORDERED = {"types": ALL_TYPES}
GROUPED, IN_PLACE = {"is_grouped": True}, {"is_in_place": True}
FROM_LAST = {"more": lambda tensor, members: (members.ranks[-1],)}
IN_SPLITS = {"more": lambda tensor, members: (_splits(tensor, members.rank(), members.size()),), "takes_scalars": False}
SHARED_SUM = {"op": hvd.Sum, "gradient": _times, "takes_scalars": False}

OPERATIONS = {
    "allreduce average": _row("allreduce", _average, gradient=_once, **MEAN),
    "allreduce sum": _row("allreduce", _sum, op=hvd.Sum, gradient=_once),
    "allreduce min": _row("allreduce", _one_by_one(torch.minimum), op=hvd.Min, **ORDERED),
    "allreduce max": _row("allreduce", _one_by_one(torch.maximum), op=hvd.Max, **ORDERED),
    "allreduce product": _row("allreduce", _one_by_one(_product), op=hvd.Product, types=[*ALL_TYPES, *UNSIGNED]),
    "allreduce_ average": _row("allreduce_", _average, **IN_PLACE, **MEAN),
    "allreduce_ sum": _row("allreduce_", _sum, op=hvd.Sum, **IN_PLACE),
    "grouped_allreduce average": _row("grouped_allreduce", _average, gradient=_once, **GROUPED, **MEAN),
    "grouped_allreduce sum": _row("grouped_allreduce", _sum, op=hvd.Sum, gradient=_once, **GROUPED),
    "grouped_allreduce_ sum": _row("grouped_allreduce_", _sum, op=hvd.Sum, **GROUPED, **IN_PLACE),
    "allgather": _row("allgather", _gathered, gradient=_divided),
    "allgather of unlike rows": _row("allgather", _gathered, fewer_by_rank, gradient=_divided),
    "grouped_allgather": _row("grouped_allgather", _gathered, gradient=_divided, **GROUPED),
    "broadcast": _row("broadcast", _of_last, gradient=_divided, **FROM_LAST),
    "broadcast_": _row("broadcast_", _of_last, **IN_PLACE, **FROM_LAST),
    "alltoall": _row("alltoall", _sent_evenly, gradient=_once, takes_scalars=False),
    "alltoall with splits": _row("alltoall", _sent_in_splits, gradient=_once, **IN_SPLITS),
    "reducescatter average": _row("reducescatter", _share_of(_average), gradient=_times, takes_scalars=False, **MEAN),
    "reducescatter sum": _row("reducescatter", _share_of(_sum), **SHARED_SUM),
    "reducescatter of uneven shares": _row("reducescatter", _share_of(_sum), one_fewer, **SHARED_SUM),
    "grouped_reducescatter sum": _row("grouped_reducescatter", _share_of(_sum), **SHARED_SUM, **GROUPED),
}
