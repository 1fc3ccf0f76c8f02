# SPDX-License-Identifier: Apache-2.0
"""Horovod's names, by hvrun."""

from hvrun import __getattr__  # noqa: F401: run, loaded when asked for

__version__ = "0.28.1+hvrun"
