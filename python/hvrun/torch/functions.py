# SPDX-License-Identifier: Apache-2.0
"""One rank's parameters, optimizer state or objects, for all ranks.

Objects travel pickled, by cloudpickle where it is installed: between the ranks of one job, which have proven its key to each
other and run one user's program (docs/security.md).
"""

import collections
import pickle

import torch

from hvrun import inflight
from hvrun.process_sets import global_process_set
from hvrun.torch import operations as ops
from hvrun.torch.handles import synchronize

try:
    import cloudpickle as _pickler  # functions and classes of __main__, too
except ImportError:
    _pickler = pickle


def broadcast_parameters(params, root_rank, process_set=global_process_set):
    """Gives every rank root_rank's tensors, in place. params: model.state_dict(), or a list of (name, tensor) or of tensors.
    ValueError for anything else, also for a generator such as model.named_parameters(); TypeError where None is in a tensor's
    place."""
    if isinstance(params, dict):
        named = sorted(params.items())
    elif isinstance(params, list):
        named = [one if isinstance(one, tuple) else (str(number), one) for number, one in enumerate(params)]
    else:
        raise ValueError(f"broadcast_parameters takes model.state_dict() or a list of (name, tensor), not {type(params)}; "
                         "try list(model.named_parameters())")
    for name, one in named:
        if not str(name).endswith("_extra_state"):  # of a module's own: any object
            ops.require_present(one, str(name))
    handles = [ops.broadcast_async_(tensor, root_rank, f"parameters.{name}", process_set) for name, tensor in named
               if isinstance(tensor, torch.Tensor)]
    for handle in handles:
        synchronize(handle)


def broadcast_optimizer_state(optimizer, root_rank, model=None, process_set=global_process_set):
    """Gives every rank root_rank's state of an optimizer, and its options: learning rates, betas, what step it is at. An
    optimizer whose state is still empty, here or there, needs no preparation. model is accepted for Horovod's sake."""
    del model
    is_root = process_set.rank() == process_set.rank_of(root_rank, "root_rank")
    tensors, frame = [], None
    if is_root:
        frame, tensors = _apart(optimizer.state_dict())
    frame = broadcast_object((frame, [_like(one) for one in tensors]), root_rank, "optimizer_state", process_set)
    frame, likes = frame
    if not is_root:
        tensors = [torch.empty(shape, dtype=dtype) for shape, dtype in likes]
    flat = [tensor.detach().cpu().contiguous() for tensor in tensors]
    handles = [ops.broadcast_async_(one, root_rank, f"optimizer_state.{number}", process_set) for number, one in enumerate(flat)]
    for handle in handles:
        synchronize(handle)
    if not is_root:
        optimizer.load_state_dict(_together(frame, flat))


class _TensorAt(collections.namedtuple("_TensorAt", "index")):
    """Stands for a tensor in a state that travels without its tensors."""


def _like(tensor):
    return tuple(tensor.shape), tensor.dtype


def _apart(value):
    """The value with its tensors replaced, and the tensors."""
    tensors = []

    def walk(one):
        if isinstance(one, torch.Tensor):
            tensors.append(one)
            return _TensorAt(len(tensors) - 1)
        if isinstance(one, dict):
            return {key: walk(inner) for key, inner in one.items()}
        if isinstance(one, (list, tuple)) and type(one) in (list, tuple):
            return type(one)(walk(inner) for inner in one)
        return one

    return walk(value), tensors


def _together(value, tensors):
    if isinstance(value, _TensorAt):
        return tensors[value.index]
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
