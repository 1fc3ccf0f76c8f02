# SPDX-License-Identifier: Apache-2.0
"""Every operation, type and shape of hvrun.torch beside what one process computes."""

import os

import pytest
import torch

import hvrun.torch as hvd

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
SHAPES = [(), (1,), (17,), (4, 5), (3, 4, 5), (0,), (2, 0, 3)]


def rank_tensor(shape, dtype, rank):
    """What a rank has: small whole numbers, exact in every type."""
    count = 1
    for extent in shape:
        count *= extent
    return ((torch.arange(count) * 3 + rank) % 7).reshape(shape).to(dtype)


def of_all(shape, dtype):
    return [rank_tensor(shape, dtype, rank) for rank in range(hvd.size())]


def mine(shape, dtype):
    return rank_tensor(shape, dtype, hvd.rank())


def same(made, expected):
    assert made.dtype == expected.dtype and made.shape == expected.shape
    assert torch.equal(made, expected), f"{made} is not {expected}"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=str)
def test_allreduce_sums(dtype, shape):
    tensor = mine(shape, dtype)
    before = tensor.clone()
    expected = torch.stack(of_all(shape, dtype)).sum(0).to(dtype)
    same(hvd.allreduce(tensor, op=hvd.Sum), expected)
    same(tensor, before)
    assert hvd.allreduce_(tensor, op=hvd.Sum) is tensor
    same(tensor, expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_allreduce_averages_by_default(dtype):
    expected = (torch.stack(of_all((4, 5), dtype)).double().sum(0) / hvd.size())
    made = hvd.allreduce(mine((4, 5), dtype))
    assert torch.allclose(made.double(), expected, rtol=1e-2 if dtype in (torch.float16, torch.bfloat16) else 1e-6)


def test_an_integer_average_truncates_towards_zero():
    tensor = torch.tensor([-3, 3, 5, -5]) * (1 if hvd.rank() == 0 else 0)
    expected = torch.tensor([int(v / hvd.size()) for v in (-3, 3, 5, -5)])
    same(hvd.allreduce(tensor), expected)


@pytest.mark.parametrize("op,reduce", [(hvd.Min, lambda s: s.min(0).values), (hvd.Max, lambda s: s.max(0).values),
                                       (hvd.Product, lambda s: s.prod(0))], ids=["min", "max", "product"])
def test_other_reductions(op, reduce):
    stack = torch.stack([one + 1 for one in of_all((6,), torch.float64)])
    same(hvd.allreduce(mine((6,), torch.float64) + 1, op=op), reduce(stack))


def test_bool_is_reduced_as_logic():
    tensor = torch.tensor([hvd.rank() == 0, True, False])
    same(hvd.allreduce(tensor, op=hvd.Max), torch.tensor([True, True, False]))
    same(hvd.allreduce(tensor, op=hvd.Min), torch.tensor([hvd.size() == 1, True, False]))


def test_scales_apply_before_and_after():
    tensor = mine((5,), torch.float32)
    expected = torch.stack(of_all((5,), torch.float32)).sum(0) * 0.5 * 4
    same(hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0), expected)


def test_a_scale_of_zero_gives_zeros():
    for scales in ({"prescale_factor": 0.0}, {"postscale_factor": 0.0}):
        same(hvd.allreduce(mine((5,), torch.float32) + 1, op=hvd.Sum, **scales), torch.zeros(5))


def test_average_and_op_exclude_each_other():
    with pytest.raises(ValueError, match="both op and average"):
        hvd.allreduce(torch.ones(1), average=True, op=hvd.Sum)
    with pytest.warns(DeprecationWarning):
        same(hvd.allreduce(torch.ones(2), average=False), torch.full((2,), float(hvd.size())))
    with pytest.raises(ValueError, match="none of hvd.Average"):
        hvd.allreduce(torch.ones(1), op=17)


@pytest.mark.parametrize("make", [lambda t: t.t(), lambda t: t[:, ::2], lambda t: t[1:, 1:]], ids=["transposed", "strided", "inner"])
def test_tensors_need_not_be_contiguous(make):
    tensor = make(mine((6, 8), torch.float32))
    expected = sum(make(one) for one in of_all((6, 8), torch.float32))
    same(hvd.allreduce(tensor, op=hvd.Sum), expected)
    assert hvd.allreduce_(tensor, op=hvd.Sum) is tensor
    same(tensor, expected)


