# SPDX-License-Identifier: Apache-2.0
"""horovod.torch, by hvrun.torch."""

from hvrun.torch import *  # noqa: F401,F403

from horovod.common import (  # noqa: F401: `import horovod.torch` loads them there, too
    basics as _basics, elastic as _elastic, exceptions as _exceptions, process_sets as _process_sets, util as _util)
from horovod.torch import compression, elastic, functions, mpi_ops, optimizer, sync_batch_norm  # noqa: F401
