# SPDX-License-Identifier: Apache-2.0
"""Trainings on GPUs: the order of events is PyTorch's own, and the result that of one process with everybody's batches."""

import copy

import pytest
import torch

import hvrun.data
import hvrun.torch as hvd

CLASSES, FEATURES, BATCH, STEPS = 10, 64, 16, 8


def network(norm=torch.nn.BatchNorm1d):
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(FEATURES, 128, bias=False), norm(128), torch.nn.ReLU(), torch.nn.Linear(128, CLASSES)).cuda()


def batches(steps=STEPS):
    """Of all ranks: (step, rank) -> inputs and targets."""
    draw = torch.Generator().manual_seed(3)
    return [[(torch.randn(BATCH, FEATURES, generator=draw), torch.randint(CLASSES, (BATCH,), generator=draw)) for _ in range(hvd.size())]
            for _ in range(steps)]


def equal_on_all_ranks(model):
    return all(torch.equal(one.detach(), hvd.broadcast(one.detach().clone(), 0)) for one in model.parameters())


def loss_of(model, inputs, targets):
    return torch.nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=0.01),
                                  lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
                                  lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.01), capturable=True)],
                         ids=["sgd", "adamw", "adamw fused", "adamw capturable"])
def test_a_training_is_that_of_one_process(make):
    model, alone = network(hvd.SyncBatchNorm), network()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer, other = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters()), make(alone.parameters())
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    for step in batches():
        optimizer.zero_grad()
        loss_of(model, *step[hvd.rank()]).backward()
        optimizer.step()
        other.zero_grad()
        loss_of(alone, torch.cat([one for one, _ in step]), torch.cat([one for _, one in step])).backward()
        other.step()
    for mine, theirs in zip(model.parameters(), alone.parameters()):
        assert torch.allclose(mine, theirs, atol=2e-3, rtol=2e-3)
    assert equal_on_all_ranks(model)


@pytest.mark.parametrize("compression", ["none", "fp16", "bf16"])
def test_autocast_with_a_scaler_skips_on_all_what_is_infinite_on_one(compression):
    model = network()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05), model.named_parameters(),
                                         getattr(hvd.Compression, compression))
    scaler = torch.amp.GradScaler("cuda", init_scale=256.0)
    for number, step in enumerate(batches()):
        before = copy.deepcopy(model)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_of(model, *step[hvd.rank()])
        is_bad = number == 3 and hvd.rank() == hvd.size() - 1
        scaler.scale(loss * (float("inf") if is_bad else 1.0)).backward()
        if number == 5:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(model[0].weight, before[0].weight) == (number == 3)
        assert equal_on_all_ranks(model)
    assert scaler.get_scale() == 128.0


def test_autocast_to_bfloat16_and_channels_last():
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(4))
    model(torch.ones(1, 3, 8, 8))
    model = model.cuda().to(memory_format=torch.channels_last)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters()), model.named_parameters())
    for step in range(6):
        optimizer.zero_grad()
        inputs = torch.randn(4, 3, 8, 8, device="cuda").to(memory_format=torch.channels_last) * (1 + hvd.rank())
        with torch.autocast("cuda", dtype=torch.bfloat16):
            model(inputs).square().mean().backward()
        mine = [one.grad.clone() for one in model.parameters()] if step == 0 and hvd.size() == 1 else None
        optimizer.step()
        if mine is not None:
            assert all(torch.equal(one, parameter.grad) for one, parameter in zip(mine, model.parameters()))
        assert model[0].weight.grad.is_contiguous(memory_format=torch.channels_last)
    assert equal_on_all_ranks(model)


def test_gradients_stay_on_the_gpu_and_in_their_buckets():
    model = network()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05), model.named_parameters())
    places = []
    for step in batches(10):
        optimizer.zero_grad()
        loss_of(model, *step[hvd.rank()]).backward()
        optimizer.step()
        places.append([one.grad.data_ptr() for one in model.parameters()])
        assert all(one.grad.is_cuda for one in model.parameters())
    assert hvd.size() == 1 or places[-1] == places[-3]


def test_batches_come_through_pinned_memory():
    steps = batches()
    reader = hvrun.data.Prefetcher([step[hvd.rank()] for step in steps])
    for (inputs, targets), step in zip(reader, steps):
        assert inputs.is_pinned() and targets.is_pinned()
        there = inputs.to("cuda", non_blocking=True)
        assert torch.equal(hvd.allreduce(there, op=hvd.Sum, name="batch").cpu(),
                           sum(one for one, _ in step)) or hvd.size() > 2


def test_objects_and_states_travel():
    assert hvd.broadcast_object({"rank": hvd.rank()}, root_rank=hvd.size() - 1) == {"rank": hvd.size() - 1}
    assert hvd.allgather_object(hvd.rank()) == list(range(hvd.size()))
    there = hvd.broadcast_object(torch.full((3,), float(hvd.rank()), device="cuda"), root_rank=0)
    assert there.is_cuda and there[0] == 0
