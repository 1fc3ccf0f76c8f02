"""Several operations and sizes, measured together: a round is one run of each side. SPDX-License-Identifier: Apache-2.0

A point is (operation, bytes). Each side may have several configurations; candidates pair ours with the peer's, both
pinned or both not. The peer's fastest configuration is chosen for each point by itself, before the rounds; in a round
every chosen configuration runs once, with its points, beside ours.
"""

import contextlib
import statistics

import programs
from rounds import NotRun, Rounds, interleave

TRIES = 2


class Program:
    """A side that is a program: started for each run, with operations and sizes on its command line."""

    def __init__(self, words, run=programs.run):
        """words(operations, sizes): the whole command. run(words): its standard output; raises NotRun."""
        self._words, self._run = words, run

    def words(self, points):
        operations = sorted({operation for operation, _ in points})
        sizes = sorted({size for _, size in points})
        return self._words(",".join(operations), ",".join(map(str, sizes)))

    def command(self, points):
        return programs.shown(self.words(points))

    def run(self, points):
        words = self.words(points)
        return figures_of(programs.json_lines(self._run(words), words), points, words)


def figures_of(results, points, words):
    """{point: microseconds} of a side's results, all of the points."""
    figures = {(result["op"], result["bytes"]): result["median_us"] for result in results if "op" in result}
    if missing := [point for point in points if point not in figures]:
        raise NotRun(f"{programs.shown(words)}: no result for {missing[0]}")
    return {point: figures[point] for point in points}


def choose(candidates, points, tries):
    """{index of a candidate: its points}: for each point the candidate whose peer is fastest."""
    times, reasons = {point: [] for point in points}, []
    for index, (_, peer) in enumerate(candidates):
        try:
            runs = [peer.run(points) for _ in range(tries)]
        except NotRun as reason:
            reasons.append(str(reason))
            continue
        for point in points:
            times[point].append((statistics.median(run[point] for run in runs), index))
    chosen = {}
    for point in points:
        if not times[point]:
            raise NotRun("; ".join(reasons) or "no candidate")
        chosen.setdefault(min(times[point])[1], []).append(point)
    return chosen


def measure(candidates, points, rounds, tries=TRIES):
    """{point: Rounds} in microseconds."""
    chosen = choose(candidates, points, tries) if len(candidates) > 1 else {0: list(points)}
    pairs = {point: [] for point in points}
    for number in range(rounds):
        for index, some in chosen.items():
            ours, peer = candidates[index]
            sides = interleave(lambda ours=ours, some=some: ours.run(some), lambda peer=peer, some=some: peer.run(some), 1, number)
            for point in some:
                pairs[point].append((sides[0][0][point], sides[0][1][point]))
    return {point: Rounds("us", pairs[point], candidates[index][1].command([point]), candidates[index][0].command([point]))
            for index, some in chosen.items() for point in some}


class Sweep:
    """Measured once, when the first of its rows is; only the points that were wanted."""

    def __init__(self, title, peer, candidates, *, most_rounds=None, tries=TRIES, watch=None):
        """candidates(bench): list of (ours, peer), or raises NotRun. title, peer: names for people. tries: of each candidate.

        watch(bench): a context around the rounds, whose value is called at their end for a note on what was seen.
        """
        self.title, self.peer = title, peer
        self._candidates, self._most_rounds, self._tries, self._watch = candidates, most_rounds, tries, watch
        self._wanted, self._outcome = [], None

    def want(self, point):
        if point not in self._wanted:
            self._wanted.append(point)

    def measure(self, bench, point):
        if self._outcome is None:
            self._outcome = self._measure(bench)
        if isinstance(self._outcome, NotRun):
            raise self._outcome
        return self._outcome[point]

    def _measure(self, bench):
        try:
            candidates = self._candidates(bench)
            with self._watch(bench) if self._watch else contextlib.nullcontext(lambda: "") as seen:
                figures = measure(candidates, self._wanted, min(bench.rounds, self._most_rounds or bench.rounds), self._tries)
                note = seen()
        except NotRun as reason:
            return reason
        for rounds in figures.values():
            rounds.note = note
        return figures
