# SPDX-License-Identifier: Apache-2.0
"""A training with PyTorch over a link that is slow on purpose is told as bound by it; over a good one it is not."""

import json

import pytest

from harness import programs, torch_environment, torch_jobs
from harness.jobs import on
from harness.network import shape

pytestmark = pytest.mark.usefixtures("hvrun")

STEPS = programs.SOURCE / "tests" / "payload" / "torch_steps.py"
PARAMETERS = 100_000  # 400 kB, which pass the slow link in a sixth of a second each way
RATE = "20mbit"


@pytest.fixture
def train(make_cluster):
    """train(rate or None): a training on two hosts; hvrun's result, and its summary."""
    def run(rate, *words):
        hosts = make_cluster(["node1", "node2"])
        for node in hosts.nodes if rate else ():
            shape(node, "lan", rate)
        path = hosts.shared / "summary.json"
        program = [str(torch_environment.interpreter()), str(STEPS), "--parameters", str(PARAMETERS), *words]
        result = hosts.run([*on("node1", "node2"), "--summary", str(path), *program], env=torch_jobs.settings(), timeout=120)
        assert result.code == 0, str(result)
        return result, json.loads(path.read_text())

    return run


def test_a_slow_link_is_communication_bound(train):
    result, summary = train(RATE, "--steps", "25")
    training = summary["training"]
    assert training["bound"] == "communication" and training["exchange_share"] > 0.7, f"{result}\n{summary}"
    for rank in summary["ranks"]:
        assert 0.1 < rank["step_times"]["exchange_seconds"] / rank["step_times"]["steps"] < 2, f"{result}\n{summary}"
    assert training["step_seconds_without_bound"] < training["step_seconds"] / 2, f"{result}\n{summary}"
    assert "hvrun: the training was communication-bound: " in result.err, str(result)
    assert "  try: larger batches" in result.err and "a faster network" in result.err, str(result)


def test_a_good_link_with_a_slow_model_is_compute_bound(train):
    result, summary = train(None, "--steps", "41", "--compute-ms", "40")
    assert summary["training"]["bound"] == "compute", f"{result}\n{summary}"
    assert "hvrun: the training was compute-bound: " in result.err, str(result)
