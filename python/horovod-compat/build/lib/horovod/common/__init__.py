# SPDX-License-Identifier: Apache-2.0
"""horovod.common, by hvrun."""
