"""Rows of the collective layer: blocking allreduce of float32 beside MPI_Allreduce. SPDX-License-Identifier: Apache-2.0

One run of either program is one round. The peer's configuration is chosen per size among those below; both sides
are pinned, or neither is, as that configuration has it.
"""

import json
import shlex

import programs
from rounds import NotRun, Rounds, fastest, interleave

KIB, MIB = 1 << 10, 1 << 20
# mpirun's options, and whether they pin each rank to a core.
PEERS = [
    (["--bind-to", "core"], True),
    (["--bind-to", "none"], False),
    (["--bind-to", "core", "--mca", "btl_vader_single_copy_mechanism", "none"], True),
    (["--bind-to", "core", "--mca", "btl_vader_eager_limit", "65536"], True),
    (["--bind-to", "core", "--mca", "btl_vader_single_copy_mechanism", "cma", "--mca", "btl_vader_eager_limit", "16384"], True),
]


def median_us(words):
    """The figure that either benchmark program prints for its one size."""
    lines = programs.run(words).splitlines()
    try:
        return json.loads(lines[-1])["median_us"]
    except (IndexError, ValueError, KeyError) as error:
        raise NotRun(f"{shlex.join(map(str, words))}: printed no result") from error


def own_command(bench, ranks, size, pinned, *more):
    words = [bench.program("bench_collective_allreduce"), "--ranks", ranks, "--sizes", size, "--json", *more]
    return words + (["--pin"] if pinned else [])


def peer_command(bench, ranks, size, options):
    return [programs.need_program("mpirun"), "-np", str(ranks), *options, bench.program("bench_mpi_allreduce"),
            "--sizes", str(size), "--json"]


def beside_mpi(size, ranks=2):
    def measure(bench):
        options, pinned = fastest(PEERS, lambda peer: median_us(peer_command(bench, ranks, size, peer[0])), tries=3)
        ours, peer = own_command(bench, ranks, size, pinned), peer_command(bench, ranks, size, options)
        return Rounds("us", interleave(lambda: median_us(ours), lambda: median_us(peer), bench.rounds), shlex.join(map(str, peer)))

    return measure


def beside_copies(size, ranks=2):
    """All ranks copying that many bytes at the same time."""
    def measure(bench):
        ours, copies = own_command(bench, ranks, size, True), own_command(bench, ranks, size, True, "--copy")
        return Rounds("us", interleave(lambda: median_us(ours), lambda: median_us(copies), bench.rounds),
                      shlex.join(map(str, copies)))

    return measure
