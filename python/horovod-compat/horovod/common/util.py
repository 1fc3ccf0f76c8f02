# SPDX-License-Identifier: Apache-2.0
"""horovod.common.util: what scripts ask of an installation."""

from hvrun.basics import ccl_built, ddl_built, gloo_built, mpi_built, nccl_built  # noqa: F401
from hvrun._horovod_util import *  # noqa: F401,F403

_OF_EXTENSIONS = ("_check_extension_lambda", "_cache", "_target_fn")


def __getattr__(name):
    if name in _OF_EXTENSIONS:
        raise AttributeError(f"horovod.common.util.{name} asks Horovod's compiled extensions in a process of its own; hvrun has none. "
                             "Try: the functions of this module, such as mpi_built() and extension_available()")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
