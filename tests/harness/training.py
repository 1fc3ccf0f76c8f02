# SPDX-License-Identifier: Apache-2.0
"""Programs of ranks that save their state on a signal, as texts of Python."""

# trainer.py METHOD SIGNAL: its workers are started by that method of multiprocessing, and inherit the handler or have none: either ends
# a worker that gets the signal.
TRAINER = """
import multiprocessing, os, queue, signal, sys

def load(loaded):
    while multiprocessing.parent_process().is_alive():
        try:
            loaded.put(1, timeout=0.2)
        except queue.Full:
            pass
    os._exit(0)

if __name__ == "__main__":
    context, trainer, stop = multiprocessing.get_context(sys.argv[1]), os.getpid(), []
    signal.signal(getattr(signal, sys.argv[2]), lambda *_: stop.append(1) if os.getpid() == trainer else os._exit(1))
    loaded = context.Queue(4)
    workers = [context.Process(target=load, args=(loaded,), daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    loaded.get()
    print("ready", flush=True)
    while not stop:
        loaded.get(timeout=20)
    for _ in range(20):
        loaded.get(timeout=20)
    assert all(worker.is_alive() for worker in workers)
    print("saved", flush=True)
    os._exit(75)  # multiprocessing would terminate and join workers that inherited the handler
"""

# SECONDS that it takes to save its state on SIGTERM.
SAVES_SLOWLY = """
import os, signal, sys, time

def save(*_):
    time.sleep(float(sys.argv[1]))  # sleep-ok: it takes longer than ranks would have for another reason
    print("saved", flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
print("agent", os.getppid(), flush=True)
while True:
    signal.pause()
"""
