# SPDX-License-Identifier: Apache-2.0
"""hvrun --mpi over an mpirun that does what a real one seldom does: it hangs, or writes much and ends at once."""

import os
import signal
import subprocess

import pytest

from harness.processes import below, look_at
from harness.waiting import stays, wait_for
from launching import clean_environment, run, start

FAKE = """#!/bin/sh
[ "$*" = --version ] && echo "HYDRA build details:
    Version: 4.1" && exit
echo $$ > {folder}/pid
exec /usr/bin/python3 {folder}/body "$@"
"""
BODY = """
import fcntl, os, signal, sys
tag = sys.argv[sys.argv.index("-prepend-pattern") + 1].replace("%r", "0").encode()
"""
HELD_BY_HVRUN = 4 << 20  # bytes on the way; then it reads no more


@pytest.fixture
def fake(tmp_path):
    """fake(lines of Python): the environment in which they are MPICH's mpirun. `tag` goes before what rank 0 writes."""
    def make(body):
        program = tmp_path / "bin" / "mpirun.mpich"
        program.parent.mkdir()
        program.write_text(FAKE.format(folder=tmp_path))
        (tmp_path / "body").write_text(BODY + body)
        program.chmod(0o755)
        return {"HVRUN_MPI": "mpich", "PATH": f"{program.parent}:/usr/bin:/bin"}
    return make


def pid_of_mpirun(tmp_path):
    return int(wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), 20, "mpirun's PID"))


# The rest stays in the pipe, which is made large enough for that.
MUCH = """
fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20)
left = (tag + b"x" * 1023 + b"\\n") * {lines}
while left:
    left = left[os.write(1, left):]
"""


def test_a_slow_reader_gets_what_mpirun_wrote_last(hvrun, fake, tmp_path):
    lines = (HELD_BY_HVRUN >> 10) + 512
    process = start(hvrun, "--mpi", "-np", "1", "--no-label", "true", **fake(MUCH.format(lines=lines)))
    pid = pid_of_mpirun(tmp_path)
    wait_for(lambda: look_at(pid) is None, 20, "mpirun's end")
    stays(lambda: process.poll() is None, 2, "hvrun, which has yet to write all that")
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err, out.count(b"\n")) == (0, b"", lines)


# Deaf while it writes, as an mpirun whose one thread is in there.
DEAF = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.write(1, tag)
while signal.SIGTERM not in signal.sigpending():
    with open({folder!r} + "/pieces", "a") as file:
        file.write("x")
    left = 1 << 20
    while left:
        left -= os.write(1, b"x" * left)
open({folder!r} + "/in_order", "w").close()
"""


def test_a_reader_that_stands_still_does_not_keep_mpirun_from_ending_its_hosts(hvrun, fake, tmp_path):
    process = start(hvrun, "--mpi", "-np", "1", "--grace", "1", "true", **fake(DEAF.format(folder=str(tmp_path))))
    pieces = tmp_path / "pieces"
    wait_for(lambda: pieces.exists() and len(pieces.read_text()) > HELD_BY_HVRUN >> 20, 20, "a write that cannot end")
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    assert process.returncode == 128 + signal.SIGTERM and (tmp_path / "in_order").exists()


# Lines with numbers, so that each is known; the last ones once a reader is there again.
NUMBERED = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
count = 0
def write_lines(some):
    global count
    left = b"".join(tag + b"%01023d\\n" % n for n in range(count, count + some))
    count += some
    while left:
        left = left[os.write(1, left):]
while signal.SIGTERM not in signal.sigpending():
    with open({folder!r} + "/pieces", "a") as file:
        file.write("x")
    write_lines(1024)
write_lines(8192)
open({folder!r} + "/written", "w").close()
open({folder!r} + "/goes_on").read()
write_lines(10)
with open({folder!r} + "/count", "w") as file:
    file.write(str(count))
"""


