# SPDX-License-Identifier: Apache-2.0
"""What a strict reading of hvrun.torch found, each once wrong."""

import copy
import gc
import threading
import traceback

import needs
import pytest
import torch
from alike import assert_alike

import hvrun.torch as hvd
from hvrun.exceptions import MismatchError


def linear(*extents):
    torch.manual_seed(3)
    return torch.nn.Sequential(*[torch.nn.Linear(*pair) for pair in zip(extents, extents[1:])])


def step(model, optimizer, value=None):
    optimizer.zero_grad()
    model(torch.full((2, model[0].in_features), hvd.rank() + 1.0 if value is None else value)).square().mean().backward()
    optimizer.step()


def wrapped(model, **options):
    return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters(), **options)


@pytest.mark.parametrize("options", [{}, {"groups": 2}], ids=["buckets", "groups"])
def test_freezing_later_and_thawing_again(options):
    model = linear(4, 4, 4)
    optimizer = wrapped(model, **options)
    for number in range(6):
        model[0].requires_grad_(number not in (2, 3))
        step(model, optimizer)
        assert_alike(model)


OPTIONS = [{}, {"groups": 2}, {"op": hvd.Adasum}, {"unused": "keep_none"}]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("options", OPTIONS, ids=["buckets", "groups", "adasum", "keep_none"])
@pytest.mark.parametrize("trains", [lambda number, is_odd: not is_odd, lambda number, is_odd: number < 3 or not is_odd,
                                    lambda number, is_odd: number >= 3 and not is_odd], ids=["at first", "later", "thawed"])
def test_a_parameter_that_one_rank_freezes(options, trains):
    model, odd = linear(4, 4, 4), hvd.size() - 1
    optimizer = wrapped(model, **options)
    with pytest.raises(MismatchError, match=f"rank {odd} has frozen the parameter 0.weight .requires_grad=False., and rank "
                                            f"{odd - 1} has not.* Likewise 1 more"):
        for number in range(5):
            model[0].requires_grad_(trains(number, hvd.rank() == odd))
            step(model, optimizer)
    assert_alike(model)
    model[0].requires_grad_(True)  # mended, and on it goes
    for _ in range(3):
        step(model, optimizer)
        assert_alike(model)


@pytest.mark.parametrize("options", OPTIONS, ids=["buckets", "groups", "adasum", "keep_none"])
def test_a_part_of_a_group_that_freezes_and_thaws(options):
    model = linear(4, 4, 4)
    optimizer = wrapped(model, **options)
    for number in range(7):
        model[0].weight.requires_grad_(number not in (2, 3))
        step(model, optimizer)
        assert_alike(model)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("options", OPTIONS, ids=["buckets", "groups", "adasum", "keep_none"])
@pytest.mark.parametrize("number", [0, 3], ids=["at first", "later"])
def test_a_model_of_another_type_on_one_rank(options, number):
    model = linear(4, 4)
    optimizer = wrapped(model, **options)
    for _ in range(number):
        step(model, optimizer)
    odd = hvd.rank() == hvd.size() - 1
    if odd:
        model.double()
    with pytest.raises(MismatchError, match=f"0.weight in different forms, this one torch.float{64 if odd else 32} of shape .4, 4.|"
                                            "ranks disagree"):
        optimizer.zero_grad()
        model(torch.ones(2, 4, dtype=model[0].weight.dtype)).square().mean().backward()
        optimizer.step()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("options", OPTIONS, ids=["buckets", "groups", "adasum", "keep_none"])
def test_parameters_that_one_rank_adds(options):
    model, more = linear(4, 4), torch.nn.Linear(4, 4)
    optimizer = wrapped(model, **options)
    step(model, optimizer)
    if hvd.rank() == 0:
        optimizer.add_param_group({"params": more.parameters()})
    with pytest.raises(MismatchError, match="different numbers of parameters, 2 to 4"):
        step(model, optimizer)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("before", [0, 2], ids=["first step", "later"])
