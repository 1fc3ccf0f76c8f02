# SPDX-License-Identifier: Apache-2.0
"""What programs do between a backward pass and its step, and around steps: nothing is exchanged twice, or lost."""

import copy
import io
import pickle

import needs
import pytest
import torch
from alike import assert_alike

import hvrun.torch as hvd

HOW = pytest.mark.parametrize("options", [{}, {"groups": 1}], ids=["buckets", "group"])


def pair():
    return torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)


def loss_of(one, other):
    return (one(torch.ones(1, 1)) + other(torch.ones(1, 1))).sum()


def summing(one, other, **options):
    return hvd.DistributedOptimizer(torch.optim.SGD([one.weight, other.weight], lr=0.0, momentum=0.1), op=hvd.Sum, **options)


@HOW
@pytest.mark.parametrize("change", [lambda one: one.load_state_dict(one.state_dict()), lambda one: hvd.broadcast_optimizer_state(one, 0)],
                         ids=["load_state_dict", "broadcast_optimizer_state"])
def test_an_optimizer_that_gets_another_state_before_its_step(options, change):
    one, other = pair()
    optimizer = summing(one, other, **options)
    for step in range(4):
        optimizer.zero_grad()
        loss_of(one, other).backward()
        if step > 0:
            change(optimizer)
        optimizer.step()
        assert one.weight.grad.item() == other.weight.grad.item() == hvd.size()


@pytest.mark.parametrize("skips", [False, True])
def test_a_closure_that_synchronizes_to_clip(skips):
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.0), model.named_parameters(), op=hvd.Sum)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(1, 1)).sum()
        loss.backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        return loss

    for _ in range(3):
        if skips:
            with optimizer.skip_synchronize():
                optimizer.step(closure)
        else:
            optimizer.step(closure)
        assert model.weight.grad.item() == pytest.approx(0.5, abs=1e-5)


@needs.cpu_scaler
@pytest.mark.ranks(2)
def test_a_rank_without_gradients_after_a_step_that_an_infinity_has_skipped():
    body, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    optimizers = [hvd.DistributedOptimizer(torch.optim.SGD(one.parameters(), lr=0.1), one.named_parameters(prefix=name))
                  for name, one in (("body", body), ("head", head))]
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for step in range(4):
        body.zero_grad()
        head.zero_grad()
        middle = body(torch.ones(1, 2))
        loss = middle.sum()
        if not (step == 2 and hvd.rank() == hvd.size() - 1):
            loss = loss + head(middle).sum()
        scaler.scale(loss * float("inf") if step == 1 else loss).backward()
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()
        assert_alike(body)
        assert_alike(head)


@HOW
def test_what_was_on_its_way_does_not_outlive_the_job(options):
    one, other = pair()
    optimizer = summing(one, other, **options)
    for step in range(4):
        optimizer.zero_grad()
        loss_of(one, other).backward()
        if step in (0, 2):  # the first exchange, and one of buckets: an error elsewhere has ended the job
            hvd.barrier()  # no rank is in its backward pass any more, which would end with an error
            hvd.shutdown()
            hvd.init()
            optimizer.zero_grad()
            loss_of(one, other).backward()
        optimizer.step()
        assert one.weight.grad.item() == hvd.size()


@HOW
@pytest.mark.ranks(2)
@pytest.mark.parametrize("meet", [hvd.join, lambda: (hvd.barrier(), hvd.shutdown(), hvd.init())], ids=["join", "init"])
def test_a_rank_that_was_ahead_when_the_ranks_came_together(options, meet):
    one, other = pair()
    optimizer = summing(one, other, **options)
    for _ in range(2):
        optimizer.zero_grad()
        loss_of(one, other).backward()
        optimizer.step()
    optimizer.zero_grad()
    if meet is hvd.join and options:
        return  # a group is on its way at once, and ends without the ranks that have joined
    if hvd.rank() == 0:
        loss_of(one, other).backward()
    meet()
    if hvd.rank() != 0:
        optimizer.zero_grad()
    if hvd.rank() != 0 or meet is not hvd.join:
        loss_of(one, other).backward()
    optimizer.step()
    assert one.weight.grad.item() == hvd.broadcast(one.weight.grad.clone(), 0).item()


@pytest.mark.ranks(3)
def test_a_process_set_that_has_another_number_in_the_next_job():
    ours = hvd.add_process_set([0, 1])
    model = torch.nn.Linear(2, 1, bias=False)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.0), model.named_parameters(), process_set=ours)

    def step():
        optimizer.zero_grad()
        (model(torch.ones(1, 2)) * (hvd.rank() + 1)).sum().backward()
        optimizer.step()
        assert torch.equal(model.weight.grad, torch.full((1, 2), 1.5 if hvd.rank() < 2 else hvd.rank() + 1.0))

    step()
    step()
    hvd.barrier()
    hvd.shutdown()
    hvd.init()
    other = hvd.add_process_set([1, 2])
    hvd.add_process_set(ours)
    for _ in range(3):
        step()
    hvd.barrier()
    for one in (ours, other):
        assert hvd.remove_process_set(one)


@pytest.mark.ranks(3)
def test_adasum_in_a_process_set_leaves_the_others_alone():
    ours = hvd.add_process_set([0, 1])
    model = torch.nn.Linear(2, 1, bias=False)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), op=hvd.Adasum,
                                         process_set=ours)
    start = model.weight.detach().clone()
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert torch.allclose(model.weight, start - 0.2)  # equal steps combine to that step
    hvd.barrier()
    assert hvd.remove_process_set(ours)


@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_copies_of_a_wrapped_optimizer_are_plain_ones(op):
    model = torch.nn.Linear(2, 1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), op=op)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    saved = io.BytesIO()
    pickle.dump(optimizer, saved)
    for made in (pickle.loads(saved.getvalue()), copy.deepcopy(optimizer)):
        assert type(made) is torch.optim.SGD
        made.step()


@pytest.mark.parametrize("refused", [
    lambda: hvd.allreduce(torch.ones(2).to_sparse()), lambda: hvd.allgather(torch.ones(2).to_sparse()),
    lambda: hvd.broadcast(torch.ones(1), hvd.size()), lambda: hvd.reducescatter(torch.ones(1), op=hvd.Max),
    lambda: hvd.alltoall(torch.ones(2).to_sparse())], ids=["allreduce", "allgather", "broadcast", "reducescatter", "alltoall"])
def test_a_call_that_is_refused_on_one_rank_takes_no_number(refused):
    if hvd.rank() == 0:
        with pytest.raises(ValueError):
            refused()
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()
    assert hvd.allgather(torch.ones(1)).shape == (hvd.size(),)
    assert hvd.broadcast(torch.ones(1), 0).item() == 1
    assert hvd.reducescatter(torch.ones(hvd.size()), op=hvd.Sum).item() == hvd.size()
    assert hvd.alltoall(torch.ones(hvd.size())).shape == (hvd.size(),)
