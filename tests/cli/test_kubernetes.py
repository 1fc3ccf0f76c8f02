"""Pods as hosts, by a stand-in for kubectl: each pod is this machine with a HOME of its own.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import signal

import pytest
import yaml

import launching
from harness import kube as pods
from harness.waiting import wait_for
from launching import lines_by_rank

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BOTH = ("w-0 slots=2", "w-1 slots=2")
HOMES = ["sh", "-c", "echo $HOME"]


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
def launcher(kube):
    """The variables of the operator's launcher, whose hosts are both pods."""
    return kube.operator(*BOTH)


def names_of_homes(result):
    assert result.returncode == 0, result.stderr
    return {rank: [os.path.basename(line.decode()) for line in lines] for rank, lines in lines_by_rank(result.stdout).items()}


def told(result, code):
    """hvrun's only error and its mend."""
    words = result.stderr.decode()
    assert result.returncode == code and words.count("hvrun: error: ") == 1 and result.stdout == b"", words
    return words[words.index("hvrun: error: "):]


def test_the_operators_hosts_are_pods_and_are_reached_by_its_kubectl(hvrun, kube, launcher):
    result = run(hvrun, *HOMES, **launcher)
    assert names_of_homes(result) == {0: ["w-0"], 1: ["w-0"], 2: ["w-1"], 3: ["w-1"]}
    assert result.stderr == b""
    call = next(words for words in kube.calls() if "w-1" in words)
    assert call[:-1] == ["exec", "-i", "w-1", "--", "/bin/sh", "-c"], call


@pytest.mark.parametrize("words", [["-H", "w-1"], ["--hostfile"], ["--exclude", "w-0"]])
def test_some_of_its_hosts_named_in_any_way(hvrun, launcher, words):
    """A name that the operator's list has is a pod, whoever says it."""
    chosen = words if words != ["--hostfile"] else ["--hostfile", launcher["OMPI_MCA_orte_default_hostfile"], "-H", "w-1"]
    assert set(names_of_homes(run(hvrun, *chosen, *HOMES, **launcher)).popitem()[1]) == {"w-1"}


@pytest.mark.parametrize("names", [
    ("PRTE_MCA_prte_default_hostfile", "PRTE_MCA_plm_ssh_agent"),
    ("I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP_EXEC"),
    ("HYDRA_HOST_FILE", "HYDRA_LAUNCHER_EXEC"),
])
def test_in_the_variables_of_every_mpi(hvrun, launcher, names):
    hostfile, agent = names
    launcher[hostfile] = launcher.pop("OMPI_MCA_orte_default_hostfile")
    launcher[agent] = launcher.pop("OMPI_MCA_plm_rsh_agent")
    assert names_of_homes(run(hvrun, "-np", "1", *HOMES, **launcher)) == {0: ["w-0"]}


@pytest.mark.parametrize("call", ["exec", "exec -i", "-n jobs exec -c main", "exec --namespace=jobs --stdin"])
def test_rsh_with_kubectl_from_anywhere(hvrun, kube, call):
    result = run(hvrun, "--rsh", f"{pods.KUBECTL} {call}", "-H", "w-0:1,w-1:1", *HOMES, STAND_IN_KUBE=str(kube.folder))
    assert names_of_homes(result) == {0: ["w-0"], 1: ["w-1"]}


def test_the_exit_code_and_both_streams_of_ranks_come_back(hvrun, launcher):
    result = run(hvrun, "-np", "4", "sh", "-c", "echo out $HVRUN_RANK; echo err >&2; [ $HVRUN_RANK != 3 ] || exit 7", **launcher)
    assert result.returncode == 7
    assert b"[3] err" in result.stderr and b"rank 3 on host w-1" in result.stderr, result.stderr
    assert lines_by_rank(result.stdout)[3] == [b"out 3"]


def test_standard_input_reaches_rank_0_in_a_pod(hvrun, launcher):
    data = b"".join(b"%d\n" % number for number in range(100_000))
    result = run(hvrun, "-np", "1", "--stdin", "--no-label", "cat", stdin=data, **launcher)
    assert (result.returncode, result.stdout == data) == (0, True), result.stderr


def test_a_pod_that_becomes_ready_late(hvrun, kube, launcher):
    """First it is not there, then not scheduled, then its container is being created."""
    states = ["unscheduled", "creating", "busy", "running"]
    kube.pods["w-1"].be("missing")
    with_start = start(hvrun, "--verbose", *HOMES, **launcher)
    for state in states:
        seen = len(kube.calls())
        wait_for(lambda: len([words for words in kube.calls()[seen:] if "w-1" in words]) >= 1, 20, f"an attempt before {state}")
        kube.pods["w-1"].be(state)
    out, err = with_start.communicate(timeout=30)
    assert with_start.returncode == 0, err
    assert out.count(b"/w-1\n") == 2 and b'waiting for w-1: start the agent on host w-1: kubectl ended with' in err, err


