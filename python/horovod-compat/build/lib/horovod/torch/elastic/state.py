# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.elastic.state, by hvrun.torch.elastic.state."""

from hvrun.torch import (  # noqa: F401
    allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters, rank)
from hvrun.torch.elastic.state import (  # noqa: F401
    ElasticSampler, ModelStateHandler, ObjectState, OptimizerStateHandler, SamplerStateHandler, StateHandler, TorchState,
    get_handler_registry, set_handler_registry)
