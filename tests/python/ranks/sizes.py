# SPDX-License-Identifier: Apache-2.0
"""What the launcher says of the job."""

import os

_NAMES = ("HVRUN_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")  # hvrun's, Open MPI's and MPICH's


def job_size():
    """How many ranks it has started; before any of them has joined."""
    return next((int(os.environ[name]) for name in _NAMES if name in os.environ), 1)