def test_a_pod_that_never_becomes_ready_is_told_with_what_kubectl_said_last(hvrun, kube, launcher):
    kube.pods["w-1"].be("unscheduled")
    words = told(run(hvrun, "--start-timeout", "1.5", *HOMES, **launcher), 4)
    assert "pod w-1 does not have a host assigned, until the 1.5 s of --start-timeout were over" in words
    assert "try: see 'kubectl describe pod w-1'" in words and "ssh" not in words, words


@pytest.mark.parametrize("state,reason,mend", [
    ("forbidden", "cannot create resource \"pods/exec\"", "let this account create pods/exec"),
    ("unauthorized", "(Unauthorized)", "kubectl get pods"),
    ("completed", "in a completed pod", "kubectl describe pod w-1"),
    ("without-shell", "stat /bin/sh", "take an image with /bin/sh"),
])
def test_what_no_patience_mends_ends_the_start_at_once(hvrun, kube, launcher, state, reason, mend):
    kube.pods["w-1"].be(state)
    words = told(run(hvrun, "--start-timeout", "60", *HOMES, timeout=20, **launcher), 3)
    assert "host w-1" in words and reason in words and mend in words, words
    assert len([call for call in kube.calls() if "w-1" in call]) == 1


def test_a_container_that_the_pod_has_not(hvrun, kube, launcher):
    kube.pods["w-0"].be("running", containers=["app", "sidecar"])
    named = ["--rsh", f"{pods.KUBECTL} exec -n jobs -c main"]
    words = told(run(hvrun, "-np", "1", *named, *HOMES, **launcher), 3)
    assert "container main is not valid for pod w-0" in words, words
    assert f"try: name one of the pod's containers: --rsh '{pods.KUBECTL} exec -i -n jobs --container=NAME'" in words, words
    result = run(hvrun, "-np", "1", *HOMES, **launcher)
    assert (names_of_homes(result), result.stderr) == ({0: ["w-0"]}, b"")


def test_of_several_containers_without_a_default_one_must_be_named(hvrun, kube, launcher):
    """The advice works as it is printed."""
    kube.pods["w-0"].be("running", containers=["app", "sidecar"], is_default_known=False)
    words = told(run(hvrun, "-np", "1", *HOMES, **launcher), 3)
    assert "host w-0" in words and "choose one of: [app sidecar]" in words, words
    advice = words.partition("--rsh '")[2].partition("'")[0]
    assert advice == f"{kube.folder}/kubectl exec -i --container=NAME", words
    result = run(hvrun, "-np", "1", "--rsh", advice.replace("NAME", "sidecar"), *HOMES, **launcher)
    assert names_of_homes(result) == {0: ["w-0"]}


def test_kubectl_on_path_where_none_lies_next_to_the_script(hvrun, kube, tmp_path):
    launcher = kube.operator(*BOTH, kubectl=None)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(pods.KUBECTL)
    launcher["PATH"] = f"{tmp_path}/bin:{os.environ['PATH']}"
    assert names_of_homes(run(hvrun, "-np", "1", *HOMES, **launcher)) == {0: ["w-0"]}


def test_no_kubectl_anywhere_names_the_option_which_works(hvrun, kube, tmp_path):
    launcher = kube.operator(*BOTH, kubectl=None)
    words = told(run(hvrun, "-np", "1", *HOMES, **launcher, PATH=str(tmp_path)), 2)
    assert f"$OMPI_MCA_plm_rsh_agent: {kube.folder}/kubexec.sh reaches pods by kubectl" in words, words
    assert "try: name it: --rsh '/path/to/kubectl exec -i --container=NAME'" in words, words
    result = run(hvrun, "-np", "1", "--rsh", f"{pods.KUBECTL} exec -i --container=main", *HOMES, **launcher)
    assert names_of_homes(result) == {0: ["w-0"]}


