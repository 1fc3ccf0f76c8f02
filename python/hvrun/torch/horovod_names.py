# SPDX-License-Identifier: Apache-2.0
"""Names of horovod.torch's that scripts may import and that mean little here."""

from hvrun._horovod_util import *  # noqa: F401,F403
from hvrun.torch.differentiable import (  # noqa: F401
    _Allgather as HorovodAllgather, _Allreduce as HorovodAllreduce, _Alltoall as HorovodAlltoall,
    _Broadcast as HorovodBroadcast, _GroupedAllgather as HorovodGroupedAllgather,
    _GroupedAllreduce as HorovodGroupedAllreduce, _GroupedReducescatter as HorovodGroupedReducescatter,
    _Reducescatter as HorovodReducescatter)
from hvrun.torch.operations import chosen_op as handle_average_backwards_compatibility  # noqa: F401

mpi_lib = None  # there is no compiled extension
