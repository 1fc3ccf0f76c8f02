# SPDX-License-Identifier: Apache-2.0
"""What a test has started and not seen the end of: ended with the test, and told when it fails, whatever failed."""

import contextlib
import os
import select
import signal

_of_this_test = []
LONGEST = 4000


def remember(one):
    """one.words() ends it and says how it was called, what it wrote and how it ended."""
    _of_this_test.append(one)


def forget(one):
    """What it wrote is told, and its files may go: a benchmark starts thousands."""
    if one in _of_this_test:
        _of_this_test.remove(one)


def tell_all():
    """For each that is not told yet, its words."""
    told = [one.words() for one in _of_this_test]
    _of_this_test.clear()
    return [words for words in told if words]


class OverPipes:
    """A Popen that leads a session; what the test has read itself is not told again."""

    def __init__(self, process):
        self._process = process

    def words(self):
        process = self._process
        if process.returncode is None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        said = [f"-- {name}\n{_rest_of(pipe)}" for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr))
                if pipe and not pipe.closed]
        if not said:  # the test has all of it
            return ""
        return "\n".join([" ".join(map(str, process.args)), f"-- code {code}", *said])


def _rest_of(pipe):
    """What stands in a pipe that others may still hold open; closes it."""
    text = b""
    with pipe:
        os.set_blocking(pipe.fileno(), False)
        while select.select([pipe], [], [], 0)[0]:
            piece = os.read(pipe.fileno(), 1 << 16)
            if not piece:
                break
            text = (text + piece)[-LONGEST:]
    return text.decode(errors="backslashreplace")