def test_channels_last_tensors_keep_their_layout():
    tensor = mine((2, 3, 4, 5), torch.float32).contiguous(memory_format=torch.channels_last)
    hvd.allreduce_(tensor, op=hvd.Sum)
    assert tensor.is_contiguous(memory_format=torch.channels_last)
    same(tensor, sum(of_all((2, 3, 4, 5), torch.float32)))


@pytest.mark.parametrize("compression", [hvd.Compression.fp16, hvd.Compression.bf16], ids=["fp16", "bf16"])
def test_compression_rounds_and_gives_the_type_back(compression):
    made = hvd.allreduce(mine((9,), torch.float32), op=hvd.Sum, compression=compression)
    same(made, sum(of_all((9,), torch.float32)))


def test_groups_travel_together():
    shapes = [(3,), (2, 2), ()]
    made = hvd.grouped_allreduce([mine(shape, torch.float32) for shape in shapes], op=hvd.Sum)
    for one, shape in zip(made, shapes):
        same(one, sum(of_all(shape, torch.float32)))
    tensors = [mine(shape, torch.float64) for shape in shapes]
    in_place = hvd.grouped_allreduce_(tensors, op=hvd.Sum)
    assert all(one is tensor for one, tensor in zip(in_place, tensors))
    assert hvd.synchronize(hvd.grouped_allreduce_async([])) == []


def test_allgather_with_different_numbers_of_rows():
    tensor = torch.full((hvd.rank() + 1, 2), float(hvd.rank()))
    expected = torch.cat([torch.full((rank + 1, 2), float(rank)) for rank in range(hvd.size())])
    same(hvd.allgather(tensor), expected)
    made = hvd.grouped_allgather([tensor, tensor[:, :1]])
    same(made[0], expected)
    same(made[1], expected[:, :1])


def test_allgather_of_scalars_and_of_nothing():
    same(hvd.allgather(torch.tensor(float(hvd.rank()))), torch.arange(float(hvd.size())))
    same(hvd.allgather(torch.empty(0, 3)), torch.empty(0, 3))


def test_a_result_outlives_the_job():
    made = hvd.allgather(torch.tensor([hvd.rank()]))
    hvd.shutdown()
    assert not hvd.is_initialized()
    same(made, torch.arange(int(len(made))))
    with pytest.raises(ValueError, match="hvd.init"):
        hvd.rank()
    with pytest.raises(ValueError, match="hvd.init"):
        hvd.allreduce(torch.ones(1))
    hvd.init()


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + [torch.bool], ids=str)
def test_broadcast_from_every_rank(dtype):
    for root in range(hvd.size()):
        expected = rank_tensor((2, 3), dtype, root)
        tensor = mine((2, 3), dtype)
        same(hvd.broadcast(tensor, root), expected)
        assert hvd.broadcast_(tensor, root) is tensor
        same(tensor, expected)
    with pytest.raises(ValueError, match="no rank of this job"):
        hvd.broadcast(torch.ones(1), hvd.size())


def test_broadcast_into_what_is_not_contiguous():
    tensor = mine((4, 4), torch.float32).t()
    hvd.broadcast_(tensor, hvd.size() - 1)
    same(tensor, rank_tensor((4, 4), torch.float32, hvd.size() - 1).t())


def test_alltoall_evenly():
    tensor = torch.arange(hvd.size() * 2) + 100 * hvd.rank()
    expected = torch.cat([torch.arange(2) + 2 * hvd.rank() + 100 * rank for rank in range(hvd.size())])
    same(hvd.alltoall(tensor), expected)


