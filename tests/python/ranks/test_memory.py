# SPDX-License-Identifier: Apache-2.0
"""A training's memory does not grow: bytes of the C library's heap, Python's objects, and pages, which hold all the rest."""

import ctypes
import gc
import sys

import torch

import hvrun.torch as hvd

STEPS, LOOKS = 2000, (600, 1300, 1999)
# That a step may take for good, by kind: a leak of one object or of 64 bytes is more. Ranks were seen to take 5 bytes of pages,
# 3 of the heap and a quarter of an object.
LEAST_LEAK = {"bytes of pages": 512, "bytes of the heap": 64, "objects": 0.9}


class HeapInfo(ctypes.Structure):
    """What mallinfo2() returns, of all arenas."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                                                     "uordblks", "fordblks", "keepcost")]


def taken():
    """By kind, when nothing is on its way."""
    gc.collect()
    hvd.barrier()
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = HeapInfo
    heap = libc.mallinfo2()
    with open("/proc/self/statm", encoding="ascii") as numbers:
        pages = int(numbers.read().split()[1]) * 4096
    return {"bytes of pages": pages, "bytes of the heap": heap.uordblks + heap.hblkhd, "objects": sys.getallocatedblocks()}


def test_memory_does_not_grow():
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1e-6), model.named_parameters())
    seen = []
    for step in range(STEPS):
        optimizer.zero_grad()
        model(torch.ones(4, 64)).sum().backward()
        optimizer.step()
        hvd.allreduce_async(torch.ones(1000), name=f"dropped {step % 4}")
        hvd.allgather(torch.ones(1000), name="gathered")
        if step in LOOKS:
            seen.append(taken())
    # An allocator may keep more once, a leak comes again.
    each = LOOKS[1] - LOOKS[0]
    grown = {kind: min(late[kind] - early[kind] for early, late in zip(seen, seen[1:])) / each for kind in LEAST_LEAK}
    assert {kind: each for kind, each in grown.items() if each >= LEAST_LEAK[kind]} == {}
