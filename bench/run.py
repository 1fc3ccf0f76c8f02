"""Measures hvrun beside its peers and holds it to its budgets; './dev bench' runs it.

SPDX-License-Identifier: Apache-2.0

Every budget is a row with target, measured figure and PASS or MISS. A row that could not be measured is NOT RUN and
counts as a miss, also if it is of work that is still to come. Exit status 1 if any missed.
With fewer than 7 rounds it is a trial: every verdict says so, and the exit status is 1.
"""

import argparse
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import signal
import sys
import time

import gloo
import programs
from rounds import LEAST_ROUNDS, NotRun
from table import ROWS, chosen

TRIAL = "TRIAL"
NO_TIME = "no time was left (--minutes)"
FIGURES = programs.SOURCE / "build/figures"


@dataclasses.dataclass
class Bench:
    """What rows measure with. What they keep running between rounds ends with the 'with'."""

    build: pathlib.Path
    rounds: int
    resources: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)
    kept: dict = dataclasses.field(default_factory=dict)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return self.resources.__exit__(*error)

    @property
    def hvrun(self):
        return self.program("hvrun")

    def program(self, name):
        path = self.build / "bin" / name
        if not path.exists():
            raise NotRun(f"{path} is not built")
        return path

    def keep(self, key, make):
        """What make() gives, entered once and left at the end; asked for again by its key."""
        if key not in self.kept:
            self.kept[key] = self.resources.enter_context(make())
        return self.kept[key]

    def gloo(self, ranks, pinned):
        return self.keep(("gloo", ranks, pinned), lambda: gloo.here(ranks, pinned))


def verdict_of(row, judged):
    verdict = "INFO" if row.rule.limit == math.inf else "PASS" if judged.holds else "MISS"
    return verdict if judged.is_final else f"{TRIAL} {verdict}"


def described(row):
    """What a result says of its row, measured or not."""
    result = {"row": row.name, "what": row.what, "target": row.rule.text, "unit": row.rule.unit, "recorded": row.recorded}
    if row.sweep:
        result.update(series=row.sweep.title, peer_name=row.sweep.peer, op=row.point[0], bytes=row.point[1])
    return result


def unmeasured(row, reason):
    return {**described(row), "verdict": "NOT RUN", "reason": reason}


def measure(row, bench):
    """The row's result as a JSON-ready dict."""
    if not row.is_there():
        return unmeasured(row, "of later work")
    try:
        rounds = row.rounds(bench)
    except NotRun as reason:
        return unmeasured(row, str(reason))
    judged = rounds.judge(row.rule)
    return {**described(row), "verdict": verdict_of(row, judged), "measured": judged.median,
            "lowest": judged.lowest, "highest": judged.highest, "rounds": judged.rounds, "ours": judged.ours,
            "peer": judged.peer, "absolute_unit": rounds.unit, "peer_command": rounds.peer_command,
            "own_command": rounds.own_command, "note": rounds.note}


def is_missed(result):
    return result["verdict"] not in ("PASS", "INFO")


def as_text(result):
    """One line for the verdict, one for the absolute figures, one for each command, others for what else is known."""
    head = f"{result['verdict']:7}  {result['row']:17} {result['target']:24}"
    if "measured" not in result:
        return f"{head} {result['reason']}\n         {result['what']}"
    figures = f"{result['measured']:.3g} {result['unit']} ({result['lowest']:.3g} .. {result['highest']:.3g}, {result['rounds']} rounds)"
    absolute = f"hvrun {result['ours']:.4g} {result['absolute_unit']}"
    if result["peer"] is not None:
        absolute += f", {result.get('peer_name', 'peer')} {result['peer']:.4g} {result['absolute_unit']}"
    commands = [f"{who}: {command}" for who, command in (("hvrun", result["own_command"]), ("peer ", result["peer_command"])) if command]
    more = [text for text in (result["recorded"], result["note"]) if text]
    return "\n         ".join([f"{head} {figures}", f"{result['what']}; {absolute}", *commands, *more])


def summary(results, seconds):
    took = f"{len(results)} rows in {seconds / 60:.0f} min"
    if any(result["verdict"].startswith(TRIAL) for result in results):
        return f"{took}; a trial: verdicts take {LEAST_ROUNDS} rounds"
    missed = [result["row"] for result in results if is_missed(result)]
    return f"{took}, {len(missed)} missed" + (": " + ", ".join(missed) if missed else "")


def list_of(rows):
    return "\n".join(f"{row.group:14} {row.name:34} {row.rule.text:26} {row.what}" for row in rows)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=programs.SOURCE / "build/release", help="build folder")
    parser.add_argument("--json", action="store_true", help="one object per row, after one that names the machine")
    parser.add_argument("--list", action="store_true", help="only say which rows there are: group, name, target, what")
    parser.add_argument("--plot", action="store_true", help=f"draw what was measured into {programs.shown([FIGURES])}")
    parser.add_argument("--plot-from", type=pathlib.Path, metavar="FILE",
                        help="draw what an earlier run wrote by --json; measure nothing")
    parser.add_argument("--rounds", type=int, default=11, help=f"fewer than {LEAST_ROUNDS} make it a trial (default 11)")
    parser.add_argument("--minutes", type=float, default=120, help="after that no further row is begun (default 120)")
    parser.add_argument("row", nargs="*", help="names of rows or groups, or their beginnings; default: all but large-…, which take hours")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    try:
        arguments.rows = chosen(arguments.row) if arguments.row or not arguments.list else ROWS
    except ValueError as word:
        parser.error(f"no row or group '{word}'; groups: {', '.join(dict.fromkeys(row.group for row in ROWS))} (--list has the rows)")
    return arguments


def run(arguments):
    results, end = [], time.monotonic() + 60 * arguments.minutes
    with Bench(arguments.build.resolve(), arguments.rounds) as bench:
        for row in arguments.rows:
            if row.sweep:
                row.sweep.want(row.point)
        for row in arguments.rows:
            results.append(measure(row, bench) if time.monotonic() < end else unmeasured(row, NO_TIME))
            print(json.dumps(results[-1]) if arguments.json else as_text(results[-1]), flush=True)
    return results


def machine(build):
    return {"hvrun": programs.first_line([build / "bin/hvrun", "--version"]), "mpirun": programs.first_line(["mpirun", "--version"]),
            "ssh": programs.first_line(["sh", "-c", "ssh -V 2>&1"]), "torch": gloo.version(), "cores": str(programs.usable_cores())}


def draw(results):
    import plot  # only where it is asked for: matplotlib is large

    for path in plot.draw(results, FIGURES):
        print(f"drew {programs.shown([path])}", file=sys.stderr)


def show(text):
    """To a reader that may have enough before the end, as in `./dev bench --list | head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes the rest when it ends


def main():
    arguments = parse_arguments()
    if arguments.list:
        show(list_of(arguments.rows))
        return 0
    if arguments.plot_from:
        with open(arguments.plot_from) as lines:
            draw([result for result in map(json.loads, lines) if "row" in result])
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # hosts, ranks and folders go, as by Ctrl-C
    peers = machine(arguments.build.resolve())
    print(json.dumps(peers) if arguments.json else ", ".join(f"{name}: {version}" for name, version in peers.items()), flush=True)
    begun = time.monotonic()
    results = run(arguments)
    if not arguments.json:
        print(summary(results, time.monotonic() - begun))
    if arguments.plot:
        draw(results)
    return 1 if any(is_missed(result) for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
