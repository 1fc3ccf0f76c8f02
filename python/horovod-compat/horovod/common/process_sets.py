# SPDX-License-Identifier: Apache-2.0
"""horovod.common.process_sets, by hvrun.process_sets."""

from hvrun.basics import HorovodBasics  # noqa: F401
from hvrun.process_sets import (  # noqa: F401
    ProcessSet, add_process_set, get_process_set_ids_and_ranks, global_process_set, process_set_ids, remove_process_set)
from hvrun._horovod_util import is_iterable  # noqa: F401


def __getattr__(name):
    if name == "MPI":
        raise AttributeError("MPI's communicators are not used by hvrun: process sets are named by their ranks")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
