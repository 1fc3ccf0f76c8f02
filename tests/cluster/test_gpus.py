# SPDX-License-Identifier: Apache-2.0
"""Hosts with GPUs, real programs all: hvrun, agent and hvrun-inventory; only driver and devices are stood in for."""

import json
import signal

import pytest

from harness import gpus, programs
from harness.gpus import Gpus, mig_uuid, uuid
from harness.jobs import USAGE, errors, expect_error
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

SHOW = ["sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset}"]
WHOLE = (0, 1, 2, 3, 4, 7)  # without the one that is cut and the one with a fault


@pytest.fixture
def cluster(make_cluster):
    if reason := gpus.why_not():
        pytest.skip(reason)
    return make_cluster(["node1"])


def gpu_host(cluster, environment=None, **options):
    made = Gpus(cluster["node1"], **options)
    made.set_environment(**(environment or {}))
    return made


def launch(cluster, *options, **more):
    return cluster.run(["hvrun", "-H", "node1", *options, *SHOW], **more)


def seen(result):
    """What each rank sees, by rank."""
    assert result.code == 0, str(result)
    lines = dict(line[1:].split("] ", 1) for line in result.out.splitlines())
    return [lines[str(rank)] for rank in range(len(lines))]


def warnings(result):
    return [line for line in result.err.splitlines() if "warning" in line]


def inventories(host):
    """The processes of it that run there."""
    return [process for process in host.newcomers() if "inventory" in process.name]


def test_a_job_that_needs_no_names_asks_no_driver(cluster):
    gpu_host(cluster, {"HVRUN_TEST_NVML": "hang"}, is_cut=False)
    assert "drivers have told" not in launch(cluster, "--verbose").err
    result = launch(cluster)
    assert seen(result) == ["unset"] * 8 and result.err == "", str(result)


def test_mig_devices_are_slots_and_a_faulty_gpu_is_none(cluster):
    gpu_host(cluster)
    assert "drivers have told of GPUs" in launch(cluster, "--verbose").err
    result = launch(cluster, "--report-bindings")
    assert seen(result) == [*map(uuid, range(5)), *map(mig_uuid, range(3)), uuid(7)]
    (warning,) = warnings(result)
    for part in ("GPU 6 of host node1", "0000:c5:00.0", uuid(6), "3 uncorrected memory errors", "nvidia-smi -r", "drain"):
        assert part in warning, str(result)
    assert f"GPU 5 ({mig_uuid(1)})" in result.err and f"GPU 0 ({uuid(0)})" in result.err, str(result)


def test_gpu_bind_visible_names_gpus_that_proc_does_not_name(cluster):
    gpu_host(cluster, {"HVRUN_TEST_NVML": "healthy"}, is_cut=False)
    # The driver knows of MIG mode what /proc does not show.
    expected = [*map(uuid, range(5)), *map(mig_uuid, range(3)), uuid(6), uuid(7)]
    assert seen(launch(cluster, "--gpu-bind=visible")) == expected


def test_gpus_by_uuid_and_by_index(cluster):
    gpu_host(cluster, is_cut=False)
    cluster.login.write_file("/tmp/hosts", "node1 gpus=7,0\n")
    result = cluster.run(["hvrun", "--hostfile", "/tmp/hosts", *SHOW])
    assert seen(result) == ["7,0"] * 2, str(result)  # nobody wants a name: the driver is left alone
    cluster.login.write_file("/tmp/hosts", f"node1 gpus={uuid(7)},{mig_uuid(2)}\n")
    result = cluster.run(["hvrun", "--hostfile", "/tmp/hosts", *SHOW])
    assert seen(result) == [uuid(7), mig_uuid(2)]


def test_a_faulty_gpu_that_is_asked_for_is_an_error(cluster):
    gpu_host(cluster)
    cluster.login.write_file("/tmp/hosts", "node1 gpus=6\n")
    result = cluster.run(["hvrun", "--hostfile", "/tmp/hosts", *SHOW])
    text, hint = errors(result)[0]
    assert result.code == USAGE and "GPU 6 of host node1" in text and "ECC" in text and "nvidia-smi -r" in hint, str(result)


@pytest.mark.parametrize("visible, expected", [
    ("3,1", ["3,1"] * 2), (uuid(4), [uuid(4)]), (f"{mig_uuid(2)},{mig_uuid(0)}", [mig_uuid(2), mig_uuid(0)]),
    (f"MIG-{uuid(5)}/8/0", [mig_uuid(1)]), ("5", [mig_uuid(part) for part in range(3)]), ("6,0", [uuid(0)])])
def test_what_a_scheduler_has_chosen(cluster, visible, expected):
    """Ranks that get no variable of their own see that of the host."""
    gpu_host(cluster, {"CUDA_VISIBLE_DEVICES": visible})
    assert seen(launch(cluster)) == expected


def test_a_schedulers_indices_on_a_host_of_two_models_are_warned_about(cluster):
    chosen = {"CUDA_VISIBLE_DEVICES": "0,1", "HVRUN_TEST_NVML": "odd"}
    made = gpu_host(cluster, chosen, models={0: "NVIDIA A30"})
    (warning,) = warnings(launch(cluster))
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in warning
    made.set_environment(CUDA_DEVICE_ORDER="PCI_BUS_ID", **chosen)
    assert warnings(launch(cluster)) == []


