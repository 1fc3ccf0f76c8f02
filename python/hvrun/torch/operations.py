# SPDX-License-Identifier: Apache-2.0
"""The operations on PyTorch's tensors, started and waited for apart: what Horovod calls *_async.

A name is the same on all ranks, and unique among the operations in flight. Without one, operations are numbered: each rank
must then start them in the same order. Every function may be called from any thread; none of them blocks but join() and
barrier(). Results of operations that start here carry no graph: those of `differentiable` do.
"""

import enum

import torch

from hvrun import _abi, basics, inflight
from hvrun._called import called, warn
from hvrun.exceptions import ArgumentError, of_status
from hvrun.inflight import enqueue
from hvrun.process_sets import NOT_REGISTERED, global_process_set
from hvrun.torch.compression import wire_of
from hvrun.torch.handles import Several, Then
from hvrun.torch.gpu import order_of
from hvrun.torch.moved import FORMS, pack, pack_rows, quantized, quantizer_of, require_one_quantizer, unpack, unpack_rows
from hvrun.torch.tensors import indices_over_memory, is_readable, over_memory, readable, require_tensor, room_for, type_of


class ReduceOp(enum.IntEnum):
    """How an allreduce and a reducescatter combine what ranks have; the numbers are Horovod's."""

    Average = 0
    Sum = 1
    Adasum = 2
    Min = 3
    Max = 4
    Product = 5

    def __repr__(self):
        return f"hvd.{self.name}"


Average, Sum, Adasum, Min, Max, Product = ReduceOp
_REDUCTIONS = {Average: _abi.AVERAGE, Sum: _abi.SUM, Adasum: _abi.ADASUM, Min: _abi.MIN, Max: _abi.MAX, Product: _abi.PRODUCT}

_numbers = {}  # what is being done, and the process set's number: how many have had no name
_groups = {}  # a group's names: its number


def name_for(what, name, process_set):
    """The name that travels: the caller's behind what is done with it, or a number, counted in each process set."""
    if name is not None:
        return f"{what}.{name}"
    key = what, process_set.process_set_id
    number = _numbers[key] = _numbers.get(key, -1) + 1
    return f"{what}.noname.{number}"


def forget_numbers():
    """The job has been left: in the next one all ranks count from 0."""
    _numbers.clear()


def chosen_op(op, average):
    """Of `op` and the older `average=`: at most one is given; neither means Average."""
    if average is not None:
        if op is not None:
            raise ValueError("both op and average are given; give op alone: op=hvd.Average or op=hvd.Sum")
        warn("average= is the older way; give op=hvd.Average or op=hvd.Sum", DeprecationWarning)
        return Average if average else Sum
    if op is None:
        return Average
    if type(op) is ReduceOp:
        return op
    try:
        return ReduceOp(op)
    except ValueError:
        raise ValueError(f"op={op!r} is none of hvd.Average, Sum, Adasum, Min, Max and Product") from None


def reduction_of(op):
    """The runtime's number."""
    return _REDUCTIONS[op]


def number_of(process_set):
    number = process_set.process_set_id
    if number is NOT_REGISTERED:
        raise ValueError(f"{process_set} is not registered; try hvd.init(process_sets=[...]) or hvd.add_process_set(...)")
    return number


def _require_travel(tensor, op=None, is_scaled=False):
    """Raises for what does not travel, or is not reduced so."""
    if type_of(tensor) is None and op is not None:
        FORMS[tensor.dtype].require_reduction(tensor.dtype, op, is_scaled)


def _travels(what, tensor, name, process_set, op=None, is_scaled=False):
    """The name that it travels by. What is refused on one rank must take no number there, so that is found out before."""
    if name is None:
        _require_travel(tensor, op, is_scaled)
    return name_for(what, name, process_set)


# ---- allreduce ----------------------------------------------------------------------------------------------------------


def _lent(source, room=None):
    """Their memory, which a tensor may lose to `tensor.data = ...` while it is used."""
    memory = source.untyped_storage()
    return memory if room is None or room is source else (memory, room.untyped_storage())


