# SPDX-License-Identifier: Apache-2.0
"""hvrun tells at the end what bounded a training: one whose loader or model is slow on purpose. A slow link: tests/cluster."""

import json
import re

import pytest

from harness import programs, torch_environment, torch_jobs

STEPS = programs.SOURCE / "tests" / "payload" / "torch_steps.py"


class Ended:
    def __init__(self, done, path):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        summary = json.loads(path.read_text())
        self.training, self.ranks = summary["training"], [rank["step_times"] for rank in summary["ranks"]]
        self.told = [line for line in self.err.splitlines() if line.startswith("hvrun: the training was ")]

    def per_step(self, rank, part):
        """Milliseconds."""
        return 1000 * self.ranks[rank][part + "_seconds"] / self.ranks[rank]["steps"]

    def __str__(self):
        return f"exit {self.code}\n{self.out[-3000:]}\n{self.err[-5000:]}\n{self.training}\n{self.ranks}"


@pytest.fixture
def train(tmp_path):
    """train(hvrun's options, *words of the program): an Ended."""
    def run(options, *words, **environment):
        path = tmp_path / "summary.json"
        done = torch_jobs.run([*options, "--summary", str(path)], [str(STEPS), *words], tmp_path, timeout=120, warm=True,
                              **environment)
        return Ended(done, path)

    return run


def expect(ended, bound, ranks, steps, code=0, words=None):
    """That, and figures of every rank that fit together."""
    assert ended.code == code, str(ended)
    assert ended.training and ended.training["bound"] == bound, str(ended)
    assert len(ended.told) == 1 and "the training was " + (words or f"{bound}-bound: ") in ended.told[0], str(ended)
    shares = [ended.training[part + "_share"] for part in ("data", "compute", "exchange")]
    assert abs(sum(shares) - 1) < 1e-9 and max(shares) == ended.training[{"input": "data", "compute": "compute",
                                                                        "communication": "exchange"}[bound] + "_share"], str(ended)
    assert len(ended.ranks) == ranks and all(ended.ranks), str(ended)
    for rank in ended.ranks:
        assert rank["steps"] == steps if code == 0 else 0 < rank["steps"] <= steps, str(ended)
        parts = rank["data_seconds"] + rank["compute_seconds"] + rank["exchange_seconds"]
        assert abs(parts - rank["seconds"]) < 1e-6, str(ended)


def test_a_slow_loader_on_all_ranks_is_input_bound(train):
    ended = train(["-np", "2"], "--data-ms", "100", "--steps", "25")
    expect(ended, "input", 2, 24)
    for rank in (0, 1):
        assert ended.per_step(rank, "data") > 99, str(ended)
    assert ended.training["step_seconds_without_bound"] < ended.training["step_seconds"] - 0.095, str(ended)
    assert "  try: more num_workers" in ended.err, str(ended)


@pytest.mark.one_of("slow", "job", "ranks")
@pytest.mark.parametrize("slow", [0, 1])
@pytest.mark.parametrize("job, ranks", [(["-np", "2"], 2), (torch_jobs.TWO_HOSTS, 3)], ids=["one host", "two hosts"])
def test_a_slow_loader_on_one_rank_is_that_ranks(train, job, ranks, slow):
    ended = train(job, "--data-ms", "150", "--only-rank", str(slow), "--steps", "25")
    expect(ended, "input", ranks, 24)
    assert (ended.training["slowest_rank"], ended.training["slow_part"]) == (slow, "data"), str(ended)
    assert ended.per_step(slow, "data") > 149, str(ended)
    assert ended.training["others_wait_seconds"] > 0.05, str(ended)
    assert re.search(rf"hvrun: rank {slow} on host \S+ was the slowest: the others waited [\d.]+ m?s a step for it, "
                     r"as its wait for data is [\d.]+ m?s longer than theirs\n  try: look at what rank", ended.err), str(ended)


def test_a_slow_model_is_compute_bound(train):
    ended = train(["-np", "2"], "--compute-ms", "100", "--steps", "25")
    expect(ended, "compute", 2, 24)
    assert ended.per_step(0, "compute") > 99, str(ended)
    assert "  try: more num_workers" not in ended.err, str(ended)


