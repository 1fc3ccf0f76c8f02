"""How rounds are judged, whatever was measured. SPDX-License-Identifier: Apache-2.0"""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import rounds  # noqa: E402
import run  # noqa: E402
from rounds import NotRun, Rounds  # noqa: E402


def judged(pairs, rule):
    return Rounds("s", pairs).judge(rule)


def test_ratios_of_the_same_round_count_and_not_those_of_the_medians():
    # The machine was ten times slower in half of the rounds, for both sides alike.
    pairs = [(1, 4), (10, 40), (1, 4), (10, 40), (10, 40)]
    assert judged(pairs, rounds.at_most_times(0.5)).median == 0.25


@pytest.mark.parametrize("rule, holds", [
    (rounds.at_most_times(0.5), True), (rounds.at_most_times(0.4), False),
    (rounds.at_least_times_faster(2), True), (rounds.at_least_times_faster(2.5), False),
    (rounds.at_most_more(-1, "us"), True), (rounds.at_most_more(-2, "us"), False)])
def test_each_rule_passes_at_its_limit_and_misses_beyond(rule, holds):
    assert judged([(1, 2)] * 7, rule).holds is holds


def test_an_absolute_limit_needs_no_peer():
    verdict = judged([(0.05, None), (0.2, None), (0.06, None)], rounds.at_most(0.1, "%"))
    assert verdict.holds and verdict.peer is None and verdict.highest == 0.2


def test_the_order_of_the_sides_changes_from_round_to_round():
    order = []
    pairs = rounds.interleave(lambda: order.append("o") or 1, lambda: order.append("p") or 2, 3)
    assert order == ["o", "p", "p", "o", "o", "p"] and pairs == [(1, 2)] * 3


def test_the_peer_runs_in_its_fastest_configuration_that_works():
    def measure(candidate):
        if candidate == "broken":
            raise NotRun("no such option")
        return {"slow": 3, "fast": 1}[candidate]

    assert rounds.fastest(["slow", "broken", "fast"], measure) == "fast"
    with pytest.raises(NotRun, match="no such option"):
        rounds.fastest(["broken"], measure)


def row(measure):
    return run.Row("r", "a row", rounds.at_most_times(0.5), measure)


def not_run(bench):
    raise NotRun("mpirun is not installed")


def test_a_row_that_was_not_run_counts_as_a_miss():
    result = run.measure(row(not_run), None)
    assert result["verdict"] == "NOT RUN" and run.is_missed(result)
    assert "mpirun is not installed" in run.as_text(result)


def test_a_row_of_later_work_counts_for_nothing():
    result = run.measure(row(None), None)
    assert result["verdict"] == "NOT RUN" and not run.is_missed(result)


def test_a_measured_row_prints_target_figure_spread_and_absolutes():
    result = run.measure(row(lambda bench: Rounds("s", [(1, 4), (2, 4), (4, 4)], "mpirun true")), None)
    text = run.as_text(result)
    assert result["verdict"] == "PASS" and not run.is_missed(result)
    for part in ("PASS", "<= 0.5 x peer", "0.5 x", "0.25 .. 1", "3 rounds", "hvrun 2 s", "peer 4 s", "mpirun true"):
        assert part in text
