# SPDX-License-Identifier: Apache-2.0
"""The state of a training with PyTorch: models, optimizers, samplers and plain objects."""

import copy

import torch

from hvrun import basics
from hvrun.elastic import ObjectState
from hvrun.torch.elastic.sampler import ElasticSampler
from hvrun.torch.functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters


class StateHandler:
    """How one value is saved, restored and made equal on all ranks."""

    def __init__(self, value):
        self.value = value

    def save(self):
        raise TypeError(f"{type(self).__name__} has no save()")

    def restore(self):
        raise TypeError(f"{type(self).__name__} has no restore()")

    def sync(self):
        raise TypeError(f"{type(self).__name__} has no sync()")

    def set_value(self, value):
        """Another one in its stead, which counts as saved."""
        self.value = value
        self.save()


class _SnapshotHandler(StateHandler):
    """Of what has state_dict and load_state_dict."""

    def __init__(self, value):
        super().__init__(value)
        self.save()

    def save(self):
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self):
        self.value.load_state_dict(copy.deepcopy(self._saved))


class ModelStateHandler(_SnapshotHandler):
    def sync(self):
        """Also what modules add to their state by get_extra_state()."""
        state = self.value.state_dict(keep_vars=True)  # the very tensors: a sparse one may get another number of elements
        broadcast_parameters([(name, one) for name, one in state.items() if isinstance(one, torch.Tensor)], root_rank=0)
        extra = {name: one for name, one in state.items() if not isinstance(one, torch.Tensor)}
        if extra:
            self.value.load_state_dict(broadcast_object(extra, name="elastic.extra_state"), strict=False)


class OptimizerStateHandler(_SnapshotHandler):
    def sync(self):
        broadcast_optimizer_state(self.value, root_rank=0)


class SamplerStateHandler(_SnapshotHandler):
    def sync(self):
        self.value.load_state_dict(broadcast_object(self.value.state_dict(), name="elastic.sampler"))


class SchedulerStateHandler(_SnapshotHandler):
    def sync(self):
        self.value.load_state_dict(broadcast_object(self.value.state_dict(), name="elastic.scheduler"))


_registry = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
    (torch.optim.lr_scheduler.LRScheduler, SchedulerStateHandler),
]


def get_handler_registry():
    """[(type, handler's class)], the first that fits counts."""
    return _registry


def set_handler_registry(registry):
    global _registry
    _registry = registry


def _handler_of(value):
    return next((handler(value) for kind, handler in _registry if isinstance(value, kind)), None)


class TorchState(ObjectState):
    """model, optimizer and whatever else a training consists of, each an attribute: TorchState(model, optimizer, epoch=0).

    commit() saves all of it, restore() comes back to that, sync() gives all ranks rank 0's. Learning-rate schedulers and
    ElasticSamplers are known; other objects are pickled.
    """

    def __init__(self, model=None, optimizer=None, **kwargs):
        values = {"model": model, "optimizer": optimizer, **kwargs}
        handlers = {name: _handler_of(value) for name, value in values.items()}
        object.__setattr__(self, "_handlers", {name: one for name, one in handlers.items() if one is not None})
        for name, handler in self._handlers.items():
            object.__setattr__(self, name, handler.value)
        plain = {name: value for name, value in values.items() if name not in self._handlers}
        super().__init__(broadcast_object, basics.rank, **plain)

    def save(self):
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self):
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self):
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def __setattr__(self, name, value):
        handler = self._handlers.get(name)
        if handler is not None:
            handler.set_value(value)
        super().__setattr__(name, value)
