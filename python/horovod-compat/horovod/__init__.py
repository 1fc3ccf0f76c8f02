# SPDX-License-Identifier: Apache-2.0
"""Horovod's names, by hvrun."""

from horovod import common  # noqa: F401
from horovod.runner import run  # noqa: F401

__version__ = "0.28.1+hvrun"
