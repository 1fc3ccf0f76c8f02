# SPDX-License-Identifier: Apache-2.0
"""horovod.torch, by hvrun.torch."""

from hvrun.torch import *  # noqa: F401,F403
from hvrun.torch import is_homogeneous  # noqa: F401

from horovod.torch import elastic  # noqa: F401
