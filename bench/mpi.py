"""Rows of the mpi backend through negotiation, beside bare MPI of the same library. SPDX-License-Identifier: Apache-2.0

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
SETTINGS = {"HVRUN_BACKEND": "mpi"}


def words(bench, library, ranks, program, *more):
    launcher, _ = LIBRARIES[library]
    programs.need_program(launcher[0])
    started = [word.format(ranks=ranks) for word in launcher]
    return [*started, bench.program(program), "--json", *more]


def run_by_mpi(own):
    return programs.run(own, SETTINGS)


def beside_bare(library, operation, ranks):
    """The sweep over an operation's sizes."""
    def side(bench, program, run):
        return Program(lambda operations, sizes: words(bench, library, ranks, program, "--budget", str(collective.BUDGET_S), "--op",
                                                       operations, "--sizes", sizes), run)

    def candidates(bench):
        return [(side(bench, "bench_engine", run_by_mpi), side(bench, LIBRARIES[library][1], programs.run))]

    return Sweep(f"by MPI, {operation}, {ranks} ranks, {library}", f"bare {library}", candidates)


def step(library, model, ranks=2):
    """A step's gradients, fused, beside one bare allreduce of as many bytes."""
    def measure(bench):
        ours = words(bench, library, ranks, "bench_engine", "--gradients", GRADIENTS / f"{model}.txt", "--budget", str(STEP_BUDGET_S))
        bare = words(bench, library, ranks, LIBRARIES[library][1], "--budget", str(STEP_BUDGET_S), "--sizes", str(bytes_of(model)))
        pairs = interleave(lambda: programs.median_us(ours, SETTINGS), lambda: programs.median_us(bare), min(bench.rounds, SLOW_ROUNDS))
        return Rounds("us", pairs, programs.shown(bare), " ".join(f"{name}={value}" for name, value in SETTINGS.items()) + " "
                      + programs.shown(ours))

    return measure
