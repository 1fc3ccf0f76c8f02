"""What ranks get of this machine, and several programs in one job.

SPDX-License-Identifier: Apache-2.0
"""
import os

import pytest

from launching import lines_by_rank, run, start

CORES = sorted(os.sched_getaffinity(0))


def test_several_programs_are_one_job(hvrun):
    result = run(hvrun, "-np", "1", "-x", "ALL=1", "sh", "-c", "echo serve $HVRUN_RANK of $HVRUN_SIZE $ALL $ONE", ":",
                 "-np", "2", "-x", "ONE=2", "--wdir", "/tmp", "sh", "-c", "echo train $HVRUN_RANK $ALL $ONE $PWD")
    assert result.returncode == 0, result.stderr
    assert lines_by_rank(result.stdout) == {0: [b"serve 0 of 3 1"], 1: [b"train 1 1 2 /tmp"], 2: [b"train 2 1 2 /tmp"]}


def test_a_program_that_is_not_there_is_told_for_whichever_it_is(hvrun):
    result = run(hvrun, "-np", "1", "true", ":", "-np", "1", "no-such-program")
    assert result.returncode == 3 and b"no-such-program" in result.stderr, result.stderr


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_ranks_are_bound_to_one_core_each_where_that_is_asked(hvrun):
    result = run(hvrun, "-np", "2", "--bind-to", "core", "--report-bindings", "sh", "-c",
                 "grep Cpus_allowed_list /proc/self/status; echo $OMP_NUM_THREADS")
    assert result.returncode == 0, result.stderr
    lines = lines_by_rank(result.stdout)
    bound = [int(lines[rank][0].split()[1]) for rank in (0, 1)]
    assert len(set(bound)) == 2 and set(bound) <= set(CORES)
    assert lines[0][1] == lines[1][1] == b"1"
    for rank in (0, 1):
        assert b"rank %d on host localhost: cores %d" % (rank, bound[rank]) in result.stderr, result.stderr


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_two_jobs_that_bind_ranks_to_the_same_cores_are_told(hvrun):
    first = start(hvrun, "-np", "1", "--bind-to", "core", "sh", "-c", "echo runs; exec sleep 600")
    assert first.stdout.readline() == b"[0] runs\n"
    second = run(hvrun, "-np", "1", "--bind-to", "core", "true")
    assert second.returncode == 0
    assert b"warning: host localhost: ranks of another hvrun job are bound to core" in second.stderr, second.stderr
    assert b"--bind-to none" in second.stderr
    unbound = run(hvrun, "-np", "1", "--bind-to", "none", "true")
    assert unbound.returncode == 0 and b"another hvrun job" not in unbound.stderr, unbound.stderr


def test_ranks_have_threads_for_their_share_of_the_cores_unless_told(hvrun):
    script = "echo $OMP_NUM_THREADS"
    result = run(hvrun, "-np", "1", "--no-label", "sh", "-c", script)
    assert int(result.stdout) >= 1
    assert run(hvrun, "-np", "1", "--no-label", "sh", "-c", script, OMP_NUM_THREADS="7").stdout == b"7\n"
    assert run(hvrun, "-np", "1", "--no-label", "-x", "OMP_NUM_THREADS=5", "sh", "-c", script).stdout == b"5\n"
    crowded = run(hvrun, "-np", str(2 * len(CORES)), "sh", "-c", script)
    assert {line for lines in lines_by_rank(crowded.stdout).values() for line in lines} == {b"1"}


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_a_rankfile_names_cores_by_their_socket(hvrun, tmp_path):
    rankfile = tmp_path / "ranks"
    rankfile.write_text("rank 0=localhost slot = 0:1\nrank 1=localhost slot=0:*\n")
    result = run(hvrun, "--rankfile", str(rankfile), "grep", "Cpus_allowed_list", "/proc/self/status")
    assert result.returncode == 0, result.stderr
    first, second = (lines_by_rank(result.stdout)[rank][0].split()[1].decode() for rank in (0, 1))
    assert first != second and first in second.replace("-", ",").split(","), result.stdout
    rankfile.write_text("rank 0=localhost slot=1000:0\n")
    result = run(hvrun, "--rankfile", str(rankfile), "true")
    assert result.returncode == 2 and b"socket 1000 of host localhost, where ranks may use" in result.stderr, result.stderr