def _start_allreduce(tensor, output, name, op, prescale, postscale, process_set, mark=(), **rare):
    """output: the very same tensor, or None: a new one. mark: extents behind the tensor's. Returns what yields the result."""
    kind = type_of(tensor)
    if kind is None:
        form = FORMS[tensor.dtype]
        form.require_reduction(tensor.dtype, op, prescale != 1 or postscale != 1)
        carrier = form.carrier_of(tensor)
        pending = _start_allreduce(carrier, output if output is None else carrier, name, op, prescale, postscale, process_set,
                                   form.mark, **rare)
        return _restored(pending, form, tensor, output)
    if output is None:
        output = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    source = readable(tensor)
    is_direct = source is output or is_readable(output)
    room, order = output if is_direct else room_for(tensor), order_of(source)
    # For the runtime a scale of 0 is one that was not given.
    is_nothing = prescale == 0 or postscale == 0
    if prescale != 1:
        rare["prescale"] = prescale
    if postscale != 1:
        rare["postscale"] = postscale

    def finish(result, owner):
        del result, owner
        order.follow()
        if is_nothing:
            room.detach().zero_()
        if not is_direct:
            output.detach().copy_(room)
        return output

    return enqueue(_abi.ALLREDUCE, name, kind, (*tensor.shape, *mark), source.data_ptr(), _lent(source, room), finish,
                   room.data_ptr(), room.nbytes, process_set=number_of(process_set), reduction=_REDUCTIONS[op], **order.fields,
                   **rare)


def _restored(pending, form, tensor, output):
    """A handle of what the carrier's becomes: a new tensor, or the output, which has a copy of it unless both share memory."""

    def restore(carrier):
        if output is None:
            return form.restored(carrier, tensor.dtype)
        if form.is_pair and (output.is_conj() or output.is_neg()):
            output.detach().copy_(form.restored(carrier, tensor.dtype))
        return output

    return Then(pending, restore)


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                    process_set=global_process_set):
    """Starts an allreduce into a new tensor and returns its handle; `tensor` stays as it is, and must until then."""
    op = chosen_op(op, average)
    travels = _travels("allreduce", tensor, name, process_set, op, prescale_factor != 1 or postscale_factor != 1)
    return _start_allreduce(tensor, None, travels, op, prescale_factor, postscale_factor, process_set)


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                     process_set=global_process_set):
    """Starts an allreduce whose result comes to stand in `tensor` itself, and returns its handle."""
    op = chosen_op(op, average)
    travels = _travels("allreduce", tensor, name, process_set, op, prescale_factor != 1 or postscale_factor != 1)
    return _start_allreduce(tensor, tensor, travels, op, prescale_factor, postscale_factor, process_set)


def compressed_allreduce_async_(tensor, name, op, compression, prescale_factor=1.0, postscale_factor=1.0,
                                process_set=global_process_set, **rare):
    """As allreduce_async_, with what travels made smaller by a compressor, hvrun's own or the user's."""
    wire = wire_of(compression)
    travels = name_for("allreduce", name, process_set)
    if wire == _abi.COMPRESSION_NONE or (wire is not None and op is not Adasum):
        rare |= {"compression": wire} if wire and tensor.dtype in (torch.float32, torch.float64) else {}
        return _start_allreduce(tensor, tensor, travels, op, prescale_factor, postscale_factor, process_set, **rare)
    small, context = compression.compress(tensor.detach())
    if small is tensor or small.data_ptr() == tensor.data_ptr():
        small = small.clone()
    pending = _start_allreduce(small, small, travels, op, prescale_factor, postscale_factor, process_set, **rare)
    return Then(pending, lambda result: tensor.detach().copy_(compression.decompress(result, context)))


def group_fields(what, names):
    """The fields of a group of these operations. Its number is the same on all ranks, and next time: made of the names, whose
    order may differ from rank to rank."""
    key = (what, *sorted(names))
    number = _groups.get(key)
    if number is None:
        if len(_groups) >= 4096:
            _groups.clear()
        number = _groups[key] = _stable_number("\0".join(key))
    return {"group": number, "group_size": len(names)}


