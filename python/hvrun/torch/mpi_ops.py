# SPDX-License-Identifier: Apache-2.0
"""The operations by the name of the module that Horovod has them in: hvd.mpi_ops.allreduce is hvd.allreduce."""

from hvrun.torch import *  # noqa: F401,F403
from hvrun.torch.horovod_names import (  # noqa: F401
    HorovodAllgather, HorovodAllreduce, HorovodAlltoall, HorovodBroadcast, HorovodGroupedAllgather, HorovodGroupedAllreduce,
    HorovodGroupedReducescatter, HorovodReducescatter, check_installed_version, get_average_backwards_compatibility_fun,
    gpu_available, handle_average_backwards_compatibility, mpi_lib, num_rank_is_power_2)