def test_a_gradient_that_is_assigned_anew(before):
    model = linear(4, 4)
    optimizer = wrapped(model)
    for _ in range(before):
        step(model, optimizer)
    optimizer.zero_grad()
    model(torch.full((2, 4), hvd.rank() + 1.0)).square().mean().backward()
    for one in model.parameters():
        one.grad = one.grad * 0.5
    with pytest.warns(UserWarning, match="synchronize"):
        optimizer.step()
    assert_alike(model)
    optimizer.zero_grad()
    model(torch.full((2, 4), hvd.rank() + 1.0)).square().mean().backward()
    model.zero_grad()
    with pytest.warns(UserWarning, match="synchronize"):
        optimizer.step()
    assert_alike(model)


@pytest.mark.ranks(2)
def test_the_size_of_buckets_is_written_as_for_the_runtime_and_rank_0s_counts(monkeypatch):
    monkeypatch.setenv("HVRUN_BUCKET_BYTES", "1KiB" if hvd.rank() == 0 else "25M")
    model = linear(16, 16, 16)
    optimizer = wrapped(model)
    for _ in range(3):
        step(model, optimizer)
    assert_alike(model)
    buckets = optimizer._exchange._buckets
    assert len(buckets) > 1
    names = {parameter: name for name, parameter in model.named_parameters()}
    for bucket in buckets:
        first, *others = (names[one] for one in bucket.places)
        assert bucket.name.endswith(f" and {len(others)} more)" if others else f" ({first})"), bucket.name


@needs.cpu_scaler
@pytest.mark.parametrize("make", [pytest.param(lambda p: torch.optim.Adam(p, lr=0.01, fused=True), marks=needs.fused_adam),
                                  lambda p: torch.optim.SGD(p, lr=0.01)], ids=["fused", "plain"])
@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum], ids=["average", "adasum"])
def test_an_infinity_on_one_rank_whatever_the_optimizer(make, op):
    model = linear(4, 4)
    optimizer = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters(), op=op)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for number in range(4):
        before = [one.detach().clone() for one in model.parameters()]
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).mean()
        scaler.scale(loss * (float("inf") if number == 1 and hvd.rank() == hvd.size() - 1 else 1.0)).backward()
        scaler.step(optimizer)
        scaler.update()
        assert all(torch.equal(one, old) for one, old in zip(model.parameters(), before)) == (number == 1)
    assert_alike(model)


@needs.cpu_scaler
@pytest.mark.parametrize("enabled", [True, False])
def test_horovods_way_with_a_scaler(enabled):
    model = linear(4, 4)
    hvd.broadcast_parameters(model.state_dict(), 0)
    optimizer = wrapped(model, op=hvd.Sum)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, enabled=enabled)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(model(torch.ones(2, 4)).mean()).backward()
        expected = torch.full_like(model[0].bias, 0.25 * hvd.size())
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        assert torch.allclose(model[0].bias.grad, expected)
        with optimizer.skip_synchronize():
            scaler.step(optimizer)
        scaler.update()
    assert_alike(model)


def test_memory_that_a_tensor_gives_up_is_kept_while_it_is_used():
    for number in range(20):
        tensor = torch.ones(64 << 10)
        handle = hvd.allreduce_async_(tensor, op=hvd.Sum, name=f"given up {number}")
        tensor.data = torch.zeros(3)
        hvd.synchronize(handle)
    assert torch.equal(hvd.allreduce(torch.ones(2), op=hvd.Sum), torch.full((2,), float(hvd.size())))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("options", [{}, {"sparse_as_dense": True}], ids=["rows", "dense"])
def test_a_sparse_gradient_that_one_rank_lacks_at_first(options):
    torch.manual_seed(1)
    embedding = torch.nn.Embedding(6, 2, sparse=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(embedding.parameters(), lr=1.0), **options)
    for number in range(3):
        optimizer.zero_grad()
        if hvd.rank() == 0 or number == 2:
            embedding(torch.tensor([1, hvd.rank()])).sum().backward()
        optimizer.step()
    assert torch.equal(embedding.weight.detach(), hvd.broadcast(embedding.weight.detach().clone(), 0))