def test_gpus_that_a_scheduler_hides_do_not_count(cluster):
    """The driver's library lists them all the same."""
    gpu_host(cluster, {"HVRUN_TEST_NVML": "healthy"}, hidden=(0, 6), hidden_parts=(1,))
    assert seen(launch(cluster)) == [*map(uuid, (1, 2, 3, 4)), mig_uuid(0), mig_uuid(2), uuid(7)]


def test_several_gpus_a_rank_are_of_one_island(cluster):
    gpu_host(cluster, {"HVRUN_TEST_NVML": "healthy"})
    cluster.login.write_file("/tmp/hosts", "node1 gpus=0,4,1,6,2,7\n")
    result = cluster.run(["hvrun", "--hostfile", "/tmp/hosts", "--gpus-per-rank", "3", *SHOW])
    assert seen(result) == [",".join(map(uuid, (0, 1, 2))), ",".join(map(uuid, (4, 6, 7)))]


def test_several_gpus_a_rank_cannot_be_mig_devices(cluster):
    gpu_host(cluster, {"CUDA_VISIBLE_DEVICES": "5"})
    expect_error(launch(cluster, "--gpus-per-rank", "2"), USAGE, "2 GPUs", "MIG device", "node1")


@pytest.mark.parametrize("machine, reason", [("no-driver", "Driver Not Loaded"), ("die", "SIGABRT")])
def test_a_driver_that_cannot_be_asked_is_a_warning(cluster, machine, reason):
    gpu_host(cluster, {"HVRUN_TEST_NVML": machine}, knows_uuids=True)
    result = launch(cluster)
    (warning,) = warnings(result)
    assert "host node1" in warning and reason in warning and "/proc" in warning, str(result)
    assert len(seen(result)) == 8


def test_a_library_that_is_missing_is_named(cluster):
    gpu_host(cluster, {"LD_LIBRARY_PATH": ""}, is_cut=False)
    result = launch(cluster, "--gpu-bind=visible")
    assert "libnvidia-ml.so.1: cannot open shared object file" in warnings(result)[0], str(result)
    assert seen(result) == [str(gpu) for gpu in range(8)]


def test_a_driver_that_hangs_is_given_up_in_time(cluster):
    gpu_host(cluster, {"HVRUN_TEST_NVML": "hang"})
    result = launch(cluster, env={"HVRUN_INVENTORY_TIMEOUT": "1"})
    (warning,) = warnings(result)
    assert "did not answer within 1 s" in warning and len(seen(result)) == 8, str(result)
    wait_for(lambda: not inventories(cluster["node1"]), 10, cluster.report)


def test_a_driver_that_talks_does_no_harm(cluster):
    gpu_host(cluster, {"HVRUN_TEST_NVML": "chatter healthy"})
    assert len(seen(launch(cluster))) == 10


def test_ctrl_c_while_a_driver_is_asked(cluster):
    gpu_host(cluster, {"HVRUN_TEST_NVML": "hang"})
    with cluster.start(["hvrun", "-H", "node1", *SHOW]) as job:
        wait_for(lambda: inventories(cluster["node1"]), 20, cluster.report)
        job.kill(signal.SIGINT)
        assert job.wait(10).code == 130
    wait_for(lambda: not cluster["node1"].newcomers(), 10, cluster.report)


def test_an_old_driver_tells_what_it_can(cluster):
    gpu_host(cluster, {"LD_LIBRARY_PATH": gpus.library_folder("nvml-old")}, is_cut=False)
    result = launch(cluster, "--gpu-bind=visible")
    assert seen(result) == [uuid(gpu) for gpu in range(8)] and result.err == "", str(result)


def test_the_program_leaves_nothing_on_a_host_that_lacked_it(cluster):
    gpu_host(cluster)
    before = set(cluster["node1"].shell("find /tmp /run /dev/shm -xdev -type f").split())
    seen(launch(cluster))
    after = set(cluster["node1"].shell("find /tmp /run /dev/shm -xdev -type f").split())
    assert not [path for path in after - before if "inventory" in path]


def test_a_plan_without_launch_asks_nobody(cluster):
    gpu_host(cluster, {"HVRUN_TEST_NVML": "hang"})
    result = cluster.run(["hvrun", "-H", "node1:2", "--dry-run=offline", "--format=json", "true"])
    plan = json.loads(result.out)
    assert [rank["gpu_uuids"] for rank in plan["ranks"]] == [[], []]


def test_on_this_machine_the_program_beside_the_agent_is_run(cluster):
    made = gpu_host(cluster, is_cut=False)
    environment = {"LD_LIBRARY_PATH": str(gpus.library_folder()), "CUDA_VISIBLE_DEVICES": f"{mig_uuid(1)},{uuid(3)}"}
    result = made.host.run(["hvrun", "-np", "2", "--gpu-bind=visible", *SHOW], env=environment)
    assert seen(result) == [mig_uuid(1), uuid(3)]


def test_people_may_ask_by_themselves(cluster):
    made = gpu_host(cluster)
    program = programs.hvrun_folder() / "hvrun-inventory"
    result = made.host.run([program], env={"LD_LIBRARY_PATH": str(gpus.library_folder())})
    told = json.loads(result.out)
    assert [gpu["uuid"] for gpu in told["gpus"]] == [uuid(gpu) for gpu in range(8)]
    assert told["gpus"][5]["mig_devices"][0]["may_open"] and told["topology"]["cores"] > 0, result.out