def _stable_number(text):
    """FNV-1a, 64 bits, never 0: hash() differs from process to process."""
    number = 0xCBF29CE484222325
    for byte in text.encode():
        number = ((number ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return number or 1


def _group_names(what, tensors, name, process_set):
    base = name_for(what, name, process_set)
    return [f"{base}.{i}of{len(tensors)}" for i in range(1, len(tensors) + 1)]


def _start_group(what, tensors, name, process_set, start, op=None, is_scaled=False):
    """start(tensor, name, fields) for each. An error before any has started where one cannot."""
    tensors = list(tensors)
    if not tensors:
        return Several([])
    for tensor in tensors:
        _require_travel(tensor, op, is_scaled)
    names = _group_names(what, tensors, name, process_set)
    fields = group_fields(what, names)
    return Several([start(tensor, one, fields) for tensor, one in zip(tensors, names)])


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                            process_set=global_process_set):
    """As allreduce_async, of several tensors that travel when all of them are there; the result is the list of theirs."""
    op = chosen_op(op, average)
    return _start_group("grouped_allreduce", tensors, name, process_set,
                        lambda tensor, one, fields: _start_allreduce(tensor, None, one, op, prescale_factor,
                                                                     postscale_factor, process_set, **fields),
                        op, prescale_factor != 1 or postscale_factor != 1)


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                             process_set=global_process_set):
    """As grouped_allreduce_async, in place."""
    op = chosen_op(op, average)
    return _start_group("grouped_allreduce", tensors, name, process_set,
                        lambda tensor, one, fields: _start_allreduce(tensor, tensor, one, op, prescale_factor,
                                                                     postscale_factor, process_set, **fields),
                        op, prescale_factor != 1 or postscale_factor != 1)


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    """Starts the sum or average of a sparse tensor's rows, which may differ in number from rank to rank. The handle's result,
    also got by calling it, is a sparse tensor with the rows of all ranks, not coalesced."""
    if op not in (Sum, Average):
        raise ValueError(f"a sparse allreduce has op=hvd.Sum or hvd.Average, not {op!r}")
    require_tensor(tensor)
    if not tensor.is_sparse:
        raise ValueError("sparse_allreduce_async takes a sparse COO tensor; try hvd.allreduce_async for this one")
    if tensor.sparse_dim() != 1:
        return _sparse_by_gathering(tensor, name, op, process_set)
    shape, device = tensor.shape, tensor.device
    rows, form = tensor._values(), FORMS.get(tensor.dtype)  # as they are: duplicates are allowed
    if form is not None and op == Average:
        form.require_reduction(tensor.dtype, op)
    rows, mark = (rows, ()) if form is None else (form.carrier_of(rows), form.mark)
    rows = readable(rows)
    indices = readable(tensor._indices()[0])
    order = order_of(rows)

    def finish(result, owner):
        order.follow()
        values = over_memory(result, owner, rows.device, len(mark))
        values = values if form is None else form.restored(values, tensor.dtype)
        places = indices_over_memory(result, values.shape[0], owner, rows.device)
        places = places.unsqueeze(0).to(device)
        return torch.sparse_coo_tensor(places, values.to(device), shape, check_invariants=False)

    return enqueue(_abi.SPARSE_ALLREDUCE, name_for("sparse_allreduce", name, process_set), type_of(rows), (*rows.shape, *mark),
                   rows.data_ptr(), _lent(rows, indices), finish, process_set=number_of(process_set), reduction=_REDUCTIONS[op],
                   index_type=_abi.INT64, indices=indices.data_ptr(), **order.fields)


def _sparse_by_gathering(tensor, name, op, process_set):
    """Of more than one sparse dimension, indices are rows of several numbers: both are gathered."""
    if op == Average and not (tensor.is_floating_point() or tensor.is_complex()):
        raise of_status(_abi.ERROR_UNSUPPORTED, "unsupported",
                        f"sparse_allreduce_async averages floating-point values, not {tensor.dtype}; sum them")
    name = name_for("sparse_allreduce", name, process_set)
    shape, device, ranks = tensor.shape, tensor.device, process_set.size()
    both = Several([_start_allgather(tensor._indices().t(), name + ".indices", process_set),
                    _start_allgather(tensor._values(), name + ".values", process_set)])

    def make(parts):
        indices, values = parts
        values = values / ranks if op == Average else values
        return torch.sparse_coo_tensor(indices.t().to(device), values.to(device), shape, check_invariants=False)

    return Then(both, make)