def test_a_step_that_is_left_out_after_synchronize():
    model = linear(4, 4)
    optimizer = wrapped(model)
    for number in range(5):
        optimizer.zero_grad()
        if number != 3 or hvd.rank() == 0:
            model(torch.full((2, 4), hvd.rank() + 1.0)).square().mean().backward()
        if number == 2:
            optimizer.synchronize()  # and no step: the loss was not finite
            continue
        optimizer.step()
    assert_alike(model)


@pytest.mark.ranks(2)
def test_after_a_join_all_ranks_go_on_together():
    model = linear(4, 4)
    optimizer = wrapped(model)
    for _ in range(3 if hvd.rank() == hvd.size() - 1 else 0):
        step(model, optimizer)
    last = hvd.join()
    hvd.broadcast_parameters(model.state_dict(), last)
    for _ in range(3):
        step(model, optimizer)
        assert_alike(model)


def test_an_optimizer_more_on_one_rank():
    if hvd.rank() == 0:
        wrapped(linear(2, 2, 2))
    model = linear(4, 4)
    optimizer = wrapped(model)
    for _ in range(3):
        step(model, optimizer)
    assert_alike(model)


def test_a_second_optimizer_takes_the_parameters_over():
    model = linear(4, 4)
    first = wrapped(model)
    step(model, first)
    second = wrapped(model)
    for _ in range(3):
        step(model, second)
    assert_alike(model)
    if hvd.size() > 1:
        with pytest.raises(ValueError, match="made later"):
            first.step()
    del first, second
    gc.collect()
    for one in model.parameters():
        assert not one._post_accumulate_grad_hooks or hvd.size() == 1


def test_threads_start_and_wait_beside_each_other():
    failures = []

    def work(number):
        try:
            for turn in range(40):
                hvd.allreduce_async(torch.ones(4), name=f"dropped {number} {turn}")
                made = hvd.allreduce(torch.ones(4), op=hvd.Sum, name=f"waited {number} {turn}")
                assert torch.equal(made, torch.full((4,), float(hvd.size())))
        except BaseException as error:  # told by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    handle = hvd.allreduce_async(torch.ones(1 << 18), op=hvd.Sum, name="by all threads")
    made = []
    threads = [threading.Thread(target=lambda: made.append(hvd.synchronize(handle))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4 and all(one is made[0] for one in made)


def test_scales_of_zero_and_scales_that_are_none():
    made = hvd.reducescatter(torch.ones(hvd.size()), op=hvd.Sum, postscale_factor=0.0)
    assert torch.equal(made, torch.zeros(1))
    with pytest.raises(TypeError):
        hvd.allreduce(torch.ones(1), prescale_factor=0.5, postscale_factor="x")
    assert torch.equal(hvd.allreduce(torch.ones(1), op=hvd.Sum), torch.tensor([float(hvd.size())]))


def test_rows_that_no_split_names_are_not_sent():
    made, received = hvd.alltoall(torch.arange(2.0 * hvd.size() + 1), [2] * hvd.size())
    assert len(made) == 2 * hvd.size() and received.tolist() == [2] * hvd.size()


def test_a_closure_outside_of_the_set():
    one = hvd.add_process_set([0]) if hvd.size() > 1 else hvd.global_process_set
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=0.5), process_set=one)

    def closure():
        optimizer.zero_grad()
        loss = parameter.sum()
        loss.backward()
        return loss

    assert float(optimizer.step(closure)) == 2.0
    assert torch.equal(parameter.detach(), torch.full((2,), 0.5))
    hvd.remove_process_set(one)


def test_copies_are_the_plain_optimizer():
    model = linear(4, 4)
    optimizer = wrapped(model)
    step(model, optimizer)
    plain = copy.deepcopy(optimizer)
    assert type(plain) is torch.optim.SGD and plain.param_groups[0]["lr"] == 0.01
    plain.step()


