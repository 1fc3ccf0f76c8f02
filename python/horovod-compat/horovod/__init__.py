# SPDX-License-Identifier: Apache-2.0
"""Horovod's names, by hvrun."""

from horovod import _absent, common  # noqa: F401
from horovod.runner import run  # noqa: F401

_absent.tell_on_import()

__version__ = "0.28.1+hvrun"
