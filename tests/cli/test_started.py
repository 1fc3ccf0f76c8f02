"""A test that fails before it has heard of hvrun's words tells them, and leaves no process behind.

SPDX-License-Identifier: Apache-2.0
"""
import gc
import os
import subprocess

from harness import started
from harness.running import Running, run

COMPLAINS_AND_STAYS = ["sh", "-c", "echo no >&2; echo there; exec tail -f /dev/null"]


def test_what_a_program_over_pipes_wrote_is_told_and_it_is_reaped():
    process = subprocess.Popen(COMPLAINS_AND_STAYS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert process.stdout.readline() == b"there\n"
    words = started.OverPipes(process).words()
    assert process.returncode == -9 and "-- stderr\nno\n" in words, words
    assert started.OverPipes(process).words() == "", "told once"


def test_so_is_what_a_program_with_files_wrote_unless_the_test_had_its_result():
    stays = Running(COMPLAINS_AND_STAYS)
    stays.wait_for_output("there", 10)
    assert "-- stderr\nno\n" in stays.words() and stays.process.returncode == -9
    ends = Running(["true"])
    ends.wait(10)
    assert ends.words() == ""


def test_a_program_whose_result_was_told_keeps_no_files_open():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        assert run(["echo", "word"]).out == "word\n"
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
