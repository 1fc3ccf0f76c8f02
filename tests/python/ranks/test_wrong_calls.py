# SPDX-License-Identifier: Apache-2.0
"""What a call that cannot be meant so is told, and in whose words: nothing is sent, so that ranks stay together."""

import warnings

import numpy as np
import pytest
import torch

import hvrun.torch as hvd

ARRAY = np.ones(2)
NO_TENSORS = {
    "allreduce": [(3.0,), (ARRAY,)], "allreduce_": [(ARRAY,)], "allreduce_async": [(ARRAY,), ([1.0],)], "allreduce_async_": [(2,)],
    "allgather": [([1, 2],)], "allgather_async": [(ARRAY,)], "broadcast": [(5, 0), (ARRAY, 0)], "broadcast_": [(ARRAY, 0)],
    "broadcast_async": [(None, 0)], "broadcast_async_": [(ARRAY, 0)], "alltoall": [(ARRAY,)], "alltoall_async": [([1],)],
    "reducescatter": [(None,)], "reducescatter_async": [(1,)], "grouped_allreduce": [([torch.ones(1), 3.0],)],
    "grouped_allreduce_": [([ARRAY],)], "grouped_allreduce_async": [([ARRAY],)], "grouped_allgather": [([ARRAY],)],
    "grouped_reducescatter": [([1.5],)], "sparse_allreduce_async": [(3.0, "sparse", hvd.Sum)],
}


@pytest.mark.parametrize("grad", [True, False], ids=["with a graph", "without"])
@pytest.mark.parametrize("name", NO_TENSORS)
def test_what_is_no_tensor(name, grad):
    for arguments in NO_TENSORS[name]:
        first = arguments[0]
        kind = type(first[-1] if name.startswith("grouped") else first).__name__
        with torch.set_grad_enabled(grad), pytest.raises(TypeError) as told:
            getattr(hvd, name)(*arguments)
        assert str(told.value) == f"hvd.{name} takes a torch.Tensor, not {kind}; try torch.tensor(...)"


@pytest.mark.parametrize("compression, advice", [
    ("fp16", "compression='fp16' is no compressor; give hvd.Compression.fp16"),
    (None, "compression=None is no compressor; give hvd.Compression.none"),
    (hvd.Compression, "give hvd.Compression.none, .fp16 or .bf16, or a class with compress and decompress"),
], ids=["a name", "None", "the choice"])
@pytest.mark.parametrize("name", ["allreduce", "grouped_allreduce", "reducescatter", "grouped_reducescatter", "DistributedOptimizer"])
def test_what_is_no_compressor(name, compression, advice):
    wanted = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1) if "Optimizer" in name else torch.ones(2)
    with pytest.raises(ValueError) as told:
        getattr(hvd, name)([wanted] if "grouped" in name else wanted, compression=compression)
    assert advice in str(told.value)


def test_a_number_with_a_compressor():
    with pytest.raises(TypeError, match="hvd.allreduce takes a torch.Tensor, not float"):
        hvd.allreduce(3.0, compression=hvd.Compression.fp16)


@pytest.mark.parametrize("make", [
    lambda model: model, lambda model: model.parameters(), lambda model: torch.optim.SGD, lambda model: None,
    lambda model: torch.optim.lr_scheduler.StepLR(torch.optim.SGD(model.parameters(), lr=0.1), 1),
], ids=["a model", "its parameters", "a class", "None", "a scheduler"])
def test_what_is_no_optimizer(make):
    with pytest.raises(TypeError) as told:
        hvd.DistributedOptimizer(make(torch.nn.Linear(2, 2)))
    assert "hvd.DistributedOptimizer takes an optimizer of torch.optim, not " in str(told.value)
    assert "try hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters())" in str(told.value)


def test_attribute_errors_of_what_the_user_gave_stay_theirs():
    class Broken(hvd.Compression.fp16):
        @staticmethod
        def compress(tensor):
            return tensor.no_such_attribute, None

    with pytest.raises(AttributeError, match="no_such_attribute"):
        hvd.allreduce(torch.ones(1), compression=Broken)


REFUSED = {
    "a scalar": (lambda: hvd.reducescatter(torch.tensor(1.0)), "a reducescatter shares out rows, and a scalar has none; try "),
    "a scalar in a group": (lambda: hvd.grouped_reducescatter([torch.ones(2), torch.tensor(1.0)]), "shares out rows"),
    "Adasum": (lambda: hvd.reducescatter(torch.ones(4), op=hvd.Adasum), "not hvd.Adasum; try hvd.allreduce, and"),
    "splits of floats": (lambda: hvd.alltoall(torch.ones(4), torch.ones(hvd.size())), r"whole numbers of rows, not \[1.0"),
    "parts of rows": (lambda: hvd.alltoall(torch.ones(4), [1.5] * hvd.size()), r"whole numbers of rows, not \[1.5"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_horovod_refuses_is_an_error_by_both_names(name):
    """By the one that Horovod's scripts catch, and as what it is: a wrong argument."""
    call, words = REFUSED[name]
    for kind in (hvd.HorovodInternalError, ValueError):
        with pytest.raises(kind, match=words):
            call()


def test_whole_splits_as_floats_in_a_list_are_taken():
    received = hvd.alltoall(torch.arange(hvd.size()), [1.0] * hvd.size())[0]
    assert received.tolist() == [hvd.rank()] * hvd.size()


@pytest.mark.parametrize("name, call", {
    "weight.grad": lambda none: hvd.broadcast_(none, 0, name="weight.grad"),
    "bias.grad": lambda none: hvd.broadcast(none, 0, name="bias.grad"),
}.items())
def test_a_gradient_that_is_not_there_is_named(name, call):
    with pytest.raises(TypeError, match=f"takes a torch.Tensor, and '{name}' is None. .*: try torch.zeros_like"):
        call(torch.nn.Parameter(torch.ones(1)).grad)


@pytest.mark.parametrize("state, count", [(None, 0), ({"scale": 2}, 1)], ids=["none", "object"])
def test_an_extra_state_of_a_module_is_left_as_it_is(state, count):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hvd.broadcast_parameters({"layer._extra_state": state}, root_rank=0)
    assert len(caught) == (count if hvd.rank() == 0 else 0)
    assert all("leaves layer._extra_state as on each rank" in str(one.message) for one in caught)
