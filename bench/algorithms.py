#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the algorithms between hosts against each other: what src/contract/algorithms.cc's table is made from.

    sudo bench/algorithms.py --program build/release/bin/bench_algorithms --hosts 3 --slots 1 [--rate 1gbit]

Hosts are network namespaces on this machine (tests/harness), shaped by tc tbf in both directions with --rate. Each round runs every
algorithm once, in an order that turns from round to round; for each size the table shows the median over rounds of
an algorithm's time divided by that of the first one in the same round, and the first one's median time.
"""

import argparse
import json
import pathlib
import statistics
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests"))

from harness import cluster, network  # noqa: E402

WAYS = ["allreduce:torus,cross:" + way for way in ("exchange", "scatter", "ring", "halving", "doubling", "tree")]
SIZES = [4, 1 << 10, 8 << 10, 32 << 10, 128 << 10, 1 << 20, 16 << 20]


def one_run(hosts, options, way):
    words = ["hvrun", "-H", ",".join(f"{name}:{options.slots}" for name in hosts.names), "--no-label",
             "-x", f"HVRUN_ALGORITHM={way}", options.program, *map(str, options.sizes)]
    result = hosts.run(words, timeout=600)
    assert result.code == 0, f"{way}: {result}"
    return {int(size): seconds for size, seconds in json.loads(result.out.splitlines()[-1]).items()}


def measured(hosts, options):
    rounds = []
    for turn in range(options.rounds):
        order = options.ways[turn % len(options.ways):] + options.ways[:turn % len(options.ways)]
        rounds.append({way: one_run(hosts, options, way) for way in order})
    return rounds


def table(rounds, options):
    first = options.ways[0]
    lines = [f"{options.hosts} hosts x {options.slots}, {options.rate or 'unshaped'}, {len(rounds)} rounds"]
    lines.append("bytes".rjust(10) + first.rpartition(":")[2].rjust(14)
                 + "".join(way.rpartition(":")[2].rjust(12) for way in options.ways[1:]))
    for size in options.sizes:
        base = statistics.median(one[first][size] for one in rounds)
        ratios = [statistics.median(one[way][size] / one[first][size] for one in rounds) for way in options.ways[1:]]
        lines.append(f"{size:10}{base * 1e6:11.1f} us" + "".join(f"{ratio:11.2f}x" for ratio in ratios))
    return "\n".join(lines)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--rate", help="such as 1gbit; default: as fast as it goes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--ways", nargs="+", default=WAYS, help="values of HVRUN_ALGORITHM")
    return parser.parse_args()


def main():
    options = parsed()
    missing = cluster.why_not("tc")
    if missing:
        sys.exit(f"algorithms.py: {missing}")
    with cluster.Cluster([f"node{number}" for number in range(1, options.hosts + 1)]) as hosts:
        if options.rate:
            for node in hosts.nodes:
                network.shape(node, "lan", options.rate)
        print(table(measured(hosts, options), options), flush=True)


main()
