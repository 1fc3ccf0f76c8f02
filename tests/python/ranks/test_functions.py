# SPDX-License-Identifier: Apache-2.0
"""What one rank has, for all; and batch normalisation over all ranks' batches."""

import copy

import draws
import pytest
import torch

import hvrun.torch as hvd


@pytest.mark.parametrize("given", ["dict", "list of pairs", "list of tensors"])
def test_parameters(given):
    torch.manual_seed(hvd.rank())
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    root = hvd.size() - 1
    params = {"dict": model.state_dict(), "list of pairs": list(model.named_parameters()),
              "list of tensors": list(model.parameters())}[given]
    hvd.broadcast_parameters(params, root_rank=root)
    for one in model.parameters():
        assert torch.equal(one, hvd.broadcast(one.detach().clone(), root))
    with pytest.raises(ValueError, match="list"):
        hvd.broadcast_parameters(model.named_parameters(), 0)


def test_the_state_of_a_distributed_optimizer():
    torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(3, 2)
    optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=0.1 * (1 + hvd.rank())))
    hvd.broadcast_parameters(model.state_dict(), 0)
    hvd.broadcast_optimizer_state(optimizer, 0)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.full((2, 3), float(hvd.rank()))).sum().backward()
        optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, 0)
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    for one in model.parameters():
        assert torch.equal(one, hvd.broadcast(one.detach().clone(), 0))


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [(3,), (3, 5), (3, 2, 2)], ids=str)
def test_batch_norm_over_all_ranks(shape, affine, momentum):
    rows = [2 + rank for rank in range(hvd.size())]
    torch.manual_seed(0)
    inputs = [torch.randn(count, *shape) + rank for rank, count in enumerate(rows)]
    kind = {1: torch.nn.BatchNorm1d, 2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm2d}[len(shape)]
    alone = kind(3, affine=affine, momentum=momentum)
    ours = hvd.SyncBatchNorm(3, affine=affine, momentum=momentum)
    if affine:
        with torch.no_grad():
            alone.weight.copy_(torch.tensor([0.5, 1.0, 2.0]))
            alone.bias.copy_(torch.tensor([1.0, 0.0, -1.0]))
    ours.load_state_dict(alone.state_dict())
    for _ in range(2):
        ours.zero_grad()
        alone.zero_grad()
        whole = torch.cat(inputs).requires_grad_()
        mine = inputs[hvd.rank()].clone().requires_grad_()
        expected, made = alone(whole), ours(mine)
        begin = sum(rows[:hvd.rank()])
        own = slice(begin, begin + rows[hvd.rank()])
        assert torch.allclose(made, expected[own], atol=1e-5)
        factors = torch.randn(whole.shape, generator=draws.generator(5))
        (expected * factors).sum().backward()
        (made * factors[own]).sum().backward()
        assert torch.allclose(mine.grad, whole.grad[own], atol=1e-5)
        if affine:
            for one, other in ((ours.weight, alone.weight), (ours.bias, alone.bias)):
                assert torch.allclose(hvd.allreduce(one.grad, op=hvd.Sum), other.grad, atol=1e-4)
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        assert torch.allclose(getattr(ours, name), getattr(alone, name), atol=1e-5), name
    ours.eval()
    alone.eval()
    assert torch.allclose(ours(inputs[hvd.rank()]), alone(inputs[hvd.rank()]), atol=1e-5)
    with pytest.raises(ValueError, match="two dimensions"):
        ours(torch.ones(3))


def test_batch_norm_without_running_statistics():
    torch.manual_seed(0)
    ours = hvd.SyncBatchNorm(2, track_running_stats=False).eval()
    inputs = [torch.randn(3, 2) + rank for rank in range(hvd.size())]
    made = ours(inputs[hvd.rank()])
    expected = torch.nn.functional.batch_norm(torch.cat(inputs), None, None, training=True)
    assert torch.allclose(made, expected[3 * hvd.rank():3 * hvd.rank() + 3], atol=1e-5)


def batch_norm_beside_one_process(inputs, ours, tolerance):
    """Forward and backward, of one process that has all inputs in float64."""
    alone = torch.nn.BatchNorm2d(3).double()
    whole = torch.cat(inputs).double().requires_grad_()
    mine = inputs[hvd.rank()].clone().requires_grad_()
    begin = sum(len(one) for one in inputs[:hvd.rank()])
    own = slice(begin, begin + len(mine))
    factors = torch.linspace(-1, 1, whole.numel(), dtype=torch.float64).view(whole.shape)
    expected, made = alone(whole), ours(mine)
    (expected * factors).sum().backward()
    (made * factors[own].to(made.dtype)).sum().backward()
    for one, other in ((made, expected[own]), (mine.grad, whole.grad[own]), (ours.running_mean, alone.running_mean),
                       (ours.running_var, alone.running_var), (hvd.allreduce(ours.weight.grad, op=hvd.Sum), alone.weight.grad),
                       (hvd.allreduce(ours.bias.grad, op=hvd.Sum), alone.bias.grad)):
        assert torch.allclose(one.double(), other, rtol=tolerance, atol=tolerance), f"{one} is not {other}"
    assert made.dtype == mine.dtype
    return made, mine


def of_each_rank(rows=2):
    generator = draws.generator(7)
    return [torch.randn(rows, 3, 2, 2, generator=generator) + rank for rank in range(hvd.size())]


def test_batch_norm_in_bfloat16():
    inputs = [one.bfloat16() for one in of_each_rank()]
    batch_norm_beside_one_process(inputs, hvd.SyncBatchNorm(3, dtype=torch.bfloat16), 4e-2)
    batch_norm_beside_one_process(inputs, hvd.SyncBatchNorm(3), 2e-2)  # under autocast weights stay float32


def test_batch_norm_of_channels_last():
    inputs = [one.to(memory_format=torch.channels_last) for one in of_each_rank()]
    made, mine = batch_norm_beside_one_process(inputs, hvd.SyncBatchNorm(3), 1e-4)
    assert made.is_contiguous(memory_format=torch.channels_last)
    assert mine.grad.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("empty", [0, -1], ids=["first", "last"])
def test_batch_norm_where_one_rank_has_no_rows(empty):
    inputs = of_each_rank()
    inputs[empty] = inputs[empty][:0]
    batch_norm_beside_one_process(inputs, hvd.SyncBatchNorm(3), 1e-4)


def test_a_network_with_batch_norm_trains_alike():
    torch.manual_seed(3)
    ours = torch.nn.Sequential(torch.nn.Linear(4, 6), hvd.SyncBatchNorm(6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
    alone = torch.nn.Sequential(copy.deepcopy(ours[0]), torch.nn.BatchNorm1d(6), torch.nn.ReLU(), copy.deepcopy(ours[3]))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(ours.parameters(), lr=0.1), ours.named_parameters())
    single = torch.optim.SGD(alone.parameters(), lr=0.1)
    for step in range(5):
        inputs = [torch.randn(3, 4, generator=draws.generator(step * 10 + rank)) for rank in range(hvd.size())]
        optimizer.zero_grad()
        ours(inputs[hvd.rank()]).square().mean().backward()
        optimizer.step()
        single.zero_grad()
        alone(torch.cat(inputs)).square().mean().backward()
        single.step()
    for one, other in zip(ours.parameters(), alone.parameters()):
        assert torch.allclose(one, other, atol=1e-4)
