# SPDX-License-Identifier: Apache-2.0
"""What a program that runs alone starts is its worker, and may begin a job of one itself."""

import subprocess
import sys

import hvrun.torch as hvd

CHILD = """
import os
import hvrun.basics as b
print(b.rank(), b.size(), b.is_initialized())
b.init()
print(b.rank(), b.size(), b.is_initialized(), os.environ["HVRUN_RANK_PROCESS"].startswith(f"{os.getpid()} "))
"""
LATER = "import hvrun.basics as b\ntry: b.rank()\nexcept ValueError as error: print(error)"


def output_of(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_child_has_the_numbers_and_may_be_rank_0_of_1_itself_and_once_the_job_is_left_has_none():
    hvd.init()
    try:
        assert output_of(CHILD) == ["0 1 False", "0 1 True True"]
    finally:
        hvd.shutdown()
    assert output_of(LATER) == ["hvd.rank() needs a job that has been joined; call hvd.init() first"]