def test_a_rank_that_computes_longer_is_named(train):
    ended = train(["-np", "3"], "--compute-ms", "150", "--only-rank", "1", "--steps", "25")
    expect(ended, "compute", 3, 24)
    assert (ended.training["slowest_rank"], ended.training["slow_part"]) == (1, "compute"), str(ended)
    assert "  try: look at what else runs on" in ended.err, str(ended)


def test_one_rank_alone_waits_for_its_data(train):
    ended = train(["-np", "1"], "--data-ms", "100", "--steps", "25")
    expect(ended, "input", 1, 24)
    assert ended.ranks[0]["exchange_seconds"] < 0.1 * ended.ranks[0]["seconds"], str(ended)
    assert "was the slowest" not in ended.err, str(ended)


def test_adasum_is_measured_alike(train):
    ended = train(["-np", "2"], "--data-ms", "150", "--only-rank", "1", "--steps", "25", "--adasum")
    expect(ended, "input", 2, 24)
    assert ended.training["slowest_rank"] == 1, str(ended)


def test_a_loader_of_ones_own_is_told_as_one_that_was_not_seen(train):
    ended = train(["-np", "1"], "--data-ms", "100", "--steps", "25", "--own-loop")
    expect(ended, "compute", 1, 24, words="compute-bound, reading data included, for no DataLoader and no hvrun.data.Prefetcher was seen: ")
    assert not ended.training["is_data_measured"]
    assert "  try: if there is a loader, put hvrun.data.Prefetcher round it" in ended.err, str(ended)


def test_a_job_that_fails_is_told_of_too(train):
    ended = train(["-np", "2"], "--data-ms", "100", "--steps", "1000", "--fail-after", "40")
    expect(ended, "input", 2, 999, code=1)
    assert ended.err.index("the training was input-bound") < ended.err.index("hvrun: error: rank 0 on host"), str(ended)


def test_ranks_that_meet_again_go_on_with_their_sums(train):
    """The first step after each meeting does not count."""
    expect(train(["-np", "2"], "--data-ms", "100", "--steps", "30", "--meet-again-after", "15"), "input", 2, 28)


def test_a_short_training_is_not_told_of_but_in_the_summary_file(train):
    ended = train(["-np", "2"], "--steps", "10")
    assert ended.code == 0 and ended.told == [], str(ended)
    assert [rank["steps"] for rank in ended.ranks] == [9, 9] and not ended.training["is_long_enough"], str(ended)


def test_a_training_within_a_process_set_is_not_measured(train):
    ended = train(["-np", "3", "--oversubscribe"], "--steps", "25", "--train-on", "2")
    assert ended.code == 0 and ended.told == [] and ended.out.count("is through") == 3, str(ended)
    assert ended.training is None and ended.ranks == [None] * 3, str(ended)


def test_ranks_that_join_early_are_not_those_whose_steps_are_told(train):
    """And steps that a GradScaler skips are none."""
    has_scaler = tuple(map(int, torch_environment.VERSION.split(".")[:2])) >= (2, 3)  # for CPUs
    words = ["--infinite-every", "6"] if has_scaler else []
    ended = train(["-np", "2"], "--data-ms", "60", "--steps", "31", "--join-after", "8", *words)
    assert ended.code == 0 and len(ended.told) == 1, str(ended)
    skipped = (5, 1) if words else (0, 0)
    assert [rank["steps"] for rank in ended.ranks] == [31 - skipped[0] - 1, 8 - skipped[1] - 1], str(ended)
    assert ended.training["bound"] == "input" and ended.told[0].endswith("; measured on 1 of 2 ranks"), str(ended)


def test_programs_that_measure_nothing_are_told_nothing_of(tmp_path):
    path = tmp_path / "summary.json"
    done = torch_jobs.run(["-np", "2", "--summary", str(path)], ["-c", "import hvrun.torch as hvd; hvd.init()"], tmp_path)
    summary = json.loads(path.read_text())
    assert done.returncode == 0 and "training" not in done.stderr, done.stderr
    assert summary["training"] is None and [rank["step_times"] for rank in summary["ranks"]] == [None, None]
