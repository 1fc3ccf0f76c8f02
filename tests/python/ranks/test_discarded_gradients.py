# SPDX-License-Identifier: Apache-2.0
"""Gradients that zero_grad() discards before a step has used them, next to one process with all ranks' batches."""

import copy
import warnings

import pytest
import torch

import hvrun.torch as hvd
from hvrun.exceptions import MismatchError

# "at once": they travel during the backward pass also where all ranks share a host.
HOW = pytest.mark.parametrize("options", [{}, {"groups": 1}], ids=["buckets", "at once"])


def batch(step, rank):
    return torch.full((2, 3), 0.1 * (rank + 1) + 0.02 * step)


def network(inputs=3, outputs=3):
    torch.manual_seed(inputs)
    return torch.nn.Sequential(torch.nn.Linear(inputs, 4), torch.nn.Tanh(), torch.nn.Linear(4, outputs))


def plain(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def wrapped(model, **options):
    return hvd.DistributedOptimizer(plain(model), model.named_parameters(), **options)


def assert_same(model, alone):
    for (name, one), other in zip(model.named_parameters(), alone.parameters()):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-6), name


def mean(loss_of):
    return sum(loss_of(rank) for rank in range(hvd.size())) / hvd.size()


def train_adversaries(models, optimizers, combine, generator_first):
    """combine: of a loss by rank, what this process computes."""
    generator, discriminator = models
    of_generator, of_discriminator = optimizers

    def step_generator(step):
        of_generator.zero_grad()
        combine(lambda rank: (discriminator(generator(batch(step, rank))) - 1).square().mean()).backward()
        of_generator.step()

    def step_discriminator(step):
        of_discriminator.zero_grad()  # of what the generator's backward pass has left there
        combine(lambda rank: (discriminator(generator(batch(step, rank)).detach()) + discriminator(batch(-step, rank)) - 1)
                .square().mean()).backward()
        of_discriminator.step()

    for step in range(5):
        for one in (step_generator, step_discriminator) if generator_first else (step_discriminator, step_generator):
            one(step)


@HOW
@pytest.mark.parametrize("generator_first", [True, False])
def test_a_generators_backward_pass_fills_the_discriminators_gradients(options, generator_first):
    models = network(), network(3, 1)
    alone = copy.deepcopy(models)
    train_adversaries(models, [wrapped(one, **options) for one in models], lambda loss_of: loss_of(hvd.rank()), generator_first)
    train_adversaries(alone, [plain(one) for one in alone], mean, generator_first)
    for model, single in zip(models, alone):
        assert_same(model, single)


@HOW
def test_backward_passes_that_fill_no_step_are_dropped(options):
    model = network()
    alone = copy.deepcopy(model)
    optimizer, single = wrapped(model, backward_passes_per_step=4, **options), plain(alone)
    for _ in range(2):
        optimizer.zero_grad()
        single.zero_grad()
        for number in range(10):
            (model(batch(number, hvd.rank())).square().mean() / 4).backward()
            mean(lambda rank, number=number: alone(batch(number, rank)).square().mean() / 4).backward()
            if number % 4 == 3:
                for one in (optimizer, single):
                    one.step()
                    one.zero_grad()
    assert_same(model, alone)


@HOW
@pytest.mark.parametrize("set_to_none", [True, False])
def test_batches_that_all_ranks_skip(options, set_to_none):
    """The first one before the ranks know what they exchange, the others afterwards."""
    model = network()
    unused = torch.nn.Linear(2, 2)
    optimizer = wrapped(torch.nn.ModuleList([model, unused]), **options)
    alone = copy.deepcopy(model)
    single = plain(alone)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(7):
            optimizer.zero_grad(set_to_none=set_to_none)
            model(batch(step, hvd.rank())).square().mean().backward()
            if step in (0, 2, 5, 6):
                continue
            single.zero_grad()
            mean(lambda rank, step=step: alone(batch(step, rank)).square().mean()).backward()
            optimizer.step()
            single.step()
        unused.weight.grad = None
        optimizer.zero_grad(set_to_none=set_to_none)
    assert unused.weight.grad is None
    assert_same(model, alone)
    texts = [str(one.message) for one in caught]
    is_shared = hvd.size() > 1 and (options or hvd.local_size() < hvd.size())
    assert len(texts) == (1 if is_shared and hvd.rank() == 0 else 0), texts
    assert all(text.startswith("gradients of 0.0.weight, 0.0.bias, 0.2.weight and 1 more were exchanged and discarded: "
                               "requires_grad_(False) saves that") for text in texts), texts


@pytest.mark.ranks(2)
def test_a_batch_that_one_rank_skips_is_an_error_on_all():
    model = network()
    optimizer = wrapped(model, groups=1)
    for step in range(4):
        optimizer.zero_grad()
        model(batch(step, hvd.rank())).square().mean().backward()
        if step == 2:
            change = optimizer.zero_grad if hvd.rank() == hvd.size() - 1 else optimizer.step
            before = copy.deepcopy(model.state_dict())
            with pytest.raises(MismatchError, match=f"rank {hvd.size() - 1} has discarded them in zero_grad.., and rank"):
                change()
            assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())
        else:
            optimizer.step()
    for name, one in model.named_parameters():
        assert torch.equal(one.detach(), hvd.broadcast(one.detach().clone(), 0)), name
