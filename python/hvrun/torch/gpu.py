# SPDX-License-Identifier: Apache-2.0
"""Tensors in a GPU's memory: what orders the runtime's work on them with PyTorch's.

An operation reads what its stream had been given when it was started, and whoever has waited for it finds the result on that
stream. Users wait on whatever stream they are on by then: that one is made to follow. Memory of the runtime's that a tensor lies
in goes back to it once the stream has passed that was current when the tensor went.
"""

import collections
import functools
import sys
import threading
import weakref

import torch

# With ROCm, too, tensors say that they are of CUDA.
_HAS_CUDA = torch.version.cuda is not None


def is_available():
    """Whether PyTorch sees a GPU."""
    return torch.cuda.is_available()


def lies_directly(tensor):
    """Whether the runtime works on its memory where that lies: the host's, or a GPU's of CUDA."""
    return tensor.is_cpu or (tensor.is_cuda and _HAS_CUDA)


class OnHost:
    """Nothing is to be ordered."""

    fields = {}

    def follow(self):
        pass


class OnGpu:
    """The stream that was current where a tensor lies. fields: of hvrun_request."""

    __slots__ = ("_stream", "fields")

    def __init__(self, device):
        self._stream = torch.cuda.current_stream(device)
        self.fields = {"device": 1 + self._stream.device.index, "stream": self._stream.cuda_stream}

    def follow(self):
        """The current stream has from now on what that one has."""
        current = torch.cuda.current_stream(self._stream.device)
        if current != self._stream:
            current.wait_stream(self._stream)


_ON_HOST = OnHost()


def order_of(tensor):
    """Of one that lies directly."""
    return OnGpu(tensor.device) if tensor.is_cuda else _ON_HOST


class Gathered:
    """Of work that several threads give to streams, which is all to be done before an operation."""

    def __init__(self, device):
        self._device = None if device.type == "cpu" else device
        self._streams = []  # others than the first have work of the operation's input
        self._order = _ON_HOST

    def note(self):
        """The current stream has some of it."""
        if self._device is not None:
            stream = torch.cuda.current_stream(self._device)
            if stream not in self._streams:
                self._streams.append(stream)

    def gather(self):
        """The current stream, and the operation that is started on it, come after all that was noted."""
        if self._device is None:
            return
        self._order = OnGpu(self._device)
        current = torch.cuda.current_stream(self._device)
        for stream in self._streams:
            if stream != current:
                current.wait_stream(stream)
        self._streams.clear()

    @property
    def fields(self):
        return self._order.fields

    def follow(self):
        self._order.follow()


# (begin, end, whose) of memory in which only allreduces of gradient buckets go to the runtime as they lie. Never changed but
# replaced: threads, and whatever the collection of garbage calls, may look at any time.
_windows = ()
_noting = threading.Lock()


def note_window(memory, begin, size):
    """For as long as the object `memory` lives."""
    global _windows
    with _noting:
        _windows = (*(one for one in _windows if one[2]() is not None), (begin, begin + size, weakref.ref(memory)))


def lies_in_window(tensor):
    return any(begin <= tensor.data_ptr() < end and whose() is not None for begin, end, whose in _windows)


@functools.lru_cache(4096)
def _shape_and_data(size, address):
    return (size,), (address, False)


class Piece:
    """Memory of a GPU as torch.as_tensor takes it. owner: lives as long as the tensors over it."""

    def __init__(self, address, size, owner):
        self.owner = owner
        # PyTorch 2.11 keeps a reference to each value for good. The runtime's memory comes back to the same addresses: so do the
        # values, and a training does not grow.
        shape, data = _shape_and_data(size, address)
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "|u1", "data": data, "version": 3}


class LentPiece(Piece):
    """Of the runtime's memory, which it gets back when what the current stream has been given by then is done."""

    def __init__(self, address, size, owner, device):
        super().__init__(address, size, owner)
        self._device = device

    def __del__(self):
        if not sys.is_finalizing():
            _leaving.append(_Leaving(self._device, self.owner))


class _Leaving:
    """Memory that goes back when what its GPU's current stream has been given by now has been done."""

    def __init__(self, device, owner):
        self._device, self.owner = device, owner
        # What is recorded while a graph is captured is part of it, and may never be asked: then at the next question.
        self._passed = None if torch.cuda.is_current_stream_capturing() else self._mark()

    def _mark(self):
        passed = torch.cuda.Event()
        passed.record(torch.cuda.current_stream(self._device))
        return passed

    def is_free(self):
        """Not while a graph is captured from the current stream: of events there nothing may be asked meanwhile either."""
        if torch.cuda.is_current_stream_capturing():
            return False
        self._passed = self._passed or self._mark()
        return self._passed.query()


_leaving = collections.deque()


def bytes_over(address, size, owner, device):
    """A tensor of bytes over the runtime's memory on that GPU, without a copy."""
    while _leaving and _leaving[0].is_free():
        _leaving.popleft()
    return torch.as_tensor(LentPiece(address, size, owner, device), device=device)
