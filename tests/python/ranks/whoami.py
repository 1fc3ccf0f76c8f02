# SPDX-License-Identifier: Apache-2.0
"""What a process that a rank has started finds out. Imports no torch, so that such a process costs little. As a program: prints
it as JSON."""

import json
import os
import sys

from hvrun import basics, inflight, process_sets

NUMBERS = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size", "is_homogeneous")
CALLS = {
    "init": basics.init,
    "counters": basics.counters,
    "start_timeline": lambda: basics.start_timeline("file"),
    "add_process_set": lambda: process_sets.add_process_set([0]),
    "reduce_numbers": lambda: inflight.reduce_numbers("whoami", [1], 1),
}


def _error_of(call):
    try:
        call()
    except Exception as error:  # noqa: BLE001: told as what it is
        return f"{type(error).__name__}: {error}"
    return "no error"


def answers():
    every = process_sets.global_process_set
    return {"numbers": [getattr(basics, name)() for name in NUMBERS], "of all ranks": [every.rank(), every.size(), every.included()],
            "is_initialized": basics.is_initialized(), "errors": {name: _error_of(call) for name, call in CALLS.items()}}


def put_answers(queue):
    try:
        queue.put(answers())
    except Exception as error:
        queue.put(repr(error))
        raise


def put_rank_and_init(queue):
    os.environ.pop("HVRUN_RANK_PROCESS", None)
    queue.put((_error_of(lambda: queue.put(basics.rank())), _error_of(basics.init)))


if __name__ == "__main__":
    json.dump(answers(), sys.stdout)
