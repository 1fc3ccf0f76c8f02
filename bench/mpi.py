"""Rows of the mpi backend, beside bare MPI of the same library. SPDX-License-Identifier: Apache-2.0

Both sides are started by that library's mpirun, with the same options.
"""

import collective
import programs
from engine import GRADIENTS, SLOW_ROUNDS, STEP_BUDGET_S, bytes_of
from rounds import Rounds, interleave
from sweep import Program, Sweep

# mpirun's words before the program, and the bare peer
LIBRARIES = {
    "openmpi": (["mpirun.openmpi", "-np", "{ranks}", "--bind-to", "core"], "bench_mpi"),
    "mpich": (["mpirun.mpich", "-np", "{ranks}", "-bind-to", "core"], "bench_mpich"),
}


def words(bench, library, ranks, program, *more):
    launcher, _ = LIBRARIES[library]
    programs.need_program(launcher[0])
    started = [word.format(ranks=ranks) for word in launcher]
    return [*started, bench.program(program), "--json", *more]


def own_words(bench, library, ranks, backend, *more):
    return ["env", f"HVRUN_BACKEND={backend}", *words(bench, library, ranks, "bench_engine", *more)]


def bare_words(bench, library, ranks, *more):
    return words(bench, library, ranks, LIBRARIES[library][1], *more)


def beside_bare(library, operation, ranks, backend="mpi"):
    """The sweep over an operation's sizes; backend: what carries for hvrun."""
    def options(operations, sizes):
        return ["--budget", str(collective.BUDGET_S), "--op", operations, "--sizes", sizes]

    def candidates(bench):
        return [(Program(lambda *points: own_words(bench, library, ranks, backend, *options(*points))),
                 Program(lambda *points: bare_words(bench, library, ranks, *options(*points))))]

    carried = "MPI" if backend == "mpi" else f"hvrun's {backend} way"
    return Sweep(f"by {carried}, {operation}, {ranks} ranks, {library}", f"bare {library}", candidates)


def step(library, model, ranks=2):
    """A step's gradients, fused, beside one bare allreduce of as many bytes."""
    def measure(bench):
        ours = own_words(bench, library, ranks, "mpi", "--gradients", GRADIENTS / f"{model}.txt", "--budget", str(STEP_BUDGET_S))
        bare = bare_words(bench, library, ranks, "--budget", str(STEP_BUDGET_S), "--sizes", str(bytes_of(model)))
        pairs = interleave(lambda: programs.median_us(ours), lambda: programs.median_us(bare), min(bench.rounds, SLOW_ROUNDS))
        return Rounds("us", pairs, programs.shown(bare), programs.shown(ours))

    return measure
