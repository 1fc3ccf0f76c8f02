# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: training as one process would that had all ranks' batches."""

import copy
import warnings

import draws
import needs
import pytest
import torch

import hvrun.torch as hvd

STEPS = 6


class Net(torch.nn.Module):
    """With a layer that is used twice, one that is frozen, and channels_last weights."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(2, 4, 3).to(memory_format=torch.channels_last)
        self.twice = torch.nn.Linear(16, 16)
        self.frozen = torch.nn.Linear(16, 16)
        self.last = torch.nn.Linear(16, 3)
        self.frozen.requires_grad_(False)

    def forward(self, x):
        x = self.first(x).flatten(1)
        return self.last(torch.relu(self.frozen(self.twice(torch.relu(self.twice(x))))))


def batch(rank, step, rows=3):
    generator = draws.generator(1000 * step + rank)
    return torch.randn(rows, 2, 4, 4, generator=generator), torch.randn(rows, 3, generator=generator)


def loss_of(model, rank, step):
    x, y = batch(rank, step)
    return torch.nn.functional.mse_loss(model(x), y)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.001),
}


def pair(make="sgd", **options):
    """A model that is trained by all ranks, and its copy that one process trains."""
    torch.manual_seed(7)
    model = Net()
    alone = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(OPTIMIZERS[make](model.parameters()), named_parameters=model.named_parameters(),
                                         **options)
    return model, optimizer, alone, OPTIMIZERS[make](alone.parameters())


def step_alone(model, optimizer, step, ranks=None, passes=1):
    """What one process does that has all batches."""
    optimizer.zero_grad()
    ranks = range(hvd.size()) if ranks is None else ranks
    for one in range(passes):
        (sum(loss_of(model, rank, step * passes + one) for rank in ranks) / len(ranks)).backward()
    optimizer.step()


def train_both(model, optimizer, alone, single):
    """All ranks, each with its batches, and one process that has them all."""
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), step).backward()
        optimizer.step()
        step_alone(alone, single, step)


def assert_same(model, alone, tolerance=1e-5):
    for (name, one), other in zip(model.named_parameters(), alone.parameters()):
        assert torch.allclose(one, other, rtol=tolerance, atol=tolerance), name


def assert_same_on_all_ranks(model):
    for name, one in model.state_dict().items():
        first = hvd.broadcast(one.detach(), 0)
        assert torch.equal(first, one), name


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_it_trains_as_one_process_would(make):
    model, optimizer, alone, single = pair(make)
    train_both(model, optimizer, alone, single)
    assert_same(model, alone)
    assert_same_on_all_ranks(model)


@pytest.mark.ranks(2)
def test_its_gradients_lie_in_shared_memory_after_the_first_step():
    model, optimizer, _, _ = pair()
    places = []
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), step).backward()
        optimizer.step()
        places.append([one.grad.data_ptr() for one in model.parameters() if one.requires_grad])
    assert places[1] == places[2]
    for one in model.parameters():
        assert one.grad is None or one.grad.stride() == one.stride()


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad_either_way(set_to_none):
    model, optimizer, alone, single = pair()
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=set_to_none)
        loss_of(model, hvd.rank(), step).backward()
        optimizer.step()
        step_alone(alone, single, step)
    assert_same(model, alone)


def test_it_is_still_of_its_class_and_schedulers_work():
    model = Net()
    plain = torch.optim.SGD(model.parameters(), lr=1.0)
    early = torch.optim.lr_scheduler.StepLR(plain, 1, gamma=0.5)
    optimizer = hvd.DistributedOptimizer(plain)
    late = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1)
    assert isinstance(optimizer, torch.optim.SGD) and type(optimizer).__name__ == "SGD"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss_of(model, hvd.rank(), 0).backward()
        optimizer.step()
        early.step()
        late.step()
    assert abs(optimizer.param_groups[0]["lr"] - 0.05) < 1e-9
    with pytest.raises(ValueError, match="already"):
        hvd.DistributedOptimizer(optimizer)
    assert_same_on_all_ranks(model)


@pytest.mark.parametrize("passes", [2, 3])
def test_gradients_are_summed_over_backward_passes(passes):
    model, optimizer, alone, single = pair(backward_passes_per_step=passes)
    assert optimizer.backward_passes_per_step == passes
    for step in range(STEPS):
        optimizer.zero_grad()
        for one in range(passes):
            loss_of(model, hvd.rank(), step * passes + one).backward()
        optimizer.step()
        step_alone(alone, single, step, passes=passes)
    assert_same(model, alone)
    optimizer.set_backward_passes_per_step(1)
    optimizer.zero_grad()
    loss_of(model, hvd.rank(), 99).backward()
    optimizer.step()
    step_alone(alone, single, 99)
    assert_same(model, alone)


@pytest.mark.ranks(2)
def test_one_backward_pass_too_many_is_an_error():
    model, optimizer, _, _ = pair()
    loss_of(model, hvd.rank(), 0).backward()
    with pytest.raises(AssertionError, match="backward_passes_per_step"):
        loss_of(model, hvd.rank(), 1).backward()
    optimizer.zero_grad()
    loss_of(model, hvd.rank(), 1).backward()
    optimizer.step()


@pytest.mark.parametrize("factor", [2.0, 8.0])
def test_predivision(factor):
    model, optimizer, alone, single = pair(gradient_predivide_factor=factor)
    train_both(model, optimizer, alone, single)
    assert_same(model, alone)
    with pytest.raises(ValueError, match="average"):
        pair(gradient_predivide_factor=2.0, op=hvd.Sum)


class Halves:
    """A compressor of a user's."""

    @staticmethod
    def compress(tensor):
        return tensor.to(torch.float16), tensor.dtype

    @staticmethod
    def decompress(tensor, dtype):
        return tensor.to(dtype)


