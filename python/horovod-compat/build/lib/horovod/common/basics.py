# SPDX-License-Identifier: Apache-2.0
"""horovod.common.basics, by hvrun.basics."""

from hvrun.basics import HorovodBasics  # noqa: F401
from horovod.common import util  # noqa: F401
from hvrun.process_sets import ProcessSet, global_process_set  # noqa: F401


def __getattr__(name):
    if name == "MPI":
        raise AttributeError("MPI's communicators are not used by hvrun: process sets are named by their ranks")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
