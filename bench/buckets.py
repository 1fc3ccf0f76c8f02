"""Which gradients DistributedDataParallel exchanges together, without PyTorch. SPDX-License-Identifier: Apache-2.0"""

FIRST_BUCKET, BUCKET = 1 << 20, 25 << 20  # its defaults


def buckets_of(sizes):
    """Indices of gradients, by their bytes in the order of the layers: from the last on, a full bucket is closed."""
    buckets, current, held, cap = [], [], 0, FIRST_BUCKET
    for index in reversed(range(len(sizes))):
        current.append(index)
        held += sizes[index]
        if held >= cap:
            buckets.append(current)
            current, held, cap = [], 0, BUCKET
    return buckets + ([current] if current else [])
