# SPDX-License-Identifier: Apache-2.0
"""Three hosts as the pods of an MPI job, the login host as its launcher's pod: by kubectl exec, and by SSH as of operator v2."""

import signal

import pytest

from harness import programs, sshd
from harness.jobs import LOST, START, TIMEOUT, expect_error, expect_hosts, lines_of
from harness.kube import KUBECTL, Kube, why_not
from harness.processes import below, kill_together
from harness.waiting import stays, wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

NODES = ("node1", "node2", "node3")
STUBBORN = ("plain", "session", "stubborn", "daemon", "stubborn-daemon", "self")
ALL = len(NODES) * len(STUBBORN)
AFTER = 5  # seconds, promise 1


@pytest.fixture
def kube(cluster):
    if reason := why_not():
        pytest.skip(reason)
    with Kube(cluster.shared / "kube") as made:
        made.pods = {name: made.add(name, host=cluster[name]) for name in NODES}
        yield made


@pytest.fixture
def launcher(kube):
    """The whole environment of the operator's launcher, each pod with a slot."""
    return kube.operator(*(f"{name} slots=1" for name in NODES))


@pytest.fixture
def job(cluster, launcher, roll_call, payload):
    """start(options...) of ranks that do all they can to stay; running, and undisturbed."""
    started = []

    def start(*options):
        started.append(cluster.start(["hvrun", *options, payload("orphan_maker"), str(roll_call), *STUBBORN], env=launcher))
        roll_call.wait_for(ALL, 30)
        return started[-1]

    yield start
    for running in started:
        running.__exit__()


def kubectls(running):
    """Those that hold an agent's streams."""
    return [process for process in below(running.pid) if process.name.startswith("kubectl") and "exec" in process.arguments]


def tries(kube, pod):
    return len([words for words in kube.calls() if pod in words])


def test_the_launcher_needs_no_host_option_and_no_ssh(cluster, kube, launcher):
    for node in cluster.nodes:
        sshd.stop(node)
    expect_hosts(cluster.run(["hvrun", "hostname"], env=launcher), *NODES)
    execs = [words for words in kube.calls() if words[0] != "get"]
    assert all(words[:2] == ["exec", "-i"] and words[3] == "--" for words in execs) and len(execs) == len(NODES), kube.calls()


def test_ranks_of_pods_meet_and_compute(cluster, kube):
    launcher = kube.operator(*(f"{name} slots=2" for name in NODES))
    result = cluster.run(["hvrun", str(programs.hvrun_folder() / "c_ranks_test")], env=launcher, timeout=60)
    assert result.code == 0 and result.out.count("all good") == 6, str(result)


def test_a_kubectl_that_does_not_run_with_the_jobs_libraries(cluster, kube):
    folder = cluster.shared / "lib"
    folder.mkdir()
    (folder / "libcrypto.so.3").write_text("no library")
    needs_libcrypto = cluster.shared / "kubectl"
    needs_libcrypto.write_text(f'#!/bin/sh\nssh -V || exit\nexec {KUBECTL} "$@"\n')
    needs_libcrypto.chmod(0o755)
    launcher = kube.operator(*(f"{name} slots=1" for name in NODES), kubectl=needs_libcrypto)
    result = cluster.run(["hvrun", "sh", "-c", "echo $(hostname) $LD_LIBRARY_PATH"], env={**launcher, "LD_LIBRARY_PATH": str(folder)})
    assert (result.code, lines_of(result)) == (0, [f"[{rank}] {name} {folder}" for rank, name in enumerate(NODES)]), str(result)
    assert "kubectl does not run with your LD_LIBRARY_PATH" in result.err, str(result)


def test_every_line_and_the_exit_code_come_back(cluster, launcher):
    script = "seq -f $HVRUN_RANK.%g 20000; [ $HVRUN_RANK = 1 ] && exit 9; exec tail -f /dev/null"
    result = cluster.run(["hvrun", "--no-label", "sh", "-c", script], env=launcher)
    assert result.code == 9 and "rank 1 on host node2" in result.err, str(result)[:4000]
    assert len([line for line in lines_of(result) if line.startswith("1.")]) == 20000


