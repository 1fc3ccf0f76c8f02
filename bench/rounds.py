"""Interleaved rounds of hvrun and its peer, judged by the median of the per-round figures.

SPDX-License-Identifier: Apache-2.0

Machines that are shared change their speed by half within a minute. So both sides run in turn, the order changes
from round to round, and only figures of the same round are compared.
"""

import dataclasses
import math
import statistics

LEAST_ROUNDS = 7


class NotRun(Exception):
    """This row cannot be measured here; the text says why."""


@dataclasses.dataclass(frozen=True)
class Rule:
    """What a row demands: figure(ours, peer) of a round, its median held against limit."""

    text: str
    limit: float
    at_least: bool
    figure: callable
    unit: str = "x"

    def holds(self, value):
        return value >= self.limit if self.at_least else value <= self.limit


def at_most_times(limit):
    """Our time is at most so many times the peer's."""
    return Rule(f"<= {limit:g} x peer", limit, False, lambda ours, peer: ours / peer)


def at_least_times_faster(limit):
    """The peer's time is at least so many times ours."""
    return Rule(f">= {limit:g} x peer's speed", limit, True, lambda ours, peer: peer / ours)


def at_most_more(limit, unit):
    """We take at most so much more than the peer, in the measured unit."""
    return Rule(f"<= peer + {limit:g} {unit}", limit, False, lambda ours, peer: ours - peer, unit)


def at_most_larger_of(limit, unit, times):
    """We take at most so much more than the peer, or so many times as long: whichever is larger."""
    return Rule(f"<= peer + {limit:g} {unit} or {times:g} x", 1, False,
                lambda ours, peer: ours / max(peer + limit, times * peer), "of that")


def reported(unit="x"):
    """No limit: the figure is told, for information."""
    return Rule("for information", math.inf, False, lambda ours, peer: ours / peer if peer else ours, unit)


def at_most(limit, unit):
    """An absolute limit, for what has no peer."""
    return Rule(f"<= {limit:g} {unit}", limit, False, lambda ours, peer: ours, unit)


@dataclasses.dataclass
class Rounds:
    """ours and peer of each round in one unit; peer is None throughout where there is none."""

    unit: str
    pairs: list
    peer_command: str = ""
    own_command: str = ""
    note: str = ""  # what else was seen while it was measured
    is_counted: bool = False  # the figures are the same in every run: one round is as good as many

    def judge(self, rule):
        figures = [rule.figure(ours, peer) for ours, peer in self.pairs]
        median = statistics.median(figures)
        has_peer = self.pairs[0][1] is not None
        return Judgement(rule.holds(median), median, min(figures), max(figures), len(figures),
                         statistics.median(ours for ours, _ in self.pairs),
                         statistics.median(peer for _, peer in self.pairs) if has_peer else None,
                         self.is_counted or len(figures) >= LEAST_ROUNDS)


@dataclasses.dataclass(frozen=True)
class Judgement:
    holds: bool
    median: float
    lowest: float
    highest: float
    rounds: int
    ours: float
    peer: float | None
    is_final: bool  # rounds enough for a verdict


def interleave(ours, peer, rounds, first=0):
    """Calls ours() and peer() in turn, each round in the other order; gives the pairs of what they returned."""
    pairs = []
    for number in range(first, first + rounds):
        if number % 2:
            theirs, own = peer(), ours()
        else:
            own, theirs = ours(), peer()
        pairs.append((own, theirs))
    return pairs


def fastest(candidates, measure, tries=5):
    """The peer in its best configuration: the candidate with the lowest median. measure raises NotRun if it cannot."""
    best, reasons = None, []
    for candidate in candidates:
        try:
            time = statistics.median(measure(candidate) for _ in range(tries))
        except NotRun as reason:
            reasons.append(str(reason))
            continue
        if best is None or time < best[0]:
            best = (time, candidate)
    if best is None:
        raise NotRun("; ".join(reasons) or "no candidate")
    return best[1]
