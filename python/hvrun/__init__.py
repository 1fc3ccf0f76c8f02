# SPDX-License-Identifier: Apache-2.0
"""hvrun: collective operations between the ranks of a job, and the launcher that starts them.

`import hvrun.torch as hvd` in a training script; `hvrun -np 4 python train.py` on the command line. Importing this package
needs no framework, and loads no library until the first use.
"""

__version__ = "0.1.0"
