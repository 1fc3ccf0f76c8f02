# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.elastic.sampler, by hvrun.torch.elastic.sampler."""

from hvrun.torch import rank, size  # noqa: F401
from hvrun.torch.elastic.sampler import ElasticSampler  # noqa: F401
