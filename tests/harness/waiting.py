# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition, never for a time."""

import time

STEP = 0.005
MOST_STEP = 0.2  # a look may start a program: a wait of minutes is not to keep a core busy


class TooLate(AssertionError):
    """What was waited for did not come."""


def wait_for(condition, timeout, what):
    """Returns condition()'s first true value; TooLate, naming what, when there is none within timeout seconds.

    what: words, or a function that finds them once it is too late.
    """
    begin = time.monotonic()
    deadline = begin + timeout
    while True:
        last_look = time.monotonic() >= deadline
        value = condition()
        if value:
            return value
        if last_look:
            raise TooLate(f"not within {timeout:g} s: {what() if callable(what) else what}")
        waited = time.monotonic() - begin
        time.sleep(min(max(STEP, waited / 20), MOST_STEP))  # sleep-ok: the step of the only polling loop


def stays(condition, seconds, what):
    """Asserts that condition() holds for so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition(), f"did not last {seconds:g} s: {what}"
        time.sleep(STEP)  # sleep-ok: the step of a polling loop
