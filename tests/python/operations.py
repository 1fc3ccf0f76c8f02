"""What every rank of test_numpy.py does: all operations on NumPy arrays beside plain NumPy. SPDX-License-Identifier: Apache-2.0"""

import os
import sys

import numpy as np
from numpy_binding import (ADASUM, ALLGATHER, ALLREDUCE, ALLTOALL, AVERAGE, AVERAGE_PRESENT, BARRIER, BF16, BFLOAT16, BROADCAST, FP16,
                           JOIN, MAX, MIN, PRODUCT, RECEIVE, REDUCESCATTER, SEND, SPARSE_ALLREDUCE, SUM, TYPES, Error)
from whole_job import WholeJob

WORLD = int(os.environ.get("WORLD_SIZE", "1"))  # known before the job is joined
job = WholeJob(sys.argv[1], sets=[[0], list(range(WORLD))[::-1][:-1]] if WORLD > 2 else [])
RANKS = range(job.size)


def array_of(rank, kind, shape):
    """The same on every rank that asks for that rank's."""
    generator = np.random.default_rng([rank, np.dtype(kind).num, *shape])
    return generator.integers(0, 2 if kind == np.dtype(bool) else 5, shape).astype(kind)


def same(actual, expected):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, (actual.dtype, actual.shape, expected.shape)
    np.testing.assert_array_equal(actual, expected)


def reduced(arrays, reduction, kind):
    fold = {SUM: np.add, MIN: np.minimum, MAX: np.maximum, PRODUCT: np.multiply}[reduction]
    if kind == np.dtype(bool):
        fold = np.logical_or if reduction in (SUM, MAX) else np.logical_and
    return fold.reduce(arrays, axis=0, dtype=kind)


def check_reductions():
    for kind in TYPES:
        for reduction in (SUM, MIN, MAX, PRODUCT):
            for shape in ((), (0,), (7, 3), (1001,)):
                arrays = [array_of(rank, kind, shape) for rank in RANKS]
                expected = reduced(arrays, reduction, kind)
                mine = arrays[job.rank]
                same(job.run(ALLREDUCE, "r", mine, reduction=reduction).array, expected)
                if shape:
                    share = np.array_split(expected, job.size)[job.rank]
                    same(job.run(REDUCESCATTER, "s", mine, reduction=reduction).array, share)
                job.run(ALLREDUCE, "in place", mine, mine, reduction=reduction)
                same(mine, expected)


def check_averages_and_scales():
    arrays = [array_of(rank, "float64", (40,)) for rank in RANKS]
    mean = job.run(ALLREDUCE, "mean", arrays[job.rank], reduction=AVERAGE, prescale=2.0, postscale=0.5).array
    np.testing.assert_allclose(mean, np.mean(arrays, axis=0))
    whole = np.full(3, -1 if job.rank == 0 else 0, np.int32)
    same(job.run(ALLREDUCE, "integers truncate", whole, reduction=AVERAGE).array, np.full(3, -1 if job.size == 1 else 0, np.int32))


def check_scales_of_every_type():
    """Powers of two, and even numbers: nothing is rounded."""
    for kind in (kind for kind in TYPES if kind != np.dtype(bool)):
        arrays = [2 * array_of(rank, kind, (40, 3)) for rank in RANKS]
        expected = 2 * reduced(arrays, SUM, kind)
        scales = {"prescale": 0.5, "postscale": 4.0}
        same(job.run(ALLREDUCE, "scaled", arrays[job.rank], **scales).array, expected)
        same(job.run(REDUCESCATTER, "shares", arrays[job.rank], **scales).array, np.array_split(expected, job.size)[job.rank])
        result = job.run(SPARSE_ALLREDUCE, "rows", arrays[job.rank], indices=np.arange(40), **scales)
        same(result.array, 2 * np.concatenate(arrays))
        least = job.run(ALLREDUCE, "least", arrays[job.rank], reduction=MIN, **scales).array
        same(least, 2 * reduced(arrays, MIN, kind))
    for operation in (ALLREDUCE, REDUCESCATTER):
        for scale in ("prescale", "postscale"):
            fails("unsupported", "bool takes neither average nor scales", operation, "flags", np.ones(4, bool), **{scale: 2.0})


