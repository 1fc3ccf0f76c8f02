# SPDX-License-Identifier: Apache-2.0
"""broadcast_optimizer_state, of every optimizer that this PyTorch has: all ranks go on as the root does."""

import inspect

import needs
import pytest
import torch

import hvrun.torch as hvd

KINDS = [one for one in vars(torch.optim).values()
         if inspect.isclass(one) and issubclass(one, torch.optim.Optimizer) and one is not torch.optim.Optimizer]
VARIANTS = [  # beside each with what it is by itself
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}), (torch.optim.SGD, {"lr": torch.tensor(0.1), "foreach": False}),
    (torch.optim.Adam, {"amsgrad": True}), (torch.optim.Adam, {"lr": torch.tensor(0.01), "foreach": False}),
    (torch.optim.AdamW, {"foreach": True, "maximize": True}), (torch.optim.AdamW, {"fused": True}),
    (torch.optim.RMSprop, {"momentum": 0.9, "centered": True}), (torch.optim.LBFGS, {"max_iter": 2}),
    (torch.optim.LBFGS, {"max_iter": 4, "history_size": 3, "line_search_fn": "strong_wolfe"})]


def cases():
    for kind, options in [(kind, {}) for kind in KINDS] + VARIANTS:
        if kind is torch.optim.SGD and not options:
            options = {"lr": 0.1}  # which older ones want
        words = " ".join(key if value is True else f"{key}={value}" for key, value in options.items())
        yield pytest.param(kind, options, id=f"{kind.__name__} {words}".strip(), marks=needs.fused_adam if "fused" in options else ())


class Trained:
    """A model and its optimizer, which begin differently on each rank."""

    def __init__(self, kind, options, dtype=torch.float32):
        torch.manual_seed(hvd.rank())
        self.is_sparse = kind is torch.optim.SparseAdam
        layer = torch.nn.Embedding(4, 3, sparse=True) if self.is_sparse else torch.nn.Linear(4, 3, bias=kind.__name__ != "Muon")
        self.model = layer.to(dtype)
        options = {key: value.clone() if isinstance(value, torch.Tensor) else value for key, value in options.items()}
        self.optimizer = kind(self.model.parameters(), **options)

    def _loss(self, batch):
        self.optimizer.zero_grad()
        some = torch.tensor([0, 2]) if self.is_sparse else torch.full((2, 4), batch + 1.0, dtype=self.model.weight.dtype)
        loss = (self.model(some) - 1).square().mean()
        loss.backward()
        return loss

    def step(self, count, first=0):
        for batch in range(first, first + count):
            self.optimizer.step(lambda: self._loss(batch))

    def weights(self):
        return [one.detach().tolist() for one in self.model.parameters()]


def flattened(value, path=""):
    """[(where, what)] of a state_dict, tensors as their type and lists."""
    if isinstance(value, torch.Tensor):
        return [(path, str(value.dtype), value.tolist())]
    if isinstance(value, dict):
        return [one for key, inner in value.items() for one in flattened(inner, f"{path}/{key}")]
    if isinstance(value, (list, tuple)):
        return [one for number, inner in enumerate(value) for one in flattened(inner, f"{path}/{number} of {type(value).__name__}")]
    return [(path, type(value).__name__, value)]


def assert_alike(value):
    assert all(one == value for one in hvd.allgather_object(value))


def set_rate(optimizer, rate):
    before = optimizer.param_groups[0]["lr"]
    optimizer.param_groups[0]["lr"] = torch.full_like(before, rate) if isinstance(before, torch.Tensor) else rate


@pytest.mark.parametrize("who", ["root only", "all", "none", "others"])
@pytest.mark.parametrize("kind, options", list(cases()))
def test_all_ranks_go_on_as_the_root(kind, options, who):
    root = hvd.size() - 1
    is_root = hvd.rank() == root
    trained = Trained(kind, options)
    trained.step({"root only": 3 * is_root, "all": 1 + hvd.rank(), "none": 0, "others": 2 * (not is_root)}[who])
    set_rate(trained.optimizer, 0.5 if is_root else 0.25)
    before = flattened(trained.optimizer.state_dict())
    hvd.broadcast_parameters(trained.model.state_dict(), root_rank=root)
    hvd.broadcast_optimizer_state(trained.optimizer, root_rank=root)
    state = flattened(trained.optimizer.state_dict())
    assert not is_root or state == before
    assert_alike(state)
    assert float(trained.optimizer.param_groups[0]["lr"]) == 0.5
    start = trained.weights()
    trained.step(2, first=5)
    assert trained.weights() != start
    assert_alike([trained.weights(), flattened(trained.optimizer.state_dict())])


@pytest.mark.ranks(2)
@pytest.mark.parametrize("has_root_tensor", [True, False], ids=["of the root", "of the others"])
def test_a_rate_that_is_a_tensor_on_some_ranks_is_the_roots(has_root_tensor):
    rate = torch.tensor(0.5) if has_root_tensor == (hvd.rank() == 0) else 0.25
    trained = Trained(torch.optim.Adam, {"lr": rate, "foreach": False})
    hvd.broadcast_optimizer_state(trained.optimizer, root_rank=0)
    made = trained.optimizer.param_groups[0]["lr"]
    assert isinstance(made, torch.Tensor) == has_root_tensor and float(made) == (0.5 if has_root_tensor else 0.25)
    trained.step(1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_states_keep_the_types_of_their_parameters(dtype):
    trained = Trained(torch.optim.Adam, {"lr": 0.1}, dtype)
    trained.step(2 * (hvd.rank() == 0))
    hvd.broadcast_parameters(trained.model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(trained.optimizer, root_rank=0)
    for state in trained.optimizer.state.values():
        assert state["exp_avg"].dtype is dtype and state["step"].dtype is torch.float32 and float(state["step"]) == 2
    assert_alike(flattened(trained.optimizer.state_dict()))


def test_options_of_every_group_are_the_roots_and_a_scheduler_goes_on_with_them():
    one, two = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    mine = hvd.rank() + 1
    optimizer = torch.optim.AdamW([{"params": one.parameters(), "lr": 0.1 * mine, "betas": (0.9 / mine, 0.99)},
                                   {"params": two.parameters(), "weight_decay": 0.5 * mine, "name": f"of rank {hvd.rank()}"}])
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    first, second = optimizer.param_groups
    assert (first["lr"], first["initial_lr"], first["betas"]) == (0.1, 0.1, (0.9, 0.99))
    assert (second["weight_decay"], second["name"]) == (0.5, "of rank 0")
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.05


@pytest.mark.ranks(2)
def test_within_a_process_set_the_others_keep_theirs():
    some = hvd.add_process_set(list(range(1, hvd.size())))
    trained = Trained(torch.optim.Adam, {"lr": 0.1 * (hvd.rank() + 1)})
    trained.step(hvd.rank())
    if some.included():
        hvd.broadcast_optimizer_state(trained.optimizer, root_rank=hvd.size() - 1, process_set=some)
    source = hvd.size() - 1 if some.included() else hvd.rank()
    assert trained.optimizer.param_groups[0]["lr"] == 0.1 * (source + 1)
    assert [float(state["step"]) for state in trained.optimizer.state.values()] == [source] * (2 if source else 0)
    hvd.remove_process_set(some)
