# SPDX-License-Identifier: Apache-2.0
"""Reading ahead in a thread, so that the next batch is there when it is asked for."""

import queue
import threading

from hvrun.step_times import DATA, times

_END = object()


class _Failed:
    """What the reading thread met, for the one who asks next."""

    def __init__(self, error):
        self.error = error


class Prefetcher:
    """Any iterable, or a DataLoader, read ahead by a thread: at most `depth` batches wait. Each iteration begins anew.

    prepare: called on each batch in that thread, such as a copy to a GPU. pin: batches of PyTorch's tensors go to pinned
    memory there, where CUDA is available. What the iterable raises, the one who asks for the next batch gets. Leaving an
    iteration in its middle ends the thread, and waits until the iterable has given what it is at.
    """

    def __init__(self, iterable, depth=2, prepare=None, pin=True):
        if depth < 1:
            raise ValueError(f"depth is a number of batches from 1 on, not {depth}")
        self._iterable, self._depth, self._prepare = iterable, depth, prepare or (_pinning() if pin else None)

    def __len__(self):
        return len(self._iterable)

    def __iter__(self):
        waiting, left = queue.Queue(self._depth), threading.Event()
        reader = threading.Thread(target=self._read, args=(waiting, left), name="hvrun-prefetcher", daemon=True)
        reader.start()
        try:
            while True:
                batch = times.waited(DATA, waiting.get)
                if batch is _END:
                    return
                if isinstance(batch, _Failed):
                    raise batch.error
                yield batch
        finally:
            left.set()
            while reader.is_alive():  # it may stand before a full queue
                try:
                    waiting.get(timeout=0.05)
                except queue.Empty:
                    pass
            reader.join()

    def _read(self, waiting, left):
        try:
            for batch in self._iterable:
                waiting.put(self._prepare(batch) if self._prepare else batch)
                if left.is_set():
                    return
            waiting.put(_END)
        except BaseException as error:  # handed to the one who waits
            waiting.put(_Failed(error))


def _pinning():
    """What pins a batch's tensors; None where there is no CUDA."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    return lambda batch: _pinned(torch, batch)


def _pinned(torch, batch):
    if isinstance(batch, torch.Tensor):
        return batch.pin_memory()
    if isinstance(batch, dict):
        return {key: _pinned(torch, one) for key, one in batch.items()}
    if isinstance(batch, (list, tuple)):
        made = [_pinned(torch, one) for one in batch]
        return type(batch)(*made) if hasattr(batch, "_fields") else type(batch)(made)
    return batch
