# SPDX-License-Identifier: Apache-2.0
"""A program whose rank 1 misses a tensor; tests name its lines."""

STALLING = """
import os, threading
from hvrun import _abi, basics, inflight
def missing():
    threading.Event().wait()
basics.init()
if os.environ["RANK"] == "1":
    missing()
inflight.reduce_numbers("w", [1], _abi.SUM)
"""
