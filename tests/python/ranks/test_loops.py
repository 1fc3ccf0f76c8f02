# SPDX-License-Identifier: Apache-2.0
"""Loops that change their ways when the exchange has long learned what it does, beside one process with all ranks' batches."""

import copy

import needs
import pytest
import torch

import hvrun.torch as hvd


def network():
    torch.manual_seed(5)
    return torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))


def loss_of(model, rank, step, layers=(0, 1, 2)):
    x = torch.full((2, 4), 0.1 * (rank + 1) + 0.01 * (step % 7))
    for number in layers:
        x = torch.tanh(model[number](x))
    return (x - 0.5).square().mean()


def plain(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def assert_same(model, alone):
    for (name, one), other in zip(model.named_parameters(), alone.named_parameters()):
        assert torch.allclose(one, other[1], rtol=1e-5, atol=1e-6), name
        assert torch.equal(one.detach(), hvd.broadcast(one.detach().clone(), 0)), name


def mean_loss(model, step, layers_of=lambda rank: (0, 1, 2)):
    return sum(loss_of(model, rank, step, layers_of(rank)) for rank in range(hvd.size())) / hvd.size()


@pytest.mark.parametrize("unused", ["zeros", "keep_none"])
@pytest.mark.parametrize("options", [{}, {"groups": 2}], ids=["buckets", "groups"])
def test_a_rank_that_first_skips_a_layer_after_fifty_steps(unused, options):
    model = network()
    alone = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(plain(model), model.named_parameters(), unused=unused, **options)
    single = plain(alone)
    for step in range(56):
        skips = (50, 52, 53)  # one rank in the first two, all of them in the third

        def layers_of(rank):
            return (0, 2) if step in skips and (rank == hvd.size() - 1 or step == 53) else (0, 1, 2)

        optimizer.zero_grad()
        loss_of(model, hvd.rank(), step, layers_of(hvd.rank())).backward()
        optimizer.step()
        single.zero_grad(set_to_none=unused == "keep_none" or hvd.size() == 1)
        mean_loss(alone, step, layers_of).backward()
        single.step()
    assert_same(model, alone)


@pytest.mark.parametrize("before,after", [(2, 1), (3, 2), (2, 3)])
@pytest.mark.parametrize("step_of_change", [0, 3])
def test_backward_passes_per_step_changed_between_two_passes(before, after, step_of_change):
    """What has been summed up stays, and so many passes more make it whole."""
    model = network()
    alone = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(plain(model), model.named_parameters(), backward_passes_per_step=before)
    single = plain(alone)
    number = 0
    for step in range(6):
        passes = before if step < step_of_change else 1 + after if step == step_of_change else after
        optimizer.zero_grad()
        single.zero_grad()
        for one in range(passes):
            loss_of(model, hvd.rank(), number).backward()
            if step == step_of_change and one == 0:
                optimizer.set_backward_passes_per_step(after)
            mean_loss(alone, number).backward()
            number += 1
        optimizer.step()
        single.step()
    assert optimizer.backward_passes_per_step == after
    assert_same(model, alone)


@needs.cpu_scaler
def test_one_scaler_and_two_optimizers():
    """An infinity in the gradients of one of them, on one rank, skips that one's step on all ranks, and the other's nowhere."""
    models = network(), network()
    alone = copy.deepcopy(models)
    optimizers = [hvd.DistributedOptimizer(plain(one), one.named_parameters()) for one in models]
    singles = [plain(one) for one in alone]
    scaler, other = (torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3) for _ in range(2))
    for step in range(8):
        is_odd = [step == 2, step == 5]
        for number, (model, optimizer) in enumerate(zip(models, optimizers)):
            optimizer.zero_grad()
            factor = float("inf") if is_odd[number] and hvd.rank() == hvd.size() - 1 else 1.0
            scaler.scale(loss_of(model, hvd.rank(), step) * factor).backward()
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()
        for number, (model, single) in enumerate(zip(alone, singles)):
            single.zero_grad()
            other.scale(mean_loss(model, step) * (float("inf") if is_odd[number] else 1.0)).backward()
        for single in singles:
            other.step(single)
        other.update()
        assert scaler.get_scale() == other.get_scale()
    for model, one in zip(models, alone):
        assert_same(model, one)
