"""hvrun opens libssh only for hosts that it reaches over SSH, and says what to do where it cannot.

SPDX-License-Identifier: Apache-2.0
"""
import shutil

import pytest

from harness import programs
from launching import run, two_hosts


def no_library(file):
    file.write_text("not a library")


def another_library(file):
    shutil.copy(programs.hvrun_folder().parent / "lib" / "libhvrun.so.0", file)


@pytest.fixture(params=[(no_library, "file too short"), (another_library, "libssh.so.4 has no ssh_")], ids=["unreadable", "another"])
def broken(request, tmp_path):
    """(environment in which libssh cannot be used, the reason)"""
    make, reason = request.param
    make(tmp_path / "libssh.so.4")
    return {"LD_LIBRARY_PATH": str(tmp_path)}, reason


def test_a_host_over_ssh_needs_libssh_and_the_error_says_what_to_install(hvrun, broken):
    environment, reason = broken
    result = run(hvrun, "-H", "192.0.2.7", "true", **environment)
    said = result.stderr.decode()
    assert result.returncode != 0 and "reach hosts over SSH: open libssh on this machine: " in said, said
    assert reason in said and "apt-get install libssh-4" in said and "--rsh ssh" in said, said


def test_jobs_on_this_machine_and_over_another_command_need_no_libssh(hvrun, broken, tmp_path):
    environment, _ = broken
    for words in (["-np", "2"], two_hosts(tmp_path)):
        result = run(hvrun, *words, "true", **environment)
        assert result.returncode == 0, result.stderr
