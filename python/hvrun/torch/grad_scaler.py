# SPDX-License-Identifier: Apache-2.0
"""torch's GradScaler looks for infinities among gradients before it steps: with a DistributedOptimizer it has to see everybody's,
so that an infinity on one rank skips the step on all."""

import functools

import torch


@functools.lru_cache(maxsize=None)
def watch_grad_scaler():
    """Once: unscale_(), which step() calls, waits for the exchange first. It unscales and looks in one pass."""
    scaler = torch.amp.GradScaler if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler
    unscale = scaler.unscale_

    @functools.wraps(unscale)
    def synchronize_and_unscale(self, optimizer):
        if self.is_enabled() and hasattr(optimizer, "_is_scaled"):
            optimizer.synchronize()
            optimizer._is_scaled = True
        return unscale(self, optimizer)

    scaler.unscale_ = synchronize_and_unscale
