# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.elastic, by hvrun.torch.elastic."""

from hvrun.torch import init, shutdown  # noqa: F401
from hvrun.torch.elastic import ElasticSampler, ObjectState, State, TorchState, run, run_fn, sampler, state  # noqa: F401
