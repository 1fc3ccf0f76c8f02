# SPDX-License-Identifier: Apache-2.0
"""Hosts for tests: fresh ones for every test (0.3 s), gone after it."""

import contextlib

import pytest

from harness.cluster import Cluster, why_not
from harness.roll_call import RollCall
from harness.slurm import Slurm
from harness.slurm import why_not as slurm_why_not


@pytest.fixture(scope="session")
def needs_hosts():
    """Skips, saying why, where no hosts can be made."""
    if reason := why_not("nft"):
        pytest.skip(reason)


@pytest.fixture
def make_cluster(needs_hosts):
    """make_cluster(plans, ...): see harness.cluster.Cluster."""
    with contextlib.ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(Cluster(*arguments, **options))


@pytest.fixture
def cluster(make_cluster):
    """node1, node2 and node3, and the login host."""
    return make_cluster()


@pytest.fixture
def slurm(cluster):
    """A real Slurm on those."""
    if reason := slurm_why_not():
        pytest.skip(reason)
    with Slurm(cluster) as made:
        yield made


@pytest.fixture
def slurm_with_gpus(cluster):
    """The same with two GPUs a node: device nodes that nobody opens."""
    if reason := slurm_why_not():
        pytest.skip(reason)
    with Slurm(cluster, more="GresTypes=gpu\n", of_nodes="Gres=gpu:2", gres="Name=gpu File=/dev/tty[0-1]\n") as made:
        yield made


@pytest.fixture(params=["cgroup2", "no-cgroup2"])
def cluster_of_each_kind(make_cluster, request):
    """The same, once with a cgroup v2 subtree for each host and once without."""
    return make_cluster(cgroup=request.param == "cgroup2")


@pytest.fixture
def roll_call_of():
    """roll_call_of(cluster): the list that payload processes there sign; str() of it is its path on every host."""
    return lambda hosts: RollCall(hosts, hosts.shared / "roll_call")


@pytest.fixture
def roll_call(cluster, roll_call_of):
    """The list of the hosts of 'cluster'."""
    return roll_call_of(cluster)
