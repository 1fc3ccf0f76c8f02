# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.optimizer, by hvrun.torch.optimizer."""

from hvrun.torch import (  # noqa: F401
    Adasum, Average, Compression, DistributedOptimizer, ProcessSet, Sum, allreduce_async_, broadcast_object,
    global_process_set, grouped_allreduce_async_, rocm_built, size, sparse_allreduce_async, synchronize)
from hvrun.torch.adasum_optimizer import AdasumSteps as _DistributedAdasumOptimizer  # noqa: F401
from hvrun.torch.horovod_names import split_list  # noqa: F401
from hvrun.torch.optimizer import DistributedSteps as _DistributedOptimizer  # noqa: F401
