# SPDX-License-Identifier: Apache-2.0
"""What a dry run says of GPUs: hvrun, agents and hvrun-inventory are real, driver and devices stand-ins in mounts of their own."""

import json
import os
import time

import pytest
from launching import run

from harness import gpus

START = 3  # exit code of a job that could not start


@pytest.fixture(autouse=True)
def is_possible():
    if reason := gpus.why_not():
        pytest.skip(reason)
    if os.geteuid() != 0:
        pytest.skip("mounts of its own need root")


def dry_run(hvrun, *words, machine="healthy", kind="nvml", program=("true",), kernel_log=""):
    """(report, result) of --dry-run on this machine, with the stand-in's GPUs, of which 5 is in MIG mode."""
    result = run(hvrun, "--dry-run", "--format", "json", *words, *program,
                 enter=lambda: gpus.enter_machine(is_cut=False, kernel_log=kernel_log),
                 LD_LIBRARY_PATH=str(gpus.library_folder(kind)), HVRUN_TEST_NVML=machine)
    assert result.returncode in (0, START), result
    return json.loads(result.stdout), result


def told(report):
    return [(finding["id"], finding["hosts"]) for finding in report["findings"] if finding["check"].startswith("gpu")]


def two_hosts(tmp_path, machine):
    """Two names for this machine, whose drivers differ: b's is of that kind."""
    script = tmp_path / "rsh"
    script.write_text(f"#!/bin/sh\n[ $1 = a ] || export HVRUN_TEST_NVML='{machine}'\nshift; exec sh -c \"$*\"\n")
    script.chmod(0o755)
    return ["--oversubscribe", "--rsh", str(script), "-H", "a:2,b:2"]


def test_healthy_gpus_give_no_finding_and_no_rank_runs(hvrun, tmp_path):
    mark = tmp_path / "a rank ran"
    report, result = dry_run(hvrun, "-np", "2", program=("touch", str(mark)))
    assert told(report) == report["not_checked"] == [] and report["can_start"] and not mark.exists(), result
    assert [rank["gpu_uuids"] for rank in report["plan"]["ranks"]] == [[gpus.uuid(0)], [gpus.uuid(1)]], result
    host = report["hosts"][0]
    assert [gpu["ranks"] for gpu in host["topology"]["gpus"]][:3] == [[0], [1], []] and host["driver"]["version"], result
    assert {link["path"] for link in host["topology"]["links"]} and host["topology"]["numa_nodes"][0]["cores"], result
    assert host["reported"]["programs"][0]["path"].endswith("/touch") and host["reported"]["limits"]["open_files"], result


@pytest.mark.parametrize("machine, verdict, can_start, fact", [
    ("healthy busy=1", "gpu-busy", True, "localhost: GPU 1 has 20 GiB of its memory in use and is 97 % busy by "),
    ("healthy exclusive=1 busy=1", "gpu-taken", False, "localhost: GPU 1 takes one process, and has "),
    ("healthy prohibited=0", "gpu-prohibited", False, "localhost: GPU 0 is in compute mode 'prohibited'"),
    ("healthy narrow=0", "pcie-narrow", True, "localhost: GPU 0 (0000:1b:00.0) has 8 of 16 PCIe lanes"),
    ("healthy hot=1", "gpu-slowed", True, "localhost: GPU 1 is slowed down by heat"),
    ("healthy lost=0", "gpu-lost", True, "localhost: GPU 0 (0000:1b:00.0) has fallen off the bus"),
    ("healthy reset=1", "gpu-needs-reset", True, "localhost: GPU 1 (0000:29:00.0) is refused by the driver"),
    ("healthy odd", "gpu-models-differ", True, "localhost: NVIDIA A100-SXM4-80GB and NVIDIA A30"),
])
def test_a_fault_is_told_with_its_gpu(hvrun, machine, verdict, can_start, fact):
    # Two ranks pass a GPU that is lost by: they would have had it.
    report, result = dry_run(hvrun, "-np", "2", machine=machine)
    assert told(report) == [(verdict, ["localhost"])] and report["can_start"] == can_start, result
    assert next(finding["fact"] for finding in report["findings"] if finding["id"] == verdict).startswith(fact), result
    assert result.returncode == (0 if can_start else START), result


def test_an_error_in_the_kernels_log_is_told_with_its_gpu(hvrun):
    stamp = int(time.monotonic() * 1e6) - 200_000_000
    lost = f"4,9,{stamp},-;NVRM: Xid (PCI:0000:29:00): 79, pid=1, GPU has fallen off the bus.\n"
    report, result = dry_run(hvrun, "-np", "2", kernel_log=lost)
    assert told(report) == [("gpu-xid", ["localhost"])], result
    assert report["findings"][-1]["fact"] == "localhost: GPU 1 had Xid 79 (it fell off the bus) 3 min 20 s ago", result
    report, result = dry_run(hvrun, "-np", "1", kernel_log=lost)
    assert told(report) == [], result


def test_faults_of_gpus_that_no_rank_would_have_are_no_finding(hvrun):
    report, result = dry_run(hvrun, "-np", "2", machine="busy=3 narrow=4 hot=7 lost=2 exclusive=3")  # and 6 has ECC errors
    assert told(report) == [], result


def test_a_rank_more_than_gpus_is_told(hvrun):
    report, result = dry_run(hvrun, "-np", "12")  # 7 whole GPUs, and 3 parts of one
    assert ("gpu-missing", ["localhost"]) in told(report) and ("mig-differs", ["localhost"]) in told(report), result


def test_an_old_driver_that_tells_little_gives_no_finding(hvrun):
    report, result = dry_run(hvrun, "-np", "2", kind="nvml-old")
    assert told(report) == [], result


def test_hosts_of_different_drivers_are_told_apart(hvrun, tmp_path):
    hosts = two_hosts(tmp_path, "healthy driver=535.104.05 cuda=12020")
    report, result = dry_run(hvrun, *hosts)
    assert told(report) == [("gpu-drivers-differ", ["b"])], result
    (finding,) = [one for one in report["findings"] if one["id"] == "gpu-drivers-differ"]
    assert finding["fact"] == "a: driver 550.54.15 (CUDA 12.4), b: driver 535.104.05 (CUDA 12.2)", result
    assert "550.54.15 installed on b" in finding["fix"], result
    report, result = dry_run(hvrun, *two_hosts(tmp_path, "healthy driver=550.90.07"))
    assert told(report) == [], result


def test_one_host_without_peer_access_is_told(hvrun, tmp_path):
    report, result = dry_run(hvrun, *two_hosts(tmp_path, "healthy no-peers"))
    assert told(report) == [("peer-access-lacking", ["b"])], result


def test_a_driver_that_cannot_be_asked_is_not_looked_at(hvrun):
    report, result = dry_run(hvrun, "-np", "2", machine="no-driver")
    (gap,) = [gap for gap in report["not_checked"] if gap["check"] == "gpus"]
    assert gap["hosts"] == ["localhost"] and "Driver Not Loaded" in gap["reason"] and told(report) == [], result
