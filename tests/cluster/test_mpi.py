# SPDX-License-Identifier: Apache-2.0
"""MPI programs on SSH hosts that have neither hvrun nor its small programs: what hvrun brings, and what they meet by."""

import pytest

from harness import programs
from harness.jobs import START, TIMEOUT, errors, lines_of, on
from harness.mpich import run_past_standstill
from harness.processes import listing
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

TWO = ("node1", "node2")
HIDE_LIBPMIX = "for f in $(/sbin/ldconfig -p | sed -n 's/.*libpmix.so.* => //p'); do mount --bind /dev/null $(readlink -f $f); done"


@pytest.fixture(params=["openmpi", "mpich"])
def wired(request):
    program = programs.hvrun_folder() / f"wired_{request.param}"
    if not program.exists():
        pytest.skip(f"no {request.param}")
    return str(program)


def run_wired(cluster, words, wired):
    """hvrun says where ranks wait in MPI_Finalize for each other."""
    return run_past_standstill(
        wired.rpartition("_")[2],
        lambda: cluster.run(["hvrun", *words, "-x", "HVRUN_STALL_SECONDS=5", "--timeout", "15", "--wire-mpi", wired], timeout=60),
        lambda result: result.code == TIMEOUT and "(MPI_Init, MPI_Finalize); not there: rank" in result.err)


@pytest.mark.one_of("wired")
def test_ranks_of_two_hosts_are_a_world(cluster, wired):
    words = on(*TWO, ranks_per_host=2)
    result = run_wired(cluster, [*words[1:], "--no-label"], wired)
    assert (result.code, lines_of(result)) == (
        0, [f"rank {rank} of 4, {rank % 2} of 2 here: 10" for rank in range(4)]), str(result)
    for node in TWO:
        wait_for(lambda node=node: not cluster[node].newcomers(), 10, lambda node=node: listing(cluster[node].newcomers()))
        left = cluster[node].shell("ls -d /dev/shm/hvrun-?????? /tmp/hvrun-?????? 2>/dev/null || true")
        assert left == "", left


@pytest.mark.one_of("wired")
def test_a_killed_rank_ends_the_job_on_both_hosts(cluster, wired):
    result = cluster.run([*on(*TWO), "--wire-mpi", wired, "killed"], timeout=120)
    assert result.code == 137 and errors(result)[0][0].startswith("rank 1 on host node2 ended with SIGKILL"), str(result)
    for node in TWO:
        wait_for(lambda node=node: not cluster[node].newcomers(), 10, lambda node=node: listing(cluster[node].newcomers()))


def test_one_host_that_lacks_libpmix_is_named_and_no_rank_starts(cluster):
    cluster["node2"].shell(HIDE_LIBPMIX)
    result = cluster.run([*on(*TWO), "--wire-mpi=pmix", "hostname"], timeout=60)
    text, hint = errors(result)[0]
    assert result.code == START and result.out == "", str(result)
    assert text.startswith("on node2: open libpmix.so.2") and "(Debian: libpmix2)" in hint, str(result)
