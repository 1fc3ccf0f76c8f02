"""Lists of hosts as users write them, down to the plan of a dry run.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import pwd

import pytest

from launching import run

SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / "hostfiles"
HOSTS_OF = {
    "hvrun": {"[fd00::7]": 4, "node1": 2} | {f"rack1n{number:02}": 4 for number in range(1, 17)},
    "openmpi": {"node1": 4, "node2": 4},
    "deepspeed": {"worker-1": 4, "worker-2": 4},
    "horovod": {"node1": 4, "node2": 2},
    "mpich": {"node1": 4, "node2": 4},
    "pbs": {"node1": 2, "node2": 2},
    "lsf": {"node1": 4, "node2": 4},
    "lsf-djob": {"node1": 2, "node2": 2},
    "sge": {"node1": 4, "node2": 2},
    "mpi-operator": {"train-worker-0.train.default.svc": 2, "train-worker-1.train.default.svc": 2},
    "slurm": {f"n{number:02}": 1 for number in (*range(1, 17), 20)} | {"gpu1xa": 1, "gpu2xa": 1},
}


def plan_of(hvrun, *words, **more):
    result = run(hvrun, "--dry-run=offline", "--format", "json", *words, "true", **more)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def hosts_of(plan):
    return {host["name"]: host["slots"] for host in plan["hosts"]}


def places_of(plan):
    return [rank["host"] for rank in plan["ranks"]]


def test_every_example_is_known_here():
    assert {file.name for file in EXAMPLES.iterdir()} == {*HOSTS_OF, "rankfile", "sites", "README.md"}


@pytest.mark.parametrize("name", HOSTS_OF)
@pytest.mark.parametrize("states_the_format", [False, True])
def test_every_example_is_read(hvrun, name, states_the_format):
    dialect = {"mpi-operator": "openmpi", "lsf-djob": "lsf"}.get(name, name)
    words = ["--hostfile-format", dialect] if states_the_format and name != "hvrun" else []
    expected = {host.strip("[]"): slots for host, slots in HOSTS_OF[name].items()}
    assert hosts_of(plan_of(hvrun, "--hostfile", str(EXAMPLES / name), *words)) == expected


def ssh_that(tmp_path, does):
    """--rsh with a program named ssh, whose words go into a file; it has no configuration to show (-G)."""
    script = tmp_path / "ssh"
    script.write_text(f'#!/bin/sh\n[ "$1" = -G ] && exit 1\necho "$@" >>{tmp_path}/words\n'
                      f'while [ "$1" != "${{1#-}}" ]; do shift 2; done\nshift\n{does}\n')
    script.chmod(0o755)
    return ["--rsh", str(script)]


@pytest.mark.parametrize("name,host,login,settings", [
    ("hvrun", "node1", "-l alice -p 2222 -i {tmp_path}/id_lab -o HostName=10.0.0.7 node1 ", {"says": b"host node1 has no GPU ", "most": 4}),
    ("hvrun", "rack1n03", "rack1n03 ", {"interfaces": b"ib0"}),
    ("hvrun", "[fd00::7]", "fd00::7 ", {}),
    ("openmpi", "node2", "node2 ", {"most": 8}),
    ("mpich", "node2", "-l alice node2 ", {"interfaces": b"eth1"}),
    ("mpi-operator", "train-worker-1.train.default.svc", "train-worker-1.train.default.svc ", {}),
])
def test_what_the_lines_of_an_example_add_arrives(hvrun, tmp_path, name, host, login, settings):
    (tmp_path / "id_lab").touch(mode=0o600)
    (tmp_path / "hosts").write_text((EXAMPLES / name).read_text().replace("~/.ssh", str(tmp_path)))
    words = ["--hostfile", str(tmp_path / "hosts"), "-H", host]
    more = ["-np", "1", "--no-label", "sh", "-c", "echo $HVRUN_INTERFACES"]
    result = run(hvrun, *ssh_that(tmp_path, 'exec sh -c "$1"'), *words, *more)
    assert result.stdout.strip() == settings.get("interfaces", b""), result
    assert settings.get("says", b"") in result.stderr, result
    called = tmp_path / "words"
    assert called.exists() and called.read_text().startswith(login.format(tmp_path=tmp_path)), result
    if most := settings.get("most"):
        result = run(hvrun, "--dry-run=offline", "--oversubscribe", "-np", str(most + 1), *words, "true")
        assert f"max-slots allow, {most} in all".encode() in result.stderr, result


def test_a_key_below_the_home_folder_is_looked_for_there(hvrun, tmp_path):
    (tmp_path / "hosts").write_text("a identity=~/.ssh/no-such-key-of-a-test\n")
    result = run(hvrun, "--hostfile", "hosts", "true", cwd=tmp_path)
    file = pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh" / "no-such-key-of-a-test"
    assert result.returncode == 3 and f"read the key file {file}: No such file" in result.stderr.decode(), result


@pytest.mark.parametrize("words,said", [
    (("--hostfile", str(EXAMPLES / "openmpi"), "-H", "node1,zz"),
     "-H:7: 'zz' is none of the hosts of {file}\n  node1,zz\n        ^\n  try: expected one of node[1-2]\n"),
    (("--hostfile", str(EXAMPLES / "openmpi"), "-H", "node1:9"),
     "-H:1: 'node1' has 4 slots in {file}:2, and 9 are asked for\n  node1:9\n  ^\n"),
    (("--rankfile", "gap"), "gap:2:6: rank 1 has no place, and rank 2 has one\n  rank 2=a\n       ^\n"),
    (("--rankfile", "narrow", "-H", "a:1"),
     "narrow:2:8: host a has 1 slot (-H), and this is one rank more\n  rank 1=a\n         ^\n"),
    (("--hostfile", "empty"), "empty:1:1: no host is named\n  # to do\n  ^\n"),
])
def test_what_is_wrong_between_two_lists_is_shown_where_it_is(hvrun, tmp_path, words, said):
    (tmp_path / "gap").write_text("rank 0=a\nrank 2=a\n")
    (tmp_path / "narrow").write_text("rank 0=a\nrank 1=a\n")
    (tmp_path / "empty").write_text("# to do\n")
    result = run(hvrun, "--dry-run=offline", *words, "true", cwd=tmp_path)
    assert result.returncode == 2 and said.format(file=EXAMPLES / "openmpi") in result.stderr.decode(), result.stderr.decode()


def test_a_format_is_refused_where_no_file_is_read(hvrun):
    result = run(hvrun, "--dry-run=offline", "-H", "a:2", "--hostfile-format", "sgee", "true")
    assert result.returncode == 2 and b"--hostfile-format 'sgee' is not understood\n  try: expected sge?" in result.stderr, result
    result = run(hvrun, "--dry-run=offline", "-H", "a:2", "--hostfile-format", "sge", "true")
    assert result.returncode == 2 and b"sge is the form of a hostfile, and none is read\n  try: add" in result.stderr, result


def test_the_example_of_a_rankfile_is_read(hvrun):
    assert places_of(plan_of(hvrun, "--rankfile", str(EXAMPLES / "rankfile"))) == ["node1", "node1", "node2"]


@pytest.mark.parametrize("words,places", [
    (("--map-by", "node"), "abab"), (("--rank-by", "node"), "abab"), (("--map-by", "node", "--rank-by", "slot"), "aabb"),
    (("--npernode", "1"), "ab"), (("--map-by", "ppr:2:node"), "aabb"), (("--oversubscribe", "-np", "6"), "aaabbb"),
])
def test_placement(hvrun, words, places):
    assert "".join(places_of(plan_of(hvrun, "-H", "a:2,b:2", *words))) == places


def test_some_of_a_hostfiles_hosts(hvrun):
    file = str(EXAMPLES / "openmpi")
    assert hosts_of(plan_of(hvrun, "--hostfile", file, "-H", "node2:1")) == {"node2": 1}
    assert hosts_of(plan_of(hvrun, "--hostfile", file, "--include", "node1:0,2")) == {"node1": 2}
    assert hosts_of(plan_of(hvrun, "--hostfile", file, "--exclude", "node1@node2:3")) == {"node2": 3}


def test_a_schedulers_hosts_are_found_by_themselves(hvrun, tmp_path):
    found = hosts_of(plan_of(hvrun, SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[1-2]", SLURM_NTASKS_PER_NODE="4"))
    assert found == {"n1": 4, "n2": 4}
    nodes = tmp_path / "nodes"
    nodes.write_text("n1\nn1\nn2\n")
    assert hosts_of(plan_of(hvrun, PBS_JOBID="1.s", PBS_NODEFILE=str(nodes))) == {"n1": 2, "n2": 1}


@pytest.mark.parametrize("words,said", [
    (("-H", "n[1-999999999]"), b"-H:1: this expression stands for too many hosts"),
    (("-H", "n[1-"), b"-H:2: this bracket is not closed"),
    (("--hostfile", str(EXAMPLES / "rankfile")), b"rankfile:2:6: '0=node1' is not understood"),
    (("--hostfile", str(EXAMPLES / "pbs"), "--hostfile-format", "sge"), b"pbs:1:1: this line is of another form"),
    (("--hostfile", str(EXAMPLES / "pbs"), "--hostfile-format", "pbb"), b"expected pbs?"),
    (("-np", "5", "-H", "a:2,b:2"), b"asks for 5 ranks, but the hosts have 4 slots in all (a:2, b:2)"),
    (("-np", "5", "--npernode", "2", "-H", "a:2,b:2"),
     b"asks for 5 ranks, but 2 ranks a node (--npernode, ppr) and the slots of 2 hosts (a:2, b:2) allow 4"),
])
def test_a_mistake_is_told_where_it_is_and_nothing_starts(hvrun, words, said):
    result = run(hvrun, *words, "true")
    assert result.returncode == 2
    assert said in result.stderr and b"try: " in result.stderr and result.stdout == b"", result.stderr
    assert os.fsencode("hvrun: error: ") in result.stderr


def test_a_named_pipe_is_no_hostfile_and_what_the_shell_has_opened_is(hvrun, tmp_path):
    os.mkfifo(tmp_path / "hosts")
    for words in (("--hostfile", "hosts"), ("-H", "hosts"), ("--config-file", "hosts"), ("--rankfile", "hosts", "-H", "a")):
        result = run(hvrun, *words, "true", cwd=tmp_path, timeout=20)
        assert result.returncode == 2 and b"hosts: it is a named pipe, whose writer may never come\n  try: " in result.stderr, result
    for option in ("--hostfile", "-H"):
        shell = f"{hvrun} --dry-run=offline --format=json {option} <(echo a slots=2; echo b) true"
        result = run("/bin/bash", "-c", shell)
        assert hosts_of(json.loads(result.stdout)) == {"a": 2, "b": 1}, result


def test_a_word_that_is_named_like_a_file_is_not_taken_for_a_host(hvrun, tmp_path):
    result = run(hvrun, "-H", "hosts.txt", "true", cwd=tmp_path)
    assert result.returncode == 2 and b"read hostfile hosts.txt: No such file or directory" in result.stderr, result


@pytest.mark.parametrize("words", [("-H", "n1,n9"), ("--spawner", "srun", "-H", "n9"), ("--hostfile", "hosts")])
def test_a_host_that_is_no_node_of_the_slurm_job_is_told(hvrun, tmp_path, words):
    (tmp_path / "hosts").write_text("n1\nn9\n")
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]"}
    result = run(hvrun, "--dry-run=offline", *words, "true", cwd=tmp_path, **job)
    assert result.returncode == 2 and b"n9 is no node of this Slurm job (nodes: n[1-2])" in result.stderr, result
    assert hosts_of(plan_of(hvrun, "--spawner", "ssh", "-H", "n9:2", **job)) == {"n9": 2}
