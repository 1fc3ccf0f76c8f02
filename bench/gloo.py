"""The peer that is PyTorch's Gloo: its virtual environment, and its ranks, started once for many rounds.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time

import programs
from rounds import NotRun
from sweep import figures_of

sys.path.insert(0, str(programs.SOURCE / "tests"))
from harness import torch_environment  # noqa: E402

ENVIRONMENT = torch_environment.FOLDER
RANK_PROGRAM = programs.SOURCE / "bench/gloo_rank.py"
BUDGET_S = 0.1  # of one operation and size in a run, about


def interpreter():
    """The Python that has PyTorch; made when it is not there. NotRun where it cannot be had."""
    try:
        return torch_environment.interpreter()
    except torch_environment.NoTorch as error:
        raise NotRun(str(error)) from error


def version():
    return torch_environment.version() or "absent"


def start_here(words, environment):
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            env={**programs.environment(), **environment})


class Answers:
    """What ranks say, a line each. After a failure an answer to an earlier question may still come: it is passed over."""

    def __init__(self, streams):
        self._kept = {stream.fileno(): b"" for stream in streams}
        self._poll = select.poll()  # select() takes no descriptor above 1,023
        for stream in self._kept:
            self._poll.register(stream, select.POLLIN)

    def to(self, number, seconds):
        """The first answer of any rank to this question, as a dict; one with "error" when none comes."""
        deadline = time.monotonic() + seconds
        while True:
            for stream, kept in self._kept.items():
                line, newline, rest = kept.partition(b"\n")
                if newline:
                    self._kept[stream] = rest
                    answer = _answer_in(line)
                    if answer.get("number", number) == number:
                        return answer
                    break
            else:
                ready = self._poll.poll(1000 * max(0, deadline - time.monotonic()))
                said = os.read(ready[0][0], 1 << 16) if ready else b""
                if not said:
                    return {"error": "a rank has ended" if ready else "no answer"}
                self._kept[ready[0][0]] += said


def _answer_in(line):
    try:
        answer = json.loads(line)
        return answer if isinstance(answer, dict) else {"error": f"answered {line[:100]!r}"}
    except ValueError:
        return {"error": f"answered {line[:100]!r}"}


class Gloo:
    """Ranks that live as long as the 'with'; ask() is one run."""

    def __init__(self, starters, pinned=False, threads=1, interface="lo", folder=None):
        """starters: by rank, a function (words, environment) that gives a Popen with text pipes, on that rank's host."""
        self._starters, self._pinned, self._threads = starters, pinned, threads
        self._interface, self._folder = interface, folder
        self._ranks, self._asked = [], 0

    def words(self, rank, meeting="FILE"):
        words = [ENVIRONMENT / "bin/python", "-B", "-W", "ignore", RANK_PROGRAM, "--rank", str(rank), "--ranks", str(len(self._starters)),
                 "--meet", meeting, "--threads", str(self._threads)]
        return words + (["--pin", str(rank)] if self._pinned else [])

    def __enter__(self):
        interpreter()
        self._meeting = tempfile.mkdtemp(prefix="hvrun-bench-", dir=self._folder)
        environment = {"GLOO_SOCKET_IFNAME": self._interface}
        try:
            for rank, start in enumerate(self._starters):
                self._ranks.append(start([str(word) for word in self.words(rank, f"{self._meeting}/meet")], environment))
        except BaseException:  # those that have started wait for the one that has not
            for process in self._ranks:
                process.kill()
            self.__exit__()
            raise
        self._answers = Answers([process.stdout for process in self._ranks])
        return self

    def __exit__(self, *_):
        for process in self._ranks:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        for process in self._ranks:
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        self._ranks = []
        for name in os.listdir(self._meeting):
            os.unlink(f"{self._meeting}/{name}")
        os.rmdir(self._meeting)

    def ask(self, **request):
        """Rank 0's figures. NotRun when a rank refuses, ends, or does not answer."""
        self._asked += 1
        line = json.dumps({**request, "number": self._asked}) + "\n"
        try:
            for process in self._ranks:
                process.stdin.write(line)
                process.stdin.flush()
        except BrokenPipeError as error:
            raise NotRun("PyTorch's Gloo: a rank has ended") from error
        reply = self._answers.to(self._asked, programs.LONGEST_RUN_S)
        if "error" in reply:
            raise NotRun(f"PyTorch's Gloo: {reply['error']}")
        return reply["figures"]

    def command(self, request):
        return f"GLOO_SOCKET_IFNAME={self._interface} {programs.shown(self.words('RANK'))} <<< '{json.dumps(request)}' (every RANK)"


def here(ranks, pinned):
    return Gloo([start_here] * ranks, pinned)


class Collectives:
    """A sweep's side: collectives on Gloo. open(): the Gloo that runs them."""

    def __init__(self, open, budget=BUDGET_S):
        self._open, self._budget = open, budget

    def _request(self, points):
        return {"operations": sorted({operation for operation, _ in points}), "sizes": sorted({size for _, size in points}),
                "budget": self._budget}

    def command(self, points):
        return self._open().command(self._request(points))

    def run(self, points):
        return figures_of(self._open().ask(**self._request(points)), points, ["gloo_rank.py"])


class Gradients:
    """A sweep's side: a step's gradients exchanged as DistributedDataParallel does; form: see gloo_rank.py."""

    def __init__(self, open, path, form, budget):
        self._open = open
        self._request = {"gradients": str(path), "form": form, "budget": budget}

    def command(self, _):
        return self._open().command(self._request)

    def run(self, points):
        return {points[0]: self._open().ask(**self._request)[0]["median_us"]}