def adasum_of_two(a, b):
    ab, aa, bb = np.vdot(a, b), np.vdot(a, a), np.vdot(b, b)
    return a * (1 - ab / (2 * aa) if aa else 1) + b * (1 - ab / (2 * bb) if bb else 1)


def adasum(vectors):
    paired = 1 << (len(vectors).bit_length() - 1)
    for rank in range(paired, len(vectors)):
        vectors[rank - paired] = adasum_of_two(vectors[rank - paired], vectors[rank])
    vectors = vectors[:paired]
    while len(vectors) > 1:
        vectors = [adasum_of_two(a, b) for a, b in zip(vectors[::2], vectors[1::2])]
    return vectors[0]


def check_adasum():
    for kind, tolerance in (("float16", 5e-3), ("float32", 1e-6), ("float64", 1e-14)):
        for shape in ((), (0,), (7, 3), (1001,)):
            arrays = [array_of(rank, kind, shape) for rank in RANKS]
            result = job.run(ALLREDUCE, "adasum", arrays[job.rank], reduction=ADASUM, prescale=0.5, postscale=3.0).array
            expected = 3 * np.asarray(adasum([array.astype("float64") / 2 for array in arrays]))
            assert result.dtype == np.dtype(kind) and result.shape == shape
            np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * np.max(np.abs(expected), initial=1))
            everybody = job.run(ALLGATHER, "bits", result.reshape(1, -1)).array
            assert all(row.tobytes() == everybody[0].tobytes() for row in everybody)
    fails("unsupported", "adasum combines floating-point tensors, not int64", ALLREDUCE, "whole", np.ones(1, "int64"), reduction=ADASUM)


def check_compression():
    for kind in ("float32", "float64"):
        for compression, tolerance in ((FP16, 4e-3), (BF16, 3e-2)):
            for reduction in (SUM, AVERAGE, MIN, MAX, PRODUCT):
                arrays = [np.random.default_rng([rank, reduction]).uniform(-2, 2, (1001,)).astype(kind) for rank in RANKS]
                expected = np.mean(arrays, axis=0) if reduction == AVERAGE else reduced(arrays, reduction, kind)
                result = job.run(ALLREDUCE, "small", arrays[job.rank], reduction=reduction, compression=compression).array
                np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance * np.abs(expected).max())
                if compression == FP16:
                    same(result.astype("float16").astype(kind), result)
                assert not np.array_equal(result, expected)
                everybody = job.run(ALLGATHER, "bits", result.reshape(1, -1)).array
                assert all(row.tobytes() == everybody[0].tobytes() for row in everybody)
    fails("unsupported", "compression is for float32 and float64", ALLREDUCE, "whole", np.ones(1, "int64"), compression=FP16)


def check_sparse():
    for kind in ("float16", "float32", "float64", "int32", "bool"):
        for index_kind in ("int32", "int64"):
            for most in (0, 1, 2000):
                rows = [array_of(rank, kind, (most * (rank % 3), 2)) for rank in RANKS]
                indices = [np.random.default_rng(rank).integers(0, 9, len(rows[rank])).astype(index_kind) for rank in RANKS]
                result = job.run(SPARSE_ALLREDUCE, "sparse", rows[job.rank], indices=indices[job.rank])
                same(result.array, np.concatenate(rows))
                same(result.indices, np.concatenate(indices))
    rows = [np.full((rank + 1, 2), 3.0 * job.size) for rank in RANKS]
    result = job.run(SPARSE_ALLREDUCE, "mean", rows[job.rank], indices=np.zeros(job.rank + 1, np.int64), reduction=AVERAGE)
    same(result.array, np.full((sum(RANKS) + job.size, 2), 3.0))
    dense = np.zeros((1, 2))
    np.add.at(dense, result.indices, result.array)  # how duplicates are meant
    np.testing.assert_allclose(dense, np.mean([[row.sum(axis=0)] for row in rows], axis=0))


