"""Measures hvrun beside its peers and holds it to its budgets; './dev bench' runs it.

SPDX-License-Identifier: Apache-2.0

Every budget is a row with target, measured figure and PASS or MISS. A row that could not be measured is NOT RUN and
counts as a miss; rows of work that is still to come are listed and count for nothing. Exit status 1 if any missed.
"""

import argparse
import dataclasses
import json
import pathlib
import sys

import collective
import idle
import launch
import logs
import programs
from rounds import LEAST_ROUNDS, NotRun, Rule, at_least_times_faster, at_most, at_most_more, at_most_times

KIB, MIB = 1 << 10, 1 << 20


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    what: str
    rule: Rule
    measure: callable = None  # None: of later work


@dataclasses.dataclass(frozen=True)
class Bench:
    """What rows measure with."""

    build: pathlib.Path
    rounds: int

    @property
    def hvrun(self):
        return self.program("hvrun")

    def program(self, name):
        path = self.build / "bin" / name
        if not path.exists():
            raise NotRun(f"{path} is not built")
        return path


def collective_rows():
    for size in (4, KIB, 16 * KIB):
        yield Row(f"allreduce-{size}", f"collective layer, {size} B, 2 ranks, beside MPI_Allreduce", at_most_more(3, "us"),
                  collective.beside_mpi(size))
    for mib, faster in ((1, 2), (4, 2), (16, 2), (64, 2.5)):
        yield Row(f"allreduce-{mib}m", f"collective layer, {mib} MiB, 2 ranks, beside MPI_Allreduce",
                  at_least_times_faster(faster), collective.beside_mpi(mib * MIB))
    yield Row("allreduce-copy", "collective layer, 64 MiB, beside both ranks copying 64 MiB", at_least_times_faster(0.9),
              collective.beside_copies(64 * MIB))


ROWS = [
    Row("launch", "hvrun -np 2 true, beside mpirun", at_most_times(0.5), launch.local),
    Row("ssh", "the same over SSH on 3 hosts, beside three ssh at once", at_most_times(1.2), launch.over_ssh),
    Row("logs-large", "2 x 1 million labelled lines to a file, 32 KiB writes, beside mpirun --tag-output",
        at_least_times_faster(4), logs.beside_mpirun),
    Row("logs-lines", "the same, one write a line, beside two bare pipes into cat", at_most_times(1.2), logs.beside_bare_pipes),
    *collective_rows(),
    Row("idle", "CPU of an initialised, idle runtime", at_most(0.1, "% of a core"), idle.share_of_a_core),
    Row("agents-1024", "1,024 agents on this machine, through the tree", at_most(15, "s")),
    Row("engine-4", "one 4-byte allreduce through the engine, 2 ranks, beside PyTorch's Gloo", at_most_times(0.05)),
    Row("engine-4-4", "the same with 4 ranks", at_most_times(0.06)),
    Row("resnet50", "one ResNet-50 step, 2 ranks, beside PyTorch's DDP over Gloo", at_most_times(0.25)),
    Row("allreduce-4-ranks", "collective layer, 4 ranks on 2 cores, beside MPI_Allreduce", at_most_times(1.3)),
]


def measure(row, bench):
    """The row's result as a JSON-ready dict."""
    result = {"row": row.name, "what": row.what, "target": row.rule.text, "unit": row.rule.unit}
    if row.measure is None:
        return {**result, "verdict": "NOT RUN", "reason": "of later work", "counts": False}
    try:
        rounds = row.measure(bench)
    except NotRun as reason:
        return {**result, "verdict": "NOT RUN", "reason": str(reason), "counts": True}
    judged = rounds.judge(row.rule)
    return {**result, "verdict": "PASS" if judged.holds else "MISS", "counts": True, "measured": judged.median,
            "lowest": judged.lowest, "highest": judged.highest, "rounds": judged.rounds, "ours": judged.ours,
            "peer": judged.peer, "absolute_unit": rounds.unit, "peer_command": rounds.peer_command}


def is_missed(result):
    return result["counts"] and result["verdict"] != "PASS"


def as_text(result):
    """One line for the verdict, one for the absolute figures."""
    head = f"{result['verdict']:7}  {result['row']:17} {result['target']:24}"
    if "measured" not in result:
        return f"{head} {result['reason']}\n         {result['what']}"
    figures = f"{result['measured']:.3g} {result['unit']} ({result['lowest']:.3g} .. {result['highest']:.3g}, {result['rounds']} rounds)"
    absolute = f"hvrun {result['ours']:.4g} {result['absolute_unit']}"
    if result["peer"] is not None:
        absolute += f", peer {result['peer']:.4g} {result['absolute_unit']}: {result['peer_command']}"
    return f"{head} {figures}\n         {result['what']}; {absolute}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=programs.SOURCE / "build/release", help="build folder")
    parser.add_argument("--json", action="store_true", help="one object per row, after one that names the machine")
    parser.add_argument("--rounds", type=int, default=11, help=f"at least {LEAST_ROUNDS}")
    parser.add_argument("row", nargs="*", help="names of rows, or their beginnings; default: all")
    arguments = parser.parse_args()
    if arguments.rounds < LEAST_ROUNDS:
        parser.error(f"--rounds: at least {LEAST_ROUNDS}")
    for name in arguments.row:
        if not any(row.name.startswith(name) for row in ROWS):
            parser.error(f"no row '{name}'; there are: {', '.join(row.name for row in ROWS)}")
    return arguments


def main():
    arguments = parse_arguments()
    bench = Bench(arguments.build.resolve(), arguments.rounds)
    peer = {"hvrun": programs.first_line([bench.build / "bin/hvrun", "--version"]), "mpirun": programs.first_line(["mpirun", "--version"]),
            "ssh": programs.first_line(["sh", "-c", "ssh -V 2>&1"])}
    print(json.dumps(peer) if arguments.json else ", ".join(f"{name}: {version}" for name, version in peer.items()), flush=True)
    results = []
    for row in ROWS:
        if arguments.row and not any(row.name.startswith(name) for name in arguments.row):
            continue
        results.append(measure(row, bench))
        print(json.dumps(results[-1]) if arguments.json else as_text(results[-1]), flush=True)
    missed = [result["row"] for result in results if is_missed(result)]
    if not arguments.json:
        print(f"{len(results)} rows, {len(missed)} missed" + (": " + ", ".join(missed) if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
