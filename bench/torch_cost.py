"""What a call and an import of hvrun.torch cost: one rank, started by hvrun. Rank 0 prints a line of JSON.

SPDX-License-Identifier: Apache-2.0
"""

import json
import statistics
import sys
import threading
import time

import torch

begun = time.perf_counter()
import hvrun.torch as hvd  # noqa: E402

IMPORT_MS = (time.perf_counter() - begun) * 1e3
CALLS, BATCHES = 200, 25


def call_us():
    """The median of one allreduce_async_, of tensors that are in flight together."""
    tensors = [torch.ones(16) for _ in range(CALLS)]
    names = [f"tensor {number}" for number in range(CALLS)]
    taken = []
    for _ in range(BATCHES):
        hvd.barrier()
        handles = []
        for tensor, name in zip(tensors, names):
            begun = time.perf_counter()
            handles.append(hvd.allreduce_async_(tensor, name=name, op=hvd.Sum))
            taken.append(time.perf_counter() - begun)
        for handle in handles:
            hvd.synchronize(handle)
    return statistics.median(taken) * 1e6


def beside_busy_thread():
    """The same while another thread of Python computes."""
    is_over = threading.Event()

    def compute():
        while not is_over.is_set():
            sum(range(1000))

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        return call_us()
    finally:
        is_over.set()
        thread.join()


torch.set_num_threads(1)
hvd.init()
call_us()
result = {"import_ms": IMPORT_MS, "call_us": call_us(), "busy_us": beside_busy_thread()}
if hvd.rank() == 0:
    print(json.dumps(result))
    sys.stdout.flush()
hvd.shutdown()
