# SPDX-License-Identifier: Apache-2.0
"""Tensors of types that the runtime does not know: complex, unsigned, quantized ones, and what else PyTorch has. The table of
operations has complex64 and uint16; here all types are moved bit by bit, and what cannot be is told."""

import itertools
import threading

import needs
import pytest
import torch
from alike import assert_alike

import hvrun.torch as hvd
from hvrun.exceptions import MismatchError, UnsupportedError
from hvrun.moved_types import MOVED_TYPES
from hvrun.torch.moved import FORMS
from hvrun.torch.tensors import TYPES as KNOWN

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), needs.on_host]  # warnings of complex32 and of quantized tensors
QUANTIZED = [torch.qint8, torch.quint8, torch.qint32]
TYPES = [dtype for dtype in FORMS if dtype not in QUANTIZED]
COMPLEX = [torch.complex32, torch.complex64, torch.complex128]
UNSIGNED = [getattr(torch, name) for name in ("uint16", "uint32", "uint64") if hasattr(torch, name)]


def bits(tensor):
    """What two tensors of one type are compared by."""
    tensor = tensor.detach()
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj().resolve_neg())
    return tensor.view(FORMS[tensor.dtype].carrier)


def of_rank(dtype, rank, rows=6):
    """A tensor of 3 columns; numbers of all bits where the type is not complex."""
    if dtype.is_complex:
        return torch.view_as_complex((torch.arange(rows * 6.0).reshape(rows, 3, 2) - 7 + rank).to(FORMS[dtype].carrier))
    width = torch.empty(0, dtype=dtype).element_size()
    return ((torch.arange(rows * 3 * width) * 37 + rank) % 256).to(torch.uint8).reshape(rows, 3 * width).view(dtype)


def assert_same(made, expected, dtype):
    assert made.dtype is dtype
    assert torch.equal(bits(made), expected), f"{made} is not {expected}"


def test_every_type_of_pytorch_is_known():
    """But those of less than a byte, of which PyTorch itself copies none."""
    types = {one for one in vars(torch).values() if isinstance(one, torch.dtype)}
    smaller = {one for one in types if str(one)[6:] in {f"{sign}int{width}" for sign in ("", "u") for width in range(1, 8)}}
    known = {*FORMS, *KNOWN}
    assert {str(one) for one in types - known - smaller} == {"torch.quint4x2", "torch.quint2x4"}
    assert all(name in MOVED_TYPES for name in (str(one)[6:] for one in FORMS))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_tensors_of_every_type_are_moved(dtype):
    size, me = hvd.size(), hvd.rank()
    own, everyone = of_rank(dtype, me), [bits(of_rank(dtype, rank)) for rank in range(size)]
    assert_same(hvd.broadcast(own, size - 1), everyone[-1], dtype)
    into = of_rank(dtype, me)
    assert hvd.broadcast_(into, 0) is into
    assert_same(into, everyone[0], dtype)
    assert_same(own, everyone[me], dtype)
    assert_same(hvd.allgather(own[:6 - me]), torch.cat([one[:6 - rank] for rank, one in enumerate(everyone)]), dtype)
    for made in hvd.grouped_allgather([own, own]):
        assert_same(made, torch.cat(everyone), dtype)
    splits = [(me + to) % 3 for to in range(size)]
    made, received = hvd.alltoall(own[:sum(splits)], splits)
    before = [sum((rank + to) % 3 for to in range(me)) for rank in range(size)]
    parts = [one[begin:begin + (rank + me) % 3] for rank, (one, begin) in enumerate(zip(everyone, before))]
    assert_same(made, torch.cat(parts), dtype)
    assert received.tolist() == [len(part) for part in parts]
    for layout in (lambda one: one.t(), lambda one: one[::2, 1:], lambda one: one[0, 0], lambda one: one[:0], lambda one: one[:, :0]):
        assert_same(hvd.broadcast(layout(own), 0), bits(layout(of_rank(dtype, 0))), dtype)
        into = layout(of_rank(dtype, me))
        assert_same(hvd.broadcast_(into, 0), bits(layout(of_rank(dtype, 0))), dtype)
        gathered = [bits(layout(of_rank(dtype, rank))) for rank in range(size)]
        is_scalar = own[0, 0].shape == layout(own).shape
        assert_same(hvd.allgather(layout(own)), torch.stack(gathered) if is_scalar else torch.cat(gathered), dtype)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_complex_tensors_are_summed_as_pairs(dtype):
    own = of_rank(dtype, hvd.rank())
    everyone = torch.stack([bits(of_rank(dtype, rank)) for rank in range(hvd.size())])
    assert_same(hvd.allreduce(own, op=hvd.Sum), everyone.sum(0), dtype)
    assert_same(hvd.allreduce(own), everyone.sum(0) / hvd.size(), dtype)
    assert_same(hvd.allreduce(own, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.25), everyone.sum(0) / 2, dtype)
    assert_same(hvd.allreduce(own, op=hvd.Sum, postscale_factor=0.0), torch.zeros_like(everyone[0]), dtype)
    assert_same(hvd.allreduce(own, op=hvd.Sum, compression=hvd.Compression.fp16), everyone.sum(0), dtype)
    assert_same(hvd.reducescatter(own, op=hvd.Sum), everyone.sum(0).tensor_split(hvd.size())[hvd.rank()], dtype)
    for made in hvd.grouped_allreduce([own, own], op=hvd.Sum):
        assert_same(made, everyone.sum(0), dtype)
    into = [of_rank(dtype, hvd.rank()).t(), of_rank(dtype, hvd.rank())]
    assert all(made is one for made, one in zip(hvd.grouped_allreduce_(into, op=hvd.Sum), into))
    assert_same(into[0].t(), everyone.sum(0), dtype)
    assert_same(into[1], everyone.sum(0), dtype)


