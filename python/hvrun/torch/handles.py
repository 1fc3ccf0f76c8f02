# SPDX-License-Identifier: Apache-2.0
"""Handles of operations that have started, and waiting for them."""

import threading

from hvrun.inflight import Pending


class Then:
    """A handle whose result is made from another's, once, whichever threads wait."""

    def __init__(self, pending, make):
        self._pending, self._make = pending, make
        self._result = None
        self._making = threading.Lock()

    def is_done(self):
        pending = self._pending
        return pending is None or pending.is_done()

    def wait(self):
        with self._making:
            if self._pending is not None:
                self._result = self._make(self._pending.wait())
                self._pending = self._make = None
            return self._result

    def __call__(self):
        return self.wait()


class Several:
    """One handle for a group: its result is the list of theirs."""

    def __init__(self, handles):
        self._handles = handles

    def is_done(self):
        return all(handle.is_done() for handle in self._handles)

    def wait(self):
        return [handle.wait() for handle in self._handles]

    def __call__(self):
        return self.wait()


def poll(handle):
    """Whether synchronize(handle) would return at once."""
    _require_handle(handle)
    return handle.is_done()


def synchronize(handle):
    """Waits for an operation and returns its result; again and again the same. Raises HorovodInternalError with the runtime's
    words where it failed. Ctrl-C ends the wait."""
    _require_handle(handle)
    return handle.wait()


def _require_handle(handle):
    if not isinstance(handle, (Pending, Then, Several)):
        raise ValueError(f"{handle!r} is no handle: give what a function such as hvd.allreduce_async returned")
