# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.functions, by hvrun.torch.functions."""

from hvrun.torch import (  # noqa: F401
    ProcessSet, allgather, allgather_object, broadcast_, broadcast_async_, broadcast_object, broadcast_optimizer_state,
    broadcast_parameters, global_process_set, rank, size, synchronize)
