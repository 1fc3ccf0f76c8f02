# SPDX-License-Identifier: Apache-2.0
"""Where a rank's time goes: what its training's steps take, and how much of it is waiting for data and for other ranks. The
same for every framework.

The clock begins when the first step ends, and anew when the ranks have met again, so that what only a beginning takes does not
count. Nor do pauses: what takes ten times as long as a step, such as validation or a checkpoint. Only optimizers of all ranks
are measured: ranks that train by themselves wait for nobody, and nobody for them. Only the thread that steps is looked at: what
another one reads ahead is no wait. Of waits within waits the outermost counts; what is left over is computing. The sums go to
the runtime, and hvrun tells at the job's end what bounded the training.
"""

import ctypes
import threading
import time

from hvrun import _abi
from hvrun._called import warn
from hvrun._library import library

DATA, EXCHANGE = 0, 1  # kinds of waits
_REPORT_NS = 1_000_000_000
_PAUSE_STEPS, _FEW_STEPS = 10, 20  # so many steps' time is a pause, which is known once so many steps have been measured
_LONG_ENOUGH_NS = 60_000_000_000  # or once steps have taken so long
_SUMS = "steps", "nanoseconds", "data_nanoseconds", "exchange_nanoseconds", "data_waits"


class StepTimes:
    """Of this process, in all. clock: nanoseconds; tell: is given the sums, as hvrun_step_times."""

    def __init__(self, clock, tell):
        self._clock, self._tell = clock, tell
        self.thread = None  # that steps; None: the next step begins the clock
        self._begun = 0  # when the wait that counts has begun; 0: none has
        self._last = self._told = 0  # when the last step ended, when the runtime was told
        self._turn = set()  # optimizers that have stepped, since one of them did so last
        self._waited, self._waits = [0, 0], 0  # since the last step ended: by kind; how often for data
        self.sums = _abi.StepTimes(ctypes.sizeof(_abi.StepTimes))
        self._first = []  # what was added of the first few steps, any of which may be found to have been a pause; then None

    def begin_anew(self):
        """The ranks have met: the time until the next step ends does not count."""
        self.thread = None

    def step_ended(self, optimizer):
        """Optimizers that take turns make one step together."""
        now, thread = self._clock(), threading.get_ident()
        is_measured = thread == self.thread and not self._is_pause(now - self._last)
        if thread != self.thread:
            self.thread, self._turn, self._told = thread, set(), now
        is_step = id(optimizer) in self._turn
        if is_measured:
            self._measure((is_step, now - self._last, *self._waited, self._waits))
        if is_step:
            self._turn.clear()
        self._turn.add(id(optimizer))
        self._last, self._waited, self._waits, self._begun = now, [0, 0], 0, 0
        if self._first is None and now - self._told >= _REPORT_NS:  # before, sums may still shrink, which is an error
            self._told = now
            self.report()

    def _is_pause(self, nanoseconds):
        return self._first is None and self._is_long(nanoseconds)

    def _is_long(self, nanoseconds):
        return nanoseconds * self.sums.steps > _PAUSE_STEPS * self.sums.nanoseconds

    def _measure(self, part):
        self._add(part)
        if self._first is not None:
            self._first.append(part)
            if self.sums.steps == _FEW_STEPS or self.sums.nanoseconds >= _LONG_ENOUGH_NS:
                self._forget_pauses()

    def _forget_pauses(self):
        """Among the first few steps, beside the mean of the others."""
        first, self._first = sorted(self._first, key=lambda part: part[1]), None
        for part in reversed(first):
            self._add(part, -1)
            if not self._is_long(part[1]):
                self._add(part)
                break

    def _add(self, part, sign=1):
        for name, value in zip(_SUMS, part):
            setattr(self.sums, name, getattr(self.sums, name) + sign * value)

    def report(self):
        """Tells the runtime, which never blocks for it."""
        if self.sums.steps:
            self._tell(self.sums)

    def begin_wait(self):
        """What end_wait() is to be given; 0: this wait does not count."""
        if self._begun or threading.get_ident() != self.thread:
            return 0
        self._begun = self._clock()
        return self._begun

    def end_wait(self, kind, begun):
        if begun and begun == self._begun and threading.get_ident() == self.thread:
            self._begun = 0
            self._waited[kind] += self._clock() - begun
            self._waits += kind == DATA

    def waited(self, kind, call, *arguments):
        """What the call returns; the time that it takes is a wait."""
        begun = self.begin_wait()
        try:
            return call(*arguments)
        finally:
            self.end_wait(kind, begun)


def _tell(sums):
    status = library().report_steps(None, ctypes.byref(sums))
    if status == _abi.ERROR_ARGUMENT:  # else there is nobody to tell: the job has been left, or this is a forked child
        warn(f"where this training's time goes is not told: {library().error_of(status)}")


times = StepTimes(time.perf_counter_ns, _tell)


def timed(iterable):
    """The same, one by one; the time until each comes counts as waiting for data."""
    iterator = times.waited(DATA, iter, iterable)
    while True:
        try:
            one = times.waited(DATA, next, iterator)
        except StopIteration:
            return
        yield one
