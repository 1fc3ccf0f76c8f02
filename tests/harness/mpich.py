# SPDX-License-Identifier: Apache-2.0
"""MPICH 4.0's ranks wait for each other in MPI_Finalize now and then, with all that they had to say said (docs/mpi.md)."""

import sys

MOST_RETRIES = 2


def run_past_standstill(mpi, run, stands_still):
    """run()'s result; anew where stands_still(result) and mpi is MPICH, whose fault that is, but not for ever. Told on stderr."""
    result = run()
    for retry in range(1, MOST_RETRIES + 1):
        if mpi != "mpich" or not stands_still(result):
            break
        print(f"MPICH stood still in MPI_Finalize: retry {retry} of {MOST_RETRIES}", file=sys.stderr)
        result = run()
    return result
