# SPDX-License-Identifier: Apache-2.0
"""torch.cuda.amp.GradScaler, the only one that PyTorch has before 2.3, without a GPU: its order of events is PyTorch's own,
what it computes on a GPU is computed here."""

import pytest
import torch

import hvrun.torch as hvd


class ScalerOnCpu(torch.cuda.amp.GradScaler):
    def scale(self, loss):
        if self._scale is None:
            self._lazy_init_scale_growth_tracker(loss.device)
        return loss * self._scale

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        for group in optimizer.param_groups:
            for one in group["params"]:
                found_inf += float(not torch.isfinite(one.grad).all())
                one.grad.mul_(inv_scale)
        return {found_inf.device: found_inf}

    def update(self):
        found = [one.item() for state in self._per_optimizer_states.values() for one in state["found_inf_per_device"].values()]
        self._scale *= 0.5 if any(found) else 1.0
        self._per_optimizer_states.clear()


@pytest.fixture
def scaler(monkeypatch):
    for module in (torch.cuda.amp.common, torch.cuda.amp.grad_scaler):  # each asks by its own name for it
        monkeypatch.setattr(module, "amp_definitely_not_available", lambda: False, raising=False)
    return ScalerOnCpu(init_scale=8.0)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum], ids=["average", "adasum"])
def test_an_infinity_on_one_rank_skips_the_step_on_all(scaler, op):
    model = torch.nn.Linear(4, 4)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), op=op)
    for step in range(4):
        before = model.weight.detach().clone()
        optimizer.zero_grad()
        loss = model(torch.full((2, 4), hvd.rank() + 1.0)).mean()
        scaler.scale(loss * (float("inf") if step == 1 and hvd.rank() == hvd.size() - 1 else 1.0)).backward()
        if step == 2 and op is hvd.Average:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(model.weight, before) == (step == 1)
        assert torch.equal(model.weight.detach(), hvd.broadcast(model.weight.detach().clone(), 0))
    assert scaler.get_scale() == 4.0
