"""What the tests call beyond the binding: process sets, counters, shared memory. SPDX-License-Identifier: Apache-2.0"""

import ctypes as c
import weakref

import numpy as np
from numpy_binding import Job


class RankList(c.Structure):
    _fields_ = [("ranks", c.c_void_p), ("count", c.c_size_t)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("process_sets", c.POINTER(RankList)), ("process_set_count", c.c_size_t)]


class Counters(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [(name, c.c_uint64) for name in (
        "operations_enqueued", "operations_completed", "operations_failed", "input_bytes", "result_bytes", "steps", "decisions",
        "cache_hits", "cache_misses", "buckets", "fused_buckets", "fused_tensors", "stalls", "waits", "wait_nanoseconds",
        "straggler_nanoseconds", "worst_rank_nanoseconds")] + [("worst_rank", c.c_int32), ("reserved", c.c_int32)] + [
        (name, c.c_uint64) for name in ("timeline_dropped", "kept_buckets", "given_up_buckets", "shared_memory_bytes", "tcp_bytes")]


class WholeJob(Job):
    def __init__(self, library, sets=()):
        """sets: lists of ranks, the process sets to begin with."""
        members = [np.array(ranks, np.int32) for ranks in sets]
        lists = (RankList * max(1, len(members)))(*((ranks.ctypes.data, ranks.size) for ranks in members))
        super().__init__(library, Options(c.sizeof(Options), lists, len(members)))
        self.local_rank, self.local_size = self._lib.hvrun_local_rank(None), self._lib.hvrun_local_size(None)

    def counters(self):
        values = Counters(struct_size=c.sizeof(Counters))
        self._check(self._lib.hvrun_counters_read(None, c.byref(values)))
        return values

    def add_set(self, ranks):
        number, members = c.c_uint32(), np.array(ranks, np.int32)
        self._check(self._lib.hvrun_process_set_add(None, c.c_void_p(members.ctypes.data), members.size, c.byref(number)))
        return number.value

    def sets(self):
        """{number: the ranks of that set, in the job}."""
        return {int(number): self._list_of(self._lib.hvrun_process_set_ranks, c.c_int32, c.c_uint32(number))
                for number in self._list_of(self._lib.hvrun_process_set_list, c.c_uint32)}

    def _list_of(self, function, kind, *arguments):
        count = c.c_int32()
        self._check(function(None, *arguments, None, 0, c.byref(count)))
        room = (kind * count.value)()
        self._check(function(None, *arguments, room, count, c.byref(count)))
        return list(room)

    def remove_set(self, number):
        self._check(self._lib.hvrun_process_set_remove(None, number))

    def empty(self, count, kind):
        """An array that all ranks of this host reach."""
        memory, size = c.c_void_p(), count * np.dtype(kind).itemsize
        self._check(self._lib.hvrun_alloc(None, c.c_size_t(size), c.byref(memory)))
        piece = (c.c_byte * size).from_address(memory.value)
        weakref.finalize(piece, self._lib.hvrun_free, memory)
        return np.frombuffer(piece, kind)
