"""Rows of ranks' output: two ranks write a million lines each to a file in memory. SPDX-License-Identifier: Apache-2.0

Large writes are held against 'mpirun --tag-output', one write for each line against two bare pipes into cat. What
hvrun wrote is checked line by line once for each row: a torn, lost or misplaced line is no result.
"""

import os
import shlex
import subprocess
import time

import programs
from rounds import NotRun, Rounds, fastest, interleave

LINES = 1_000_000
RANKS = 2
LARGE_WRITE = 32 << 10
LINE_WRITE = 0
MPIRUN_OPTIONS = ([], ["--bind-to", "none"], ["--bind-to", "core"], ["--bind-to", "none", "--mca", "btl", "self,vader"])


class MemoryFile:
    """A file in memory that needs no room in /dev/shm, emptied before each run."""

    def __init__(self, name):
        self.fd = os.memfd_create(name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def empty(self):
        os.ftruncate(self.fd, 0)
        os.lseek(self.fd, 0, os.SEEK_SET)

    def lines(self):
        os.lseek(self.fd, 0, os.SEEK_SET)
        with open(os.dup(self.fd), "rb") as stream:
            yield from stream


def wait_for(processes, words):
    for process in processes:
        if process.wait(timeout=programs.LONGEST_RUN_S) != 0:
            raise NotRun(f"{shlex.join(map(str, words))}: exit {process.returncode}")


def start(words, stdin, stdout):
    return subprocess.Popen([str(word) for word in words], stdin=stdin, stdout=stdout, env=programs.environment())


def seconds_into(out, words):
    """Wall time of a command whose standard output is the file."""
    out.empty()
    begun = time.perf_counter()
    wait_for([start(words, subprocess.DEVNULL, out.fd)], words)
    return time.perf_counter() - begun


def seconds_of_pipes(outs, writer):
    """Wall time of one writer for each file, each through a pipe of its own into cat, at the same time."""
    for out in outs:
        out.empty()
    begun = time.perf_counter()
    processes = []
    for out in outs:
        source = start(writer, subprocess.DEVNULL, subprocess.PIPE)
        processes += [source, start(["cat"], source.stdout, out.fd)]
        source.stdout.close()
    wait_for(processes, writer)
    return time.perf_counter() - begun


def check_lines(out):
    """Each rank's lines, labelled once, whole, in order and complete."""
    arrived = [0] * RANKS
    for line in out.lines():
        rank = line[1] - ord("0")
        if not 0 <= rank < RANKS or line[:19] != b"[%d] line %09d " % (rank, arrived[rank]) or len(line) != 87 + 4:
            raise NotRun(f"torn or misplaced line in hvrun's output: {line[:120]!r}")
        arrived[rank] += 1
    if arrived != [LINES] * RANKS:
        raise NotRun(f"hvrun's output has {arrived} lines of its ranks instead of {LINES} each")


def commands(bench, write_bytes):
    writer = [bench.program("bench_log_lines"), str(LINES), str(write_bytes)]
    return writer, [bench.hvrun, "-np", str(RANKS), *writer]


def beside_mpirun(bench):
    writer, ours = commands(bench, LARGE_WRITE)
    mpirun = programs.need_program("mpirun")
    with MemoryFile("hvrun") as own_file, MemoryFile("mpirun") as peer_file:
        peers = [[mpirun, *options, "-np", str(RANKS), "--tag-output", *writer] for options in MPIRUN_OPTIONS]
        peer = fastest(peers, lambda words: seconds_into(peer_file, words), tries=1)
        seconds_into(own_file, ours)
        check_lines(own_file)
        pairs = interleave(lambda: seconds_into(own_file, ours), lambda: seconds_into(peer_file, peer), bench.rounds)
    return Rounds("s", pairs, programs.shown(peer), programs.shown(ours))


def beside_bare_pipes(bench):
    writer, ours = commands(bench, LINE_WRITE)
    with MemoryFile("hvrun") as own_file, MemoryFile("one") as one, MemoryFile("two") as two:
        seconds_into(own_file, ours)
        check_lines(own_file)
        pairs = interleave(lambda: seconds_into(own_file, ours), lambda: seconds_of_pipes((one, two), writer), bench.rounds)
    return Rounds("s", pairs, " & ".join([programs.shown(writer) + " | cat"] * RANKS), programs.shown(ours))
