# SPDX-License-Identifier: Apache-2.0
"""Every operation of every type and layout, within all ranks and some of them, and its gradient, beside what one process computes."""

import pytest
import torch
from operation_table import ALL_TYPES, DIFFERENTIABLE, FLOATS, LAYOUTS, OPERATIONS, process_sets, tensor_of, values

import hvrun.torch as hvd
from hvrun.exceptions import UnsupportedError

WITH_GRADIENT = [name for name, one in OPERATIONS.items() if one.gradient]
GRADIENT_LAYOUTS = ["scalar", "matrix", "empty", "transposed", "channels_last"]


@pytest.fixture(scope="module")
def sets(job):
    """[(name, set)] of those that this rank is in."""
    made = [(name, hvd.global_process_set if len(ranks) == hvd.size() else hvd.add_process_set(ranks))
            for name, ranks in process_sets().items()]
    yield [(name, one) for name, one in made if one.included()]
    for _, one in made:
        hvd.remove_process_set(one)


def cases(operation, types, layouts, sets):
    """(what to say, type, layout, set) of all that the operation takes."""
    return [(f"{dtype}, {layout}, {name} ranks", dtype, layout, one) for dtype in types for layout in layouts for name, one in sets
            if operation.takes_scalars or layout != "scalar"]


def listed(made):
    return list(made) if isinstance(made, (list, tuple)) else [made]


def given(operation, layout, dtype, rank):
    """A rank's tensors: two where they travel as one."""
    return [tensor_of(layout, dtype, rank + more) for more in range(1 + operation.is_grouped)]


def call(operation, function, tensors, members):
    return function(tensors if operation.is_grouped else tensors[0], members)


def alone(operation, by_member, me):
    """by_member: each member's tensors."""
    return [one for tensors in zip(*by_member) for one in operation.alone(list(tensors), me)]


def assert_same(made, expected, where, is_exact=True):
    tolerance = {"rtol": 0, "atol": 0} if is_exact else {}
    assert len(made) == len(expected), where
    for one, other in zip(made, expected):
        torch.testing.assert_close(one, other, **tolerance, msg=lambda words: f"{where}: {words}")


@pytest.mark.parametrize("name", OPERATIONS)
def test_it_makes_what_one_process_makes(name, sets):
    """Of all types and layouts, within all sets, at once."""
    operation, under_way = OPERATIONS[name], []
    for where, dtype, layout, members in cases(operation, operation.types, LAYOUTS, sets):
        tensors = given(operation, layout, dtype, hvd.rank())
        before = [(one.clone(), one.stride()) for one in tensors]
        handle = call(operation, operation.start, tensors, members)
        by_member = [given(operation, layout, dtype, rank) for rank in members.ranks]
        under_way.append((where, tensors, before, handle, alone(operation, by_member, members.rank())))
    for where, tensors, before, handle, expected in under_way:
        made = listed(hvd.synchronize(handle))
        assert_same(made, expected, where, operation.is_exact)
        if operation.is_in_place:
            assert all(one is tensor for one, tensor in zip(made, tensors)), where
        else:
            assert_same(tensors, [one for one, _ in before], f"{where}: what was given")
        assert [one.stride() for one in tensors] == [stride for _, stride in before], where


def losses(results, rank):
    """A rank's loss: each rank weighs what it has got in its own way."""
    weighed = [(one * values(one.shape, one.dtype, rank + 3)).sum() for one in results if one.dtype in DIFFERENTIABLE]
    return sum(one.real if one.is_complex() else one for one in weighed)


def leaves(operation, layout, dtype, rank):
    return [one.detach().requires_grad_() for one in given(operation, layout, dtype, rank)]


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_its_gradient_is_that_of_one_process(name, sets):
    operation = OPERATIONS[name]
    for where, dtype, layout, members in cases(operation, DIFFERENTIABLE, GRADIENT_LAYOUTS, sets):
        tensors = leaves(operation, layout, dtype, hvd.rank())
        losses(listed(call(operation, operation.waiting, tensors, members)), hvd.rank()).backward()
        by_member = [leaves(operation, layout, dtype, rank) for rank in members.ranks]
        sum(losses(alone(operation, by_member, me), rank) for me, rank in enumerate(members.ranks)).backward()
        for one, own in zip(tensors, by_member[members.rank()]):
            expected = torch.zeros_like(own) if own.grad is None else own.grad * operation.gradient(members.size())
            assert_same([one.grad], [expected], where, is_exact=False)


SPARSE = {"rows of one number": ((5,), 1), "rows": ((5, 3), 1), "places in two dimensions": ((5, 3), 2), "nothing": ((0, 3), 1),
          "of three dimensions": ((4, 2, 3), 2)}


@pytest.mark.parametrize("dtype", [*ALL_TYPES, torch.complex64], ids=str)
def test_sparse_tensors_make_what_one_process_makes(dtype, sets):
    for shape, sparse_dim in SPARSE.values():
        for name, members in sets:
            for op in [hvd.Sum, hvd.Average] if dtype in DIFFERENTIABLE else [hvd.Sum]:
                where = f"{shape} with {sparse_dim} sparse, {op!r}, {name} ranks"
                made = hvd.sparse_allreduce_async(values(shape, dtype, hvd.rank()).to_sparse(sparse_dim), where, op, members)()
                assert made.is_sparse and made.sparse_dim() == sparse_dim, where
                reference = OPERATIONS["allreduce sum" if op is hvd.Sum else "allreduce average"].alone
                expected = reference([values(shape, dtype, rank) for rank in members.ranks], members.rank())
                assert_same([made.to_dense()], expected, where, is_exact=op is hvd.Sum)


@pytest.mark.parametrize("sparse_dim", [1, 2])
@pytest.mark.parametrize("dtype", [dtype for dtype in ALL_TYPES if dtype not in FLOATS], ids=str)
def test_averages_of_sparse_tensors_of_integers_are_refused(dtype, sparse_dim):
    with pytest.raises(UnsupportedError, match=str(dtype).split(".")[1]) as refusal:
        hvd.sparse_allreduce_async(torch.ones(2, 3, dtype=dtype).to_sparse(sparse_dim), "integers", hvd.Average)
    assert refusal.value.status == "unsupported"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_adasum_adds_what_is_orthogonal_and_keeps_what_is_equal(dtype, sets):
    for name, members in sets:
        own = torch.zeros(len(members.ranks), 2, dtype=dtype)
        own[members.rank()] = hvd.rank() + 1
        expected = torch.tensor([[rank + 1.0] * 2 for rank in members.ranks]).to(dtype)
        assert_same([hvd.allreduce(own, op=hvd.Adasum, process_set=members)], [expected], name)
        equal = values((6,), dtype, 1)
        assert_same([hvd.allreduce(equal, op=hvd.Adasum, process_set=members)], [equal], name, is_exact=False)


def test_what_is_no_reduction_of_a_type_is_refused():
    """And the job goes on."""
    for dtype, op in [(dtype, hvd.Adasum) for dtype in ALL_TYPES if dtype not in FLOATS] + [(torch.bool, hvd.Average)]:
        with pytest.raises(hvd.HorovodInternalError, match=str(dtype).split(".")[1]):
            hvd.allreduce(torch.ones(2, dtype=dtype), op=op)
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum) == hvd.size()
