# SPDX-License-Identifier: Apache-2.0
"""horovod.common.elastic, by hvrun.elastic."""

from hvrun.elastic import ObjectState, State, run_fn  # noqa: F401
from hvrun.exceptions import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401

_OF_THE_LAUNCHER = ("notification_manager", "WorkerNotificationManager", "HostUpdateResult")


def __getattr__(name):
    if name in _OF_THE_LAUNCHER:
        raise AttributeError(f"horovod.common.elastic.{name} is of Horovod's own elastic launcher; hvrun tells of hosts by "
                             "State.on_hosts_updated(timestamp, what)")
    raise AttributeError(f"module 'horovod.common.elastic' has no attribute {name!r}")
