# SPDX-License-Identifier: Apache-2.0
"""State dicts of tensors of every kind, for all ranks; and entries that cannot travel, told by their keys on every rank."""

import contextlib

import needs
import pytest
import torch
from test_moved_types import QUANTIZED, TYPES, assert_quantized, assert_same, bits, of_rank, per_channel, quantized, whole_of_rank

import hvrun.torch as hvd
import hvrun.torch.elastic as elastic
from hvrun.exceptions import MismatchError
from hvrun.torch import entries

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), needs.on_host]  # of complex32, quantized and sparse CSR tensors

SPARSE = {"COO": lambda one: one.to_sparse(), "hybrid COO": lambda one: one.to_sparse(1), "CSR": lambda one: one.to_sparse_csr(),
          "CSC": lambda one: one.to_sparse_csc(), "BSR": lambda one: one.to_sparse_bsr((2, 2)),
          "BSC": lambda one: one.to_sparse_bsc((2, 2))}


def diagonal(rank, more=0, dtype=torch.float32):
    """Of 4 + more elements, in blocks of their own."""
    made = torch.diag(torch.arange(1.0, 9.0)[::2].repeat_interleave(2) + 10 * rank)[:, :8].to(dtype)
    for number in range(more):
        made[0, 2 * number + 2] = rank + 1
    return made


class Model(torch.nn.Module):
    def __init__(self, **buffers):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((2,), float(hvd.rank())))
        for name, one in buffers.items():
            self.register_buffer(name, one)


def assert_sparse(made, expected):
    assert made.layout is expected.layout and made.dtype is expected.dtype
    assert torch.equal(made.to_dense(), expected.to_dense()), made
    for one, other in zip(entries.take_apart(made)[1], entries.take_apart(expected)[1]):
        assert one.dtype is other.dtype and torch.equal(one, other)


