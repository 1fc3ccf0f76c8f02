# SPDX-License-Identifier: Apache-2.0
"""horovod.data, by hvrun.data."""

from hvrun.data import AsyncDataLoaderMixin, BaseDataLoader  # noqa: F401
