"""How rounds are judged, whatever was measured. SPDX-License-Identifier: Apache-2.0"""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import rounds  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402
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
    (rounds.at_most_more(-1, "us"), True), (rounds.at_most_more(-2, "us"), False),
    (rounds.at_most_larger_of(-1, "us", 0.4), True), (rounds.at_most_larger_of(-1.5, "us", 0.5), True),
    (rounds.at_most_larger_of(-1.5, "us", 0.4), False)])
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
    return table.Row("r", "a row", rounds.at_most_times(0.5), measure)


def not_run(bench):
    raise NotRun("mpirun is not installed")


def test_a_row_that_was_not_run_counts_as_a_miss():
    result = run.measure(row(not_run), None)
    assert result["verdict"] == "NOT RUN" and run.is_missed(result)
    assert "mpirun is not installed" in run.as_text(result)


def test_a_row_of_later_work_counts_as_a_miss():
    result = run.measure(row(None), None)
    assert result["verdict"] == "NOT RUN" and run.is_missed(result)


def test_a_measured_row_prints_target_figure_spread_and_absolutes():
    result = run.measure(row(lambda bench: Rounds("s", [(1, 4), (2, 4), (4, 4)] * 3, "mpirun true", "hvrun true")), None)
    text = run.as_text(result)
    assert result["verdict"] == "PASS" and not run.is_missed(result)
    for part in ("PASS", "<= 0.5 x peer", "0.5 x", "0.25 .. 1", "9 rounds", "hvrun 2 s", "peer 4 s", "peer : mpirun true",
                 "hvrun: hvrun true"):
        assert part in text


def test_with_few_rounds_a_verdict_is_a_trial_and_no_pass():
    result = run.measure(row(lambda bench: Rounds("s", [(1, 4)] * 6)), None)
    assert result["verdict"] == "TRIAL PASS" and run.is_missed(result)
    assert "a trial" in run.summary([result], 60)


def test_a_figure_for_information_is_never_missed():
    result = run.measure(table.Row("r", "a row", rounds.reported(), lambda bench: Rounds("s", [(9, 1)] * 7)), None)
    assert result["verdict"] == "INFO" and result["measured"] == 9 and not run.is_missed(result)


def test_rows_after_the_time_limit_are_not_run_and_missed():
    arguments = run.argparse.Namespace(build=run.pathlib.Path(), rounds=7, minutes=-1, json=True, rows=[row(not_run)])
    (result,) = run.run(arguments)
    assert result["reason"] == run.NO_TIME and run.is_missed(result)


def test_summary_names_what_was_missed():
    results = [run.measure(row(lambda bench, ours=ours: Rounds("s", [(ours, 4)] * 7)), None) for ours in (1, 3)]
    assert run.summary(results, 120) == "2 rows in 2 min, 1 missed: r"


@pytest.mark.parametrize("ours, verdict", [(2, "PASS"), (3, "MISS")])
def test_a_figure_that_is_counted_needs_one_round(ours, verdict):
    assert run.measure(row(lambda bench: Rounds("B", [(ours, 4)], is_counted=True)), None)["verdict"] == verdict


@pytest.mark.parametrize("growth, latest, verdict", [(0, 1, "PASS"), (1, 1, "MISS"), (0, 2, "NOT RUN")])
def test_the_busiest_leader_of_many_ranks_is_held_against_that_of_few(tmp_path, growth, latest, verdict):
    program = tmp_path / "bench_negotiation"
    program.write_text(f"""#!/bin/sh
for level in rank "leader 1" root; do
  bytes=$(case $level in rank) echo 99 ;; root) echo 5 ;; *) echo $((7 + {growth} * ($1 > 512))) ;; esac)
  echo "{{\\"step\\": \\"known\\", \\"level\\": \\"$level\\", \\"most_bytes\\": $bytes, \\"messages\\": 3, \\"us\\": 1500}}"
done
echo "{{\\"worst_rank\\": $(($1 - {latest}))}}"
""")
    program.chmod(0o755)
    (of_known,) = [one for one in table.ROWS if one.name == "negotiation-known"]
    with run.Bench(tmp_path, 1) as bench:
        bench.program = lambda name: tmp_path / name
        result = run.measure(of_known, bench)
    assert result["verdict"] == verdict
    if verdict == "NOT RUN":
        assert "takes rank 510 for the latest, which was rank 511" in result["reason"]
    else:
        assert (result["ours"], result["peer"]) == (7 + growth, 7)
        assert "root 3, 1.5 ms, leader 1 3, 1.5 ms" in result["note"]