def test_tensors_of_every_type_are_in_a_state_dict():
    root = hvd.size() - 1
    model = Model(**{str(dtype)[6:]: of_rank(dtype, hvd.rank()) for dtype in TYPES},
                  **{str(dtype)[6:]: quantized(dtype, hvd.rank()) for dtype in QUANTIZED})
    hvd.broadcast_parameters(model.state_dict(), root)
    for dtype in TYPES:
        assert_same(getattr(model, str(dtype)[6:]), bits(of_rank(dtype, root)), dtype)
    for dtype in QUANTIZED:
        assert_quantized(getattr(model, str(dtype)[6:]), whole_of_rank(root), 0.5, 3, dtype)
    assert torch.equal(model.weight.detach(), torch.full((2,), float(root)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
@pytest.mark.parametrize("layout", SPARSE)
def test_sparse_entries_are_sparse_afterwards(layout, dtype):
    """Of as many elements on all ranks through a state_dict(), which shares their memory with the model."""
    make, root = SPARSE[layout], hvd.size() - 1
    model = Model(adjacency=make(diagonal(hvd.rank(), dtype=dtype)))
    hvd.broadcast_parameters(model.state_dict(), root)
    assert_sparse(model.adjacency, make(diagonal(root, dtype=dtype)))
    assert torch.equal(model.weight.detach(), torch.full((2,), float(root)))


@pytest.mark.parametrize("layout", SPARSE)
def test_sparse_entries_of_unlike_numbers_of_elements(layout):
    make, root = SPARSE[layout], hvd.size() - 1
    model = Model(adjacency=make(diagonal(hvd.rank(), hvd.rank() % 3)))
    hvd.broadcast_parameters([*model.named_parameters(), *model.named_buffers()], root)
    assert_sparse(model.adjacency, make(diagonal(root, root % 3)))
    hvd.broadcast_parameters({"empty": make(diagonal(hvd.rank()) * 0)}, root)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("layout", ["COO", "CSR"])
def test_a_state_dict_that_cannot_reach_its_model_is_told_and_what_is_advised_works(layout):
    model = Model(adjacency=SPARSE[layout](diagonal(0, more=int(hvd.rank() == 1))))
    with pytest.raises(ValueError, match=r"entry 'adjacency' has another number of elements, or another scale, on rank 1 than on rank 0"):
        hvd.broadcast_parameters(model.state_dict(), 0)
    hvd.broadcast_parameters([*model.named_parameters(), *model.named_buffers()], 0)
    assert_sparse(model.adjacency, SPARSE[layout](diagonal(0)))


@pytest.mark.ranks(2)
def test_scales_that_a_state_dict_cannot_give_to_its_model():
    model = Model(table=quantized(torch.qint8, hvd.rank(), 0.5 + hvd.rank()))
    with pytest.raises(ValueError, match="entry 'table' has another number of elements, or another scale, on rank 1 than on rank 0"):
        hvd.broadcast_parameters(model.state_dict(), 0)
    hvd.broadcast_parameters([*model.named_parameters(), *model.named_buffers()], 0)
    assert_quantized(model.table, whole_of_rank(0), 0.5, 3, torch.qint8)
    channels = {"channels": per_channel(hvd.rank())}
    hvd.broadcast_parameters(channels, 1)
    assert torch.equal(channels["channels"].q_per_channel_scales(), per_channel(1).q_per_channel_scales())


def test_a_sparse_entry_that_is_not_coalesced():
    root = hvd.size() - 1
    twice = torch.sparse_coo_tensor([[0, 0, 1]], [1.0 + hvd.rank(), 2.0, 3.0], (3,))
    with pytest.raises(ValueError, match="'twice'") if hvd.size() > 1 else contextlib.nullcontext():
        hvd.broadcast_parameters(Model(twice=twice).state_dict(), root)
    hvd.broadcast_parameters([twice], root)
    assert torch.equal(twice.to_dense(), torch.tensor([3.0 + root, 3.0, 0.0]))


class Own(torch.Tensor):
    """Of a kind whose memory is its own affair."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise NotImplementedError(f"{cls.__name__} has no {function}")


CANNOT = {
    "an object": (lambda: {"step": 3}, "is no tensor, but of type dict; leave it out, and give it to hvd.broadcast_object"),
    "a number": (lambda: 3, "is no tensor, but of type int; leave it out, and give it to hvd.broadcast_object"),
    "None": (lambda: None, "is None, as a gradient is before the first backward pass that reaches its parameter; "
             "try torch.zeros_like(parameter) in its place"),
    "a subclass": (lambda: Own(torch.ones(2)), "is of Own, a subclass of torch.Tensor with memory of its own kind; leave it out"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "has the layout nested; leave it out"),
    "meta": (lambda: torch.ones(2, device="meta"), "lies on the meta device, where tensors have no values; "
             "try model.to_empty(device='cpu') before"),
    "lazy": (lambda: torch.nn.UninitializedParameter(), "has no shape yet; call the model once before"),
    "parts of bytes": (lambda: torch.quantize_per_channel(torch.ones(4, 8), torch.ones(4), torch.zeros(4), 0, torch.quint4x2),
                       "has elements of torch.quint4x2, smaller than a byte; try tensor.dequantize()"),
}


@pytest.mark.parametrize("where", ["everywhere", "on the last rank"])
@pytest.mark.parametrize("kind", CANNOT)
def test_what_cannot_travel_is_named_on_every_rank(kind, where):
    make, words = CANNOT[kind]
    last = hvd.size() - 1
    is_here = where == "everywhere" or hvd.rank() == last
    params = {"first": torch.full((2,), float(hvd.rank())), "net.odd": make() if is_here else torch.ones(2)}
    rank = 0 if where == "everywhere" else last
    with pytest.raises(ValueError) as told:
        hvd.broadcast_parameters(params, 0)
    assert str(told.value) == f"broadcast_parameters: the entry 'net.odd' on rank {rank} {words}"
    assert torch.equal(params["first"], torch.full((2,), float(hvd.rank())))  # nothing has been sent
    hvd.broadcast_parameters({"first": params["first"]}, 0)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("other", [lambda: torch.eye(2), lambda: torch.eye(2).to_sparse_csr(), lambda: torch.eye(3).to_sparse(),
                                   lambda: torch.eye(2).double().to_sparse(), lambda: None],
                         ids=["dense", "CSR", "larger", "double", "none"])
def test_ranks_whose_entries_differ_are_told_both(other):
    params = {"one": torch.ones(1), "two": torch.eye(2).to_sparse() if hvd.rank() == 0 else other()}
    if params["two"] is None:
        del params["two"]
    with pytest.raises(MismatchError, match=r"entries 'two' differ: rank 0 has torch.sparse_coo of torch.float32 \[2, 2\].*, rank 1 "):
        hvd.broadcast_parameters(params, 0)
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum) == hvd.size()


def test_within_some_ranks():
    members = hvd.add_process_set([hvd.size() - 1]) if hvd.size() > 1 else hvd.global_process_set
    if members.included():
        one = {"one": torch.eye(3).to_sparse(), "two": torch.ones(2, dtype=torch.complex64)}
        hvd.broadcast_parameters(one, hvd.size() - 1, process_set=members)
        with pytest.raises(ValueError, match=f"'three' on rank {hvd.size() - 1} is no tensor"):
            hvd.broadcast_parameters({"three": 3}, hvd.size() - 1, process_set=members)
    if hvd.size() > 1:
        hvd.remove_process_set(members)


# ---- optimizers and elastic state -----------------------------------------------------------------------------------------


class Keeps(torch.optim.SGD):
    """Its state is what it is given."""

    def keep(self, parameter, **state):
        self.state[parameter].update(state)


def test_the_state_of_an_optimizer_has_tensors_of_every_kind():
    root = hvd.size() - 1
    parameter = torch.nn.Parameter(torch.ones(6, 3, dtype=torch.complex64))  # of floating ones PyTorch gives all state their type
    optimizer = Keeps([parameter], lr=0.1 * (hvd.rank() + 1))
    if hvd.rank() == root:
        optimizer.keep(parameter, wave=of_rank(torch.complex128, root).conj(), rows=diagonal(root, 1).to_sparse(),
                       table=quantized(torch.qint8, root), channels=per_channel(root), csr=diagonal(root).to_sparse_csr())
    hvd.broadcast_optimizer_state(optimizer, root)
    state = optimizer.state[parameter]
    assert optimizer.param_groups[0]["lr"] == 0.1 * (root + 1)
    assert torch.equal(bits(state["wave"].to(torch.complex128)), bits(of_rank(torch.complex128, root).conj()))
    assert_sparse(state["rows"].to(torch.float32), diagonal(root, 1).to_sparse())
    assert_sparse(state["csr"].to(torch.float32), diagonal(root).to_sparse_csr())
    assert_quantized(state["table"], whole_of_rank(root), 0.5, 3, torch.qint8)
    assert torch.equal(state["channels"].q_per_channel_scales(), per_channel(root).q_per_channel_scales())


def test_state_of_an_optimizer_that_cannot_travel_is_named_on_every_rank():
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = Keeps([parameter], lr=0.1)
    if hvd.rank() == 0:
        optimizer.keep(parameter, odd=torch.ones(2, device="meta"))
    with pytest.raises(ValueError) as told:
        hvd.broadcast_optimizer_state(optimizer, 0)
    assert str(told.value) == ("broadcast_optimizer_state: the entry 'state.0.odd' on rank 0 lies on the meta device, where tensors have "
                               "no values; try model.to_empty(device='cpu') before")


class Extra(Model):
    """Has more state than tensors."""

    def get_extra_state(self):
        return {"seen": self.seen}

    def set_extra_state(self, state):
        self.seen = state["seen"]


def test_elastic_state_has_sparse_and_complex_buffers_and_what_is_no_tensor():
    model = Extra(adjacency=diagonal(hvd.rank(), hvd.rank() % 3).to_sparse(), wave=of_rank(torch.complex64, hvd.rank()),
                  table=quantized(torch.qint8, hvd.rank(), 0.5 + hvd.rank()))
    model.seen = hvd.rank() + 5
    state = elastic.TorchState(model=model)
    state.commit()
    state.sync()
    assert_sparse(model.adjacency, diagonal(0).to_sparse())
    assert_same(model.wave, bits(of_rank(torch.complex64, 0)), torch.complex64)
    assert_quantized(model.table, whole_of_rank(0), 0.5, 3, torch.qint8)
    assert model.seen == 5 and torch.equal(model.weight.detach(), torch.zeros(2))
