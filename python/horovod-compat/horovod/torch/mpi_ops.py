# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.mpi_ops, by hvrun.torch.mpi_ops."""

from hvrun.torch.mpi_ops import *  # noqa: F401,F403
