"""hvrun under bad conditions: streams and limits that it was started with, go-betweens, terminals.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import resource
import select
import signal
import socket
import subprocess

import pytest

from harness import processes, programs
from launching import clean_environment, run, start
from harness.waiting import wait_for
from test_endings import alive, pids_in


def rsh_script(tmp_path, text):
    """A stand-in for rsh: `script HOST LINE`; every host is this machine, with a home of its own."""
    script = tmp_path / "rsh"
    (tmp_path / "home").mkdir()
    script.write_text(f"#!/bin/sh\nhost=$1; shift\nexport HOME={tmp_path}/home; unset XDG_CACHE_HOME XDG_RUNTIME_DIR\n{text}\n")
    script.chmod(0o755)
    return str(script)


def run_with(hvrun, *words, preexec):
    return subprocess.run([hvrun, *words], env=clean_environment(), preexec_fn=preexec, start_new_session=True,
                          timeout=60, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("how", ["at once", "ignoring SIGTERM"])
def test_children_of_a_go_between_end_with_hvrun(hvrun, tmp_path, how):
    """Another host fails first, and hvrun leaves while the start still goes on."""
    pids = tmp_path / "pids"
    trap = "trap '' TERM;" if how == "ignoring SIGTERM" else ""
    rsh = rsh_script(tmp_path, f'if [ "$host" = bad ]; then while [ ! -s {pids} ]; do sleep 0.05; done; exit 9; fi\n'
                               f"{trap} sleep 47 & echo $! > {pids}; wait")
    result = run(hvrun, "--rsh", rsh, "-H", "bad:1,dead:1", "true")
    assert result.returncode == 3 and b"hvrun: no answer yet from dead\n" in result.stderr, result
    child, = pids_in(pids, 1)
    wait_for(lambda: not alive(child), 1, "the end of the go-between's child")


@pytest.mark.parametrize("before", ["the key", "hvrun's answer"])
def test_an_agent_that_waits_for_a_stopped_hvrun_ends_by_slurms_sigterm(hvrun, before):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        agent = subprocess.Popen([str(programs.hvrun_folder() / "hvrun-agent"), "--connect", f"127.0.0.1:{listener.getsockname()[1]}",
                                  "--step", "s"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)  # its guard
        if before != "the key":
            agent.stdin.write(b"0" * 64 + b"\n")
            agent.stdin.flush()
            guest = listener.accept()[0]
            assert guest.recv(1)  # the greeting
        wait_for(lambda: any(each.name == "hvrun-agent" and catches_nothing(each.pid) for each in processes.below(agent.pid)), 20,
                 "the agent")
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(20) == 128 + signal.SIGTERM
        agent.stdin.close()
        agent.stderr.close()


def catches_nothing(pid):
    """SIGTERM has its default effect."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    masks = re.findall(r"^Sig(?:Blk|Ign|Cgt):\t(\w+)$", status, re.MULTILINE)
    return len(masks) == 3 and not any(int(mask, 16) >> (signal.SIGTERM - 1) & 1 for mask in masks)