def bfloat16_of(values):
    """The bits of numbers that bfloat16 holds exactly."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype(np.uint16)


def check_bfloat16():
    arrays = [array_of(rank, "float32", (1001,)) for rank in RANKS]
    mine = bfloat16_of(arrays[job.rank])
    for reduction in (SUM, MIN, MAX, PRODUCT):
        expected = bfloat16_of(reduced(arrays, reduction, "float32"))
        same(job.run(ALLREDUCE, "r", mine, reduction=reduction, type=BFLOAT16).array, expected)
        share = np.array_split(expected, job.size)[job.rank]
        same(job.run(REDUCESCATTER, "s", mine, reduction=reduction, type=BFLOAT16).array, share)
    same(job.run(ALLGATHER, "g", mine, type=BFLOAT16).array, bfloat16_of(np.concatenate(arrays)))


def check_unaligned():
    """Arrays that begin in the middle of an element, as fields of a packed record and views of a file do."""
    for kind in TYPES:
        arrays = [array_of(rank, kind, (1001,)) for rank in RANKS]
        for offset in (1, 3, 7):
            mine, room = (np.empty(arrays[0].nbytes + 16, np.uint8)[offset:][:arrays[0].nbytes].view(kind) for _ in range(2))
            mine[:] = arrays[job.rank]
            same(job.run(ALLREDUCE, "odd", mine, room, reduction=MAX).array, reduced(arrays, MAX, kind))
            same(room, reduced(arrays, MAX, kind))
            same(job.run(ALLGATHER, "odd gather", mine).array, np.concatenate(arrays))


def check_moves():
    for kind in TYPES:
        rows = [array_of(rank, kind, (rank + 1, 2)) for rank in RANKS]
        same(job.run(ALLGATHER, "g", rows[job.rank]).array, np.concatenate(rows))
        root = job.size - 1
        same(job.run(BROADCAST, "b", rows[job.rank][:1].copy(), root=root).array, rows[root][:1])
        tables = [array_of(rank, kind, (sum(rank + to for to in RANKS), 2)) for rank in RANKS]
        parts = [np.split(table, np.cumsum([rank + to for to in RANKS])[:-1]) for rank, table in enumerate(tables)]
        result = job.run(ALLTOALL, "a", tables[job.rank], splits=[job.rank + to for to in RANKS])
        same(result.array, np.concatenate([parts[rank][job.rank] for rank in RANKS]))
        assert result.splits == [rank + job.rank for rank in RANKS]
    job.run(BARRIER, "")


def check_many_in_flight():
    """10,000 at once: the last rank has none before the others have all."""
    arrays = {f"t{i}": np.full(i % 50 + 1, job.rank + i, np.int64) for i in range(10000)}
    names = np.random.default_rng(job.rank).permutation(list(arrays))
    is_last = job.rank == job.size - 1
    lent = {} if is_last else {name: job.start(ALLREDUCE, name, arrays[name], arrays[name]) for name in names}
    job.run(BARRIER, "")
    assert not any(job.is_done(one) for one in lent.values())
    job.run(BARRIER, "")
    lent = lent or {name: job.start(ALLREDUCE, name, arrays[name], arrays[name]) for name in names}
    for name in reversed(names):
        job.wait(lent[name])
    for i in range(10000):
        assert (arrays[f"t{i}"] == job.size * i + sum(RANKS)).all()


def check_handles():
    """What rank 0 alone has cannot be complete, before the others have it too."""
    early = job.start(ALLREDUCE, "handles", np.ones(1)) if job.rank == 0 and job.size > 1 else None
    freed = job.start(ALLREDUCE, "freed", np.ones(1)) if early else None
    if early:
        fails("duplicate name", "'handles' is in flight already", ALLREDUCE, "handles", np.ones(1))
        job.release(freed)
        refused("unknown handle", lambda: job.release(freed))
        refused("unknown handle", lambda: job.wait(freed, 0.0))
    job.run(BARRIER, "")
    if freed is None:
        same(job.run(ALLREDUCE, "freed", np.ones(1)).array, np.full(1, float(job.size)))
    lent = early or job.start(ALLREDUCE, "handles", np.ones(1))
    for _ in range(2):
        same(job.wait(lent, is_kept=True).array, np.full(1, float(job.size)))
    job.release(lent)
    job.run(BARRIER, "")  # what was freed early was read by now


def check_groups():
    values = [np.full(3, i + job.rank, np.int64) for i in range(4)]
    lent = [job.start(ALLREDUCE, f"of group {i}", value, group=5, group_size=4) for i, value in enumerate(values[:3])]
    job.run(ALLREDUCE, "past it", np.ones(1))
    assert not any(job.is_done(one) for one in lent)
    job.run(ALLREDUCE, "all have looked", np.ones(1))
    lent.append(job.start(ALLREDUCE, "of group 3", values[3], group=5, group_size=4))
    for i, one in enumerate(lent):
        same(job.wait(one).array, np.full(3, job.size * i + sum(RANKS), np.int64))
    for operation in (ALLGATHER, REDUCESCATTER):
        arrays = [array_of(rank, "int64", (5, 2)) for rank in RANKS]
        expected = np.concatenate(arrays) if operation == ALLGATHER else np.array_split(np.sum(arrays, axis=0), job.size)[job.rank]
        lent = [job.start(operation, f"grouped {i}", arrays[job.rank] * i, group=6, group_size=3) for i in range(3)]
        for i, one in enumerate(lent):
            same(job.wait(one).array, expected * i)


def check_group_fails_as_one():
    """A disagreement on one of three is the outcome of all, on every rank; then the number works again."""
    if job.size == 1:
        return
    values = [np.full(3, i + job.rank, np.int64) for i in range(3)]
    kinds = ["int64", "int32" if job.rank == 1 else "int64", "int64"]
    lent = [job.start(ALLREDUCE, f"one of {i}", value.astype(kind), group=7, group_size=3)
            for i, (value, kind) in enumerate(zip(values, kinds))]
    for i, one in enumerate(lent):
        words = refused("mismatch between ranks", lambda: job.wait(one))
        assert ("rank 1 has int32 [3]" if i == 1 else "its group 7 fails as one") in words, words
    lent = [job.start(ALLREDUCE, f"one of {i}", value, group=7, group_size=3) for i, value in enumerate(values)]
    for i, one in enumerate(lent):
        same(job.wait(one).array, np.full(3, job.size * i + sum(RANKS), np.int64))


def check_sets():
    if job.size < 3:
        assert job.sets() == {0: list(RANKS)}
        return
    at_start = {0: list(RANKS), 1: [0], 2: list(RANKS)[1:]}
    assert job.sets() == at_start
    own = 1 if job.rank == 0 else 2
    same(job.run(ALLREDUCE, "own", np.array([job.rank + 1]), process_set=own).array, np.array([sum(at_start[own]) + len(at_start[own])]))
    ends = job.add_set([0, job.size - 1])
    assert job.sets() == {**at_start, ends: [0, job.size - 1]}
    if job.rank in (0, job.size - 1):
        same(job.run(ALLREDUCE, "ends", np.array([job.rank + 1]), process_set=ends).array, np.array([job.size + 1]))
    else:
        fails("invalid argument", "is not in process set", ALLREDUCE, "ends", np.ones(1), process_set=ends)
    job.remove_set(ends)
    assert job.sets() == at_start
    fails("invalid argument", "any more", ALLREDUCE, "ends", np.ones(1), process_set=ends)


def check_join():
    for flags in (0, AVERAGE_PRESENT):
        for step in range(job.rank + 1):
            present = job.size - step
            mean = job.run(ALLREDUCE, "mean", np.full(5, 6.0), reduction=AVERAGE, flags=flags).array
            np.testing.assert_allclose(mean, 6.0 if flags else 6.0 * present / job.size)
        assert job.run(JOIN, "").last_joined == job.size - 1


def check_beside_a_joined_rank():
    """What needs every rank is an error for those that call it, and the joined rank hears nothing of it."""
    if job.size == 1:
        return
    last = job.size - 1
    joined = job.start(JOIN, "") if job.rank == last else None
    if not joined:
        words = f"rank {last} has joined"
        fails("unsupported", words, ALLGATHER, "gathered", np.ones(3))
        fails("unsupported", words, BROADCAST, "sent to all", np.ones(3), root=0)
        fails("unsupported", words, BROADCAST, "sent by who has joined", np.ones(3), root=last)
        same(job.run(ALLREDUCE, "summed", np.ones(3)).array, np.full(3, float(last)))
        joined = job.start(JOIN, "")
    job.wait(joined)
    same(job.run(ALLGATHER, "gathered", np.full(1, job.rank)).array, np.array(RANKS))


def check_shared_memory():
    for count in (7, 1 << 20):
        array = job.empty(count, np.float32)
        array[:] = np.arange(count) % 5 + job.rank
        job.run(ALLREDUCE, "shared", array, output=array)
        same(array, (np.arange(count) % 5 * job.size + sum(RANKS)).astype(np.float32))


def check_pairs():
    if job.size == 1:
        return
    following, before = (job.rank + 1) % job.size, (job.rank - 1) % job.size
    for kind in TYPES:
        for shape in ((), (0, 3), (1000, 7)):
            sent = job.start(SEND, "round", array_of(job.rank, kind, shape), root=following)
            got = job.run(RECEIVE, "round", np.zeros(shape, kind), root=before).array
            same(got, array_of(before, kind, shape))
            job.wait(sent)


def fails(status, words, *arguments, **fields):
    assert words in refused(status, lambda: job.run(*arguments, **fields))


def refused(status, call):
    """The words of the error that is due."""
    try:
        call()
    except Error as error:
        assert error.status == status, f"{error.status}: {error}"
        return str(error)
    raise AssertionError(f"no error where {status} was due")


def check_errors():
    fails("invalid argument", "the splits have 0 rows", ALLTOALL, "e", np.ones(job.size), splits=np.zeros(job.size))
    if job.size > 1:
        fails("mismatch between ranks", "rank 0 has float64 [1]", ALLREDUCE, "e", np.ones(1 if job.rank == 0 else 2))
    lent = job.start(ALLREDUCE, "late", np.ones(1)) if job.rank == 0 else None
    if lent and job.size > 1:
        try:
            job.wait(lent, 0.01)
            raise AssertionError("nobody else has it")
        except TimeoutError:
            pass
    job.run(BARRIER, "")
    job.wait(lent or job.start(ALLREDUCE, "late", np.ones(1)))


def check_counters():
    before = job.counters()
    job.run(ALLREDUCE, "counted", np.ones(1000, np.float32))
    after = job.counters()
    grown = {name: getattr(after, name) - getattr(before, name) for name, kind in after._fields_[1:]}
    assert grown["operations_completed"] == 1 and grown["operations_failed"] == 0
    assert grown["input_bytes"] == grown["result_bytes"] == 4000
    assert (grown["shared_memory_bytes"] > 0) == (job.local_size > 1)
    if job.local_rank == 0:
        assert (grown["tcp_bytes"] > 0) == (job.size > job.local_size)


for check in (check_reductions, check_averages_and_scales, check_scales_of_every_type, check_adasum, check_compression, check_sparse,
              check_bfloat16, check_unaligned, check_moves, check_many_in_flight, check_handles, check_groups,
              check_group_fails_as_one, check_sets, check_join, check_beside_a_joined_rank, check_shared_memory,
              check_pairs, check_errors, check_counters):
    check()
left = job.start(ALLREDUCE, "last", np.ones(1))
job.wait(left, is_kept=True)
job.shutdown()
for late in (lambda: job.wait(left), lambda: job.release(left), lambda: job.run(ALLREDUCE, "late", np.ones(1))):
    assert "hvrun_init" in refused("shut down", late)
print(f"rank {job.rank} of {job.size}: all is as NumPy has it")
