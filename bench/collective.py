"""Rows of the collective layer, beside OpenMPI's collectives. SPDX-License-Identifier: Apache-2.0

The peer's configuration is chosen per size among those below; both sides are pinned, or neither is, as it has it.
"""

import programs
from rounds import Rounds, interleave
from sweep import Program, Sweep

BUDGET_S = 0.15  # of one operation and size in a run, about
NO_COPY = ["--mca", "btl_vader_single_copy_mechanism", "none"]
CMA = ["--mca", "btl_vader_single_copy_mechanism", "cma"]
EAGER = "btl_vader_eager_limit"
# mpirun's options, and whether they pin each rank to a core. More ranks than cores: never pinned.
PEERS = [
    (["--bind-to", "core"], True),
    (["--bind-to", "none"], False),
    (["--bind-to", "core", *NO_COPY], True),
    (["--bind-to", "core", "--mca", EAGER, "65536"], True),
    (["--bind-to", "core", *CMA, "--mca", EAGER, "16384"], True),
]
CROWDED_PEERS = [
    (["--bind-to", "none"], False),
    (["--bind-to", "none", *NO_COPY], False),
    (["--bind-to", "none", "--mca", EAGER, "65536"], False),
]


def own_words(bench, ranks, pinned, *more):
    words = [bench.program("bench_collective"), "--ranks", str(ranks), "--json", "--budget", str(BUDGET_S), *more]
    return words + (["--pin"] if pinned else [])


def ours(bench, ranks, pinned):
    return Program(lambda operations, sizes: own_words(bench, ranks, pinned, "--op", operations, "--sizes", sizes))


def peer(bench, ranks, options):
    start = [programs.need_program("mpirun"), "-np", str(ranks), *options]
    if not ranks_fit(ranks):
        start.append("--oversubscribe")
    return Program(lambda operations, sizes: [*start, bench.program("bench_mpi"), "--op", operations, "--sizes", sizes,
                                              "--json", "--budget", str(BUDGET_S)])


def ranks_fit(ranks):
    return ranks <= programs.usable_cores()


def beside_mpi(operation, ranks):
    """The sweep over an operation's sizes inside this host."""
    def candidates(bench):
        return [(ours(bench, ranks, pinned), peer(bench, ranks, options))
                for options, pinned in (PEERS if ranks_fit(ranks) else CROWDED_PEERS)]

    return Sweep(f"collective layer, {operation}, {ranks} ranks", "OpenMPI", candidates)


def beside_copies(size, ranks=2):
    """All ranks copying that many bytes at the same time."""
    def measure(bench):
        own, copies = own_words(bench, ranks, True, "--sizes", str(size)), own_words(bench, ranks, True, "--copy", "--sizes", str(size))
        return Rounds("us", interleave(lambda: programs.median_us(own), lambda: programs.median_us(copies), bench.rounds),
                      programs.shown(copies), programs.shown(own))

    return measure
