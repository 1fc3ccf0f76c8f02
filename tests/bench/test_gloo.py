"""How PyTorch's ranks are asked, without PyTorch. SPDX-License-Identifier: Apache-2.0"""

import fcntl
import os
import pathlib
import resource
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import engine  # noqa: E402
import gloo  # noqa: E402
from buckets import buckets_of  # noqa: E402
from rounds import NotRun  # noqa: E402

MIB = 1 << 20
ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    figures = [{"op": "allreduce", "bytes": size, "median_us": size / 2} for size in asked["sizes"]]
    print(json.dumps({"number": asked["number"], "figures": figures}), flush=True)
"""
# Refuses the first question twice, as two ranks would, and answers it late, along with the second.
LATE = """
import json, sys
first = json.loads(sys.stdin.readline())["number"]
refusal = json.dumps({"number": first, "error": "RuntimeError: no such operation"})
print(refusal, refusal, sep="\\n", flush=True)
second = json.loads(sys.stdin.readline())["number"]
for number, figure in ((first, 1), (second, 2)):
    print(json.dumps({"number": number, "figures": [{"median_us": figure}]}))
sys.stdout.flush()
sys.stdin.read()
"""
REFUSE = "import sys; sys.stdin.readline(); print('{\"error\": \"RuntimeError: no such operation\"}')"
BABBLE = "import sys; sys.stdin.readline(); print('hello')"
SILENT = "import sys; [None for _ in sys.stdin]"


def starter(text, started):
    def start(words, environment):
        started.append((words, environment))
        return subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    return start


@pytest.fixture
def ranks(monkeypatch):
    """Makes a Gloo whose ranks run these texts; .started: their commands and environments."""
    monkeypatch.setattr(gloo, "interpreter", lambda: sys.executable)
    started = []

    def make(*texts, **more):
        return gloo.Gloo([starter(text, started) for text in texts], **more)

    make.started = started
    return make


def test_ranks_start_once_and_answer_every_run(ranks):
    with ranks(ECHO, SILENT, pinned=True, interface="eth0") as peer:
        side = gloo.Collectives(lambda: peer)
        for _ in range(3):
            assert side.run([("allreduce", 8), ("allreduce", 4)]) == {("allreduce", 4): 2, ("allreduce", 8): 4}
    assert len(ranks.started) == 2
    words, environment = ranks.started[1]
    assert environment == {"GLOO_SOCKET_IFNAME": "eth0"}
    assert words[words.index("--rank") + 1] == words[words.index("--pin") + 1] == "1"
    assert "--op" not in side.command([("allreduce", 4)]) and '"sizes": [4]' in side.command([("allreduce", 4)])


@pytest.mark.parametrize("texts, reason", [
    ((REFUSE, SILENT), "no such operation"), ((BABBLE, SILENT), "answered b'hello"), ((SILENT, REFUSE), "no such operation"),
    (("", SILENT), "ended")])
def test_a_rank_that_refuses_or_ends_is_told(ranks, texts, reason):
    with ranks(*texts) as peer, pytest.raises(NotRun, match=reason):
        peer.ask(operations=["allreduce"], sizes=[4], budget=1)


def test_buckets_are_closed_when_they_hold_their_cap():
    sizes = [MIB, 30 * MIB, 20 * MIB, MIB // 2, MIB // 2, 1]
    assert buckets_of(sizes) == [[5, 4, 3], [2, 1], [0]]
    assert buckets_of([]) == [] and buckets_of([4]) == [[0]]


def test_every_gradient_of_resnet50_is_in_one_bucket():
    lines = (engine.GRADIENTS / "resnet50.txt").read_text().splitlines()
    buckets = buckets_of([MIB] * sum(not line.startswith("#") for line in lines))
    assert sorted(index for bucket in buckets for index in bucket) == list(range(161))


def test_an_answer_to_an_earlier_question_is_not_taken_for_that_to_the_next(ranks):
    with ranks(SILENT, LATE) as peer:
        with pytest.raises(NotRun, match="no such operation"):
            peer.ask(operations=["allreduce"])
        assert peer.ask(operations=["allreduce"]) == [{"median_us": 2}]


def test_ranks_that_have_started_end_when_another_cannot_start(monkeypatch, tmp_path):
    monkeypatch.setattr(gloo, "interpreter", lambda: sys.executable)
    started = []

    def start(words, environment):
        started.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    def refuse(words, environment):
        raise OSError("no more processes")

    with pytest.raises(OSError, match="no more processes"), gloo.Gloo([start, refuse], folder=tmp_path):
        pass
    assert started[0].returncode is not None
    assert not list(tmp_path.iterdir())


def test_answers_come_over_any_descriptor():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        reader, writer = os.pipe()
        high = fcntl.fcntl(reader, fcntl.F_DUPFD, 2000)  # more than select() takes
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with open(reader, "rb"), open(high, "rb") as stream, open(writer, "wb", buffering=0) as answer:
        answers = gloo.Answers([stream])
        answer.write(b'{"number": 1, "figures": []}\n')
        assert answers.to(1, 10) == {"number": 1, "figures": []}
        assert answers.to(2, 0) == {"error": "no answer"}
        answer.close()
        assert answers.to(2, 10) == {"error": "a rank has ended"}