@pytest.mark.parametrize("as_tensor", [False, True], ids=["list", "tensor"])
def test_alltoall_with_splits(as_tensor):
    splits = [(hvd.rank() + to) % 3 for to in range(hvd.size())]
    tensor = torch.cat([torch.full((n, 2), float(10 * hvd.rank() + to)) for to, n in enumerate(splits)])
    made, received = hvd.alltoall(tensor, torch.tensor(splits, dtype=torch.int32) if as_tensor else splits)
    counts = [(rank + hvd.rank()) % 3 for rank in range(hvd.size())]
    same(made, torch.cat([torch.full((n, 2), float(10 * rank + hvd.rank())) for rank, n in enumerate(counts)]))
    assert received.is_cpu or as_tensor
    same(received.cpu(), torch.tensor(counts, dtype=torch.int32, device="cpu"))
    with pytest.raises(ValueError, match="one for each"):
        hvd.alltoall(tensor, [1] * (hvd.size() + 1))


@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum], ids=["average", "sum"])
def test_reducescatter_of_uneven_shares(op):
    rows = 2 * hvd.size() + 1
    whole = sum(of_all((rows, 3), torch.float64)) / (hvd.size() if op == hvd.Average else 1)
    begin = 2 * hvd.rank() + min(hvd.rank(), 1)
    expected = whole[begin:begin + 2 + (hvd.rank() < 1)]
    assert torch.allclose(hvd.reducescatter(mine((rows, 3), torch.float64), op=op), expected)
    for one in hvd.grouped_reducescatter([mine((rows, 3), torch.float64)] * 2, op=op):
        assert torch.allclose(one, expected)
    with pytest.raises(ValueError, match="Average or hvd.Sum"):
        hvd.reducescatter(torch.ones(3), op=hvd.Min)


@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum, 0, 1], ids=["average", "sum", "average's number", "sum's"])
@pytest.mark.parametrize("sparse_dim", [1, 2])
def test_sparse_allreduce(op, sparse_dim):
    dense = torch.zeros(hvd.size() + 1, 4)
    dense[hvd.rank()] += 1 + hvd.rank()
    dense[hvd.size()] += 1
    handle = hvd.sparse_allreduce_async(dense.to_sparse(sparse_dim), "rows", op)
    assert callable(handle)
    made = handle()
    assert made.is_sparse
    expected = hvd.allreduce(dense, op=op)
    assert torch.allclose(made.to_dense(), expected)


def test_handles_can_be_polled_and_waited_for_twice():
    handle = hvd.allreduce_async(torch.ones(3), op=hvd.Sum, name="polled")
    first = hvd.synchronize(handle)
    assert hvd.poll(handle)
    assert hvd.synchronize(handle) is first
    with pytest.raises(ValueError, match="no handle"):
        hvd.synchronize(3)


def test_a_dropped_handle_does_not_lose_its_memory():
    for number in range(50):
        hvd.allreduce_async_(torch.full((1000,), 1.0), op=hvd.Sum, name=f"dropped {number}")
    same(hvd.allreduce(torch.ones(1), op=hvd.Sum), torch.tensor([float(hvd.size())]))


@pytest.mark.ranks(2)
def test_a_mismatch_is_an_error_on_every_rank():
    with pytest.raises(hvd.HorovodInternalError, match="tensor 'allreduce.unlike'.*rank"):
        hvd.allreduce(torch.ones(2 + hvd.rank()), name="unlike")
    same(hvd.allreduce(torch.ones(1), op=hvd.Sum), torch.tensor([float(hvd.size())]))


@pytest.mark.ranks(2)
def test_an_error_has_its_own_words_whatever_is_collected_meanwhile(monkeypatch):
    """A failed operation that nobody waits for goes just before the words of another one's error are asked for."""
    from hvrun._library import Library

    dropped = [hvd.allreduce_async(torch.ones(2 + hvd.rank()), name="dropped")]
    hvd.barrier()
    while not hvd.poll(dropped[0]):
        pass
    error_of = Library.error_of
    monkeypatch.setattr(Library, "error_of", lambda self, status: dropped.clear() or error_of(self, status))
    with pytest.raises(hvd.HorovodInternalError, match="tensor 'allreduce.waited for'"):
        hvd.allreduce(torch.ones(2 + hvd.rank()), name="waited for")


