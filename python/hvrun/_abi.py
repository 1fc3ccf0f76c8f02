# SPDX-License-Identifier: Apache-2.0
"""hvrun.h for ctypes: its numbers and structs. A lint test compares them with the header."""

import ctypes as c

OK = 0
IN_PROGRESS = 1
ERROR_ARGUMENT = 2
ERROR_MISMATCH = 3
ERROR_DUPLICATE = 4
ERROR_PEER_LOST = 5
ERROR_SHUTDOWN = 6
ERROR_SYSTEM = 7
ERROR_MEMORY = 8
ERROR_UNSUPPORTED = 9
ERROR_CONTRACT = 10
ERROR_HANDLE = 11
ERROR_STALLED = 12

ALLREDUCE = 1
ALLGATHER = 2
BROADCAST = 3
BARRIER = 4
REDUCESCATTER = 5
ALLTOALL = 6
JOIN = 7
SEND = 8
RECEIVE = 9
SPARSE_ALLREDUCE = 10
ALLOCATE = 11

UINT8 = 1
INT8 = 2
INT16 = 3
INT32 = 4
INT64 = 5
FLOAT16 = 6
BFLOAT16 = 7
FLOAT32 = 8
FLOAT64 = 9
BOOL = 10
FLOAT8_E4M3 = 14
FLOAT8_E5M2 = 15

SUM = 1
AVERAGE = 2
MIN = 3
MAX = 4
PRODUCT = 5
ADASUM = 6

COMPRESSION_NONE = 0
COMPRESSION_FP16 = 1
COMPRESSION_BF16 = 2

AVERAGE_PRESENT = 1


class RankList(c.Structure):
    _fields_ = [("ranks", c.POINTER(c.c_int32)), ("count", c.c_size_t)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("process_sets", c.POINTER(RankList)), ("process_set_count", c.c_size_t),
                ("mpi_communicator", c.c_void_p)]


class Request(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("operation", c.c_int),
        ("type", c.c_int),
        ("name", c.c_char_p),
        ("process_set", c.c_uint32),
        ("reduction", c.c_int),
        ("root", c.c_int32),
        ("ndim", c.c_int32),
        ("shape", c.c_void_p),
        ("input", c.c_void_p),
        ("output", c.c_void_p),
        ("prescale", c.c_double),
        ("postscale", c.c_double),
        ("device", c.c_int32),
        ("flags", c.c_uint32),
        ("stream", c.c_void_p),
        ("group", c.c_uint64),
        ("group_size", c.c_uint32),
        ("output_bytes", c.c_size_t),
        ("splits", c.c_void_p),
        ("split_count", c.c_size_t),
        ("compression", c.c_int),
        ("index_type", c.c_int),
        ("indices", c.c_void_p),
    ]


class Result(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("type", c.c_int),
        ("ndim", c.c_int32),
        ("shape", c.POINTER(c.c_int64)),
        ("data", c.c_void_p),
        ("bytes", c.c_size_t),
        ("received_splits", c.POINTER(c.c_int64)),
        ("received_split_count", c.c_size_t),
        ("last_joined", c.c_int32),
        ("index_type", c.c_int),
        ("indices", c.c_void_p),
    ]


class Counters(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("operations_enqueued", c.c_uint64),
        ("operations_completed", c.c_uint64),
        ("operations_failed", c.c_uint64),
        ("input_bytes", c.c_uint64),
        ("result_bytes", c.c_uint64),
        ("steps", c.c_uint64),
        ("decisions", c.c_uint64),
        ("cache_hits", c.c_uint64),
        ("cache_misses", c.c_uint64),
        ("buckets", c.c_uint64),
        ("fused_buckets", c.c_uint64),
        ("fused_tensors", c.c_uint64),
        ("stalls", c.c_uint64),
        ("waits", c.c_uint64),
        ("wait_nanoseconds", c.c_uint64),
        ("straggler_nanoseconds", c.c_uint64),
        ("worst_rank_nanoseconds", c.c_uint64),
        ("worst_rank", c.c_int32),
        ("reserved", c.c_int32),
        ("timeline_dropped", c.c_uint64),
        ("kept_buckets", c.c_uint64),
        ("given_up_buckets", c.c_uint64),
        ("shared_memory_bytes", c.c_uint64),
        ("tcp_bytes", c.c_uint64),
    ]