@pytest.mark.parametrize("compression", [hvd.Compression.fp16, hvd.Compression.bf16, Halves], ids=["fp16", "bf16", "own"])
def test_compression(compression):
    model, optimizer, alone, single = pair(compression=compression)
    train_both(model, optimizer, alone, single)
    assert_same(model, alone, 5e-2)
    assert_same_on_all_ranks(model)


@pytest.mark.parametrize("groups", ["number", "lists", "old"])
def test_groups(groups):
    torch.manual_seed(7)
    model = Net()
    alone = copy.deepcopy(model)
    lists = [list(model.first.parameters()), list(model.last.parameters()) + list(model.frozen.parameters())]
    options = {"number": {"groups": 2}, "lists": {"groups": lists}, "old": {"num_groups": 3}}[groups]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        optimizer = hvd.DistributedOptimizer(OPTIMIZERS["sgd"](model.parameters()), model.named_parameters(), **options)
    single = OPTIMIZERS["sgd"](alone.parameters())
    train_both(model, optimizer, alone, single)
    assert_same(model, alone)


def test_malformed_options_are_refused():
    model = Net()
    make = lambda **options: hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), **options)  # noqa: E731
    named = list(model.named_parameters())
    for options, words in (({"named_parameters": named + named[:1]}, "unique"),
                           ({"named_parameters": named[1:]}, "name all of them"),
                           ({"named_parameters": list(model.parameters())}, "sequence of"),
                           ({"groups": [[torch.ones(1)]]}, "does not have"),
                           ({"groups": [[named[0][1]], [named[0][1]]]}, "twice"),
                           ({"groups": 0}, "from 1 on"),
                           ({"unused": "what"}, "keep_none"),
                           ({"backward_passes_per_step": 0}, "from 1 on")):
        with pytest.raises(ValueError, match=words):
            make(**options)


