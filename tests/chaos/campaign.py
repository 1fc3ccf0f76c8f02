#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs jobs with faults drawn from a seed, and says what did not hold. Needs root. docs/testing.md, Chaos.

    campaign.py --seed S --count N [--jobs J] [--ledger]     runs 0 to N-1
    campaign.py --seed S --only K                            run K again
    campaign.py --seed S --count N --list                    what they would do

What explains a violation stays in build/chaos/seed-S/run-K. Exit code 1 where there was one.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import datetime
import multiprocessing
import pathlib
import resource
import shutil
import subprocess
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from chaos import judge, plan  # noqa: E402
from chaos.job import run_one  # noqa: E402
from harness import cluster, programs, started  # noqa: E402

LEDGER = pathlib.Path(__file__).resolve().parent / "ledger.md"
CANNOT = 2
PROGRESS = 100  # runs between two lines of progress


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Of a run. found: (kind, text) of violations; is_stalled: they prove nothing; faults: kinds of those that were done."""

    index: int
    found: tuple = ()
    is_stalled: bool = False
    is_late: bool = False
    faults: tuple = ()
    missed: int = 0


def do_run(seed, index, folder, room):
    """For a process of its own."""
    judge.ROOM = room
    drawn = plan.draw(seed, index)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(drawn.as_json() + "\n")
    try:
        seen = run_one(drawn, folder)
        found, is_stalled = judge.judge(drawn, seen)
        outcome = Outcome(index, tuple((each.kind, each.text) for each in found), is_stalled, judge.is_late(drawn, seen),
                          tuple(each.fault.kind for each in seen.done), seen.missed)
    except Exception:  # of the runner itself: it counts, and the campaign goes on
        outcome = Outcome(index, (("runner", traceback.format_exc()),))
    started.tell_all()
    if outcome.found:
        (folder / "violations").write_text("".join(f"{kind}: {text}\n" for kind, text in outcome.found))
    else:
        shutil.rmtree(folder)
    return outcome


class Tally:
    """What a campaign has seen so far."""

    def __init__(self):
        self.runs = self.stalled = self.late = self.missed = 0
        self.bad = []  # indices of runs with a violation
        self.kinds = collections.Counter()  # of violations
        self.faults = collections.Counter()

    def add(self, outcome):
        self.runs += 1
        self.late += outcome.is_late
        self.missed += outcome.missed
        self.faults.update(outcome.faults)
        if outcome.found and outcome.is_stalled:
            self.stalled += 1
        elif outcome.found:
            self.bad.append(outcome.index)
            self.kinds.update(kind for kind, _ in outcome.found)

    def line(self, seed):
        def counted(counter):
            return ", ".join(f"{kind} {count}" for kind, count in sorted(counter.items()))

        kinds = f" ({counted(self.kinds)})" if self.kinds else ""
        return (f"chaos: {self.runs} runs of seed {seed}, {len(self.bad)} with violations{kinds}; {self.stalled} prove nothing on this "
                f"busy machine, {self.late} ended late; faults: {counted(self.faults) or 'none'}; {self.missed} found no target")


def indices_of(options):
    return options.only or range(options.count)


def run_all(options):
    tally = Tally()
    own = options.evidence / f"seed-{options.seed}"
    # Hosts end with the thread that made them, so each worker is a process, and its runs are its main thread's.
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        runs = [pool.submit(do_run, options.seed, index, own / f"run-{index}", options.room) for index in indices_of(options)]
        for run in concurrent.futures.as_completed(runs):
            tally.add(run.result())
            if run.result().found:
                tell(options, own, run.result())
            elif tally.runs % PROGRESS == 0:
                print(tally.line(options.seed), flush=True)
    return tally


def tell(options, own, outcome):
    print(f"{'PROVES NOTHING' if outcome.is_stalled else 'VIOLATION'} {plan.draw(options.seed, outcome.index)}")
    for kind, text in outcome.found:
        print(f"    {kind}: {text[:1500]}")
    print(f"    see {own / f'run-{outcome.index}'}; again: ./dev chaos --seed {options.seed} --only {outcome.index}", flush=True)


def commit():
    def git(*words):
        return subprocess.run(["git", *words], cwd=programs.SOURCE, capture_output=True, text=True).stdout.strip()

    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" and changes" if git("status", "--porcelain") else "")


def ledger_row(date, of_commit, seed, tally):
    what = ", ".join(f"{kind} {count}" for kind, count in sorted(tally.kinds.items()))
    runs = f": runs {', '.join(map(str, sorted(tally.bad)))}" if tally.bad else ""
    others = "".join(f"; {count} {text}" for count, text in ((tally.late, "ended late"), (tally.stalled, "proved nothing")) if count)
    return f"| {date} | {of_commit} | {seed} | {tally.runs} | {len(tally.bad)} | {(what + runs + others).removeprefix('; ')} |"


def parsed(words):
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", required=True, metavar="S", help="any word: everything is drawn from it and a run's number")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="number of runs (default: 100)")
    parser.add_argument("--only", type=int, action="append", default=[], metavar="K", help="run K alone; repeatable")
    parser.add_argument("--jobs", type=int, default=4, metavar="J", help="runs at a time (default: 4; they wait more than they compute)")
    parser.add_argument("--list", action="store_true", help="print what the runs do, and do nothing")
    parser.add_argument("--ledger", action="store_true", help="add a row to tests/chaos/ledger.md")
    parser.add_argument("--room", type=float, default=judge.ROOM, metavar="SECONDS", help="added to every limit (default: %(default)g)")
    parser.add_argument("--evidence", type=pathlib.Path, default=programs.BUILD / "chaos", metavar="DIR", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.count < 1 or options.jobs < 1 or any(index < 0 for index in options.only):
        parser.error("--count and --jobs are at least 1, --only at least 0")
    if not options.seed.replace("-", "").replace("_", "").isalnum():
        parser.error(f"--seed takes letters and digits, not '{options.seed}'")
    return options


def main(words):
    options = parsed(words)
    if options.list:
        for index in indices_of(options):
            print(plan.draw(options.seed, index))
        return 0
    if reason := cluster.why_not("nft"):
        print(f"chaos: {reason}", file=sys.stderr)
        return CANNOT
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))  # a core that nobody could see would be no violation
    tally = run_all(options)
    print(tally.line(options.seed), flush=True)
    if options.ledger:
        with open(LEDGER, "a", encoding="utf-8") as ledger:
            print(ledger_row(datetime.date.today().isoformat(), commit(), options.seed, tally), file=ledger)
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
