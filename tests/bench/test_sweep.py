"""How sides are paired, chosen and compared over many sizes. SPDX-License-Identifier: Apache-2.0"""

import contextlib
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import sweep  # noqa: E402
from rounds import NotRun  # noqa: E402

SMALL, LARGE = ("allreduce", 4), ("allreduce", 1 << 20)


class Side:
    """Answers with fixed figures, and remembers what it was asked."""

    def __init__(self, name, figures, log=None):
        self.name, self.figures, self.log = name, figures, log if log is not None else []

    def command(self, points):
        return f"{self.name} {[size for _, size in points]}"

    def run(self, points):
        self.log.append((self.name, tuple(points)))
        if self.figures is None:
            raise NotRun(f"{self.name} does not start")
        return {point: self.figures[point] for point in points}


def test_each_size_is_held_against_the_peers_fastest_configuration():
    candidates = [(Side("pinned", {SMALL: 1, LARGE: 10}), Side("quick", {SMALL: 2, LARGE: 90})),
                  (Side("free", {SMALL: 3, LARGE: 30}), Side("wide", {SMALL: 5, LARGE: 40}))]
    rounds = sweep.measure(candidates, [SMALL, LARGE], 7)
    assert rounds[SMALL].pairs == [(1, 2)] * 7 and rounds[LARGE].pairs == [(30, 40)] * 7
    assert (rounds[SMALL].own_command, rounds[SMALL].peer_command) == ("pinned [4]", "quick [4]")
    assert (rounds[LARGE].own_command, rounds[LARGE].peer_command) == ("free [1048576]", "wide [1048576]")


def test_a_configuration_that_does_not_start_is_left_out():
    ours = Side("ours", {SMALL: 1})
    rounds = sweep.measure([(ours, Side("broken", None)), (ours, Side("good", {SMALL: 2}))], [SMALL], 1)
    assert rounds[SMALL].pairs == [(1, 2)]
    with pytest.raises(NotRun, match="broken does not start"):
        sweep.measure([(ours, Side("broken", None)), (ours, Side("broken", None))], [SMALL], 1)


def test_sides_take_turns_in_another_order_each_round():
    log = []
    sweep.measure([(Side("ours", {SMALL: 1}, log), Side("peer", {SMALL: 2}, log))], [SMALL], 3)
    assert [name for name, _ in log] == ["ours", "peer", "peer", "ours", "ours", "peer"]


def made(candidates, **more):
    return sweep.Sweep("title", "peer", candidates, **more)


class Bench:
    rounds = 9


def test_a_sweep_measures_once_and_only_what_was_wanted():
    log = []
    one = made(lambda bench: [(Side("ours", {SMALL: 1, LARGE: 5}, log), Side("peer", {SMALL: 2, LARGE: 9}, log))], most_rounds=7)
    one.want(LARGE)
    assert one.measure(Bench, LARGE).pairs == [(5, 9)] * 7
    one.measure(Bench, LARGE)
    names = ["ours", "peer", "peer", "ours"] * 3 + ["ours", "peer"]
    assert log == [(name, (LARGE,)) for name in names]


def test_what_cannot_be_measured_is_tried_once_and_told_to_every_row():
    tries = []

    def candidates(bench):
        tries.append(1)
        raise NotRun("no mpirun")

    one = made(candidates)
    for _ in range(2):
        with pytest.raises(NotRun, match="no mpirun"):
            one.measure(Bench, SMALL)
    assert tries == [1]


def test_a_note_is_taken_at_the_end_of_the_rounds():
    log = []

    @contextlib.contextmanager
    def watch(bench):
        yield lambda: f"{len(log)} runs"

    one = made(lambda bench: [(Side("ours", {SMALL: 1}, log), Side("peer", {SMALL: 2}))], watch=watch)
    one.want(SMALL)
    assert one.measure(Bench, SMALL).note == "9 runs"


def test_a_program_is_asked_for_all_its_points_in_one_run_and_must_answer_all():
    asked = []

    def run(words):
        asked.append(words)
        return "".join(json.dumps({"op": "allreduce", "bytes": size, "median_us": 7}) + "\n" for size in (4, 64))

    program = sweep.Program(lambda operations, sizes: ["bench", operations, sizes], run)
    assert program.run([("allreduce", 64), SMALL]) == {("allreduce", 64): 7, SMALL: 7}
    assert asked == [["bench", "allreduce", "4,64"]]
    with pytest.raises(NotRun, match="no result for .*1048576"):
        program.run([SMALL, LARGE])
    with pytest.raises(NotRun, match="printed no result"):
        sweep.Program(lambda *_: ["bench"], lambda _: "{torn\n").run([SMALL])