def test_a_name_in_flight_cannot_be_used_again():
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(torch.ones(1), name="twice")
        with pytest.raises(hvd.HorovodInternalError, match="in flight already"):
            while True:  # alone, the first may be over before the second comes
                again = hvd.allreduce_async(torch.ones(1), name="twice")
                hvd.synchronize(again)
                if hvd.size() == 1:
                    raise hvd.HorovodInternalError("in flight already, had there been a peer")
        hvd.barrier()
    else:
        hvd.barrier()
        handle = hvd.allreduce_async(torch.ones(1), name="twice")
    hvd.synchronize(handle)


def test_join_lets_the_others_go_on():
    for step in range(hvd.rank() + 1):
        made = hvd.allreduce(torch.ones(2), op=hvd.Sum, name=f"uneven {step}")
        same(made, torch.full((2,), float(hvd.size() - step)))
    assert 0 <= hvd.join() < hvd.size()


def test_barrier():
    hvd.barrier()


@pytest.mark.ranks(2)
def test_process_sets():
    even = hvd.add_process_set(list(range(0, hvd.size(), 2)))
    rest = hvd.add_process_set(hvd.ProcessSet(range(1, hvd.size(), 2)))
    own = even if even.included() else rest
    assert not (even.included() and rest.included()) and own.size() == len(own.ranks)
    made = hvd.allreduce(torch.tensor([float(hvd.rank())]), op=hvd.Sum, process_set=own)
    same(made, torch.tensor([float(sum(own.ranks))]))
    same(hvd.broadcast(torch.tensor([hvd.rank()]), own.ranks[-1], process_set=own), torch.tensor([own.ranks[-1]]))
    same(hvd.allgather(torch.tensor([hvd.rank()]), process_set=own), torch.tensor(own.ranks))
    other = rest if own is even else even
    with pytest.raises(ValueError, match="is not in"):
        other.rank()
    with pytest.raises(hvd.HorovodInternalError, match="not in|not a member|in it"):
        hvd.allreduce(torch.ones(1), process_set=other)
    with pytest.raises(ValueError, match="is not in"):
        hvd.broadcast(torch.ones(1), other.ranks[0], process_set=own)
    assert hvd.remove_process_set(even) and hvd.remove_process_set(rest)
    assert not hvd.remove_process_set(even) and even.process_set_id is None and even.size() is None
    with pytest.raises(ValueError, match="not registered"):
        hvd.allreduce(torch.ones(1), process_set=even)
    assert not hvd.remove_process_set(hvd.global_process_set)


@pytest.mark.ranks(2)
def test_process_sets_from_the_beginning():
    hvd.shutdown()
    first, second = hvd.ProcessSet([0]), hvd.ProcessSet([1])
    hvd.init(process_sets=[first, second])
    assert (first.process_set_id, second.process_set_id) == (1, 2)
    if first.included():
        same(hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=first), torch.ones(1))
    hvd.barrier()  # a rank that shuts down ends what the other has not completed
    hvd.shutdown()
    assert first.process_set_id is None
    hvd.init(process_sets="dynamic")


def test_who_and_where():
    assert 0 <= hvd.rank() < hvd.size() and 0 <= hvd.local_rank() < hvd.local_size()
    assert 0 <= hvd.cross_rank() < hvd.cross_size()
    ranks = hvd.allgather(torch.tensor([[hvd.rank(), hvd.local_size(), hvd.cross_size()]]))
    assert ranks[:, 0].tolist() == list(range(hvd.size()))
    assert hvd.is_homogeneous() == (len(set(ranks[:, 1].tolist())) == 1)
    assert hvd.global_process_set.ranks == list(range(hvd.size())) and hvd.global_process_set.size() == hvd.size()
    assert hvd.gloo_built() and hvd.gloo_enabled() and (hvd.nccl_built() > 0) == ("HVRUN_TEST_DEVICE" in os.environ)


def test_objects():
    objects = hvd.allgather_object({"rank": hvd.rank(), "text": "x" * hvd.rank()})
    assert objects == [{"rank": rank, "text": "x" * rank} for rank in range(hvd.size())]
    for root in range(hvd.size()):
        assert hvd.broadcast_object([root, None] if hvd.rank() == root else None, root) == [root, None]