def test_what_is_lost_of_a_job_that_ends_is_whole_lines_and_told(hvrun, fake, tmp_path):
    os.mkfifo(tmp_path / "goes_on")
    process = start(hvrun, "--mpi", "-np", "1", "--no-label", "--grace", "20", "true", **fake(NUMBERED.format(folder=str(tmp_path))))
    pieces = tmp_path / "pieces"
    wait_for(lambda: pieces.exists() and len(pieces.read_text()) > HELD_BY_HVRUN >> 20, 20, "a write that cannot end")
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: (tmp_path / "written").exists(), 20, "all that nobody reads is written")
    first = process.stdout.read(HELD_BY_HVRUN)
    (tmp_path / "goes_on").write_text("")
    rest = process.stdout.read()
    _, err = process.communicate(timeout=20)
    lines = (first + rest).splitlines(keepends=True)
    numbers = [int(line) for line in lines]
    assert all(len(line) == 1024 for line in lines) and numbers == sorted(set(numbers)), numbers
    lost = int((tmp_path / "count").read_text()) - len(lines)
    assert lost > 0 and f"hvrun: warning: {1024 * lost} bytes that rank 0 wrote are lost: nobody read them in time".encode() in err, err


AT_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
HUNG = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
os.write(1, tag + b"ready\\n")
signal.sigwait([signal.SIGUSR2])
"""


def test_ctrl_c_at_a_terminal_that_mpirun_reads_ends_one_that_hangs(hvrun, fake):
    typing, follower = os.openpty()
    words = [hvrun, "--mpi", "-np", "1", "--no-label", "--stdin", "--grace", "0.5", "true"]
    with subprocess.Popen(["/usr/bin/python3", "-c", AT_TERMINAL, *words], env=clean_environment(**fake(HUNG)), stdin=follower,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        os.close(follower)
        try:
            assert process.stdout.readline() == b"ready\n"
            os.write(typing, b"\3")
            _, err = process.communicate(timeout=20)
        finally:
            process.kill()
            os.close(typing)
    assert process.returncode == 128 + signal.SIGINT and b"hvrun: ended by SIGINT" in err, err


# Deaf while it has a rank, as Open MPI's, which waits for the grace; and one that never hears.
WAITS = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
rank = os.fork()
if rank == 0:
    signal.pause()
os.waitpid(rank, 0)
open({folder!r} + "/tidied", "w").close()
if {hangs}:
    signal.pause()
"""


@pytest.mark.parametrize("hangs", [False, True])
def test_a_second_signal_ends_ranks_at_once_and_mpirun_when_it_has_tidied_up(hvrun, fake, tmp_path, hangs):
    body = WAITS.format(folder=str(tmp_path), hangs=hangs)
    process = start(hvrun, "--mpi", "-np", "1", "--grace", "600", "true", **fake(body))
    pid = pid_of_mpirun(tmp_path)
    wait_for(lambda: below(pid), 20, "a rank")
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == b"hvrun: ended by SIGINT (Interrupt)\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGINT and (tmp_path / "tidied").exists() and look_at(pid) is None


GIVEN_UP = """
sys.stderr.write("ssh: Could not resolve hostname nod1: Name or service not known\\n")
sys.stderr.flush()
signal.pause()
"""


def test_an_mpirun_that_waits_for_a_host_that_its_ssh_cannot_reach_is_ended_with_what_to_try(hvrun, fake):
    result = run(hvrun, "--mpi", "-np", "1", "-H", "nod1:1", "true", timeout=20, **fake(GIVEN_UP))
    assert result.returncode == 3, result
    assert b"mpirun.mpich cannot reach a host, for which it would wait for ever\n  try: check the spelling of nod1" in result.stderr


def test_an_output_directory_that_cannot_be_is_told_before_mpirun_starts(hvrun, fake, tmp_path):
    (tmp_path / "file").touch()
    result = run(hvrun, "--mpi", "-np", "1", "--output-dir", str(tmp_path / "file" / "out"), "true", **fake(HUNG))
    assert result.returncode == 2 and b"make the output directory" in result.stderr, result
    stays(lambda: not (tmp_path / "pid").exists(), 0.5, "mpirun's absence")
