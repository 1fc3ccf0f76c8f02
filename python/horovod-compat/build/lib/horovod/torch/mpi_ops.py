# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.mpi_ops, by hvrun.torch."""

from hvrun.basics import is_homogeneous  # noqa: F401
from hvrun.torch import *  # noqa: F401,F403
from hvrun.torch.horovod_names import (  # noqa: F401
    HorovodAllgather, HorovodAllreduce, HorovodAlltoall, HorovodBroadcast, HorovodGroupedAllgather, HorovodGroupedAllreduce,
    HorovodGroupedReducescatter, HorovodReducescatter, check_installed_version, get_average_backwards_compatibility_fun,
    gpu_available, handle_average_backwards_compatibility, mpi_lib, num_rank_is_power_2)