@pytest.mark.parametrize("dtype", UNSIGNED, ids=str)
def test_unsigned_numbers_are_summed_and_multiplied_and_wrap(dtype):
    numbers = of_rank(dtype, hvd.rank())
    signed = [bits(of_rank(dtype, rank)) for rank in range(hvd.size())]
    total, product = signed[0], signed[0]
    for one in signed[1:]:
        total, product = total + one, product * one
    assert_same(hvd.allreduce(numbers, op=hvd.Sum), total, dtype)
    assert_same(hvd.allreduce(numbers, op=hvd.Product), product, dtype)
    assert_same(hvd.reducescatter(numbers, op=hvd.Sum), total.tensor_split(hvd.size())[hvd.rank()], dtype)


REFUSED = [
    *((torch.complex64, op) for op in (hvd.Min, hvd.Max, hvd.Product, hvd.Adasum)),
    *itertools.product(UNSIGNED, (hvd.Average, hvd.Min, hvd.Max, hvd.Adasum)),
    *((dtype, op) for dtype in TYPES if dtype not in (*COMPLEX, *UNSIGNED) for op in (hvd.Sum, hvd.Average)),
]


@pytest.mark.parametrize("dtype, op", REFUSED, ids=str)
def test_what_is_no_reduction_of_a_type_is_refused_before_it_is_sent(dtype, op):
    tensor = of_rank(dtype, 0)
    calls = [lambda: hvd.allreduce(tensor, op=op), lambda: hvd.allreduce_(tensor, op=op),
             lambda: hvd.grouped_allreduce([torch.ones(1), tensor], op=op)]
    if op in (hvd.Sum, hvd.Average):
        calls += [lambda: hvd.reducescatter(tensor, op=op), lambda: hvd.grouped_reducescatter([tensor], op=op)]
    for call in calls:
        if hvd.rank() == 0:  # alone: the others are not waited for, and their numbers stay the same
            with pytest.raises(UnsupportedError, match=f"no {op.name} of tensors of {dtype}: it .* Try tensor\\.") as told:
                call()
            assert told.value.status == "unsupported"
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum) == hvd.size()


def test_what_a_refusal_advises_works():
    for dtype in TYPES:
        tensor = of_rank(dtype, 0)
        for words in FORMS[dtype].advice.replace(" or ", ", ").split(", "):
            made = eval(words, {"tensor": tensor, "torch": torch})
            if dtype is not torch.complex32:  # PyTorch has neither its abs() on CPUs nor its sum
                hvd.allreduce(made, op=hvd.Max)


def test_several_threads_wait_for_one_handle():
    own, made = of_rank(torch.complex64, hvd.rank(), 6000), []
    if hvd.rank() > 0:
        hvd.barrier()  # rank 0's threads are there
    handle = hvd.allgather_async(own, name="for several threads")
    threads = [threading.Thread(target=lambda: made.append(hvd.synchronize(handle))) for _ in range(4)]
    for thread in threads:
        thread.start()
    if hvd.rank() == 0:
        hvd.barrier()
    for thread in threads:
        thread.join()
    assert len(made) == 4 and all(one is made[0] for one in made) and hvd.poll(handle)


