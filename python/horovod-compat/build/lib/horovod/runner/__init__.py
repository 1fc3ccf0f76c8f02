# SPDX-License-Identifier: Apache-2.0
"""horovod.runner, by hvrun: run(function, np=2)."""

from hvrun.launch import run  # noqa: F401
