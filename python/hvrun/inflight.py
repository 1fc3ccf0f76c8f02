# SPDX-License-Identifier: Apache-2.0
"""Operations in flight: how a request gets to the runtime and its result back. The same for every framework.

A framework describes tensors by type, extents and address; what it wants of a result it says by a function that is called
with the runtime's `Result` once the operation is complete.
"""

import collections
import ctypes
import functools
import sys
import threading

from hvrun import _abi
from hvrun._identity import not_joined
from hvrun._library import library
from hvrun.step_times import EXCHANGE, times

# A wait looks for signals this often: Ctrl-C ends it.
_SLICE_SECONDS = 0.2
_NO_RESULT = object()


class _Fields(threading.local):
    """One request for each thread, filled anew for each operation: the runtime reads all of it while it enqueues."""

    def __init__(self):
        self.request = _abi.Request(struct_size=ctypes.sizeof(_abi.Request))
        self.number = ctypes.c_uint64()
        self.request_at = ctypes.addressof(self.request)
        self.number_at = ctypes.addressof(self.number)


_fields = _Fields()


@functools.lru_cache(maxsize=4096)
def extents(shape):
    """A shape as the runtime reads it; the result keeps it alive."""
    array = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    return array, ctypes.addressof(array)


def integers(values):
    """Whole numbers as the runtime reads them."""
    array = (ctypes.c_int64 * max(len(values), 1))(*values)
    return array, ctypes.addressof(array)


class Pending:
    """An operation in flight. It owns what the runtime reads and writes until the operation is complete: an object that is
    dropped before keeps these alive none the less."""

    __slots__ = ("_number", "_lent", "_finish", "_outcome", "_error", "__weakref__")

    def __init__(self, number, lent, finish):
        self._number = number  # 0: the runtime's handle is given back
        self._lent = lent
        self._finish = finish
        self._outcome = _NO_RESULT
        self._error = None

    def is_done(self):
        """Whether wait() would return at once. Never blocks."""
        return self._number == 0 or library().poll(None, self._number) != _abi.IN_PROGRESS

    def wait(self):
        """What the operation yields; again and again the same. Raises what went wrong."""
        if self._number != 0:
            self._settle()
        if self._error is not None:
            raise self._error
        return self._outcome

    def _settle(self):
        lib, number = library(), self._number
        result = _abi.Result(struct_size=ctypes.sizeof(_abi.Result))
        at = ctypes.byref(result)
        status, begun = _abi.IN_PROGRESS, times.begin_wait() if times.thread else 0
        try:
            while status == _abi.IN_PROGRESS and self._number != 0:
                status = lib.wait(None, number, _SLICE_SECONDS, at)
        finally:
            if begun:
                times.end_wait(EXCHANGE, begun)
        with _settling:
            if self._number != 0:  # else another thread has waited for it, too, and was first
                self._take(status, result)

    def _take(self, status, result):
        lib = library()
        number, self._number = self._number, 0
        try:
            if status != _abi.OK:
                self._error = lib.error_of(status)
                lib.release(None, number)
            else:
                self._outcome = self._finish(result, Owned(number))
        except Exception as error:  # of the finish: the operation's, for whoever asks
            self._error = error
        self._lent = self._finish = None

    def __call__(self):
        return self.wait()

    def __del__(self):
        # This may run between any two lines, also between a wait that fails and the question for its words: asking the runtime for
        # this operation's state would replace those.
        if self._number != 0 and not sys.is_finalizing():
            _abandoned.append((self._number, self._lent))


class Owned:
    """A complete operation's handle; given back with the last reference."""

    __slots__ = ("_number", "_is_kept")

    def __init__(self, number):
        self._number = number
        self._is_kept = False

    def keep(self):
        """Its result is going to be used for as long as this object lives, also once the job has been left."""
        if not self._is_kept:
            library().check(library().keep(None, self._number))
            self._is_kept = True

    def __del__(self):
        if not sys.is_finalizing():
            library().release(None, self._number)


_abandoned = collections.deque()  # (number, what it uses) of operations that nobody waits for any more
_settling = threading.RLock()  # held while an operation's outcome is taken: a finish may drop another one


def _reap():
    """Each once: threads may do it beside each other."""
    lib = library()
    for _ in range(len(_abandoned)):
        try:
            one = _abandoned.popleft()
        except IndexError:  # another thread has it
            return
        if lib.poll(None, one[0]) == _abi.IN_PROGRESS:
            _abandoned.append(one)
        else:
            lib.release(None, one[0])


