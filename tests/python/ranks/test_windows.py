# SPDX-License-Identifier: Apache-2.0
"""Memory in which only gradient buckets go to the runtime as they lie: other operations on tensors there take copies."""

import torch

import hvrun.torch as hvd
from hvrun.torch import gpu, operations


class Memory:
    """That of a tensor, noted."""

    def __init__(self, tensor):
        gpu.note_window(self, tensor.data_ptr(), tensor.nbytes)


OPERATIONS = {
    "allreduce": lambda one: hvd.allreduce(one, op=hvd.Sum, name="w"),
    "allreduce_": lambda one: hvd.allreduce_(one, op=hvd.Sum, name="w"),
    "grouped_allreduce_": lambda one: hvd.grouped_allreduce_([one[:4], one[4:]], op=hvd.Sum, name="w")[1],
    "broadcast": lambda one: hvd.broadcast(one, hvd.size() - 1, name="w"),
    "broadcast_": lambda one: hvd.broadcast_(one, hvd.size() - 1, name="w"),
    "allgather": lambda one: hvd.allgather(one, name="w"),
    "reducescatter": lambda one: hvd.reducescatter(one, op=hvd.Sum, name="w"),
    "alltoall": lambda one: hvd.alltoall(one, [one.numel(), *[0] * (hvd.size() - 1)], name="w")[0],
}


def test_other_operations_than_a_buckets_take_copies(monkeypatch):
    given = []
    enqueue = operations.enqueue

    def noting(operation, name, kind, shape, address, lent, finish, output=0, *more, **fields):
        given.extend([address, output])
        return enqueue(operation, name, kind, shape, address, lent, finish, output, *more, **fields)

    monkeypatch.setattr(operations, "enqueue", noting)
    for name, call in OPERATIONS.items():
        tensor = torch.arange(12, dtype=torch.float32) + hvd.rank()
        other = tensor.clone()
        memory = Memory(tensor)
        begin, end = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
        given.clear()
        made = call(tensor)
        assert given and not any(begin <= address < end for address in given), name
        assert torch.equal(made, call(other)), name
        assert torch.equal(tensor, other), name  # in place, or as it was
        del memory
        given.clear()
        call(tensor)
        assert any(begin <= address < end for address in given), name