@pytest.mark.parametrize("words,said", [
    (["--rsh", "kubectl exec -it"], "-t gives a terminal"),
    (["--rsh", "kubectl get"], "kubectl get does not run commands in pods"),
    (["--rsh", "kubectl exec w-0"], "more than options: 'w-0'"),
    (["--rsh", "kubectl exec", "-l", "ada"], "a user (-l, user@host) means nothing"),
    (["--rsh", "kubectl exec", "--ssh-accept-new"], "--ssh-accept-new means nothing"),
])
def test_what_kubectl_cannot_do_is_refused(hvrun, words, said):
    assert said in told(run(hvrun, *words, "-H", "w-0", "true"), 2)


def test_a_pod_that_can_write_nowhere_but_in_shared_memory(hvrun, kube, launcher):
    """A read-only root: HOME is of another kind, /tmp is not ours to make folders in."""
    if os.geteuid() != 0:
        pytest.skip("a read-only /tmp takes root")
    alone = "mount -t tmpfs none /dev/shm; mount -t tmpfs -o ro none /tmp; cd / && exec \"$@\""
    kube.add("w-0", home="/proc/nowhere", enter=["unshare", "-m", "sh", "-c", alone, "sh"])
    result = run(hvrun, "-np", "1", "--wdir", "/", "sh", "-c", "ls /dev/shm/hvrun-0", **launcher)
    assert result.returncode == 0 and b"[0] agent-" in result.stdout, result.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_whoever_ends_hvrun(hvrun, kube, launcher, how):
    process = start(hvrun, "sh", "-c", "echo $$; exec tail -f /dev/null", **launcher)
    assert all([process.stdout.readline() for _ in range(4)])
    assert len([one for one in kube.residents() if "agent" in one]) >= 2, kube.residents()
    process.send_signal(how)
    process.communicate(timeout=10)
    assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
    wait_for(lambda: not kube.residents(), 8, lambda: f"an end of {kube.residents()}")


def test_a_killed_kubectl_is_a_lost_host_and_ends_the_job(hvrun, kube, launcher):
    process = start(hvrun, "sh", "-c", "echo $$; exec tail -f /dev/null", **launcher)
    assert all([process.stdout.readline() for _ in range(4)])
    def kubectls():
        """Without the one that asks for the pods' terminationGracePeriodSeconds."""
        return [line.split()[0] for line in kube.residents() if line.endswith(" kubectl")]
    wait_for(lambda: len(kubectls()) == 2, 20, kube.residents)
    os.kill(int(kubectls()[0]), signal.SIGKILL)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 5 and b"kubectl ended with SIGKILL" in err, err
    wait_for(lambda: not kube.residents(), 8, lambda: f"an end of {kube.residents()}")


def manifests(name):
    return list(yaml.safe_load_all((SOURCE / "examples" / "kubernetes" / name).read_text()))


@pytest.mark.parametrize("name,version", [("mpijob-v1.yaml", "kubeflow.org/v1"), ("mpijob-v2beta1.yaml", "kubeflow.org/v2beta1")])
def test_the_manifests_launch_by_words_that_hvrun_knows(hvrun, name, version):
    [job] = manifests(name)
    assert (job["apiVersion"], job["kind"]) == (version, "MPIJob")
    replicas = job["spec"]["mpiReplicaSpecs"]
    [launcher] = replicas["Launcher"]["template"]["spec"]["containers"]
    assert launcher["command"] == ["hvrun"] and replicas["Launcher"]["replicas"] == 1
    result = run(hvrun, "--dry-run=offline", *launcher["args"])
    assert result.returncode == 0 and b"each runs: python train.py" in result.stdout, result.stderr
    [worker] = replicas["Worker"]["template"]["spec"]["containers"]
    assert worker["image"] == launcher["image"] and job["spec"]["slotsPerWorker"] == worker["resources"]["limits"]["nvidia.com/gpu"]


def test_the_manifest_of_rights_has_what_the_advice_names():
    role, binding = manifests("exec-role.yaml")
    assert {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]} == {
        ("pods", "get"), ("pods/exec", "create")}
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


def test_the_page_shows_a_part_of_the_manifests():
    page = (SOURCE / "docs" / "kubernetes.md").read_text()
    shown = page.partition("```yaml\n")[2].partition("```")[0]
    for name in ("mpijob-v1.yaml", "mpijob-v2beta1.yaml"):
        assert shown in (SOURCE / "examples" / "kubernetes" / name).read_text()


def test_ctrl_c_while_a_pod_is_awaited(hvrun, kube, launcher):
    kube.pods["w-1"].be("creating")
    process = start(hvrun, *HOMES, **launcher)
    wait_for(lambda: len([words for words in kube.calls() if "w-1" in words]) >= 2, 20, "two attempts")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130
    wait_for(lambda: not kube.residents(), 8, lambda: f"an end of {kube.residents()}")
