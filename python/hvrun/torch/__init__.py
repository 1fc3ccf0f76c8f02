# SPDX-License-Identifier: Apache-2.0
"""hvrun for PyTorch: `import hvrun.torch as hvd`, and a script that was written for horovod.torch works.

Nothing is compiled against PyTorch: tensors' addresses go to libhvrun.
"""

from hvrun import basics as _basics
from hvrun.basics import (
    ccl_built, counters, cross_rank, cross_size, cuda_built, ddl_built, gloo_built, gloo_enabled, is_homogeneous,
    is_initialized, local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built, size,
    start_timeline, stop_timeline)
from hvrun.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from hvrun.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from hvrun.torch import elastic
from hvrun.torch.compression import Compression
from hvrun.torch.differentiable import (
    allgather, allreduce, allreduce_, alltoall, broadcast, broadcast_, grouped_allgather, grouped_allreduce,
    grouped_allreduce_, grouped_reducescatter, reducescatter)
from hvrun.torch.functions import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from hvrun.torch.handles import poll, synchronize
from hvrun.torch.operations import (
    Adasum, Average, Max, Min, Product, ReduceOp, Sum, allgather_async, allreduce_async, allreduce_async_, alltoall_async,
    barrier, broadcast_async, broadcast_async_, forget_numbers, grouped_allgather_async, grouped_allreduce_async,
    grouped_allreduce_async_, grouped_reducescatter_async, join, reducescatter_async, sparse_allreduce_async)
from hvrun.torch.optimizer import DistributedOptimizer
from hvrun.torch.sync_batch_norm import SyncBatchNorm


def init(comm=None, process_sets=None):
    """Joins the job: see hvrun.basics.init."""
    if not is_initialized():
        forget_numbers()
    _basics.init(comm, process_sets)


def shutdown():
    """Leaves the job: see hvrun.basics.shutdown."""
    _basics.shutdown()


def check_extension(ext_name, ext_env_var, pkg_path, *args):
    """Of Horovod's, where an extension may not have been built. There is none here: whatever is asked for is there."""
    del ext_name, ext_env_var, pkg_path, args


__all__ = [
    "Adasum", "Average", "Compression", "DistributedOptimizer", "HorovodInternalError", "HostsUpdatedInterrupt", "Max", "Min",
    "ProcessSet", "Product", "ReduceOp", "Sum", "SyncBatchNorm", "add_process_set", "allgather", "allgather_async",
    "allgather_object", "allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "alltoall", "alltoall_async",
    "barrier", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_", "broadcast_object",
    "broadcast_optimizer_state", "broadcast_parameters", "ccl_built", "check_extension", "counters", "cross_rank",
    "cross_size", "cuda_built", "ddl_built", "elastic", "global_process_set", "gloo_built", "gloo_enabled",
    "grouped_allgather", "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async",
    "grouped_allreduce_async_", "grouped_reducescatter", "grouped_reducescatter_async", "init", "is_homogeneous",
    "is_initialized", "join", "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built",
    "poll", "rank", "reducescatter", "reducescatter_async", "remove_process_set", "rocm_built", "shutdown", "size",
    "sparse_allreduce_async", "start_timeline", "stop_timeline", "synchronize",
]

from hvrun.torch import mpi_ops  # noqa: E402,F401: which has all of these