def _enqueue_with(here, fields):
    """With fields that few operations have; the next one finds them 0."""
    try:
        for field in fields:
            setattr(here.request, field, fields[field])
        return library().enqueue(None, here.request_at, here.number_at)
    finally:
        for field in fields:
            setattr(here.request, field, 0)


def enqueue(operation, name, kind, shape, address, lent, finish, output=0, output_bytes=0, process_set=0, reduction=0, **fields):
    """Starts an operation and returns its Pending.

    kind: type number; shape: a tuple; address: of the input; output: where the result goes, 0: the runtime's memory.
    lent: what must live until then. finish(result, owner): what wait() returns; a result that goes on using the runtime's
    memory keeps owner. fields: others of hvrun_request, which are 0 where they are not named.
    """
    if _abandoned:
        _reap()
    here = _fields
    request = here.request
    request.operation = operation
    request.type = kind
    request.name = name.encode()
    held = extents(shape)  # another thread may push it out of the cache
    request.ndim = len(shape)
    request.shape = held[1]
    request.input = address
    request.output = output
    request.output_bytes = output_bytes
    request.process_set = process_set
    request.reduction = reduction
    lib = library()
    if fields:
        status = _enqueue_with(here, fields)
    else:
        status = lib.enqueue(None, here.request_at, here.number_at)
    if status != _abi.OK:
        if status in (_abi.ERROR_SHUTDOWN, _abi.ERROR_CONTRACT) and lib.rank(None) < 0:
            raise not_joined()
        raise lib.error_of(status)
    return Pending(here.number.value, lent, finish)


def nothing(result, owner):
    """A finish for operations whose result the caller has already."""
    del result, owner


def begin_reducing(name, values, reduction, process_set=0):
    """Some whole numbers, reduced over the ranks of a set. Never blocks; wait() of what is returned yields them as a list."""
    array = (ctypes.c_int64 * len(values))(*values)
    at = ctypes.addressof(array)
    return enqueue(_abi.ALLREDUCE, name, _abi.INT64, (len(values),), at, array, lambda result, owner: list(array), output=at,
                   output_bytes=8 * len(values), reduction=reduction, process_set=process_set)


def reduce_numbers(name, values, reduction, process_set=0):
    """As begin_reducing, and waits."""
    return begin_reducing(name, values, reduction, process_set).wait()


def gather_bytes(name, mine, process_set=0):
    """The bytes of every rank of the set, by rank. Blocks."""
    sizes = _gather(name + ".sizes", len(mine).to_bytes(8, sys.byteorder), process_set)
    whole = _gather(name, mine, process_set)
    parts, begin = [], 0
    for at in range(0, len(sizes), 8):
        end = begin + int.from_bytes(sizes[at:at + 8], sys.byteorder)
        parts.append(whole[begin:end])
        begin = end
    return parts


def _gather(name, mine, process_set):
    array = (ctypes.c_char * max(len(mine), 1)).from_buffer_copy(mine or b"\0")
    return enqueue(_abi.ALLGATHER, name, _abi.UINT8, (len(mine),), ctypes.addressof(array), array,
                   lambda result, owner: _copy_of(result.data, result.bytes) if result.bytes else b"",
                   process_set=process_set).wait()


def _copy_of(address, size):
    # Not ctypes.string_at: before Python 3.14 its size is a C int, of 2 GiB at most.
    return (ctypes.c_char * size).from_address(address).raw


def broadcast_bytes(name, mine, root, process_set=0):
    """root's bytes, on every rank of the set; root: a rank in it; mine: None elsewhere. Blocks."""
    size = _broadcast(name + ".size", None if mine is None else len(mine).to_bytes(8, sys.byteorder), 8, root, process_set)
    return _broadcast(name, mine, int.from_bytes(size, sys.byteorder), root, process_set)


def _broadcast(name, mine, size, root, process_set):
    array = (ctypes.c_char * max(size, 1))()
    if mine is not None:
        array[:size] = mine
    at = ctypes.addressof(array)
    enqueue(_abi.BROADCAST, name, _abi.UINT8, (size,), at, array, nothing, output=at, output_bytes=size, root=root,
            process_set=process_set).wait()
    return bytes(array[:size])