@pytest.mark.parametrize("dtype", UNSIGNED, ids=str)
def test_unsigned_numbers_are_not_scaled(dtype):
    with pytest.raises(UnsupportedError, match="no Sum with a scale of tensors of torch.uint.* without scaling"):
        hvd.allreduce(of_rank(dtype, 0), op=hvd.Sum, prescale_factor=0.5)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_conjugates_are_resolved(dtype):
    """And what is done in place is seen through them."""
    size, me = hvd.size(), hvd.rank()
    everyone = [bits(of_rank(dtype, rank)) * torch.tensor([1, -1]) for rank in range(size)]
    own = of_rank(dtype, me)
    for view in (own.conj(), own[:, :].conj()):
        assert view.is_conj()
        assert_same(hvd.broadcast(view, 0), everyone[0], dtype)
        assert_same(hvd.allgather(view), torch.cat(everyone), dtype)
        assert_same(hvd.allreduce(view, op=hvd.Sum), sum(everyone), dtype)
        assert_same(hvd.alltoall(view, [2] + [0] * (size - 1))[0],
                    torch.cat([one[:2] for one in everyone]) if me == 0 else everyone[0][:0], dtype)
    view = own.conj()
    hvd.broadcast_(view, size - 1)
    assert_same(view, everyone[-1], dtype)
    assert_same(own, bits(of_rank(dtype, size - 1)), dtype)
    own = of_rank(dtype, me)
    hvd.allreduce_(own.conj(), op=hvd.Sum)
    assert_same(own, sum(bits(of_rank(dtype, rank)) for rank in range(size)), dtype)


def test_negatives_are_resolved():
    """The imaginary part of a conjugate has its sign in a bit beside its memory."""
    size, me = hvd.size(), hvd.rank()
    for shape in ((1,), (3, 2)):
        def of(rank):
            return torch.complex(torch.zeros(shape), torch.full(shape, rank + 1.0))

        for number, view in enumerate((of(me).conj().imag, torch._neg_view(torch.full(shape, me + 1.0)))):
            assert view.is_neg()
            assert torch.equal(hvd.broadcast(view, size - 1), torch.full(shape, -float(size))), number
            assert torch.equal(hvd.allreduce(view, op=hvd.Sum), torch.full(shape, -size * (size + 1) / 2))
            assert torch.equal(hvd.allgather(view), torch.cat([torch.full(shape, -rank - 1.0) for rank in range(size)]))
            hvd.broadcast_(view, size - 1)
            assert torch.equal(view + 0, torch.full(shape, -float(size)))
    own = of(me)
    hvd.allreduce_(own.conj().imag, op=hvd.Max)
    assert torch.equal(own.imag, torch.full(shape, 1.0))


FLOAT8 = [one for one in TYPES if str(one).startswith("torch.float8")]
PAIRS = [
    (torch.complex64, torch.float64), (torch.complex64, torch.float32), (torch.complex32, torch.float16),
    *((one, other) for one, other in zip(UNSIGNED, (torch.int16, torch.int32, torch.int64))), *zip(UNSIGNED[1:], UNSIGNED),
    *((torch.complex64, one) for one in UNSIGNED[2:]), *((torch.bits16, one) for one in UNSIGNED[:1]), (torch.bits8, torch.uint8),
    *zip(FLOAT8, FLOAT8[1:]), (torch.quint8, torch.uint8), (torch.qint32, torch.int32), (torch.qint8, torch.quint8),
]


def any_tensor(dtype):
    if dtype in QUANTIZED:
        return torch.quantize_per_tensor(torch.ones(4, 1), 0.5, 1, dtype)
    return of_rank(dtype, 0, 4)[:, :1] if dtype in FORMS else torch.ones(4, 1).to(dtype)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("one, other", PAIRS, ids=str)
def test_ranks_that_disagree_on_a_type_are_told_both(one, other):
    """And go on."""
    mine = any_tensor(one if hvd.rank() == 0 else other)
    splits = [1] * hvd.size()
    calls = {"broadcast": lambda: hvd.broadcast(mine, 0), "broadcast_": lambda: hvd.broadcast_(mine, 0),
             "allgather": lambda: hvd.allgather(mine), "alltoall": lambda: hvd.alltoall(mine, splits),
             "grouped_allgather": lambda: hvd.grouped_allgather([torch.ones(1), mine])}
    if one.is_complex and other.is_floating_point:
        calls["allreduce"] = lambda: hvd.allreduce(mine, op=hvd.Sum)
        calls["reducescatter"] = lambda: hvd.reducescatter(mine, op=hvd.Sum)
    for what, call in calls.items():
        with pytest.raises(MismatchError) as told:
            call()
        words = str(told.value)
        for dtype in (one, other):
            extents = "[*,1]" if what.endswith(("allgather", "alltoall")) else "[4,1]"
            extents = "[" if dtype in QUANTIZED else extents  # those travel flat, with what the values mean
            name = str(dtype)[6:].replace("e4m3fn", "e4m3") if dtype not in FORMS else str(dtype)[6:]
            assert f"{name} {extents}" in words, (what, words)
        assert "1,1,1" not in words, (what, words)
    hvd.barrier()
    counters = hvd.counters()
    assert counters["operations_enqueued"] == counters["operations_completed"] + counters["operations_failed"]  # nobody waits on
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum) == hvd.size()


