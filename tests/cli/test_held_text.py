"""A rank that is killed after a silence: where its program may hold text back, as C's printf does in a pipe, hvrun says so.

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import signal
import subprocess
import time

from harness.waiting import wait_for
from launching import start

HOLDS = """#include <stdio.h>
#include <unistd.h>
int main(void) {
  printf("ready %d\\n", getpid());
  fflush(stdout);
  printf("held back\\n");
  for (;;) pause();
}
"""
TRAINER = "#!/usr/bin/python3\nimport os, signal\nprint('ready', os.getpid())\nsignal.pause()\n"


def job_after_a_silence(hvrun, folder, *words):
    """Such a job, once each rank has written "ready PID" and then nothing for over 5 s; its ranks' pids; what it has said."""
    out, err = folder / "out", folder / "err"
    with open(out, "wb") as out_file, open(err, "wb") as err_file:
        job = start(hvrun, *words, cwd=str(folder), stdout=out_file, stderr=err_file)
    ranks = 1 + words.count(":") if ":" in words else int(words[1])
    ready = lambda: {int(rank): int(pid) for rank, pid in re.findall(r"^\[(\d+)\] ready (\d+)$", out.read_text(), re.MULTILINE)}
    wait_for(lambda: len(ready()) == ranks, 40, "all ranks")
    begun = time.monotonic()
    wait_for(lambda: time.monotonic() > begun + 6, 20, "the silence")
    return job, ready(), lambda: (out.read_text(), err.read_text())


def make_programs(folder):
    (folder / "holds.c").write_text(HOLDS)
    subprocess.run(["cc", "-o", folder / "holds", folder / "holds.c"], check=True)
    (folder / "train.py").write_text(TRAINER)
    (folder / "train.py").chmod(0o755)


def test_printf_is_named_where_the_ranks_are_programs_and_not_where_they_are_scripts(hvrun, tmp_path):
    make_programs(tmp_path)
    programs = [["./holds"], ["bash", "-c", "./holds"], ["./train.py"], ["bash", "-c", "./train.py"],
                ["bash", "-c", "/usr/bin/python3 train.py; true"], ["stdbuf", "-oL", "./holds"]]
    words = [word for program in programs for word in (":", "-np", "1", *program)][1:]
    job, _, said = job_after_a_silence(hvrun, tmp_path, *words)
    job.send_signal(signal.SIGINT)
    assert job.wait(30) == 128 + signal.SIGINT
    out, err = said()
    assert re.search(r"^hvrun: ranks 0-1 wrote nothing for \S+ s or longer before that; C's printf holds text back", err, re.MULTILINE), err
    assert err.count(" wrote nothing ") == 1, err
    assert re.findall(r"^\[(\d+)\] held back$", out, re.MULTILINE) == ["5"], out


def test_printf_is_named_where_another_kills_the_rank(hvrun, tmp_path):
    make_programs(tmp_path)
    job, pids, said = job_after_a_silence(hvrun, tmp_path, "-np", "2", "./holds")
    os.kill(pids[1], signal.SIGKILL)
    assert job.wait(30) == 128 + signal.SIGKILL
    err = said()[1]
    assert re.search(r"^hvrun: rank 1 wrote nothing for \S+ s before that; C's printf", err, re.MULTILINE), err
