# SPDX-License-Identifier: Apache-2.0
"""One rank's parameters, optimizer state or objects, for all ranks.

Objects travel pickled, by cloudpickle where it is installed: between the ranks of one job, which have proven its key to each
other and run one user's program (docs/security.md).
"""

import pickle
import typing

import torch

from hvrun import _abi, inflight
from hvrun._called import warn
from hvrun.exceptions import of_status
from hvrun.process_sets import global_process_set
from hvrun.torch import entries
from hvrun.torch import operations as ops
from hvrun.torch.handles import Several, Then, synchronize

try:
    import cloudpickle as _pickler  # functions and classes of __main__, too
except ImportError:
    _pickler = pickle


def broadcast_parameters(params, root_rank, process_set=global_process_set):
    """Gives every rank root_rank's tensors, in place. params: model.state_dict(), or a list of (name, tensor) or of tensors.
    ValueError for anything else, also for a generator such as model.named_parameters(), and, on all ranks, for an entry that
    cannot travel, by its name. What a module's get_extra_state() gives is left as it is."""
    if isinstance(params, dict):
        named = sorted(params.items())
    elif isinstance(params, list):
        named = [one if isinstance(one, tuple) else (str(number), one) for number, one in enumerate(params)]
    else:
        raise ValueError(f"broadcast_parameters takes model.state_dict() or a list of (name, tensor), not {type(params)}; "
                         "try list(model.named_parameters())")
    named = _without_extra_states(named, process_set)
    composites = _agree_on_entries(named, root_rank, isinstance(params, dict) and hasattr(params, "_metadata"), process_set)
    handles = [_broadcast_sparse(one, name, composites[name], root_rank, process_set) if entries.is_sparse(one) else
               ops.broadcast_async_(one, root_rank, f"parameters.{name}", process_set) for name, one in named]
    for handle in handles:
        synchronize(handle)


def _without_extra_states(named, process_set):
    """A state_dict() does not share these objects with its model, so a broadcast could not give them back."""
    own = [name for name, one in named if str(name).endswith("_extra_state") and not isinstance(one, torch.Tensor)]
    if any(one is not None for name, one in named if name in own) and process_set.rank() == 0:
        warn(f"broadcast_parameters leaves {', '.join(own)} as on each rank: a module's extra state is an object of its own. Try "
             "module.set_extra_state(hvd.broadcast_object(module.get_extra_state(), root_rank))")
    return [(name, one) for name, one in named if name not in own]


def _agree_on_entries(named, root_rank, has_aliases, process_set):
    """{name: root's entries.Composite} of the sparse and quantized ones. Raises, on all ranks, where an entry cannot travel or ranks
    have different ones. has_aliases: tensors share the memory of the model's, but are not the model's."""
    root = process_set.rank_of(root_rank, "root_rank")
    refusals = {name: words for name, one in named if (words := entries.refusal_of(one))}
    composites = {name: told for name, one in named if name not in refusals and (told := entries.describe(one))}
    is_unusual, = inflight.reduce_numbers("parameters.unusual", [int(bool(refusals or composites))], _abi.MAX,
                                          ops.number_of(process_set))
    if not is_unusual:
        return {}
    everyone = allgather_object((refusals, composites, has_aliases), "parameters.entries", process_set)
    for rank, (refused, _, _) in zip(process_set.ranks, everyone):
        for name, words in refused.items():
            raise ValueError(f"broadcast_parameters: the entry {name!r} on rank {rank} {words}")
    for name in sorted({name for _, theirs, _ in everyone for name in theirs}):
        _require_alike(name, [theirs.get(name) for _, theirs, _ in everyone], process_set.ranks)
        for rank, (_, theirs, aliases) in zip(process_set.ranks, everyone):
            if aliases and rank != root_rank and theirs[name].own != everyone[root][1][name].sent:
                raise ValueError(f"broadcast_parameters: the entry {name!r} has another number of elements, or another scale, on rank "
                                 f"{rank} than on rank {root_rank}, and a state_dict() shares only values with its model. Try "
                                 "[*model.named_parameters(), *model.named_buffers()]")
    return everyone[root][1]


