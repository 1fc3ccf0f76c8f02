# SPDX-License-Identifier: Apache-2.0
"""Programs that a test has started: what they said, how they ended, and a deadline for everything."""

import dataclasses
import os
import signal
import subprocess
import tempfile
import time

from harness import processes, started
from harness.waiting import TooLate, wait_for

LONGEST_TAIL = 4000


@dataclasses.dataclass(frozen=True)
class Result:
    """The end of a program. code is negative for a signal, as in subprocess."""

    arguments: list
    code: int
    raw_out: bytes
    raw_err: bytes
    seconds: float

    @property
    def out(self):
        return self.raw_out.decode(errors="backslashreplace")

    @property
    def err(self):
        return self.raw_err.decode(errors="backslashreplace")

    def __str__(self):
        words = " ".join(map(_shown, self.arguments))[:400]
        return (f"{words}\n-- code {self.code} after {self.seconds:.2f} s\n"
                f"-- stdout\n{_tail(self.out)}\n-- stderr\n{_tail(self.err)}")


def _shown(argument):
    return os.fsdecode(argument).encode(errors="backslashreplace").decode()


def _tail(text):
    return text if len(text) <= LONGEST_TAIL else "[...]" + text[-LONGEST_TAIL:]


class Running:
    """A started program. stdout and stderr go to files, so that it never blocks on the test; leaving the 'with' kills it."""

    def __init__(self, arguments, *, stdin=None, input=None, stdout=None, stderr=None, env=None, **popen):
        self.arguments = list(arguments)
        self._is_told = False
        self._out = stdout if stdout is not None else tempfile.TemporaryFile()
        self._err = stderr if stderr is not None else tempfile.TemporaryFile()
        if input is not None:
            stdin = tempfile.TemporaryFile()
            stdin.write(input.encode() if isinstance(input, str) else input)
            stdin.seek(0)
        popen.setdefault("start_new_session", True)
        self.started = time.monotonic()
        self.process = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL if stdin is None else stdin,
                                        stdout=self._out, stderr=self._err, env=env, **popen)
        started.remember(self)

    pid = property(lambda self: self.process.pid)
    raw_out = property(lambda self: _contents(self._out))
    raw_err = property(lambda self: _contents(self._err))
    out = property(lambda self: self.raw_out.decode(errors="backslashreplace"))
    err = property(lambda self: self.raw_err.decode(errors="backslashreplace"))

    @property
    def ended(self):
        return self.process.poll() is not None

    def result(self):
        return Result(self.arguments, self.process.returncode, self.raw_out, self.raw_err, time.monotonic() - self.started)

    def wait(self, timeout):
        """Its Result; a program that takes longer is killed, and the test fails with all that is known."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            children = processes.listing(processes.below(self.pid))
            self.kill()
            self.process.wait()
            raise TooLate(f"not ended within {timeout:g} s: {self.result()}\n-- its children\n{children}") from None
        finally:
            self._is_told = True
        return self.result()

    def wait_for_output(self, text, timeout):
        """Until text stands in stdout or stderr; a program that ends without saying it fails the test."""
        def said():
            over = self.ended  # asked first: what it wrote before its end counts
            return text in self.out or text in self.err or (over and TooLate)

        if wait_for(said, timeout, lambda: f"{text!r} from {self.result()}") is TooLate:
            raise TooLate(f"{text!r} never came from {self.result()}")

    def words(self):
        """For started.tell_all(); what wait() gave is the test's own to tell."""
        if self._is_told:
            return ""
        self.kill()
        self.process.wait()
        return str(self.result())

    def kill(self, number=signal.SIGKILL):
        if not self.ended:
            self.process.send_signal(number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.process.wait()
        if self._is_told:
            started.forget(self)


def _contents(file):
    if not hasattr(file, "fileno"):
        return b""
    try:
        return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
    except OSError:  # a pipe, which the test itself reads
        return b""


def run(arguments, *, timeout=30, **options):
    """Starts a program and waits for it."""
    with Running(arguments, **options) as running:
        return running.wait(timeout)