# ---- the others ---------------------------------------------------------------------------------------------------------


def _made_for(tensor, source, order, mark):
    """A finish that wraps the runtime's memory, or copies it where the user's tensor lies. source: what the runtime has read."""

    def finish(result, owner):
        order.follow()
        return over_memory(result, owner, source.device, len(mark)).to(tensor.device)

    return finish


def _start_allgather(tensor, name, process_set, mark=(), **rare):
    kind, form = type_of(tensor), FORMS.get(tensor.dtype)
    if form is not None and form.is_quantized:
        return Then(_start_allgather(pack_rows(_as_rows(tensor)), name, process_set, form.mark, **rare),
                    lambda flat: unpack_rows(flat, "allgather")[0])
    if form is not None:
        pending = _start_allgather(form.carrier_of(_as_rows(tensor)), name, process_set, form.mark, **rare)
        return Then(pending, lambda made: form.restored(made, tensor.dtype))
    source = readable(tensor)
    order = order_of(source)
    return enqueue(_abi.ALLGATHER, name, kind, (*source.shape, *mark), source.data_ptr(), _lent(source),
                   _made_for(tensor, source, order, mark), process_set=number_of(process_set), **order.fields, **rare)


def _as_rows(tensor):
    """Where rows count, a scalar is one."""
    return tensor if tensor.dim() else tensor.reshape(1)


def allgather_async(tensor, name=None, process_set=global_process_set):
    """Starts to gather the tensors of all ranks, one after the other in order of their ranks. They may differ in the first
    extent. The handle's result is a new tensor."""
    require_tensor(tensor)
    require_one_quantizer(tensor, "allgather")
    return _start_allgather(tensor, _travels("allgather", tensor, name, process_set), process_set)


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """As allgather_async, of several tensors that travel when all of them are there."""
    tensors = list(tensors)
    for tensor in tensors:
        require_tensor(tensor)
        require_one_quantizer(tensor, "grouped_allgather")
    return _start_group("grouped_allgather", tensors, name, process_set,
                        lambda tensor, one, fields: _start_allgather(tensor, one, process_set, **fields))


def require_present(tensor, name):
    """TypeError for the gradient of a parameter that no backward pass has reached; the name says whose it is."""
    if tensor is None and name is not None:
        raise TypeError(f"{called() or 'hvrun'} takes a torch.Tensor, and {name!r} is None. A gradient is None before the first "
                        "backward pass that reaches its parameter: try torch.zeros_like(parameter) in its place, on all ranks")


def _start_broadcast(tensor, output, root_rank, name, process_set, mark=(), **rare):
    kind = type_of(tensor)
    if kind is None:
        return _start_moved_broadcast(FORMS[tensor.dtype], tensor, output, root_rank, name, process_set)
    root = process_set.rank_of(root_rank, "root_rank")
    if output is None:
        output = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    source = readable(tensor)
    is_direct = is_readable(output)
    room, order = output if is_direct else room_for(tensor), order_of(source)

    def finish(result, owner):
        del result, owner
        order.follow()
        if not is_direct:
            output.detach().copy_(room)
        return output

    return enqueue(_abi.BROADCAST, name, kind, (*tensor.shape, *mark), source.data_ptr(), _lent(source, room), finish,
                   output=room.data_ptr(), output_bytes=room.nbytes, root=root, process_set=number_of(process_set),
                   **order.fields, **rare)


