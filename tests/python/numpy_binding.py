"""hvrun.h by ctypes, for NumPy arrays: as little as there can be. SPDX-License-Identifier: Apache-2.0"""

import ctypes as c
from collections import namedtuple

import numpy as np

ALLREDUCE, ALLGATHER, BROADCAST, BARRIER, REDUCESCATTER, ALLTOALL, JOIN, SEND, RECEIVE, SPARSE_ALLREDUCE = range(1, 11)
SUM, AVERAGE, MIN, MAX, PRODUCT, ADASUM = range(1, 7)
FP16, BF16 = 1, 2
AVERAGE_PRESENT = 1
BFLOAT16 = 7  # has no dtype in NumPy: its bits lie in uint16
TYPES = {np.dtype(name): number for name, number in (
    ("uint8", 1), ("int8", 2), ("int16", 3), ("int32", 4), ("int64", 5), ("float16", 6), ("float32", 8), ("float64", 9),
    ("bool", 10))}
Result = namedtuple("Result", "array splits last_joined indices", defaults=(None,))
Lent = namedtuple("Lent", "handle arrays request")  # what must stay as it is until the operation is complete


class Request(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t), ("operation", c.c_int), ("type", c.c_int), ("name", c.c_char_p),
        ("process_set", c.c_uint32), ("reduction", c.c_int), ("root", c.c_int32), ("ndim", c.c_int32),
        ("shape", c.POINTER(c.c_int64)), ("input", c.c_void_p), ("output", c.c_void_p), ("prescale", c.c_double),
        ("postscale", c.c_double), ("device", c.c_int32), ("flags", c.c_uint32), ("stream", c.c_void_p),
        ("group", c.c_uint64), ("group_size", c.c_uint32), ("output_bytes", c.c_size_t),
        ("splits", c.POINTER(c.c_int64)), ("split_count", c.c_size_t), ("compression", c.c_int), ("index_type", c.c_int),
        ("indices", c.c_void_p)]


class RawResult(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("type", c.c_int), ("ndim", c.c_int32), ("shape", c.POINTER(c.c_int64)),
                ("data", c.c_void_p), ("bytes", c.c_size_t), ("received_splits", c.POINTER(c.c_int64)),
                ("received_split_count", c.c_size_t), ("last_joined", c.c_int32), ("index_type", c.c_int), ("indices", c.c_void_p)]


class Error(RuntimeError):
    def __init__(self, status, words):
        super().__init__(words)
        self.status = status


class Job:
    """The default context. Operations start with start() and end with wait(); run() is both."""

    def __init__(self, library, options=None):
        self._lib = c.CDLL(library)
        self._lib.hvrun_last_error.restype = self._lib.hvrun_status_name.restype = c.c_char_p
        self._lib.hvrun_wait.argtypes = [c.c_void_p, c.c_uint64, c.c_double, c.c_void_p]
        self._lib.hvrun_release.argtypes = self._lib.hvrun_poll.argtypes = [c.c_void_p, c.c_uint64]
        self._check(self._lib.hvrun_init(options and c.byref(options), None))
        self.rank, self.size = self._lib.hvrun_rank(None), self._lib.hvrun_size(None)

    def _check(self, status):
        if status != 0:
            raise Error(self._lib.hvrun_status_name(status).decode(), self._lib.hvrun_last_error().decode())

    def start(self, operation, name, array=None, output=None, splits=None, indices=None, **fields):
        """fields: those of hvrun_request by name. output: None, and the library owns the result."""
        request = Request(struct_size=c.sizeof(Request), operation=operation, name=name.encode(), **fields)
        shape = np.array(() if array is None else array.shape, np.int64)
        if array is not None:
            assert array.flags.c_contiguous and (output is None or output.flags.c_contiguous)
            request.type = fields.get("type") or TYPES[array.dtype]
            request.ndim, request.input = array.ndim, array.ctypes.data
            request.shape = shape.ctypes.data_as(c.POINTER(c.c_int64))
        if output is not None:
            request.output, request.output_bytes = output.ctypes.data, output.nbytes
        if splits is not None:
            splits = np.ascontiguousarray(splits, np.int64)
            request.splits, request.split_count = splits.ctypes.data_as(c.POINTER(c.c_int64)), splits.size
        if indices is not None:
            assert indices.flags.c_contiguous
            request.indices, request.index_type = indices.ctypes.data, TYPES[indices.dtype]
        handle = c.c_uint64()
        self._check(self._lib.hvrun_enqueue(None, c.byref(request), c.byref(handle)))
        return Lent(handle.value, (array, output, indices), request)

    def is_done(self, lent):
        return self._lib.hvrun_poll(None, lent.handle) != 1

    def release(self, lent):
        self._check(self._lib.hvrun_release(None, lent.handle))

    def wait(self, lent, seconds=-1.0, is_kept=False):
        """A copy of the result, with the splits received and who joined last. is_kept: it can be waited for again."""
        raw = RawResult(struct_size=c.sizeof(RawResult))
        status = self._lib.hvrun_wait(None, lent.handle, seconds, c.byref(raw))
        if status == 1:
            raise TimeoutError
        try:
            self._check(status)
            if lent.arrays[0] is None:  # a barrier, a join
                return Result(None, [], raw.last_joined)
            shape = tuple(raw.shape[i] for i in range(raw.ndim))
            if lent.request.operation == SEND:
                return Result(None, [], raw.last_joined)
            kind = np.dtype("uint16") if raw.type == BFLOAT16 else next(kind for kind, number in TYPES.items() if number == raw.type)
            array = np.frombuffer(c.string_at(raw.data, raw.bytes) if raw.bytes else b"", kind).reshape(shape)
            splits = [raw.received_splits[i] for i in range(raw.received_split_count)]
            indices = None
            if lent.request.operation == SPARSE_ALLREDUCE:
                kind = lent.arrays[2].dtype
                indices = np.frombuffer(c.string_at(raw.indices, shape[0] * kind.itemsize), kind)
            return Result(array, splits, raw.last_joined, indices)
        finally:
            if not is_kept:
                self._lib.hvrun_release(None, lent.handle)

    def run(self, *arguments, **fields):
        return self.wait(self.start(*arguments, **fields))

    def shutdown(self):
        self._check(self._lib.hvrun_shutdown(None))
