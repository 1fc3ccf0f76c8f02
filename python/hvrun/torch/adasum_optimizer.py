# SPDX-License-Identifier: Apache-2.0
"""Adasum's optimizer: every rank takes its own step, and the steps, not the gradients, are combined.

The combination of two steps depends on how much they agree (Maleki et al., MLSys 2021), so each parameter's is made by itself.
"""

import contextlib

import torch

from hvrun.step_times import times
from hvrun.torch import operations as ops
from hvrun.torch.agreement import Agreement, needs_of
from hvrun.torch.plain_copies import PlainCopies


class AdasumSteps(PlainCopies):
    """What a wrapped optimizer's class has before its own."""

    @staticmethod
    def wrap(optimizer, label, names, compression, passes, process_set):
        from hvrun.torch.optimizer import become

        return become(optimizer, AdasumSteps, _label=label, _parameter_names=dict(names), _compression=compression, _passes=passes,
                      _process_set=process_set, _agreement=Agreement(label, process_set),
                      _step_supports_amp_scaling=False)

    @property
    def backward_passes_per_step(self):
        return self._passes

    @backward_passes_per_step.setter
    def backward_passes_per_step(self, passes):
        self.set_backward_passes_per_step(passes)

    def set_backward_passes_per_step(self, passes):
        """Steps are taken when the caller calls step(): this is the number of backward passes that should lie between."""
        self._passes = passes

    def synchronize(self):
        """There is nothing to wait for: what ranks exchange is made by step()."""

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Steps cannot be taken apart from their combination."""
        raise AssertionError("an optimizer with op=hvd.Adasum combines steps, not gradients: there is nothing to be skipped")
        yield

    def share_found_infinities(self, found):
        """GradScaler has looked for infinities: what one rank has found skips the step on all."""
        for number, one in enumerate(found):
            name = f"{self._label}.infinities.{number}"
            one.copy_(ops.allreduce_async(one, None, name, ops.Max, process_set=self._process_set).wait())

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        if hasattr(self, "_parameter_names"):
            group = len(self.param_groups) - 1
            self._parameter_names.update((one, f"group{group}.{i}") for i, one in enumerate(self.param_groups[-1]["params"]))

    def step(self, closure=None):
        """This rank's own step, then the combination of all ranks' steps. A closure is called on each rank by itself."""
        trained = [one for one in self._parameter_names if one.requires_grad]
        self._compare_needed()
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        starts = [parameter.detach().clone() for parameter in trained]
        loss = super().step(closure)
        steps = [parameter.detach() - start for parameter, start in zip(trained, starts)]
        handles = [ops.compressed_allreduce_async_(step, f"{self._label}.{self._parameter_names[parameter]}", ops.Adasum,
                                                   self._compression, process_set=self._process_set)
                   for parameter, step in zip(trained, steps)]
        for parameter, start, handle in zip(trained, starts, handles):
            parameter.detach().copy_(start.add_(handle.wait()))
        if ops.number_of(self._process_set) == 0:
            times.step_ended(self)
        return loss

    step.hooked = True  # torch.optim wraps the step below this one already

    def _compare_needed(self):
        """Raises, on all ranks, where they do not train the same parameters."""
        needed = needs_of(self._parameter_names)
        if not self._agreement.is_made() or self._agreement.begin_check(needed)():
            self._agreement.make(needed, list(self._parameter_names.values()))