def test_the_launchers_own_pod_may_have_ranks(cluster, kube):
    """The operator lists it with the others; nothing has to reach it."""
    launcher = kube.operator("login slots=1", "node1 slots=1")
    expect_hosts(cluster.run(["hvrun", "hostname"], env=launcher), "login", "node1")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_hvrun_leaves_nothing_in_any_pod(job, roll_call, number):
    running = job()
    running.process.send_signal(number)
    roll_call.expect_nobody(AFTER)
    assert running.wait(5).code == 128 + number


def test_sigkill_of_hvrun_leaves_nothing_in_any_pod(cluster, job, roll_call):
    running = job()
    assert len(kubectls(running)) == len(NODES)
    running.kill()
    roll_call.expect_nobody(AFTER)
    wait_for(lambda: not [one for one in cluster.login.processes() if one.name.startswith("kubectl")], 2, cluster.report)


def test_sigkill_of_one_kubectl_is_a_lost_host(job, roll_call):
    running = job("--grace", "1")
    kill_together(kubectls(running)[:1])
    roll_call.expect_nobody(AFTER + 3)
    result = running.wait(10)
    assert result.code == LOST and "kubectl ended with SIGKILL" in result.err, str(result)


def test_silence_is_the_end_where_no_stream_tells(job, roll_call):
    """A runtime that keeps a command's streams open when its kubectl has gone: here nobody goes, and nobody speaks."""
    running = job("--lost-after", "2")
    running.process.send_signal(signal.SIGSTOP)
    kill_together(kubectls(running), signal.SIGSTOP)
    roll_call.expect_nobody(2 + AFTER)


def test_a_pod_that_becomes_ready_late(cluster, kube, launcher):
    kube.pods["node2"].be("creating")
    with cluster.start(["hvrun", "hostname"], env=launcher) as running:
        wait_for(lambda: tries(kube, "node2") >= 2, 20, "a second attempt")
        kube.pods["node2"].be("running")
        result = running.wait(20)
    expect_hosts(result, *NODES)
    assert result.err == ""


def test_the_user_hears_of_pods_that_take_long_once(cluster, kube, launcher):
    for name in ("node2", "node3"):
        kube.pods[name].be("unscheduled")
    with cluster.start(["hvrun", "hostname"], env=launcher) as running:
        running.wait_for_output("waiting for node[2-3]: ", 20)
        for name in ("node2", "node3"):
            kube.pods[name].be("running")
        result = running.wait(20)
    expect_hosts(result, *NODES)
    assert result.err.count("waiting for") == 1, str(result)


def test_a_pod_that_never_becomes_ready(cluster, kube, launcher):
    kube.pods["node3"].be("missing")
    result = cluster.run(["hvrun", "--start-timeout", "2", "hostname"], env=launcher)
    text, hint = expect_error(result, TIMEOUT, "host node3", 'pods "node3" not found', "--start-timeout")
    assert "kubectl describe pod node3" in hint, str(result)


def test_a_right_that_lacks(cluster, kube, launcher):
    for name in NODES:
        kube.pods[name].be("forbidden")
    result = cluster.run(["hvrun", "hostname"], env=launcher)
    assert result.code == START, str(result)
    assert "let this account create pods/exec: a Role" in result.err and "ssh" not in result.err, str(result)


def test_a_pod_with_a_read_only_root(cluster, kube, launcher):
    """Home and /tmp are as the image has them; the memory that pods share can be written."""
    node = cluster["node2"]
    node.spoil_home("readonly")
    node.shell("mount -o remount,ro /tmp; mount -o remount,ro /var/tmp")
    expect_hosts(cluster.run(["hvrun", "--wdir", "/", "hostname"], env=launcher), *NODES)
    assert "agent-" in node.shell("ls /dev/shm/hvrun-0")


def test_a_pod_that_is_replaced_while_ranks_run_is_a_lost_host(cluster, kube, job, roll_call):
    """What ran there is gone with it: nobody waits for the new one."""
    running = job()
    kube.pods["node2"].be("missing")
    kill_together([process for process in kubectls(running) if "node2" in process.arguments])
    result = running.wait(8)
    assert result.code == LOST and "node2" in result.err, str(result)


