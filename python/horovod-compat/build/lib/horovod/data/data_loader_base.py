# SPDX-License-Identifier: Apache-2.0
"""horovod.data.data_loader_base, by hvrun.data."""

from hvrun.data import AsyncDataLoaderMixin, BaseDataLoader  # noqa: F401
