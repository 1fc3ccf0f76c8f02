# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.compression, by hvrun.torch.compression."""

from hvrun.torch.compression import BF16Compressor, Compression, Compressor, FP16Compressor, NoneCompressor  # noqa: F401