def _start_moved_broadcast(form, tensor, output, root_rank, name, process_set):
    if not form.is_quantized:
        carrier = form.carrier_of(tensor)
        pending = _start_broadcast(carrier, output if output is None else carrier, root_rank, name, process_set, form.mark)
        return _restored(pending, form, tensor, output)
    flat = pack(tensor.int_repr(), quantizer_of(tensor).tolist())
    # Extents would not tell shapes apart: the group's number does.
    group = {"group": _stable_number(repr(tuple(tensor.shape))), "group_size": 1}
    pending = _start_broadcast(flat, flat, root_rank, name, process_set, form.mark, **group)

    def make(flat):
        [(values, quantizer)] = unpack(flat)
        made = quantized(values.reshape(tensor.shape), torch.tensor(quantizer, dtype=torch.float64, device=flat.device))
        if output is None:
            return made
        with torch.no_grad():
            return output.copy_(made)  # not of detach(), which has a scale of its own

    return Then(pending, make)


def _broadcast_name(tensor, root_rank, name, process_set):
    require_present(tensor, name)
    process_set.rank_of(root_rank, "root_rank")
    return _travels("broadcast", tensor, name, process_set)


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts to give every rank root_rank's tensor, in a new one. root_rank: its number in the job, also in a process set."""
    return _start_broadcast(tensor, None, root_rank, _broadcast_name(tensor, root_rank, name, process_set), process_set)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """As broadcast_async, in place."""
    return _start_broadcast(tensor, tensor, root_rank, _broadcast_name(tensor, root_rank, name, process_set), process_set)


def _whole_splits(splits):
    """As Horovod a tensor of floats is refused, whatever it has; in a list 2.0 is 2."""
    numbers = splits.tolist() if isinstance(splits, torch.Tensor) else list(splits)
    if (isinstance(splits, torch.Tensor) and splits.is_floating_point()) or any(int(one) != one for one in numbers):
        raise ArgumentError(f"the splits of an alltoall are whole numbers of rows, not {numbers}; try whole numbers, torch.int32 in a "
                            "tensor, that add up to the tensor's rows at most")
    return [int(one) for one in numbers]


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """Starts to send some rows to each rank. splits: how many to each, a list or a tensor of whole numbers, the first ones to
    the first rank; None: as many to each. The handle's result is the tensor of what came, and, where splits were given, how
    many rows came from each."""
    _require_travel(tensor)
    require_one_quantizer(tensor, "alltoall")
    if splits is not None and len(splits) != process_set.size():
        raise ValueError(f"alltoall has {len(splits)} splits for {process_set.size()} ranks; one for each")
    return _start_alltoall(tensor, splits, name_for("alltoall", name, process_set), process_set)


def _start_alltoall(tensor, splits, name, process_set, mark=()):
    kind, form = type_of(tensor), FORMS.get(tensor.dtype)
    if form is not None and form.is_quantized:
        return _start_quantized_alltoall(form, _as_rows(tensor), splits, name, process_set)
    if form is not None:
        return Then(_start_alltoall(form.carrier_of(_as_rows(tensor)), splits, name, process_set, form.mark),
                    lambda made: (form.restored(made[0], tensor.dtype), made[1]) if isinstance(made, tuple)
                    else form.restored(made, tensor.dtype))
    source = readable(tensor)
    order, rare, held = order_of(source), {}, None
    if splits is not None:
        numbers = _whole_splits(splits)
        if source.dim() and sum(numbers) < source.shape[0]:  # what is left over is not sent
            source = source.narrow(0, 0, sum(numbers))
        held, at = inflight.integers(numbers)
        rare = {"splits": at, "split_count": len(numbers)}
    splits_device = splits.device if isinstance(splits, torch.Tensor) else torch.device("cpu")

    make = _made_for(tensor, source, order, mark)

    def finish(result, owner):
        made = make(result, owner)
        if splits is None:
            return made
        received = torch.tensor([result.received_splits[i] for i in range(result.received_split_count)], dtype=torch.int32)
        return made, received.to(splits_device)

    return enqueue(_abi.ALLTOALL, name, kind, (*source.shape, *mark), source.data_ptr(), (_lent(source), held), finish,
                   process_set=number_of(process_set), **order.fields, **rare)