# ---- quantized tensors --------------------------------------------------------------------------------------------------


def whole_of_rank(rank, rows=6):
    return (torch.arange(rows * 3).reshape(rows, 3) * 5 + rank) % 100


def quantized(dtype, rank, scale=0.5, zero_point=3, rows=6):
    values = whole_of_rank(rank, rows).to(FORMS[dtype].carrier)
    return torch._make_per_tensor_quantized_tensor(values, scale, zero_point)


def assert_quantized(made, numbers, scale, zero_point, dtype):
    assert made.dtype is dtype
    assert (made.q_scale(), made.q_zero_point()) == (scale, zero_point)
    assert torch.equal(made.int_repr(), numbers.to(made.int_repr().dtype)), made


@pytest.mark.parametrize("dtype", QUANTIZED, ids=str)
def test_quantized_tensors_are_moved_with_what_their_values_mean(dtype):
    size, me = hvd.size(), hvd.rank()
    own, scale = quantized(dtype, me, 0.5 + me, me), size - 0.5
    assert_quantized(hvd.broadcast(own, size - 1), whole_of_rank(size - 1), scale, size - 1, dtype)
    assert_quantized(own, whole_of_rank(me), 0.5 + me, me, dtype)
    for into in (own, quantized(dtype, me).t()):
        root = quantized(dtype, size - 1, scale, size - 1)
        into = into if me < size - 1 else root if into is own else root.t()
        before = into.stride()
        assert hvd.broadcast_(into, size - 1) is into
        assert_quantized(into, whole_of_rank(size - 1).reshape(6, 3) if into.shape[0] == 6 else whole_of_rank(size - 1).t(), scale,
                         size - 1, dtype)
        assert into.stride() == before
    own = quantized(dtype, me, rows=4 + me)
    everyone = [whole_of_rank(rank, 4 + rank) for rank in range(size)]
    assert_quantized(hvd.allgather(own), torch.cat(everyone), 0.5, 3, dtype)
    for made in hvd.grouped_allgather([own, own])[:1]:
        assert_quantized(made, torch.cat(everyone), 0.5, 3, dtype)
    assert_quantized(hvd.allgather(own[0, 1]), torch.stack([one[0, 1] for one in everyone]), 0.5, 3, dtype)
    even = whole_of_rank(me, 2 * size)
    made = hvd.alltoall(torch._make_per_tensor_quantized_tensor(even.to(FORMS[dtype].carrier), 0.5, 3))
    assert_quantized(made, torch.cat([whole_of_rank(rank, 2 * size)[2 * me:2 * me + 2] for rank in range(size)]), 0.5, 3, dtype)
    made, received = hvd.alltoall(own, [1] * size)
    assert_quantized(made, torch.stack([one[me] for one in everyone]), 0.5, 3, dtype)
    assert received.tolist() == [1] * size


def per_channel(rank, is_float=False, axis=0):
    points = torch.arange(3) + rank
    return torch._make_per_channel_quantized_tensor(
        torch.full((3, 3), rank + 2, dtype=torch.uint8), torch.rand(3, generator=torch.Generator().manual_seed(rank)).double() + rank,
        points.float() + 0.25 if is_float else points, axis)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("is_float", [False, True], ids=["whole zero points", "zero points of floats"])
def test_tensors_quantized_by_channels_are_broadcast(is_float, axis):
    root = hvd.size() - 1
    expected = per_channel(root, is_float, axis)
    into = per_channel(hvd.rank(), is_float)
    for made in (hvd.broadcast(per_channel(hvd.rank(), is_float, axis), root), into if axis else hvd.broadcast_(into, root)):
        if made is into and axis:
            continue
        assert made.q_per_channel_axis() == axis and made.qscheme() == expected.qscheme()
        assert torch.equal(made.int_repr(), expected.int_repr())
        assert torch.equal(made.q_per_channel_scales(), expected.q_per_channel_scales())
        assert torch.equal(made.q_per_channel_zero_points(), expected.q_per_channel_zero_points())


