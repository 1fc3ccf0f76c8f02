# SPDX-License-Identifier: Apache-2.0
"""Before hvd.init() every call says what was called, in the user's words, and what to call first."""

import pytest
import torch

import hvrun.data
import hvrun.torch as hvd

ONE = torch.ones(2)
WANTS_GRADIENT = torch.ones(2, requires_grad=True)
MODEL = torch.nn.Linear(2, 2)
OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.1)
CALLS = {
    "broadcast_parameters": lambda: hvd.broadcast_parameters(MODEL.state_dict(), root_rank=0),
    "broadcast_optimizer_state": lambda: hvd.broadcast_optimizer_state(OPTIMIZER, root_rank=0),
    "broadcast_object": lambda: hvd.broadcast_object(1),
    "allgather_object": lambda: hvd.allgather_object(1),
    "allreduce": lambda: hvd.allreduce(ONE),
    "allreduce_async_": lambda: hvd.allreduce_async_(ONE),
    "grouped_allreduce": lambda: hvd.grouped_allreduce([WANTS_GRADIENT]),
    "allgather": lambda: hvd.allgather(WANTS_GRADIENT),
    "broadcast": lambda: hvd.broadcast(WANTS_GRADIENT, 0),
    "alltoall": lambda: hvd.alltoall(WANTS_GRADIENT),
    "alltoall_async": lambda: hvd.alltoall_async(ONE, [1, 1]),
    "reducescatter": lambda: hvd.reducescatter(ONE),
    "sparse_allreduce_async": lambda: hvd.sparse_allreduce_async(ONE.to_sparse(), "name", hvd.Sum),
    "join": lambda: hvd.join(),
    "barrier": lambda: hvd.barrier(),
    "DistributedOptimizer": lambda: hvd.DistributedOptimizer(OPTIMIZER),
    "add_process_set": lambda: hvd.add_process_set([0]),
    "remove_process_set": lambda: hvd.remove_process_set(hvd.ProcessSet([0])),
    "counters": lambda: hvd.counters(),
    "start_timeline": lambda: hvd.start_timeline("file"),
    "rank": lambda: hvd.rank(),
    "local_size": lambda: hvd.local_size(),
    "is_homogeneous": lambda: hvd.is_homogeneous(),
    "mpi_enabled": lambda: hvd.mpi_enabled(),
}
OBJECTS = {
    "a state": lambda: hvd.elastic.TorchState(MODEL, OPTIMIZER).sync(),
    "a sampler": lambda: hvrun.data.DistributedSampler([1, 2]),
    "a layer": lambda: hvd.SyncBatchNorm(2)(torch.randn(4, 2)),
    "a set's rank": lambda: hvd.global_process_set.rank(),
    "a set's size": lambda: hvd.global_process_set.size(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_is_named_as_it_was_called(name):
    with pytest.raises(ValueError) as told:
        CALLS[name]()
    assert str(told.value) == f"hvd.{name}() needs a job that has been joined; call hvd.init() first"


@pytest.mark.parametrize("name", OBJECTS)
def test_what_is_no_function_of_hvd_names_none(name):
    with pytest.raises(ValueError) as told:
        OBJECTS[name]()
    assert str(told.value) == "this needs a job that has been joined; call hvd.init() first"


def test_what_a_function_of_the_users_calls_is_its_own():
    class Asking(hvd.Compression.fp16):
        @staticmethod
        def compress(tensor):
            return tensor, hvd.rank()

    with pytest.raises(ValueError, match="^hvd.rank\\(\\) needs a job that has been joined"):
        hvd.allreduce(ONE, compression=Asking)