def _start_quantized_alltoall(form, tensor, splits, name, process_set):
    """Each rank gets what says what the values mean, also where it gets no rows."""
    size = process_set.size()
    if splits is None and len(tensor) % size:
        raise ValueError(f"alltoall has {len(tensor)} rows for {size} ranks, which do not come out even; give splits")
    counts = [len(tensor) // size] * size if splits is None else _whole_splits(splits)
    if min(counts) < 0 or sum(counts) > len(tensor):
        raise ValueError(f"alltoall has splits {counts} of {len(tensor)} rows")
    parts = [pack_rows(tensor[sum(counts[:i]):sum(counts[:i + 1])]) for i in range(size)]
    pending = _start_alltoall(torch.cat(parts), [len(part) for part in parts], name, process_set, form.mark)

    def make(made):
        rows, received = unpack_rows(made[0], "alltoall")
        if splits is None:
            return rows
        return rows, torch.tensor(received, dtype=torch.int32,
                                  device=splits.device if isinstance(splits, torch.Tensor) else torch.device("cpu"))

    return Then(pending, make)


def _require_scattered(op, tensors):
    if op not in (Average, Sum):
        raise ArgumentError(f"a reducescatter has op=hvd.Average or hvd.Sum, not {op!r}; try hvd.allreduce, and this rank's rows of "
                            "its result")
    if any(tensor.dim() == 0 for tensor in tensors if isinstance(tensor, torch.Tensor)):
        raise ArgumentError("a reducescatter shares out rows, and a scalar has none; try tensor.reshape(1), which one rank gets, or "
                            "hvd.allreduce, whose result all get")


def _start_reducescatter(tensor, name, op, process_set, prescale, postscale, mark=(), **rare):
    kind = type_of(tensor)
    if kind is None:
        form = FORMS[tensor.dtype]
        form.require_reduction(tensor.dtype, op, prescale != 1 or postscale != 1)
        pending = _start_reducescatter(form.carrier_of(_as_rows(tensor)), name, op, process_set, prescale, postscale, form.mark, **rare)
        return Then(pending, lambda made: form.restored(made, tensor.dtype))
    source = readable(tensor)
    order = order_of(source)
    give = _made_for(tensor, source, order, mark)
    is_nothing = prescale == 0 or postscale == 0

    def finish(result, owner):
        made = give(result, owner)
        return made.zero_() if is_nothing else made

    return enqueue(_abi.REDUCESCATTER, name, kind, (*source.shape, *mark), source.data_ptr(), _lent(source), finish,
                   process_set=number_of(process_set), reduction=_REDUCTIONS[op], prescale=prescale, postscale=postscale,
                   **order.fields, **rare)


def reducescatter_async(tensor, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                        postscale_factor=1.0):
    """Starts a reduction of which each rank gets its share of the rows: as many as the others, and of the first ranks one
    more where it does not come out even."""
    _require_scattered(op, [tensor])
    travels = _travels("reducescatter", tensor, name, process_set, op, prescale_factor != 1 or postscale_factor != 1)
    return _start_reducescatter(tensor, travels, op, process_set, prescale_factor, postscale_factor)


def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                                postscale_factor=1.0):
    """As reducescatter_async, of several tensors that travel when all of them are there."""
    tensors = list(tensors)
    _require_scattered(op, tensors)
    return _start_group("grouped_reducescatter", tensors, name, process_set,
                        lambda tensor, one, fields: _start_reducescatter(tensor, one, op, process_set, prescale_factor,
                                                                         postscale_factor, **fields),
                        op, prescale_factor != 1 or postscale_factor != 1)


# ---- without a tensor -------------------------------------------------------------------------------------------------


def join(device=-1):
    """This rank has run out of data: waits until all have, and meanwhile takes part in their allreduces with zeros. Returns
    the rank that joined last. device is accepted for Horovod's sake: zeros need none here."""
    del device
    last = enqueue(_abi.JOIN, "join", 0, (), 0, None, lambda result, owner: result.last_joined).wait()
    basics.note_meeting()
    return last


def barrier(process_set=global_process_set):
    """Waits until every rank of the set has called it."""
    enqueue(_abi.BARRIER, "", 0, (), 0, None, inflight.nothing, process_set=number_of(process_set)).wait()
