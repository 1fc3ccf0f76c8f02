# SPDX-License-Identifier: Apache-2.0
"""Ranks that compute together until rank 1 meets its end: torch_endings.py WAY. "ctrl-c": until hvrun ends them."""

import os
import signal
import sys
import threading

import torch

import hvrun.torch as hvd


def fail():
    raise RuntimeError("something is wrong")


def fail_in_thread():
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


WAYS = {"raise": fail, "sys.exit": lambda: sys.exit(3), "os._exit": lambda: os._exit(7), "thread": fail_in_thread,
        "kill": lambda: os.kill(os.getpid(), signal.SIGKILL), "interrupt": lambda: signal.raise_signal(signal.SIGINT)}

hvd.init()
way, step = sys.argv[1], 0
while step < 4 or way == "ctrl-c":
    if step == 2 and hvd.rank() == 1:
        if way == "early":
            break
        WAYS.get(way, lambda: None)()
    hvd.allreduce(torch.ones(1))
    if step == 3:
        print("has begun", flush=True)
    step += 1
