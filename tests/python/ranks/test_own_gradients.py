# SPDX-License-Identifier: Apache-2.0
"""Gradients that the user has made or laid out: what they expect to be averaged in place is, whatever the buckets do."""

import warnings

import pytest
import torch

import hvrun.torch as hvd


def mean(factor=1.0):
    return factor * (hvd.size() + 1) / 2


def bare(*shape):
    weight = torch.nn.Parameter(torch.ones(*shape))
    return weight, hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.0), [("weight", weight)])


def assert_equal_everywhere(tensor):
    assert torch.equal(tensor, hvd.broadcast(tensor.clone(), 0))


def test_a_tensor_of_the_users_stays_the_gradient():
    weight, optimizer = bare(1, 2)
    mine = torch.zeros(1, 2)
    weight.grad = mine
    for _ in range(4):
        mine.zero_()
        (weight * (hvd.rank() + 1)).sum().backward()
        optimizer.step()
        assert weight.grad is mine
        assert torch.equal(mine, torch.full((1, 2), mean()))


def test_gradients_in_one_flat_tensor():
    weights = [torch.nn.Parameter(torch.ones(3, 2)) for _ in range(3)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=0.0), [(f"w{i}", one) for i, one in enumerate(weights)])
    flat = torch.zeros(18)
    for weight, part in zip(weights, flat.split(6)):
        weight.grad = part.view_as(weight)
    for _ in range(4):
        flat.zero_()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nobody has changed gradients
            sum((weight * (i + 1) * (hvd.rank() + 1)).sum() for i, weight in enumerate(weights)).backward()
            optimizer.step()
        assert torch.equal(flat, torch.cat([torch.full((6,), mean(i + 1.0)) for i in range(3)]))


def test_gradients_that_the_user_has_noted_stay_those():
    weight, optimizer = bare(4)
    noted = None
    for _ in range(4):
        if noted is not None:
            noted.zero_()
        (weight * (hvd.rank() + 1)).sum().backward()
        noted = noted if noted is not None else weight.grad
        optimizer.step()
        assert torch.equal(noted, torch.full((4,), mean()))


def transposed(weight):
    weight.data = torch.ones(3, 3).t()


def other_format(weight):
    weight.data = weight.data.to(memory_format=torch.channels_last)


@pytest.mark.parametrize("shape, change", [((3, 3), transposed), ((2, 3, 4, 4), other_format)], ids=["transposed", "channels_last"])
def test_a_parameter_that_one_rank_lays_out_differently(shape, change):
    weight = torch.nn.Parameter(torch.ones(*shape))
    if hvd.rank() == 0:
        change(weight)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.0), [("weight", weight)])
    factors = torch.arange(weight.numel(), dtype=torch.float32).reshape(shape)
    for _ in range(4):
        optimizer.zero_grad()
        (weight * factors * (hvd.rank() + 1)).sum().backward()
        optimizer.step()
        assert torch.equal(weight.grad, factors * mean())


@pytest.mark.ranks(2)
@pytest.mark.parametrize("unused", ["zeros", "keep_none"])
def test_a_gradient_that_is_taken_away_before_the_step_counts_all_the_same(unused):
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.0), [("weight", weight)], unused=unused)
    for _ in range(3):
        optimizer.zero_grad()
        (weight * (hvd.rank() + 1)).sum().backward()
        if hvd.rank() == 0:
            weight.grad = None
            with pytest.warns(UserWarning, match="the gradients of weight were changed"):
                optimizer.step()
        else:
            optimizer.step()
        assert torch.equal(weight.grad, torch.full((2,), mean()))


def test_a_hook_that_takes_the_gradient_away_first_is_told():
    weight = torch.nn.Parameter(torch.ones(2))
    weight.register_post_accumulate_grad_hook(lambda one: setattr(one, "grad", None))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.0), [("weight", weight)])
    if hvd.size() > 1:
        with pytest.raises(AssertionError, match="another hook has taken away the gradient of weight"):
            weight.sum().backward()
    del optimizer


def test_the_largest_gradients_still_lie_in_shared_memory():
    """Else the tests above would pass without any bucket."""
    weight, optimizer = bare(1000)
    places = set()
    for _ in range(4):
        optimizer.zero_grad()
        (weight * (hvd.rank() + 1)).sum().backward()
        optimizer.step()
        places.add(weight.grad.data_ptr())
        assert_equal_everywhere(weight.grad)
    del weight.grad
    optimizer.zero_grad()
    (weight * 2).sum().backward()
    assert hvd.size() == 1 or weight.grad.data_ptr() in places
    optimizer.step()
