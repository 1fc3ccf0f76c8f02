# SPDX-License-Identifier: Apache-2.0
"""hvrun.run in a notebook: a real kernel, whose messages are what a browser would show."""

import os
import queue
import re
import sys

import jupyter_client
import pytest

from harness import torch_jobs

# Each rank waits in the middle of a line until the test has seen the line's beginning, of which "ä" is the end: two bytes. Rank 0
# writes dots meanwhile, so that its output never rests.
CELL = """
import hvrun, mine
print(hvrun.run(mine.work, ({go!r},), np=2))
"""
WORK = """
import os, sys, threading
def wait_for(path, gone):
    with open(path) as fifo:
        fifo.read()
    gone.set()
def work(go):
    rank = int(os.environ["RANK"])
    stream = (sys.stdout, sys.stderr)[rank]
    stream.write(f"asking {rank} ä")
    stream.flush()
    gone = threading.Event()
    threading.Thread(target=wait_for, args=(f"{go}.{rank}", gone)).start()
    while not gone.wait(0.01):
        if rank == 0:
            stream.write(".")
            stream.flush()
    print(" and going on", file=stream, flush=True)
    return rank
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A client of a kernel of /usr/bin/python3 that finds this checkout's package."""
    monkeypatch.chdir(tmp_path)
    manager = jupyter_client.KernelManager(transport="ipc", ip=str(tmp_path / "socket"))
    manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.start_kernel(env=torch_jobs.environment(tmp_path), cwd=str(tmp_path))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


class Shown:
    """What the cell's output shows, by stream."""

    def __init__(self, client):
        self._client = client
        self.text = {"stdout": "", "stderr": ""}

    def until(self, condition):
        while not condition():
            try:
                message = self._client.get_iopub_msg(timeout=60)
            except queue.Empty:
                raise AssertionError(f"nothing more was shown after {self.text}") from None
            if message["msg_type"] == "stream":
                self.text[message["content"]["name"]] += message["content"]["text"]
            assert message["msg_type"] != "error", message["content"]
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                assert condition(), self.text


def test_the_beginning_of_a_line_is_shown_before_the_line_ends(kernel, tmp_path):
    (tmp_path / "mine.py").write_text(WORK)
    for rank in range(2):
        os.mkfifo(tmp_path / f"go.{rank}")
    kernel.execute(CELL.format(go=str(tmp_path / "go")))
    shown = Shown(kernel)
    shown.until(lambda: "asking 0 ä" in shown.text["stdout"] and shown.text["stderr"].endswith("asking 1 ä"))
    for rank in range(2):
        (tmp_path / f"go.{rank}").write_text("go")
    shown.until(lambda: "[0, 1]" in shown.text["stdout"])
    assert re.search(r"asking 0 ä\.* and going on\n", shown.text["stdout"]), shown.text
    assert "asking 1 ä and going on\n" in shown.text["stderr"], shown.text