def test_a_step_that_somebody_has_replaced():
    model = linear(4, 4)
    first, second = wrapped(model), torch.optim.SGD(model.parameters(), lr=0.1)
    second.step = lambda: None
    with pytest.raises(ValueError, match="wrap the optimizer first"):
        hvd.DistributedOptimizer(second)
    step(model, first)  # which has kept its parameters


def test_parameters_that_are_added_to_adasum():
    model, more = linear(4, 4), torch.nn.Linear(4, 4)
    hvd.broadcast_parameters(more.state_dict(), 0)
    optimizer = wrapped(model, op=hvd.Adasum)
    optimizer.add_param_group({"params": more.parameters()})
    for _ in range(2):
        optimizer.zero_grad()
        more(model(torch.full((2, 4), hvd.rank() + 1.0))).square().mean().backward()
        optimizer.step()
    assert_alike(model)


@pytest.mark.ranks(2)
def test_an_error_of_a_step_shows_the_users_line_and_few_of_hvruns():
    model = torch.nn.Linear(1 + hvd.rank(), 1)
    optimizer = wrapped(model)
    model(torch.ones(1, 1 + hvd.rank())).sum().backward()
    with pytest.raises(MismatchError) as caught:
        optimizer.step()
    files = [one.filename for one in traceback.extract_tb(caught.tb)]
    assert files[0] == __file__
    assert len(files) <= 5, files


class _ZeroWithoutMemory(torch.autograd.Function):
    """Its weight's gradient is a tensor of zeros that has no memory."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        return x * 1.0

    @staticmethod
    def backward(ctx, grad):
        weight, = ctx.saved_tensors
        return grad, torch._efficientzerotensor(weight.shape, device=weight.device)


def test_a_gradient_without_memory_is_zero():
    used, zero = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([used, zero], lr=0.1), named_parameters=[("used", used), ("zero", zero)])
    for step in range(4):
        optimizer.zero_grad()
        loss = (used * (hvd.rank() + 1)).sum()
        if step < 2:
            loss = loss + zero.sum()
        else:
            loss = _ZeroWithoutMemory.apply(loss, zero)
        loss.backward()
        optimizer.synchronize()
        expected = torch.ones(3) if step < 2 else torch.zeros(3)
        assert torch.equal(zero.grad + 0, expected), step
        with optimizer.skip_synchronize():
            optimizer.step()


def test_gradients_may_be_taken_before_they_are_averaged():
    """The tensors that a backward pass leaves are those that are averaged, in the first step as well."""
    model = torch.nn.Linear(3, 2)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.full((1, 3), float(hvd.rank() + 1))).sum().backward()
        gradients = [one.grad for one in model.parameters()]
        optimizer.synchronize()
        for one, gradient in zip(model.parameters(), gradients):
            assert one.grad is gradient
        with optimizer.skip_synchronize():
            optimizer.step()


@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum, hvd.Adasum])
def test_an_optimizer_says_what_it_was_made_with(op):
    model = linear(4, 4)
    factor = {"gradient_predivide_factor": 2.0} if op is hvd.Average else {}
    optimizer = wrapped(model, op=op, **factor)
    assert optimizer.op is op and optimizer.process_set is hvd.global_process_set
    optimizer.backward_passes_per_step = 2
    assert optimizer.backward_passes_per_step == 2
    with pytest.raises(ValueError, match="backward_passes_per_step is a whole number"):
        wrapped(linear(4, 4)).backward_passes_per_step = 0
    if factor:
        assert (optimizer.gradient_predivide_factor, optimizer.sparse_as_dense) == (2.0, False)


@pytest.mark.ranks(2)
def test_adasum_says_what_has_no_effect_with_it():
    with pytest.warns(UserWarning, match="groups, num_groups, sparse_as_dense and unused have no effect"):
        wrapped(linear(4, 4), op=hvd.Adasum, groups=2)
