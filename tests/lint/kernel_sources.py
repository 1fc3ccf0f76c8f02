"""Prints a digest of what the GPUs' kernels are made of: their sources without comments and blanks.

SPDX-License-Identifier: Apache-2.0
"""

import hashlib

import includes
import tree

FIRST = "runtime/device/cuda/kernels/move.cu"


def reached(first=FIRST, read=tree.read):
    """{path: text} of it and of all of ours that it includes."""
    found, left = {}, [first]
    while left:
        path = left.pop()
        if path not in found:
            found[path] = read(path)
            left += includes.own_includes(found[path])
    return found


def digest(sources):
    bare = (path + "".join(tree.without_comments(sources[path]).split()) for path in sorted(sources))
    return hashlib.sha256("\n".join(bare).encode()).hexdigest()


if __name__ == "__main__":
    print(digest(reached()))
