# SPDX-License-Identifier: Apache-2.0
"""Training that goes on after a failure, the same for every framework: state that is committed, and a function that is begun
anew from it.

The number of ranks stays what it is: when an operation fails, all ranks meet again in the same processes. Jobs that grow and
shrink come with elastic launching, which calls State.on_hosts_updated().
"""

import copy
import functools
import queue
import sys

from hvrun.exceptions import HorovodInternalError, HostsUpdatedInterrupt

ADDED, REMOVED = 1, 2  # bits of what has become of hosts


class State:
    """What a training function begins from. A framework's own says how it is saved, restored and made equal on all ranks."""

    def __init__(self, bcast_object, get_rank):
        self._broadcast, self._rank = bcast_object, get_rank
        self._updates = queue.Queue()
        self._last_update = 0
        self._callbacks = []
        self.commits = 0  # so many

    def register_reset_callbacks(self, callbacks):
        """Called, in this order, each time that the ranks have met again: to make what depends on their number anew."""
        self._callbacks.extend(callbacks)

    def on_reset(self):
        """The ranks have met again."""
        while not self._updates.empty():
            self._updates.get_nowait()
        self.reset()
        for callback in self._callbacks:
            callback()

    def on_hosts_updated(self, timestamp, update_res):
        """Hosts have joined or left; heard at the next commit."""
        self._updates.put((timestamp, update_res))

    def commit(self):
        """Saves the state, and hears of hosts: restore() comes back to here. It copies, so not after every batch."""
        self.save()
        self.commits += 1
        self.check_host_updates()

    def check_host_updates(self):
        """Raises HostsUpdatedInterrupt, on all ranks alike, when rank 0 has heard of hosts. All ranks call it."""
        last, what = self._last_update, 0
        while not self._updates.empty():
            timestamp, one = self._updates.get_nowait()
            if timestamp > last:
                last, what = timestamp, what | int(one)
        before = self._last_update
        self._last_update, what = self._broadcast((last, what))
        if self._last_update > before:
            raise HostsUpdatedInterrupt(what == REMOVED)

    def save(self):
        raise TypeError(f"{type(self).__name__} has no save()")

    def restore(self):
        raise TypeError(f"{type(self).__name__} has no restore()")

    def sync(self):
        raise TypeError(f"{type(self).__name__} has no sync()")

    def reset(self):
        """What a state of one's own does before the callbacks."""


class ObjectState(State):
    """Python objects, each an attribute: whatever can be pickled. What is set on them counts once it has been committed."""

    def __init__(self, bcast_object, get_rank, **kwargs):
        super().__init__(bcast_object, get_rank)
        self._saved = {}
        for name, value in kwargs.items():
            setattr(self, name, value)
        self._saved = {name: copy.deepcopy(value) for name, value in kwargs.items()}

    def save(self):
        self._saved = {name: copy.deepcopy(getattr(self, name)) for name in self._saved}

    def restore(self):
        self._set(self._saved)

    def sync(self):
        """Rank 0's saved objects, on all ranks."""
        if self._saved:
            self._saved = self._broadcast(self._saved)
            self._set(self._saved)

    def _set(self, values):
        for name, value in values.items():
            setattr(self, name, copy.deepcopy(value))


def run_fn(func, reset):
    """func(state, ...), begun anew from the last commit after a failure, and from the state as it is after a change of hosts.
    reset: meets the other ranks again. A failure that comes again before the next commit is not one that passes: it is raised.
    """

    @functools.wraps(func)
    def wrapper(state, *args, **kwargs):
        skip_sync, met = False, None
        while True:
            try:
                if not skip_sync:
                    state.sync()
                return func(state, *args, **kwargs)
            except HorovodInternalError as error:
                if met == (type(error), state.commits):
                    raise
                met = type(error), state.commits
                print(f"hvrun: the training goes on from its last commit after {type(error).__name__}: {error}", file=sys.stderr)
                state.restore()
                skip_sync = False
            except HostsUpdatedInterrupt as interrupt:
                skip_sync = interrupt.skip_sync
            reset()
            state.on_reset()

    return wrapper
