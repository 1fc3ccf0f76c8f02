# SPDX-License-Identifier: Apache-2.0
"""A fault of one host's GPUs among three alike, by its verdict, with that host: driver and devices are stand-ins."""

import time

import pytest

from harness import gpus
from harness.checks import dry_run, expect, expect_healthy
from harness.gpus import Gpus

pytestmark = pytest.mark.usefixtures("hvrun")

HOSTS = ("node1:2", "node2:2", "node3:2")
SIX = ["-np", "6", "/usr/bin/true"]


@pytest.fixture
def gpu_hosts(cluster):
    """gpu_hosts("healthy busy=1"): node2 is so, the others healthy; **options of node2's Gpus."""
    if reason := gpus.why_not():
        pytest.skip(reason)

    def make(machine="healthy", **options):
        for node in cluster.nodes:
            is_odd = node.name == "node2"
            made = Gpus(node, **{"is_cut": False, "kernel_log": "", **(options if is_odd else {})})
            made.set_environment(HVRUN_TEST_NVML=machine if is_odd else "healthy")
        return cluster
    return make


def test_healthy_gpus_give_no_finding(gpu_hosts):
    expect_healthy(dry_run(gpu_hosts(), *SIX, hosts=HOSTS))


@pytest.mark.parametrize("machine, verdict, mend", [
    ("healthy driver=535.104.05 cuda=12020", "gpu-drivers-differ", "driver 550.54.15 installed on node2"),
    ("healthy busy=1", "gpu-busy", "ssh node2 nvidia-smi -i 0000:29:00.0"),
    ("healthy exclusive=1 busy=1", "gpu-taken", "ssh node2 sudo nvidia-smi -i 0000:29:00.0 --compute-mode=DEFAULT"),
    ("healthy prohibited=0", "gpu-prohibited", "ssh node2 sudo nvidia-smi -i 0000:1b:00.0 --compute-mode=DEFAULT"),
    ("healthy ecc=1", "gpu-memory-errors", "ssh node2 dcgmi diag -r 3"),
    ("healthy narrow=0", "pcie-narrow", "ssh node2 sudo lspci"),
    ("healthy hot=1", "gpu-slowed", "ssh node2 nvidia-smi -q"),
    ("healthy lost=0", "gpu-lost", "restart node2"),
    ("healthy odd", "gpu-models-differ", "leave node2 out"),
])
def test_a_fault_of_one_hosts_gpus(gpu_hosts, machine, verdict, mend):
    expect(dry_run(gpu_hosts(machine), *SIX, hosts=HOSTS), verdict, "node2", mend=mend)


def test_an_xid_in_one_hosts_kernel_log(gpu_hosts):
    stamp = int(time.monotonic() * 1e6) - 200_000_000
    cluster = gpu_hosts(kernel_log=f"4,9,{stamp},-;NVRM: Xid (PCI:0000:29:00): 79, pid=1, GPU has fallen off the bus.\n")
    expect(dry_run(cluster, *SIX, hosts=HOSTS), "gpu-xid", "node2", mend="nvidia-smi --gpu-reset -i 0000:29:00.0")


def test_a_host_with_a_gpu_less_than_ranks(gpu_hosts):
    cluster = gpu_hosts("healthy", hidden=range(1, 8))
    expect(dry_run(cluster, *SIX, hosts=HOSTS), "gpu-missing", "node2", mend="leave node2 out")


def test_a_host_in_mig_mode(gpu_hosts):
    cluster = gpu_hosts("healthy", hidden=(0, 1, 2, 3, 4, 6, 7), is_cut=True)
    expect(dry_run(cluster, *SIX, hosts=HOSTS), "mig-differs", "node2", mend="nvidia-smi -mig 0")


FAILS_IN_CUDA = ["sh", "-c", "echo CUDA error: unspecified launch failure >&2; exit 3"]


def test_a_rank_that_failed_in_cuda_is_told_with_what_ails_its_hosts_gpus(gpu_hosts):
    """The launch has asked no driver: hosts that lack the program for that are sent it now."""
    result = gpu_hosts("healthy lost=0").run(["hvrun", "-H", ",".join(HOSTS), *FAILS_IN_CUDA])
    assert result.code == 3 and "node2: " in result.err and "[gpu-lost]" in result.err, str(result)


def test_a_driver_that_hangs_beside_a_rank_that_failed_is_told_and_left(gpu_hosts):
    start = time.monotonic()
    result = gpu_hosts("hang").run(["hvrun", "-H", ",".join(HOSTS), *FAILS_IN_CUDA])
    assert result.code == 3 and time.monotonic() - start < 30, str(result)
    assert "hvrun: not looked at: gpus on node2: " in result.err and "has told nothing" in result.err, str(result)