def test_what_is_not_done_with_quantized_tensors_is_told():
    own, channels = quantized(torch.qint8, 0), per_channel(0)
    for op in (hvd.Sum, hvd.Average, hvd.Max):
        with pytest.raises(UnsupportedError, match=f"no {op.name} of tensors of torch.qint8: it only moves them. Try tensor.dequantize"):
            hvd.allreduce(own, op=op)
    for call in (hvd.allgather, hvd.alltoall, lambda one: hvd.grouped_allgather([own, one])):
        with pytest.raises(UnsupportedError, match="all.* takes quantized tensors of one scale, not .*channel.*; try tensor.dequantize"):
            call(channels)
    small = torch.quantize_per_channel(torch.ones(4, 8), torch.ones(4), torch.zeros(4), 0, torch.quint4x2)
    with pytest.raises(ValueError, match="no tensors of torch.quint4x2, whose elements are smaller than a byte; try tensor.dequantize"):
        hvd.broadcast(small, 0)
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum) == hvd.size()


@pytest.mark.ranks(2)
def test_ranks_of_unlike_scales_are_told_all_of_them():
    own = quantized(torch.qint8, 0, 0.5 + hvd.rank())
    for call in (lambda: hvd.allgather(own), lambda: hvd.alltoall(own, [1] * hvd.size())):
        with pytest.raises(MismatchError, match=r"and they have scale 0.5, zero point 3 and rows of \[3\], scale 1.5, zero point 3 and"):
            call()
    with pytest.raises(MismatchError, match=r"zero point 3 and rows of \[2\], scale 0.5, zero point 3 and rows of \[3\]"):
        hvd.allgather(quantized(torch.quint8, 0)[:, hvd.rank():] if hvd.rank() < 2 else quantized(torch.quint8, 0))
    with pytest.raises(MismatchError, match="broadcast.shapes.*in group"):
        hvd.broadcast(quantized(torch.qint8, 0) if hvd.rank() else quantized(torch.qint8, 0).t(), 0, name="shapes")
    with pytest.raises(MismatchError, match="broadcast.mixed"):
        hvd.broadcast(per_channel(0) if hvd.rank() else quantized(torch.quint8, 0, rows=3), 0, name="mixed")
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum) == hvd.size()


# ---- training -----------------------------------------------------------------------------------------------------------


class Waves(torch.nn.Module):
    """Complex weights beside real ones, in a loss of numbers of rank r."""

    def __init__(self, dtype=torch.complex64):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.weight = torch.nn.Parameter(torch.randn(3, 2, dtype=dtype, generator=generator))
        self.shift = torch.nn.Parameter(torch.zeros(2, dtype=dtype))
        self.last = torch.nn.Linear(2, 1)
        torch.nn.init.constant_(self.last.weight, 0.5)
        torch.nn.init.zeros_(self.last.bias)

    def forward(self, rank):
        x = torch.arange(6.0).reshape(2, 3).to(self.weight.dtype) * (rank + 1 - 0.5j) / 6
        return self.last((x @ self.weight.conj() + self.shift).abs().to(torch.float32)).square().mean()


OPTIONS = [{}, {"op": hvd.Sum}, {"compression": hvd.Compression.bf16}, {"groups": 1}, {"backward_passes_per_step": 2},
           {"unused": "keep_none"}]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_complex_parameters_are_trained_as_in_one_process(options, dtype):
    ours, alone = Waves(dtype), Waves(dtype)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(ours.parameters(), lr=0.05), ours.named_parameters(), **options)
    single = torch.optim.SGD(alone.parameters(), lr=0.05)
    passes = options.get("backward_passes_per_step", 1)
    for step in range(4):
        optimizer.zero_grad()
        single.zero_grad()
        for number in range(passes):
            ours(hvd.rank() + step + number).backward()
            losses = sum(alone(rank + step + number) for rank in range(hvd.size()))
            (losses if options.get("op") is hvd.Sum else losses / hvd.size()).backward()
        optimizer.step()
        single.step()
    for (name, one), other in zip(ours.named_parameters(), alone.parameters()):
        assert torch.allclose(one, other, atol=2e-2 if "compression" in options and hvd.size() > 1 else 1e-5), name
    assert_alike(ours)


@pytest.mark.ranks(2)
def test_adasum_of_complex_parameters_is_refused_by_their_type():
    model = Waves()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), op=hvd.Adasum)
    model(0).backward()
    with pytest.raises(UnsupportedError, match="no Adasum of tensors of torch.complex64"):
        optimizer.step()