def _require_alike(name, told, ranks):
    """told: each rank's Composite, or None."""
    words = ["a dense one or none" if one is None else one.form for one in told]
    for rank, other in zip(ranks, words):
        if other != words[0]:
            raise of_status(_abi.ERROR_MISMATCH, "mismatch between ranks",
                            f"broadcast_parameters: the ranks' entries {name!r} differ: rank {ranks[0]} has {words[0]}, rank {rank} "
                            f"{other}. Give all of them the same")


def _broadcast_sparse(tensor, name, of_root, root_rank, process_set):
    """of_root: the root's Composite. A handle of the tensor, in place."""
    is_root = process_set.rank() == process_set.rank_of(root_rank, "root_rank")
    recipe, parts = entries.take_apart(tensor)
    if not is_root:
        parts = [torch.empty(shape, dtype=dtype, device=tensor.device) for shape, dtype in of_root.sent]
    both = Several([ops.broadcast_async_(part, root_rank, f"parameters.{name}.part.{number}", process_set)
                    for number, part in enumerate(parts)])
    return Then(both, lambda made: None if is_root else entries.fill_sparse(tensor, recipe, made))


def broadcast_optimizer_state(optimizer, root_rank, model=None, process_set=global_process_set):
    """Gives every rank root_rank's state of an optimizer, and its options: learning rates, betas, what step it is at. An
    optimizer whose state is still empty, here or there, needs no preparation. model is accepted for Horovod's sake."""
    del model
    is_root = process_set.rank() == process_set.rank_of(root_rank, "root_rank")
    tensors, frame = [], None
    if is_root:
        frame, tensors, refusal = _apart(optimizer.state_dict(), root_rank)
        frame = frame, [entries.shape_and_type(one) for one in tensors], refusal
    frame, likes, refusal = broadcast_object(frame, root_rank, "optimizer_state", process_set)
    if refusal:
        raise ValueError(f"broadcast_optimizer_state: {refusal}")
    if not is_root:
        tensors = [torch.empty(shape, dtype=dtype) for shape, dtype in likes]
    flat = [tensor.detach().cpu().contiguous() for tensor in tensors]
    handles = [ops.broadcast_async_(one, root_rank, f"optimizer_state.{number}", process_set) for number, one in enumerate(flat)]
    for handle in handles:
        synchronize(handle)
    if not is_root:
        optimizer.load_state_dict(_together(frame, flat))


class _TensorAt(typing.NamedTuple):
    """Stands for a tensor in a state that travels without its tensors."""

    begin: int  # of its parts among those of all
    end: int
    recipe: tuple


def _apart(value, rank):
    """The value with its tensors replaced, the dense tensors that those consist of, and what cannot travel, as words or None."""
    tensors, refusals = [], []

    def walk(one, where):
        if isinstance(one, torch.Tensor):
            words = entries.refusal_of(one)
            if words:
                refusals.append(f"the entry {where!r} on rank {rank} {words}")
                return None
            recipe, parts = entries.take_apart(one)
            tensors.extend(parts)
            return _TensorAt(len(tensors) - len(parts), len(tensors), recipe)
        if isinstance(one, dict):
            return {key: walk(inner, f"{where}.{key}" if where else str(key)) for key, inner in one.items()}
        if isinstance(one, (list, tuple)) and type(one) in (list, tuple):
            return type(one)(walk(inner, f"{where}.{number}") for number, inner in enumerate(one))
        return one

    return walk(value, ""), tensors, refusals[0] if refusals else None


def _together(value, tensors):
    if isinstance(value, _TensorAt):
        return entries.put_together(value.recipe, tensors[value.begin:value.end])
    if isinstance(value, dict):
        return {key: _together(inner, tensors) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_together(inner, tensors) for inner in value)
    return value


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """root_rank's object, on every rank: there the very same, elsewhere a copy. What obj is elsewhere does not matter."""
    root = process_set.rank_of(root_rank, "root_rank")
    is_root = process_set.rank() == root
    mine = _pickler.dumps(obj) if is_root else None
    travels = ops.name_for("broadcast_object", name, process_set)
    made = inflight.broadcast_bytes(travels, mine, root, ops.number_of(process_set))
    return obj if is_root else pickle.loads(made)


def allgather_object(obj, name=None, process_set=global_process_set):
    """The objects of all ranks of the set, in a list by rank; each a copy."""
    travels = ops.name_for("allgather_object", name, process_set)
    parts = inflight.gather_bytes(travels, _pickler.dumps(obj), ops.number_of(process_set))
    return [pickle.loads(part) for part in parts]
