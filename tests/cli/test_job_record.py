"""job.json and --summary on a file system that hangs: signals to hvrun count all the same.

SPDX-License-Identifier: Apache-2.0
"""
import fcntl
import os
import signal
import struct
import subprocess
import termios

import pytest

from harness.waiting import wait_for
from launching import start

# The rename to job.json that $HANGS_AT counts makes the file $HANGS and blocks in open() of the FIFO $RELEASED, signals or not.
HANGING_RENAME = """
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int rename(const char* from, const char* to) {
  static int count;
  const char* const name = strrchr(to, '/');
  if (name && strcmp(name, "/job.json") == 0 && ++count == atoi(getenv("HANGS_AT"))) {
    close(open(getenv("HANGS"), O_WRONLY | O_CREAT, 0600));
    while (open(getenv("RELEASED"), O_RDONLY) < 0) continue;
  }
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}
"""
UNTIL_SIGTERM = "trap 'exit 0' TERM; echo up; sleep 3600 & wait"  # sleep-ok: a rank that is busy


def await_line(pipe, part):
    """What came until then."""
    lines = b""
    for line in pipe:
        lines += line
        if part in line:
            return lines
    raise AssertionError(lines)


@pytest.fixture
def hanging(tmp_path):
    """The environment of an hvrun whose Nth write of job.json hangs, and the file that is there once it does."""
    source, library, hangs, released = (tmp_path / name for name in ("rename.c", "rename.so", "hangs", "released"))
    source.write_text(HANGING_RENAME)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    os.mkfifo(released)
    return {"LD_PRELOAD": str(library), "HANGS": str(hangs), "RELEASED": str(released)}, hangs


@pytest.mark.parametrize("write", ["before the start", "as ranks run", "at the end"])
def test_a_second_signal_ends_a_job_at_once_although_its_file_system_hangs(hvrun, tmp_path, hanging, write):
    environment, hangs = hanging
    environment["HANGS_AT"] = str(["before the start", "as ranks run", "at the end"].index(write) + 1)
    process = start(hvrun, "--output-dir", str(tmp_path / "logs"), "-np", "1", "sh", "-c", UNTIL_SIGTERM, **environment)
    if write != "before the start":
        await_line(process.stdout, b"[0] up")
    if write != "at the end":
        wait_for(hangs.exists, 30, "a write of job.json hangs")
    process.send_signal(signal.SIGTERM)
    await_line(process.stderr, b"hvrun: ended by SIGTERM")
    wait_for(hangs.exists, 30, "a write of job.json hangs")
    process.send_signal(signal.SIGINT)  # a second SIGTERM counts only a second after the first
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert f"hvrun: error: write {tmp_path}/logs/job.json: a signal ended the wait for it".encode() in err, err


def test_signals_end_a_job_although_nobody_reads_its_summary(hvrun, tmp_path):
    fifo = tmp_path / "summary"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    size = fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    process = start(hvrun, "--summary", str(fifo), "-np", "16", "true")
    wait_for(lambda: struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"1234"))[0] == size, 30, "the FIFO is full")
    for number in (signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0 and f"hvrun: warning: write --summary {fifo}: a signal ended the wait for it".encode() in err, err
    os.close(reader)
