"""Pods by a real kubectl, where there is one: what stands in is the API server. Skipped where none is installed.

SPDX-License-Identifier: Apache-2.0
"""
import shutil
import signal

import pytest

import launching
from harness import kube as pods
from harness.training import SAVES_SLOWLY
from harness.waiting import wait_for
from launching import lines_by_rank

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(not KUBECTL, reason="no kubectl is installed")


def run(hvrun, *words, **more):
    """Both pods are this machine, which hvrun would refuse."""
    return launching.run(hvrun, "--oversubscribe", *words, **more)


def start(hvrun, *words, **more):
    return launching.start(hvrun, "--oversubscribe", *words, **more)


@pytest.fixture
def kube(tmp_path):
    with pods.Kube(tmp_path / "kube") as made:
        made.pods = {name: made.add(name, home=tmp_path / name) for name in ("w-0", "w-1")}
        yield made


@pytest.fixture
def by_kubectl(kube, tmp_path):
    """hvrun's options; kubectl finds no configuration of the user's."""
    options = f"--server={kube.api()} --token=none --cache-dir={tmp_path}/cache"
    return ["--rsh", f"{KUBECTL} {options} -n jobs exec -c main", "-H", "w-0:1,w-1:1"]


def test_ranks_run_and_exit_codes_and_streams_come_back(hvrun, by_kubectl, tmp_path):
    result = run(hvrun, *by_kubectl, "sh", "-c", "echo $HOME; echo err >&2; exit $((HVRUN_RANK * 7))", HOME=str(tmp_path))
    assert lines_by_rank(result.stdout) == {rank: [str(tmp_path / f"w-{rank}").encode()] for rank in (0, 1)}, result.stderr
    assert result.returncode == 7 and result.stderr.count(b"] err\n") == 2, result.stderr


def test_a_stream_both_ways_is_whole(hvrun, by_kubectl, tmp_path):
    data = b"".join(b"%d\n" % number for number in range(500_000))
    result = run(hvrun, *by_kubectl, "-np", "1", "--stdin", "--no-label", "cat", stdin=data, HOME=str(tmp_path))
    assert (result.returncode, result.stdout == data) == (0, True), result.stderr


@pytest.mark.parametrize("state", ["missing", "unscheduled", "creating"])
def test_what_it_says_of_a_pod_that_comes_up_is_reason_to_wait(hvrun, kube, by_kubectl, tmp_path, state):
    kube.pods["w-1"].be(state)
    process = start(hvrun, "--verbose", *by_kubectl, "hostname", HOME=str(tmp_path))
    line = process.stderr.readline()
    assert b"waiting for w-1: start the agent on host w-1: kubectl ended with exit code 1: " in line, line
    kube.pods["w-1"].be("running")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err


@pytest.mark.parametrize("state,mend", [("forbidden", b"let this account create pods/exec"), ("unauthorized", b"kubectl get pods")])
def test_what_it_says_of_a_refusal_is_none(hvrun, kube, by_kubectl, tmp_path, state, mend):
    kube.pods["w-1"].be(state)
    result = run(hvrun, *by_kubectl, "--start-timeout", "60", "hostname", timeout=30, HOME=str(tmp_path))
    assert result.returncode == 3 and mend in result.stderr, result.stderr


def test_an_option_that_it_does_not_know(hvrun, by_kubectl, tmp_path):
    by_kubectl[1] += " --no-such-option"
    result = run(hvrun, *by_kubectl, "hostname", HOME=str(tmp_path))
    assert result.returncode == 3 and b"unknown flag: --no-such-option" in result.stderr, result.stderr
    assert b"see 'kubectl exec --help'" in result.stderr, result.stderr


def test_a_server_that_is_not_there_is_awaited(hvrun, tmp_path):
    rsh = f"{KUBECTL} --server=http://127.0.0.1:1 --token=none --cache-dir={tmp_path}/cache exec"
    result = run(hvrun, "--rsh", rsh, "-H", "w-0", "--start-timeout", "2", "true", HOME=str(tmp_path))
    assert result.returncode == 4, result.stderr
    assert b"exit code 1: The connection to the server 127.0.0.1:1 was refused" in result.stderr, result.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_in_pods(hvrun, kube, by_kubectl, tmp_path, how):
    process = start(hvrun, *by_kubectl, "sh", "-c", "echo up; exec tail -f /dev/null", HOME=str(tmp_path))
    assert all([process.stdout.readline() for _ in range(2)])
    assert kube.residents()
    process.send_signal(how)
    process.communicate(timeout=10)
    wait_for(lambda: not kube.residents(), 8, lambda: f"an end of {kube.residents()}")


def test_ranks_have_the_pods_termination_grace_period(hvrun, kube, by_kubectl, tmp_path):
    """Where Kubernetes ends hvrun's own pod, too; the API server knows none of this test's. It is asked at the start: later it may
    not answer."""
    kube.add("w-1", home=tmp_path / "w-1", period=60)
    log = tmp_path / "log"
    with open(log, "wb") as file:
        process = start(hvrun, "-v", *by_kubectl, "/usr/bin/python3", "-c", SAVES_SLOWLY, "5", stderr=file, HOME=str(tmp_path),
                        KUBERNETES_SERVICE_HOST="10.96.0.1")
        assert all([process.stdout.readline() for _ in range(2)])
        wait_for(lambda: b"s  Kubernetes leaves a pod 30 s to end\n" in log.read_bytes(), 30, log.read_text)
        for pod in kube.pods.values():
            pod.be("missing")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert sorted(out.splitlines()) == [b"[0] saved", b"[1] saved"], log.read_text()


def test_without_an_answer_of_the_api_server_the_end_does_not_wait(hvrun, kube, by_kubectl, tmp_path):
    """An unknown period is 3 s; the query itself gives up much later."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f'#!/bin/sh\n[ "$1" != get ] || exec tail -f /dev/null\nexec {KUBECTL} "$@"\n')
    kubectl.chmod(0o755)
    by_kubectl[1] = by_kubectl[1].replace(KUBECTL, str(kubectl))
    process = start(hvrun, *by_kubectl, "sh", "-c", "trap '' TERM; echo up; exec tail -f /dev/null", HOME=str(tmp_path),
                    KUBERNETES_SERVICE_HOST="10.96.0.1")
    assert all([process.stdout.readline() for _ in range(2)])
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=25)
    assert b" after 3 s; they ignored SIGTERM\n" in err, err
