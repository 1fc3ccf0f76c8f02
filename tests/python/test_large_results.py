# SPDX-License-Identifier: Apache-2.0
"""Results over 4 GiB, for minutes and up to 18 GiB of memory: label large, run by ./dev test --full only."""

import os
import subprocess
import sys

import pytest

from harness import processes, programs, torch_jobs

SIZE = (1 << 32) + 5
MOST_KIB = 32 << 10  # of hvrun and of an agent, while 4 GiB pass through them


def available_gib():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) >> 20 for line in file if line.startswith("MemAvailable:"))


def peak_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def test_hvrun_and_its_agent_pass_4_gib_on_in_bounded_memory():
    ours, hvruns = os.pipe()
    words = ["sh", "-c", f"echo $PPID; head -c {SIZE} /dev/zero >/dev/fd/$HVRUN_RESULT_FD; echo written; read wait || true"]
    with subprocess.Popen([programs.hvrun(), "--result-fd", str(hvruns), "-np", "1", "--no-label", "--stdin", *words], pass_fds=[hvruns],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process, os.fdopen(ours, "rb", buffering=0) as pipe:
        os.close(hvruns)
        agent = int(process.stdout.readline())
        left = SIZE
        while left:
            chunk = pipe.read(1 << 20)
            assert chunk and not chunk.strip(b"\0")
            left -= len(chunk)
        assert process.stdout.readline() == b"written\n"
        peaks = {processes.look_at(pid).name: peak_kib(pid) for pid in (process.pid, agent)}
        assert max(peaks.values()) < MOST_KIB, peaks
        process.stdin.close()
        assert pipe.read() == b"" and process.wait(60) == 0


def test_a_rank_returns_more_than_4_gib(tmp_path):
    if available_gib() < 18:
        pytest.skip(f"{available_gib()} GiB of memory are available, 18 are needed")
    (tmp_path / "mine.py").write_text(f"def work():\n    return b'a' + bytes({SIZE}) + b'z'\n")
    script = ("import hvrun, mine\n(data,) = hvrun.run(mine.work, np=1)\n"
              f"assert len(data) == {SIZE + 2} and data[0] == 97 and data[-1] == 122\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=900, cwd=tmp_path,
                          env=torch_jobs.environment(tmp_path))
    assert done.returncode == 0, done
