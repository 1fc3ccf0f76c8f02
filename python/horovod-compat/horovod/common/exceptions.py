# SPDX-License-Identifier: Apache-2.0
"""horovod.common.exceptions, by hvrun.exceptions."""

from hvrun.exceptions import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401
from hvrun._horovod_util import HorovodVersionMismatchError, get_version_mismatch_message  # noqa: F401
