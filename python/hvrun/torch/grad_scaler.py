# SPDX-License-Identifier: Apache-2.0
"""torch's GradScaler looks for infinities among gradients before it steps: with a DistributedOptimizer it has to see everybody's,
so that an infinity on one rank skips the step on all."""

import functools

import torch


@functools.lru_cache(maxsize=None)
def watch_grad_scaler():
    """Once: unscale_(), which step() calls, waits for the exchange first; where ranks exchange steps and not gradients, what
    they have found is exchanged afterwards."""
    scaler = torch.amp.GradScaler if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler
    unscale = scaler.unscale_

    @functools.wraps(unscale)
    def synchronize_and_unscale(self, optimizer):
        before = getattr(optimizer, "synchronize_for_scaler", None)
        if before is not None:
            before()
        made = unscale(self, optimizer)
        after = getattr(optimizer, "share_found_infinities", None)
        if after is not None and self.is_enabled():
            after(self._per_optimizer_states[id(optimizer)]["found_inf_per_device"].values())
        return made

    scaler.unscale_ = synchronize_and_unscale
