# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation with the statistics of the whole batch, that of all ranks."""

import torch
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from hvrun.process_sets import global_process_set
from hvrun.torch import operations as ops
from hvrun.torch.handles import synchronize
from hvrun.torch.operations import Sum


class SyncBatchNorm(_BatchNorm):
    """torch.nn.BatchNorm1d to 3d, whose mean and variance in training are those of all ranks' batches, which may differ in
    size: forward and backward are as if one process had the whole batch. In evaluation it is the ordinary one.

    The gradients of weight and bias are this rank's part; DistributedOptimizer averages them like all others. All ranks of the
    set must come here in the same order. On CPUs and GPUs.
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None,
                 dtype=None, process_set=global_process_set):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_set = process_set

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"SyncBatchNorm takes tensors of two dimensions or more, (N, C, ...), not of {input.dim()}")

    def forward(self, input):
        self._check_input_dim(input)
        uses_batch = self.training or self.running_mean is None
        if not uses_batch or self.process_set.size() == 1:
            return self._local(input, uses_batch)
        factor = self._momentum_now()
        out, mean, variance, count = _Normalize.apply(input, self.weight, self.bias, self.eps, self.process_set)
        if self.training and self.track_running_stats:
            with torch.no_grad():
                unbiased = variance * (count / torch.clamp(count - 1, min=1))
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), factor)
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), factor)
        return out

    def _momentum_now(self):
        """Of the newest batch in the running statistics; momentum=None averages over all of them."""
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        if self.momentum is not None:
            return self.momentum
        return 1.0 / max(float(self.num_batches_tracked), 1.0) if self.num_batches_tracked is not None else 0.0

    def _local(self, input, uses_batch):
        factor = self._momentum_now() if self.training else 0.0
        tracks = not self.training or self.track_running_stats
        return torch.nn.functional.batch_norm(input, self.running_mean if tracks else None,
                                              self.running_var if tracks else None, self.weight, self.bias, uses_batch, factor,
                                              self.eps)


def _per_channel(vector, like):
    return vector.view([1, -1] + [1] * (like.dim() - 2))


def _sum_over_ranks(tensor, name, process_set):
    return synchronize(ops.allreduce_async_(tensor, None, ops.name_for("sync_batch_norm" + name, None, process_set), Sum,
                                            process_set=process_set))


class _Normalize(torch.autograd.Function):
    """Sums are made in float64, so that the difference of two large ones is still a variance."""

    @staticmethod
    def forward(ctx, input, weight, bias, eps, process_set):
        others = [0, *range(2, input.dim())]
        wide = input.detach().double()
        rows = torch.full([1], float(input.numel() // input.shape[1]), dtype=torch.float64, device=input.device)
        sums = torch.cat([rows, wide.sum(others), wide.square().sum(others)])
        sums = _sum_over_ranks(sums, ".forward", process_set)
        count, total, squares = sums[0], *sums[1:].view(2, -1)
        mean = total / torch.clamp(count, min=1)
        variance = torch.clamp(squares / torch.clamp(count, min=1) - mean.square(), min=0)
        inverse = (variance + eps).rsqrt()
        ctx.save_for_backward(input, weight, mean, inverse, count)
        ctx.process_set, ctx.has_bias = process_set, bias is not None
        ctx.mark_non_differentiable(mean, variance, count)
        out = (wide - _per_channel(mean, input)) * _per_channel(inverse, input)
        if weight is not None:
            out = out * _per_channel(weight.double(), input) + _per_channel(bias.double(), input)
        return out.to(input.dtype), mean, variance, count

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient, *unused):
        del unused
        input, weight, mean, inverse, count = ctx.saved_tensors
        others = [0, *range(2, input.dim())]
        wide = gradient.double()
        normal = (input.double() - _per_channel(mean, input)) * _per_channel(inverse, input)
        own_bias, own_weight = wide.sum(others), (wide * normal).sum(others)
        both = _sum_over_ranks(torch.cat([own_bias, own_weight]), ".backward", ctx.process_set)
        all_bias, all_weight = both.view(2, -1)
        scale = inverse if weight is None else inverse * weight.double()
        back = (wide - _per_channel(all_bias / count, input) - normal * _per_channel(all_weight / count, input))
        back = (back * _per_channel(scale, input)).to(input.dtype)
        has_weight = weight is not None
        return (back, own_weight.to(weight.dtype) if has_weight else None, own_bias.to(weight.dtype) if ctx.has_bias else None,
                None, None)