class StepTimes(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("steps", c.c_uint64),
        ("nanoseconds", c.c_uint64),
        ("data_nanoseconds", c.c_uint64),
        ("exchange_nanoseconds", c.c_uint64),
        ("data_waits", c.c_uint64),
    ]


# name: (what it takes, what it gives). Those that never block keep the interpreter's lock: giving it away and asking for it
# again costs two thread switches beside a busy Python thread.
PROMPT = {
    "hvrun_rank": ([c.c_void_p], c.c_int),
    "hvrun_size": ([c.c_void_p], c.c_int),
    "hvrun_local_rank": ([c.c_void_p], c.c_int),
    "hvrun_local_size": ([c.c_void_p], c.c_int),
    "hvrun_cross_rank": ([c.c_void_p], c.c_int),
    "hvrun_cross_size": ([c.c_void_p], c.c_int),
    "hvrun_enqueue": ([c.c_void_p, c.c_void_p, c.c_void_p], c.c_int),
    "hvrun_poll": ([c.c_void_p, c.c_uint64], c.c_int),
    "hvrun_release": ([c.c_void_p, c.c_uint64], c.c_int),
    "hvrun_keep": ([c.c_void_p, c.c_uint64], c.c_int),
    "hvrun_alloc": ([c.c_void_p, c.c_size_t, c.POINTER(c.c_void_p)], c.c_int),
    "hvrun_free": ([c.c_void_p], c.c_int),
    "hvrun_copy": ([c.c_void_p, c.c_void_p, c.c_size_t], c.c_int),
    "hvrun_process_set_list": ([c.c_void_p, c.c_void_p, c.c_int32, c.POINTER(c.c_int32)], c.c_int),
    "hvrun_process_set_ranks": ([c.c_void_p, c.c_uint32, c.c_void_p, c.c_int32, c.POINTER(c.c_int32)], c.c_int),
    "hvrun_counters_read": ([c.c_void_p, c.POINTER(Counters)], c.c_int),
    "hvrun_report_steps": ([c.c_void_p, c.POINTER(StepTimes)], c.c_int),
    "hvrun_last_error": ([], c.c_char_p),
    "hvrun_status_name": ([c.c_int], c.c_char_p),
    "hvrun_version": ([], c.c_char_p),
    "hvrun_type_size": ([c.c_int], c.c_size_t),
}
BLOCKING = {
    "hvrun_init": ([c.POINTER(Options), c.c_void_p], c.c_int),
    "hvrun_shutdown": ([c.c_void_p], c.c_int),
    "hvrun_wait": ([c.c_void_p, c.c_uint64, c.c_double, c.POINTER(Result)], c.c_int),
    "hvrun_barrier": ([c.c_void_p], c.c_int),
    "hvrun_process_set_add": ([c.c_void_p, c.c_void_p, c.c_int32, c.POINTER(c.c_uint32)], c.c_int),
    "hvrun_process_set_remove": ([c.c_void_p, c.c_uint32], c.c_int),
    "hvrun_timeline_start": ([c.c_void_p, c.c_char_p], c.c_int),
    "hvrun_timeline_stop": ([c.c_void_p], c.c_int),
    "hvrun_nccl_version": ([c.POINTER(c.c_int32)], c.c_int),
    "hvrun_mpi_version": ([c.POINTER(c.c_char_p), c.POINTER(c.c_int32)], c.c_int),
    "hvrun_carriers": ([c.POINTER(c.c_char_p)], c.c_int),
}
