# SPDX-License-Identifier: Apache-2.0
"""hvrun: collective operations between the ranks of a job, and the launcher that starts them.

`import hvrun.torch as hvd` in a training script; `hvrun -np 4 python train.py` on the command line; hvrun.run(function, np=4)
from inside Python. Importing this package needs no framework, and loads no library until the first use.
"""

import os

__version__ = "0.1.0"

if "HVRUN_RANK" in os.environ and "HVRUN_AGENT" in os.environ:
    from hvrun import _stacks

    _stacks.offer()


def __getattr__(name):
    if name == "run":
        from hvrun.launch import run

        return run
    raise AttributeError(f"module 'hvrun' has no attribute {name!r}")
