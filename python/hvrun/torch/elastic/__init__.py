# SPDX-License-Identifier: Apache-2.0
"""Elastic training with PyTorch: `@hvd.elastic.run` before a function train(state), and a TorchState."""

from hvrun import basics
from hvrun.elastic import ObjectState, State, run_fn
from hvrun.torch.elastic.sampler import ElasticSampler
from hvrun.torch.elastic.state import TorchState
from hvrun.torch.operations import forget_numbers


def run(func):
    """The function, begun anew from state.restore() when an operation fails: train(state, ...)."""
    return run_fn(func, _meet_again)


def _meet_again():
    basics.shutdown()
    forget_numbers()
    basics.init()


__all__ = ["run", "State", "ObjectState", "TorchState", "ElasticSampler", "run_fn"]
