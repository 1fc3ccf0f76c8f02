# SPDX-License-Identifier: Apache-2.0
"""Random numbers where the tensors of this run lie: on the host, or with tests/gpu on a GPU."""

import torch


def generator(seed):
    return torch.Generator(torch.empty(0).device).manual_seed(seed)
