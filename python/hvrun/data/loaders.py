# SPDX-License-Identifier: Apache-2.0
"""Loaders of one's own, as Horovod has them: a class that yields batches, and a mixin that reads ahead."""

from hvrun.data.prefetcher import Prefetcher
from hvrun.step_times import timed


class BaseDataLoader:
    """A subclass has __len__ and _iterate(), which yields batches; _process_batch() is called on each by whoever takes it."""

    def __len__(self):
        raise TypeError(f"{type(self).__name__} has no __len__()")

    def _iterate(self):
        raise TypeError(f"{type(self).__name__} has no _iterate()")

    def _process_batch(self, batch):
        return batch

    def __iter__(self):
        yield from timed(map(self._process_batch, _Iterated(self)))


class _Iterated:
    """A loader's _iterate() as an iterable."""

    def __init__(self, loader):
        self._loader = loader

    def __iter__(self):
        return iter(self._loader._iterate())


class AsyncDataLoaderMixin:
    """First among the bases of a BaseDataLoader: batches are read ahead by a thread, at most async_loader_queue_size of them; 0
    reads them when they are asked for."""

    def __init__(self, async_loader_queue_size=64, debug_data_loader=False, *args, **kwargs):
        self.async_loader_queue_size, self.debug_data_loader = async_loader_queue_size, debug_data_loader
        self._iterations = []
        super().__init__(*args, **kwargs)

    def __iter__(self):
        if self.async_loader_queue_size == 0:
            yield from super().__iter__()
            return
        iteration = iter(Prefetcher(_Iterated(self), self.async_loader_queue_size, pin=False))
        self._iterations.append(iteration)
        try:
            yield from timed(map(self._process_batch, iteration))
        finally:
            iteration.close()
            self._iterations.remove(iteration)

    def close_async_loader(self):
        """Ends the threads that read ahead."""
        for iteration in list(self._iterations):
            iteration.close()
