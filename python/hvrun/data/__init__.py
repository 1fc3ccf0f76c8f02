# SPDX-License-Identifier: Apache-2.0
"""Data for ranks that do not wait for it: shares of a dataset, and reading ahead. The same for every framework."""

from hvrun.data.loaders import AsyncDataLoaderMixin, BaseDataLoader
from hvrun.data.prefetcher import Prefetcher
from hvrun.data.sampler import DistributedSampler

__all__ = ["AsyncDataLoaderMixin", "BaseDataLoader", "DistributedSampler", "Prefetcher"]
