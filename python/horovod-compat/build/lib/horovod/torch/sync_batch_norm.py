# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.sync_batch_norm, by hvrun.torch.sync_batch_norm."""

from hvrun.torch import Sum, SyncBatchNorm, allgather_async, allreduce_async, size, synchronize  # noqa: F401