@pytest.mark.parametrize("fd", [0, 1, 2])
def test_a_closed_standard_stream_is_none_of_hvruns_own_files(hvrun, tmp_path, fd):
    pids = tmp_path / "pids"
    wait = f"echo $$ >> {pids}; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
    process = subprocess.Popen([hvrun, "-np", "2", "sh", "-c", f"{wait}; echo hi; echo ho >&2"], env=clean_environment(),
                               preexec_fn=lambda: os.close(fd), start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pids_in(pids, 2)
    stream = os.readlink(f"/proc/{process.pid}/fd/{fd}")
    (tmp_path / "go").touch()
    out, err = process.communicate(timeout=30)
    assert stream == "/dev/null"
    assert process.returncode == 0, err
    assert out.count(b"hi\n") == (0 if fd == 1 else 2)
    assert err.count(b"ho\n") == (0 if fd == 2 else 2)


def low_limit():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def test_many_hosts_need_more_open_files_than_the_soft_limit(hvrun, tmp_path):
    rsh = rsh_script(tmp_path, 'exec sh -c "$1"')
    hosts = ",".join(f"h{i}:1" for i in range(24))
    result = run_with(hvrun, "--oversubscribe", "--rsh", rsh, "-H", hosts, "sh", "-c", "ulimit -Sn", preexec=low_limit)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count(b"64\n") == 24  # the ranks have the limit that they would have had


def test_too_few_open_files_are_told_with_what_to_do(hvrun, tmp_path):
    rsh = rsh_script(tmp_path, 'exec sh -c "$1"')
    hosts = ",".join(f"h{i}:1" for i in range(24))
    result = run_with(hvrun, "--rsh", rsh, "-H", hosts, "true",
                      preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
    assert result.returncode == 3
    assert b"Too many open files" in result.stderr
    assert b"ulimit -n" in result.stderr


def test_too_few_open_files_for_the_ranks_of_a_host_are_told_with_what_to_do(hvrun):
    # Ranks that stay: one that has ended gives its files back while the next ones are being started.
    result = run_with(hvrun, "-np", "40", "tail", "-f", "/dev/null",
                      preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
    assert result.returncode == 3
    assert b"Too many open files" in result.stderr
    assert b"ulimit -n" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_that_the_parent_blocks_still_end_the_job(hvrun, tmp_path, number):
    pids = tmp_path / "pids"
    process = subprocess.Popen([hvrun, "-np", "1", "sh", "-c", f"echo $$ > {pids}; exec tail -f /dev/null"],
                               env=clean_environment(), start_new_session=True, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()))
    try:
        pids_in(pids, 1)
        process.send_signal(number)
        process.communicate(timeout=10)
    finally:
        process.kill()
    assert process.returncode == 128 + number


@pytest.mark.parametrize("text", [b"abc", b"abc\n", b"", b"abc\nde"])
def test_input_at_a_terminal_ends_wherever_its_last_line_does(hvrun, text):
    result = run(hvrun, "-np", "1", "--pty", "--stdin", "sh", "-c", "stty -echo; echo ready; cat; echo end", stdin=text, timeout=20)
    assert result.returncode == 0, result.stderr
    assert b"end" in result.stdout
    for word in text.split():
        assert word in result.stdout


# A shell with job control, as far as it is needed: hvrun is in the background of its terminal until a line is typed.
SHELL = """
import fcntl, os, signal, subprocess, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: os.setpgid(0, 0))
status = os.waitpid(job.pid, os.WUNTRACED)[1]
if os.WIFSTOPPED(status):
    print("stopped by", os.WSTOPSIG(status), flush=True)
    os.read(0, 100)
    os.tcsetpgrp(0, job.pid)
    os.killpg(job.pid, signal.SIGCONT)
    status = os.waitpid(job.pid, 0)[1]
print("ended with", os.waitstatus_to_exitcode(status), flush=True)
"""
# One that has left: nobody could let hvrun go on, whose process group is neither in the foreground nor a shell's job.
NO_SHELL = """
import fcntl, os, signal, subprocess, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
other = subprocess.Popen(["tail", "-f", "/dev/null"], preexec_fn=lambda: os.setpgid(0, 0))
os.tcsetpgrp(0, other.pid)
print("ended with", subprocess.Popen(sys.argv[1:]).wait(), flush=True)
other.kill()
"""


class AtTerminal:
    """A Python program with a terminal as its stdin. Leaving the 'with' hangs up, which ends what is left."""

    def __init__(self, script, *words):
        self.typing, follower = os.openpty()
        self.process = subprocess.Popen(["/usr/bin/python3", "-c", script, *words], env=clean_environment(), stdin=follower,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        os.close(follower)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.typing)
        self.process.kill()
        self.process.communicate()


def test_input_from_a_terminal_waits_for_the_foreground(hvrun):
    with AtTerminal(SHELL, hvrun, "-np", "1", "--stdin", "--lost-after", "0.5", "cat") as shell:
        assert shell.process.stdout.readline() == b"stopped by %d\n" % signal.SIGTTIN
        select.select([], [], [], 1)  # stopped for longer than --lost-after
        os.write(shell.typing, b"fg\n")
        os.write(shell.typing, b"typed\n\4")
        out, err = shell.process.communicate(timeout=20)
    assert (out, err) == (b"[0] typed\nended with 0\n", b"")


def test_input_from_a_terminal_that_hvrun_will_never_have_is_told(hvrun):
    with AtTerminal(NO_SHELL, hvrun, "-np", "1", "--stdin", "cat") as shell:
        out, err = shell.process.communicate(timeout=20)
    assert out == b"ended with 0\n"
    assert err == b"hvrun: warning: read standard input: Input/output error; rank 0 gets no more of it\n"


def test_input_that_cannot_be_read_is_told(hvrun, tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    process = start(hvrun, "-np", "1", "--stdin", "cat", stdin=folder)
    os.close(folder)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, b"")
    assert err == b"hvrun: warning: read standard input: Is a directory; rank 0 gets no more of it\n"


HOSTILE = os.fsdecode(b"\x1b[2J\x1b]0;x\x07\r\xff\xc2\x9b")


@pytest.mark.parametrize("words", [
    [f"--{HOSTILE}"], ["-np", HOSTILE, "true"], ["-H", HOSTILE, "true"], ["--hostfile", HOSTILE, "true"], ["-np", "1", HOSTILE],
    ["-np", "1", "--wdir", HOSTILE, "true"], ["-np", "1", "--output-dir", f"/dev/null/{HOSTILE}", "true"],
    ["--map-by", HOSTILE, "true"], ["--rsh", HOSTILE, "-H", "h:1", "true"], ["explain", HOSTILE], ["check", HOSTILE],
    ["script", "--site", HOSTILE, "true"], ["env", HOSTILE], [HOSTILE]])
def test_nothing_that_hvrun_quotes_moves_the_terminal(hvrun, words):
    result = run(hvrun, *words)
    assert result.returncode != 0
    told = result.stdout + result.stderr
    assert b"\\x1b[2J" in told and not re.search(rb"[\x00-\x09\x0b-\x1f\x7f\xff]|\xc2[\x80-\x9f]", told), told
