# SPDX-License-Identifier: Apache-2.0
"""Gradients lie in shared memory, and stay the user's tensors: whatever moves them elsewhere, what follows is averaged."""

import io
import pickle

import pytest
import torch

import hvrun.torch as hvd


def network():
    torch.manual_seed(11)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(16, 2))


def wrapped(model):
    return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters())


def loss_of(model, number):
    weight = next(model.parameters())
    torch.manual_seed(100 * number + hvd.rank())
    return model(torch.randn(2, 3, 4, 4).to(weight.dtype)).square().mean()


def averages(model, number):
    """Of the gradients that the ranks compute, one by one."""
    mine = torch.autograd.grad(loss_of(model, number), list(model.parameters()))
    return [hvd.allreduce(one) for one in mine]


def assert_averaged(model, optimizer, number):
    expected = averages(model, number)
    optimizer.zero_grad(set_to_none=number % 2 == 0)
    loss_of(model, number).backward()
    optimizer.synchronize()
    for one, right in zip(model.parameters(), expected):
        assert one.grad.dtype == one.dtype
        torch.testing.assert_close(one.grad, right, rtol=2e-2 if one.dtype == torch.bfloat16 else 1e-5, atol=1e-6)
    with optimizer.skip_synchronize():
        optimizer.step()
    for one in model.parameters():
        assert torch.equal(hvd.broadcast(one.detach().clone(), 0), one)


def assign(model):
    for one in model.parameters():
        one.grad.data = one.grad.data * 0.5


def scale(model):
    for one in model.parameters():
        one.grad.data *= 0.5


def point_elsewhere(model):
    for one in model.parameters():
        one.grad.set_(one.grad.clone())


MOVES = {
    "nothing": lambda model: None, "grad.data =": assign, "grad.data *=": scale, "grad.set_()": point_elsewhere,
    "double()": lambda model: model.double(), "bfloat16()": lambda model: model.bfloat16(),
    "there and back": lambda model: model.double().float(),
    "channels_last": lambda model: model.to(memory_format=torch.channels_last),
    "share_memory()": lambda model: model.share_memory(),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_gradients_that_are_moved(move):
    model = network()
    optimizer = wrapped(model)
    for number in range(3):
        assert_averaged(model, optimizer, number)
    for number in range(3, 7):
        if number in (3, 4):
            move(model)  # with gradients of the last step there
        assert_averaged(model, optimizer, number)


def test_a_gradient_that_is_moved_after_synchronize_is_what_is_stepped_by():
    model = network()
    optimizer = wrapped(model)
    for number in range(4):
        expected = averages(model, number)
        before = [one.detach().clone() for one in model.parameters()]
        optimizer.zero_grad()
        loss_of(model, number).backward()
        optimizer.synchronize()
        assign(model)
        with optimizer.skip_synchronize():
            optimizer.step()
        for one, old, right in zip(model.parameters(), before, expected):
            torch.testing.assert_close(one.detach(), old - 0.01 * 0.5 * right)


def test_gradients_can_be_detached_in_place():
    """As optimizers did in zero_grad() once, and scripts still do."""
    model = network()
    optimizer = wrapped(model)
    for number in range(4):
        for one in model.parameters():
            if one.grad is not None:
                one.grad.detach_()
                one.grad.zero_()
        expected = averages(model, number)
        loss_of(model, number).backward()
        optimizer.synchronize()
        for one, right in zip(model.parameters(), expected):
            torch.testing.assert_close(one.grad, right)
        with optimizer.skip_synchronize():
            optimizer.step()


def test_models_and_optimizers_are_pickled_as_they_are():
    model = network()
    optimizer = wrapped(model)
    for number in range(3):
        assert_averaged(model, optimizer, number)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    for copy in (loaded, pickle.loads(pickle.dumps(model)), *hvd.allgather_object(model)):
        for one, other in zip(copy.parameters(), model.parameters()):
            assert torch.equal(one, other)
    plain = pickle.loads(pickle.dumps(optimizer))
    assert type(plain) is torch.optim.SGD
    assert not isinstance(plain, type(optimizer))
    assert torch.equal(plain.param_groups[0]["params"][0], next(model.parameters()))
    assert_averaged(model, optimizer, 3)