class Branches(torch.nn.Module):
    """Which of its layers is used depends on the caller."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x, which):
        for number in which:
            x = self.layers[number](x)
        return x.square().mean()


@pytest.mark.parametrize("unused", ["zeros", "keep_none"])
def test_a_rank_may_skip_layers(unused):
    torch.manual_seed(3)
    model = Branches()
    alone = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), model.named_parameters(),
                                         unused=unused)
    single = torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9)
    for step in range(8):
        used = [[0, 1] if rank == 0 or step % 2 else [0] for rank in range(hvd.size())]
        optimizer.zero_grad()
        model(torch.full((2, 4), 1.0 + hvd.rank()), used[hvd.rank()]).backward()
        optimizer.step()
        single.zero_grad()
        (sum(alone(torch.full((2, 4), 1.0 + rank), used[rank]) for rank in range(hvd.size())) / hvd.size()).backward()
        single.step()
        if hvd.size() > 1 or unused == "keep_none":
            assert (model.layers[2].weight.grad is None) == (unused == "keep_none")
    assert_same(model, alone)


def test_layers_may_come_in_another_order_on_each_rank():
    model = Branches()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    for step in range(6):
        order = [(i + hvd.rank() + step) % 3 for i in range(3)]
        optimizer.zero_grad()
        model(torch.ones(2, 4), order).backward()
        optimizer.step()
    assert_same_on_all_ranks(model)


def test_parameters_that_thaw_and_groups_that_are_added():
    torch.manual_seed(5)
    model = Net()
    more = torch.nn.Linear(3, 3)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for step in range(4):
        if step == 2:
            model.frozen.requires_grad_(True)
            optimizer.add_param_group({"params": more.parameters()})
        optimizer.zero_grad()
        x, y = batch(hvd.rank(), step)
        torch.nn.functional.mse_loss(more(model(x)), y).backward()
        if step >= 2:
            optimizer.synchronize()
            for one in [*model.frozen.parameters(), *more.parameters()]:
                assert torch.equal(hvd.broadcast(one.grad.clone(), 0), one.grad)
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            optimizer.step()
    assert_same_on_all_ranks(model)


def test_gradients_are_clipped_after_synchronize():
    model, optimizer, alone, single = pair()
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), step).backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        with optimizer.skip_synchronize():
            optimizer.step()
        single.zero_grad()
        (sum(loss_of(alone, rank, step) for rank in range(hvd.size())) / hvd.size()).backward()
        torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
        single.step()
    assert_same(model, alone)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("before", [0, 2], ids=["first step", "later"])
def test_clipping_without_synchronize_is_told(before):
    model, optimizer, _, _ = pair()
    for step in range(before):
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), step).backward()
        optimizer.step()
    optimizer.zero_grad()
    loss_of(model, hvd.rank(), 50).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.001)
    with pytest.warns(UserWarning, match=r"call optimizer.synchronize\(\) first") as caught:
        optimizer.step()
    assert caught[0].filename == __file__


@pytest.mark.ranks(2)
def test_a_step_after_synchronize_is_told_of_skip_synchronize():
    model, optimizer, _, _ = pair()
    loss_of(model, hvd.rank(), 0).backward()
    optimizer.synchronize()
    with pytest.warns(UserWarning, match=r"^optimizer\.step\(\) called without optimizer\.skip_synchronize\(\) context after "
                                         r"optimizer\.synchronize\(\)\. .*no second exchange"):
        optimizer.step()
    assert_same_on_all_ranks(model)


def test_closures_take_the_same_steps_on_all_ranks():
    torch.manual_seed(2)
    model = torch.nn.Linear(4, 1)
    optimizer = hvd.DistributedOptimizer(torch.optim.LBFGS(model.parameters(), max_iter=5, line_search_fn="strong_wolfe"))
    x, y = torch.randn(8, 4), torch.randn(8, 1) + hvd.rank()

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(3)]
    assert losses[-1] < losses[0]
    assert_same_on_all_ranks(model)


def test_gradients_with_a_graph():
    model, optimizer, alone, single = pair()
    for step in range(4):
        optimizer.zero_grad()
        loss = loss_of(model, hvd.rank(), step)
        loss.backward(create_graph=True)
        optimizer.step()
        step_alone(alone, single, step)
    assert_same(model, alone)


@pytest.mark.parametrize("as_dense", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.SparseAdam])
def test_sparse_gradients(kind, as_dense):
    torch.manual_seed(9)
    embedding = torch.nn.Embedding(10, 4, sparse=True)
    alone = copy.deepcopy(embedding)
    optimizer = hvd.DistributedOptimizer(kind(embedding.parameters(), lr=0.1), sparse_as_dense=as_dense)
    single = kind(alone.parameters(), lr=0.1)
    for step in range(4):
        words = [torch.tensor([rank % 10, step, step]) for rank in range(hvd.size())]
        optimizer.zero_grad()
        if step != 3 or hvd.rank() == 0:  # at last only one rank has a gradient
            embedding(words[hvd.rank()]).sum().backward()
        optimizer.step()
        assert embedding.weight.grad.is_sparse
        single.zero_grad()
        sum(alone(words[rank]).sum() for rank in range(hvd.size()) if step != 3 or rank == 0).div(hvd.size()).backward()
        single.step()
    assert_same(embedding, alone)


def test_several_optimizers():
    torch.manual_seed(4)
    one, two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    first = hvd.DistributedOptimizer(torch.optim.SGD(one.parameters(), lr=0.1))
    second = hvd.DistributedOptimizer(torch.optim.Adam(two.parameters(), lr=0.1))
    for step in range(4):
        first.zero_grad()
        second.zero_grad()
        two(one(torch.full((2, 4), float(hvd.rank() + step)))).square().mean().backward()
        second.step()
        first.step()
    assert_same_on_all_ranks(one)
    assert_same_on_all_ranks(two)


@pytest.mark.ranks(3)
def test_within_a_process_set():
    pairs = hvd.add_process_set([0, 1])
    if pairs.included():
        model, optimizer, alone, single = pair(process_set=pairs)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, hvd.rank(), step).backward()
            optimizer.step()
            step_alone(alone, single, step, ranks=[0, 1])
        assert_same(model, alone)
    hvd.remove_process_set(pairs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, pytest.param(torch.float16, marks=needs.half_matmul)],
                         ids=str)
def test_other_types(dtype):
    torch.manual_seed(6)
    model = torch.nn.Linear(8, 8).to(dtype)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.125))
    for step in range(4):
        optimizer.zero_grad()
        model(torch.full((2, 8), 0.25 * (hvd.rank() + 1), dtype=dtype)).mean().backward()
        optimizer.step()
    assert_same_on_all_ranks(model)


def test_a_rank_that_is_not_in_the_set_goes_its_own_way():
    first = hvd.add_process_set([0]) if hvd.size() > 1 else hvd.global_process_set
    parameter = torch.nn.Parameter(torch.zeros(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), process_set=first)
    for _ in range(3):
        optimizer.zero_grad()
        (parameter * (hvd.rank() + 1.0)).sum().backward()
        optimizer.step()
    assert torch.equal(parameter.detach(), torch.full((3,), -3.0 * (hvd.rank() + 1)))
    hvd.remove_process_set(first)


@pytest.mark.ranks(2)
def test_a_job_that_is_joined_anew_goes_on_with_the_optimizer():
    model, optimizer, _, _ = pair()
    for step in range(6):
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), step).backward()
        if step == 3:  # a failure comes in between, and the step is done again
            optimizer.load_state_dict(optimizer.state_dict())  # forgets what is on its way
            hvd.barrier()
            hvd.shutdown()
            hvd.init()
            optimizer.zero_grad()
            loss_of(model, hvd.rank(), step).backward()
        optimizer.step()
    assert_same_on_all_ranks(model)


def test_a_gradient_that_was_put_there_by_hand():
    parameter = torch.nn.Parameter(torch.zeros(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0))
    for step in range(3):
        parameter.grad = torch.full((3,), float(hvd.rank() + step))
        optimizer.step()
        expected = sum(rank + step for rank in range(hvd.size())) / hvd.size() if hvd.size() > 1 else float(step)
        assert torch.allclose(parameter.grad, torch.full((3,), float(expected)))


def test_data_that_is_exchanged_for_other_data():
    parameter = torch.nn.Parameter(torch.zeros(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0))
    for extent in (3, 3, 5, 5, 3):
        optimizer.zero_grad()
        parameter.data = torch.ones(extent)
        (parameter * float(hvd.rank())).sum().backward()
        optimizer.step()
        mean = sum(range(hvd.size())) / hvd.size()
        assert torch.allclose(parameter.data, torch.full((extent,), 1.0 - mean))


@needs.cpu_scaler
def test_an_infinity_on_one_rank_skips_the_step_on_all():
    torch.manual_seed(8)
    model = torch.nn.Linear(4, 4)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for step in range(5):
        before = [one.detach().clone() for one in model.parameters()]
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).mean()
        if step == 2 and hvd.rank() == hvd.size() - 1:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        is_same = all(torch.equal(one, old) for one, old in zip(model.parameters(), before))
        assert is_same == (step == 2)
    assert scaler.get_scale() == 4.0
    assert_same_on_all_ranks(model)


@needs.cpu_scaler
@pytest.mark.parametrize("is_fused", [False, pytest.param(True, marks=needs.fused_adam)])
def test_the_scaler_and_clipping_together(is_fused):
    model = torch.nn.Linear(4, 4)
    hvd.broadcast_parameters(model.state_dict(), 0)
    alone = copy.deepcopy(model)
    make = lambda p: torch.optim.Adam(p, lr=0.1, fused=is_fused)  # noqa: E731
    optimizer, single = hvd.DistributedOptimizer(make(model.parameters())), make(alone.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for step in range(3):
        optimizer.zero_grad()
        scaler.scale(model(torch.full((2, 4), hvd.rank() + 1.0)).square().mean()).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        single.zero_grad()
        (sum(alone(torch.full((2, 4), rank + 1.0)).square().mean() for rank in range(hvd.size())) / hvd.size()).backward()
        torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.5)
        single.step()
    assert_same(model, alone)


@pytest.mark.parametrize("compression", [hvd.Compression.none, hvd.Compression.fp16], ids=["none", "fp16"])
def test_adasum_combines_steps(compression):
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 2)
    start = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(),
                                         compression=compression, op=hvd.Adasum)
    optimizer.zero_grad()
    model(torch.ones(3, 4)).square().mean().backward()  # the same everywhere: their combination is the step itself
    optimizer.step()
    expected = torch.optim.SGD(start.parameters(), lr=0.1)
    start(torch.ones(3, 4)).square().mean().backward()
    expected.step()
    assert_same(model, start, 1e-2 if compression is not hvd.Compression.none else 1e-5)
    if hvd.size() > 1:
        with pytest.raises(AssertionError, match="nothing to be skipped"):
            with optimizer.skip_synchronize():
                pass


def test_torch_compile_is_right():
    torch.manual_seed(11)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    alone = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    single = torch.optim.SGD(alone.parameters(), lr=0.1)
    compiled = torch.compile(model, backend="aot_eager")
    for step in range(4):
        optimizer.zero_grad()
        compiled(torch.full((2, 4), hvd.rank() + 1.0)).mean().backward()
        optimizer.step()
        single.zero_grad()
        (sum(alone(torch.full((2, 4), rank + 1.0)).mean() for rank in range(hvd.size())) / hvd.size()).backward()
        single.step()
    assert_same(model, alone)
