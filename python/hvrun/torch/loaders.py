# SPDX-License-Identifier: Apache-2.0
"""How long a training waits for torch's DataLoader: the time inside iter() and next(), whoever calls them."""

import functools

import torch.utils.data

from hvrun.step_times import DATA, times


def watch_loaders():
    """Times DataLoader and the subclasses that there are by now; the iterators that they make are the same objects as before."""
    _watch(torch.utils.data.DataLoader)


def _watch(loader):
    begin = vars(loader).get("__iter__")
    if begin is not None and not _is_timed(begin):
        loader.__iter__ = _timed(begin, lambda iterator: _watch_iterators(type(iterator)))
    for derived in loader.__subclasses__():
        _watch(derived)


def _watch_iterators(kind):
    """Whichever class it has its __next__ of: then that of others, too, once."""
    owner = next((one for one in kind.__mro__ if "__next__" in vars(one)), None)
    if owner is None or _is_timed(owner.__next__):
        return
    try:
        owner.__next__ = _timed(owner.__next__, lambda batch: None)
    except TypeError:  # a generator's, of a subclass: what it takes from its base is timed there
        pass


def _is_timed(function):
    return getattr(function, "_hvrun_times", False)


def _timed(function, look_at):
    @functools.wraps(function)
    def waiting(self):
        made = times.waited(DATA, function, self)
        look_at(made)
        return made

    waiting._hvrun_times = True
    return waiting
