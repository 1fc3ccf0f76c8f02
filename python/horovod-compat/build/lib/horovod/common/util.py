# SPDX-License-Identifier: Apache-2.0
"""horovod.common.util: what scripts ask of an installation."""

from hvrun.basics import ccl_built, ddl_built, gloo_built, mpi_built, nccl_built  # noqa: F401
from hvrun.torch.horovod_names import *  # noqa: F401,F403