def test_a_job_starts_again_once_its_pod_is_replaced(cluster, kube, launcher):
    program = "echo attempt $HVRUN_RESTART; [ $HVRUN_RESTART = 1 ] || exec tail -f /dev/null"
    words = ["hvrun", "--restarts", "1", "sh", "-c", program]
    with cluster.start(words, env=launcher | {"HVRUN_RESTART_DELAY": "0"}) as running:
        for rank in range(len(NODES)):
            running.wait_for_output(f"[{rank}] attempt 0", 30)
        kube.pods["node2"].be("missing")
        kill_together([process for process in kubectls(running) if "node2" in process.arguments])
        running.wait_for_output("waiting for node2", 30)
        kube.pods["node2"].be("running")
        result = running.wait(30)
    expected = sorted(f"[{rank}] attempt {number}" for rank in range(len(NODES)) for number in range(2))
    assert result.code == 0 and sorted(lines_of(result)) == expected, str(result)
    assert "the job starts again now (restart 1 of 1): host node2 " in result.err, str(result)


def of_version_2(kube, *hosts):
    """SSH into the pods: no script, and no variable that names one."""
    launcher = kube.operator(*hosts)
    del launcher["OMPI_MCA_plm_rsh_agent"]
    return launcher | {"OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10", "OMPI_MCA_orte_keep_fqdn_hostnames": "true"}


def test_version_2_waits_for_an_sshd_that_comes_up_late(cluster, kube):
    sshd.stop(cluster["node2"])
    with cluster.start(["hvrun", "--verbose", "hostname"], env=of_version_2(kube, "node1 slots=1", "node2 slots=1")) as running:
        running.wait_for_output("waiting for node2: connect to host node2: ", 20)
        sshd.start(cluster["node2"])
        result = running.wait(20)
    assert result.code == 0 and lines_of(result) == ["[0] node1", "[1] node2"], str(result)
    assert kube.calls() == []


def test_version_2_waits_for_a_name_that_is_not_known_yet(cluster, kube):
    launcher = of_version_2(kube, "node1 slots=1", "late.svc slots=1")
    with cluster.start(["hvrun", "--verbose", "--ssh-accept-new", "hostname"], env=launcher) as running:
        running.wait_for_output("waiting for late.svc: find the address of host late.svc: ", 20)
        cluster.add_name("late.svc", cluster["node3"].address)
        result = running.wait(20)
    assert result.code == 0 and lines_of(result) == ["[0] node1", "[1] node3"], str(result)


def test_version_2_waits_by_the_systems_ssh_too(cluster, kube):
    sshd.stop(cluster["node2"])
    cluster.login.write_file("/run/home/root/.ssh/config", "Host node2\n  ProxyJump node1\n", mode=0o600)
    with cluster.start(["hvrun", "--verbose", "hostname"], env=of_version_2(kube, "node1 slots=1", "node2 slots=1")) as running:
        running.wait_for_output("waiting for node2", 20)
        sshd.start(cluster["node2"])
        result = running.wait(20)
    assert result.code == 0 and lines_of(result) == ["[0] node1", "[1] node2"], str(result)
    assert result.err.count("by the system's ssh") == 1, str(result)


def test_version_2_with_the_ssh_configuration_of_the_operators_images(cluster, kube):
    """Host keys are new each time, and nowhere to be kept: ~/.ssh is a secret, mounted read-only."""
    cluster.login.write_file("/run/home/root/.ssh/config", "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n", mode=0o600)
    cluster.login.outside("/run/home/root/.ssh/known_hosts").unlink()
    cluster.login.spoil_home("readonly")
    expect_hosts(cluster.run(["hvrun", "hostname"], env=of_version_2(kube, *NODES), cwd="/"), *NODES)


def test_version_2_and_a_pod_that_never_comes(cluster, kube):
    sshd.stop(cluster["node2"])
    result = cluster.run(["hvrun", "--start-timeout", "2", "hostname"], env=of_version_2(kube, *NODES))
    text, hint = expect_error(result, TIMEOUT, "connect to host node2", "Connection refused", "--start-timeout")
    assert "sshd runs on node2" in hint


def test_hosts_that_the_operator_did_not_name_are_not_awaited(cluster, kube):
    sshd.stop(cluster["node2"])
    result = cluster.run(["hvrun", "-H", "node1,node2", "hostname"], env=of_version_2(kube, "node1 slots=1"))
    expect_error(result, START, "connect to host node2", "Connection refused")


def test_version_2s_launcher_may_have_ranks_under_its_services_name(cluster, kube):
    launcher = of_version_2(kube, "login.job.jobs.svc slots=1", "node1 slots=1")
    expect_hosts(cluster.run(["hvrun", "hostname"], env=launcher), "login", "node1")
    stays(lambda: kube.calls() == [], 0.1, "nobody called kubectl")
