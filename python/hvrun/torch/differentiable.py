# SPDX-License-Identifier: Apache-2.0
"""The operations that wait for their result, through which gradients flow back.

The gradient of what ranks make together is made together: every rank's backward pass takes part, in the same order. Its scale is
Horovod's. Through an allreduce or an alltoall comes the gradient of the sum of all ranks' losses, through an allgather or a
broadcast that of their average, through a reducescatter the sum's times the number of ranks.
"""

import torch

from hvrun.process_sets import global_process_set
from hvrun.torch import operations as ops
from hvrun.torch.compression import Compression, compressed
from hvrun.torch.handles import synchronize
from hvrun.torch.operations import Adasum, Average, Sum, chosen_op
from hvrun.torch.tensors import require_tensor


def _needs_graph(*tensors):
    try:
        return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    except AttributeError:
        pass
    for one in tensors:
        require_tensor(one)
    raise TypeError("hvrun.torch takes torch tensors")


def _require_linear(op, what):
    if op not in (Average, Sum, Adasum):
        raise ValueError(f"the gradient of {what} with op={op!r} is not defined here; try hvd.Average or hvd.Sum, or "
                         "tensor.detach() where no gradient is wanted")


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, prescale, postscale, process_set):
        ctx.call = (op, prescale, postscale, process_set)
        return synchronize(ops.allreduce_async(tensor, None, name, op, prescale, postscale, process_set))

    @staticmethod
    def backward(ctx, gradient):
        op, prescale, postscale, process_set = ctx.call
        _require_linear(op, "an allreduce")
        op = Average if op is Adasum else op
        return allreduce(gradient, op=op, prescale_factor=prescale, postscale_factor=postscale,
                         process_set=process_set), None, None, None, None, None


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
              postscale_factor=1.0, process_set=global_process_set):
    """The average (or op) of the tensors of all ranks of the set, in a new tensor. It is multiplied by prescale_factor before
    and postscale_factor after. Integer averages truncate towards zero. Its gradient is the same allreduce of the
    gradients."""
    op = chosen_op(op, average)
    if compression is not Compression.none:
        small, context = compressed(tensor, compression)
        made = allreduce(small, None, name, Compression.none, op, prescale_factor, postscale_factor, process_set)
        return compression.decompress(made, context)
    if _needs_graph(tensor):
        return _Allreduce.apply(tensor, name, op, prescale_factor, postscale_factor, process_set)
    return synchronize(ops.allreduce_async(tensor, None, name, op, prescale_factor, postscale_factor, process_set))


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
               process_set=global_process_set):
    """As allreduce, in place and without a graph."""
    return synchronize(ops.allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set))


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, prescale, postscale, process_set, *tensors):
        ctx.call = (op, prescale, postscale, process_set)
        return tuple(synchronize(ops.grouped_allreduce_async(tensors, None, name, op, prescale, postscale, process_set)))

    @staticmethod
    def backward(ctx, *gradients):
        op, prescale, postscale, process_set = ctx.call
        _require_linear(op, "an allreduce")
        op = Average if op is Adasum else op
        made = grouped_allreduce(list(gradients), op=op, prescale_factor=prescale, postscale_factor=postscale,
                                 process_set=process_set)
        return (None, None, None, None, None, *made)


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set):
    """As allreduce, of several tensors that travel as one; a list."""
    op = chosen_op(op, average)
    if compression is not Compression.none:
        small, contexts = zip(*(compressed(tensor, compression) for tensor in tensors)) if tensors else ((), ())
        made = grouped_allreduce(list(small), None, name, Compression.none, op, prescale_factor, postscale_factor, process_set)
        return [compression.decompress(one, context) for one, context in zip(made, contexts)]
    if _needs_graph(*tensors):
        return list(_GroupedAllreduce.apply(name, op, prescale_factor, postscale_factor, process_set, *tensors))
    return synchronize(ops.grouped_allreduce_async(tensors, None, name, op, prescale_factor, postscale_factor, process_set))


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                       process_set=global_process_set):
    """As grouped_allreduce, in place and without a graph."""
    return synchronize(ops.grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set))


def _rows_of_each(tensor, process_set):
    """How many rows each rank of the set has."""
    rows = tensor.shape[0] if tensor.dim() else 1
    return synchronize(ops.allgather_async(torch.tensor([rows]), None, process_set)).tolist()


