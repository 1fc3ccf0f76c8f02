# SPDX-License-Identifier: Apache-2.0
"""Which parameters the ranks exchange gradients of: the same on all of them.

A rank that freezes a parameter, and another that does not, would wait for each other or go on with different weights. So one
number goes with each exchange: whether this rank needs other gradients than the ranks have agreed on. Where one does, all of
them compare what they need, before anything is stepped.
"""

import zlib

from hvrun import _abi, basics, inflight
from hvrun.exceptions import MismatchError
from hvrun.torch.operations import number_of

_LIMIT = 1 << 40  # above any digest and any number of parameters


def needs_of(parameters):
    """What is compared: for each of them False, or its form. After model.double(), say, buckets are to be learned anew."""
    return tuple(one.requires_grad and form_of(one) for one in parameters)


def form_of(parameter):
    """What its gradient is exchanged as."""
    return parameter.dtype, parameter.shape


class Agreement:
    """label: before the names that travel, the same on all ranks. process_set: may get another number with another job."""

    def __init__(self, label, process_set):
        self._label, self._process_set = label, process_set
        self._needed = None  # of each of the optimizer's parameters; None: the ranks have not compared them
        self._meeting = 0  # in which they have

    def is_made(self):
        return self._needed is not None and self._meeting == basics.meetings()

    def forget(self):
        self._needed = None

    def begin_check(self, needed, has_news=False, discards=False):
        """Sends the other ranks whether this one needs other gradients now, or has other news, and whether it discards what is
        exchanged. Returns a function that waits and says whether any rank needs others; it raises MismatchError, on all ranks,
        where some of them discard."""
        rank = basics.rank() + 1
        numbers = [int(has_news or needed != self._needed), rank * discards, rank * (not discards)]
        pending = inflight.begin_reducing(f"{self._label}.changed", numbers, _abi.MAX, number_of(self._process_set))
        return lambda: _has_changed(*pending.wait())

    def make(self, needed, names):
        """Blocks until all ranks have compared what they need, and the parameters' names, in the optimizer's order.
        Raises MismatchError, on all ranks, where they differ."""
        self._needed = None
        digest = 1 + zlib.crc32(repr((needed, names)).encode())
        # The largest of each, since ranks that have joined give zeros.
        largest, smallest, most, fewest = self._largest("needed", _both_ways(digest) + _both_ways(len(names)))
        if most != _LIMIT - fewest:
            raise _mismatch(f"the ranks' optimizers have different numbers of parameters, {_LIMIT - fewest} to {most}. Call "
                            "add_param_group() on all ranks, between the same steps")
        if largest != _LIMIT - smallest:
            self._name_what_differs(needed, names)
        self._needed, self._meeting = needed, basics.meetings()

    def _name_what_differs(self, needed, names):
        rank = basics.rank() + 1
        ranks = self._largest("needing", [rank * bool(one) for one in needed] + [rank * (not one) for one in needed])
        differing = [pair for pair in zip(names, ranks, ranks[len(names):]) if pair[1] and pair[2]]
        if differing:
            name, trains, freezes = differing[0]
            more = f" Likewise {len(differing) - 1} more." if len(differing) > 1 else ""
            raise _mismatch(f"rank {freezes - 1} has frozen the parameter {name} (requires_grad=False), and rank {trains - 1} "
                            f"has not.{more} Freeze and thaw the same parameters on all ranks, between the same steps")
        codes = [1 + zlib.crc32(repr(one).encode()) if one else 0 for one in needed]
        largest = self._largest("forms", codes + [_LIMIT - one if one else 0 for one in codes])
        for name, one, most, fewest in zip(names, needed, largest, largest[len(names):]):
            if most and most != _LIMIT - fewest:
                here = f"{one[0]} of shape {tuple(one[1])}" if one else "frozen"
                raise _mismatch(f"the ranks have the parameter {name} in different forms, this one {here}. Change the model alike "
                                "on all ranks, between the same steps")

    def _largest(self, what, numbers):
        return inflight.reduce_numbers(f"{self._label}.{what}", numbers, _abi.MAX, number_of(self._process_set))


def _has_changed(is_new, discards, keeps):
    """discards, keeps: 1 + the rank of one that does; 0: none does."""
    if discards and keeps:
        raise _mismatch(f"rank {discards - 1} has discarded them in zero_grad(), and rank {keeps - 1} steps with them. Skip a "
                        "batch, or call zero_grad() before step(), on all ranks or on none")
    return is_new != 0


def _both_ways(number):
    return [number, _LIMIT - number]


def _mismatch(text):
    error = MismatchError(f"gradients cannot be averaged: {text}")
    error.status = "mismatch between ranks"
    return error