def _own_rows(gradient, rows, process_set):
    """Of the gradient of what was gathered, this rank's part."""
    begin = sum(rows[:process_set.rank()])
    return gradient.narrow(0, begin, rows[process_set.rank()])


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.process_set, ctx.shape = process_set, tensor.shape
        ctx.rows = _rows_of_each(tensor, process_set)
        return synchronize(ops.allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        averaged = allreduce(gradient, op=Average, process_set=ctx.process_set)
        return _own_rows(averaged, ctx.rows, ctx.process_set).reshape(ctx.shape), None, None


def allgather(tensor, name=None, process_set=global_process_set):
    """The tensors of all ranks of the set, one after the other, in a new tensor; they may differ in the first extent. Its
    gradient is the average over the ranks of the gradients of this rank's rows."""
    if _needs_graph(tensor):
        return _Allgather.apply(tensor, name, process_set)
    return synchronize(ops.allgather_async(tensor, name, process_set))


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        ctx.process_set, ctx.shapes = process_set, [tensor.shape for tensor in tensors]
        ctx.rows = [_rows_of_each(tensor, process_set) for tensor in tensors]
        return tuple(synchronize(ops.grouped_allgather_async(tensors, name, process_set)))

    @staticmethod
    def backward(ctx, *gradients):
        averaged = grouped_allreduce(list(gradients), op=Average, process_set=ctx.process_set)
        own = [_own_rows(one, rows, ctx.process_set).reshape(shape)
               for one, rows, shape in zip(averaged, ctx.rows, ctx.shapes)]
        return (None, None, *own)


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """As allgather, of several tensors that travel as one; a list."""
    if _needs_graph(*tensors):
        return list(_GroupedAllgather.apply(name, process_set, *tensors))
    return synchronize(ops.grouped_allgather_async(tensors, name, process_set))


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root, ctx.process_set = process_set.rank_of(root_rank, "root_rank"), process_set
        return synchronize(ops.broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        averaged = allreduce(gradient, op=Average, process_set=ctx.process_set)
        return averaged if ctx.process_set.rank() == ctx.root else averaged * 0, None, None, None


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """root_rank's tensor, in a new one. Its gradient is the average of the gradients on root_rank and zero elsewhere."""
    ops.require_present(tensor, name)
    if _needs_graph(tensor):
        return _Broadcast.apply(tensor, root_rank, name, process_set)
    return synchronize(ops.broadcast_async(tensor, root_rank, name, process_set))


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """As broadcast, in place and without a graph."""
    return synchronize(ops.broadcast_async_(tensor, root_rank, name, process_set))


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        ctx.process_set, ctx.shape, size = process_set, tensor.shape, process_set.size()
        ctx.rows = tensor.shape[0] if tensor.dim() else 1
        is_even = splits is None and ctx.rows % size == 0  # where it is not, the runtime says why that is an error
        each = [ctx.rows // size] * size if is_even else splits
        made, ctx.received = synchronize(ops.alltoall_async(tensor, each, name, process_set))
        if splits is None:
            return made
        ctx.mark_non_differentiable(ctx.received)
        return made, ctx.received

    @staticmethod
    def backward(ctx, gradient, *unused):
        del unused
        back, _ = alltoall(gradient, ctx.received, None, ctx.process_set)
        left_over = ctx.rows - len(back)  # that were sent to nobody
        if left_over:
            back = torch.cat([back, back.new_zeros(left_over, *back.shape[1:])])
        return back.reshape(ctx.shape), None, None, None


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """What every rank of the set has sent to this one, by rank. splits: rows of `tensor` for each rank; with it, (the tensor,
    rows that came from each). Its gradient goes back the way that the rows came."""
    if _needs_graph(tensor):
        return _Alltoall.apply(tensor, splits, name, process_set)
    return synchronize(ops.alltoall_async(tensor, splits, name, process_set))


def _gathered_shares(gradient, op, process_set, prescale, postscale):
    """The gradient of a reducescatter, of what all ranks want on average: all shares' gradients, scaled as shares were."""
    gathered = allgather(gradient, process_set=process_set)
    factor = prescale * postscale * (process_set.size() if op == Sum else 1)
    return gathered if factor == 1 else gathered * factor


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale, postscale):
        ctx.call, ctx.shape = (op, process_set, prescale, postscale), tensor.shape
        return synchronize(ops.reducescatter_async(tensor, name, op, process_set, prescale, postscale))

    @staticmethod
    def backward(ctx, gradient):
        return _gathered_shares(gradient, *ctx.call).reshape(ctx.shape), None, None, None, None, None


def reducescatter(tensor, name=None, compression=Compression.none, op=Average, process_set=global_process_set,
                  prescale_factor=1.0, postscale_factor=1.0):
    """This rank's share of the rows of the average (or sum) over the set. Its gradient gathers those of all shares."""
    if compression is not Compression.none:
        small, context = compressed(tensor, compression)
        made = reducescatter(small, name, Compression.none, op, process_set, prescale_factor, postscale_factor)
        return compression.decompress(made, context)
    if _needs_graph(tensor):
        return _Reducescatter.apply(tensor, name, op, process_set, prescale_factor, postscale_factor)
    return synchronize(ops.reducescatter_async(tensor, name, op, process_set, prescale_factor, postscale_factor))


class _GroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, process_set, prescale, postscale, *tensors):
        ctx.call, ctx.shapes = (op, process_set, prescale, postscale), [tensor.shape for tensor in tensors]
        return tuple(synchronize(ops.grouped_reducescatter_async(tensors, name, op, process_set, prescale, postscale)))

    @staticmethod
    def backward(ctx, *gradients):
        back = [_gathered_shares(one, *ctx.call).reshape(shape) for one, shape in zip(gradients, ctx.shapes)]
        return (None, None, None, None, None, *back)


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average, process_set=global_process_set,
                          prescale_factor=1.0, postscale_factor=1.0):
    """As reducescatter, of several tensors that travel as one; a list."""
    if compression is not Compression.none:
        small, contexts = zip(*(compressed(tensor, compression) for tensor in tensors)) if tensors else ((), ())
        made = grouped_reducescatter(list(small), name, Compression.none, op, process_set, prescale_factor, postscale_factor)
        return [compression.decompress(one, context) for one, context in zip(made, contexts)]
    if _needs_graph(*tensors):
        return list(_GroupedReducescatter.apply(name, op, process_set, prescale_factor, postscale_factor, *tensors))
    return synchronize(ops.grouped_reducescatter_async(tensors, name, op, process_set, prescale_factor, postscale_factor))
