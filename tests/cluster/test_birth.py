# SPDX-License-Identifier: Apache-2.0
"""What a rank on another host is born with, byte for byte: arguments, environment, folder, descriptors."""

import os
import re

import pytest

from harness.jobs import START, expect_error, lines_of, on

pytestmark = pytest.mark.usefixtures("hvrun")

TWO = ("node1", "node2")
RSH = ["--rsh", "ssh -o BatchMode=yes"]
SPAWNERS = pytest.mark.parametrize("spawner", [[], RSH], ids=["libssh", "rsh"])


def random_bytes(chance, longest):
    """Any byte but zero; quotes, spaces, newlines, dollars and bytes that are no UTF-8 more often than not."""
    favourites = b" '\"\\\n\t$`;&|<>*?[]{}()#~!%\xff\xfe\xc3\x80\r\x01\x7f"
    length = chance.choice([0, 1, 2, chance.randrange(longest)])
    return bytes(chance.choice(favourites) if chance.random() < 0.5 else chance.randrange(1, 256) for _ in range(length))


def dumped(cluster, rank, what):
    return (cluster.shared / f"rank.{rank}.{what}").read_bytes().split(b"\0")[:-1]


def dump_folder(cluster):
    return ["-x", f"DUMP_DIR={cluster.shared}"]


@SPAWNERS
def test_random_arguments_arrive_byte_for_byte(cluster, payload, chance, scaled, spawner):
    for _ in range(scaled(20)):
        arguments = [random_bytes(chance, 200) for _ in range(chance.randrange(1, 40))]
        result = cluster.run([*on(*TWO), *spawner, *dump_folder(cluster), "--", payload("argv_env_dump"), *arguments])
        assert result.code == 0, str(result)
        for rank in (0, 1):
            assert dumped(cluster, rank, "argv")[1:] == arguments


@SPAWNERS
def test_random_environment_arrives_byte_for_byte(cluster, payload, chance, scaled, spawner):
    for _ in range(scaled(20)):
        values = {f"RANDOM_{number}": os.fsdecode(random_bytes(chance, 300)) for number in range(chance.randrange(1, 30))}
        result = cluster.run([*on(*TWO), *spawner, *dump_folder(cluster), payload("argv_env_dump")], env=values)
        assert result.code == 0, str(result)
        for rank in (0, 1):
            arrived = dict(entry.split(b"=", 1) for entry in dumped(cluster, rank, "environ"))
            assert {name: arrived.get(os.fsencode(name)) for name in values} == {n: os.fsencode(v) for n, v in values.items()}


@SPAWNERS
def test_a_hundred_thousand_bytes_of_arguments_arrive(cluster, payload, spawner):
    arguments = [os.fsencode(f"{number:05d}") + b"\xff\n '\"" * 10 for number in range(2000)]
    assert sum(map(len, arguments)) > 100_000
    result = cluster.run([*on(*TWO), *spawner, *dump_folder(cluster), payload("argv_env_dump"), *arguments])
    assert result.code == 0, str(result)
    assert dumped(cluster, 0, "argv")[1:] == arguments and dumped(cluster, 1, "argv")[1:] == arguments


def test_what_belongs_to_a_host_stays_there(cluster, payload):
    own = {"HOSTNAME": "elsewhere", "TMPDIR": "/nowhere", "SSH_AUTH_SOCK": "/nowhere", "DISPLAY": ":7", "CUDA_VISIBLE_DEVICES": "3",
           "XDG_RUNTIME_DIR": "/nowhere", "TRAINING_SET": "kept", "PATH": "/kept/bin:/usr/bin:/bin"}
    hvrun = cluster.login.shell("command -v hvrun").strip()
    cluster["node1"].set_login_shell("/bin/bash")
    result = cluster.run([hvrun, *on(*TWO)[1:], *dump_folder(cluster), payload("argv_env_dump")], env=own)
    assert result.code == 0, str(result)
    arrived = dict(os.fsdecode(entry).split("=", 1) for entry in dumped(cluster, 0, "environ"))
    for name in ("TMPDIR", "SSH_AUTH_SOCK", "DISPLAY", "CUDA_VISIBLE_DEVICES", "XDG_RUNTIME_DIR"):
        assert arrived.get(name) != own[name], f"{name} came over from the login host"
    assert arrived.get("HOSTNAME") != "elsewhere"
    assert (arrived["TRAINING_SET"], arrived["PATH"], arrived["SHELL"]) == ("kept", own["PATH"], "/bin/bash")


def test_what_users_set_for_gpus_nccl_and_pmix_reaches_ranks_here_and_there_alike(cluster, payload):
    passed = {"NVIDIA_TF32_OVERRIDE": "0", "NCCL_DEBUG": "WARN", "PMIX_MCA_gds": "hash", "HIP_LAUNCH_BLOCKING": "1"}
    result = cluster.run(["hvrun", "-H", "localhost,node1", *dump_folder(cluster), payload("argv_env_dump")],
                         env={**passed, "TMPDIR": "/tmp", "XDG_CACHE_HOME": "/var/cache"})
    assert result.code == 0, str(result)
    for rank in (0, 1):
        arrived = dict(os.fsdecode(entry).split("=", 1) for entry in dumped(cluster, rank, "environ"))
        assert {name: arrived.get(name) for name in passed} == passed, f"rank {rank}"
    assert arrived.get("XDG_CACHE_HOME") is None
    assert result.err.count("TMPDIR and XDG_CACHE_HOME are not passed on") == 1, str(result)


def test_the_key_of_the_job_is_in_no_environment_and_no_argument(cluster, payload, roll_call):
    """64 hex digits, or 32 bytes in base64, would be one; the job's id is shorter and no secret."""
    with cluster.start([*on(*TWO), payload("orphan_maker"), str(roll_call)]):
        roll_call.wait_for(2, 30)
        seen = [*cluster.newcomers(), *cluster.login.newcomers()]
        words = [word for process in seen for word in (*process.arguments, *process.environment.values())]
    suspicious = [word for word in words if re.search(r"[0-9a-fA-F]{64}|[A-Za-z0-9+/]{43}=", word)]
    assert not [word for word in suspicious if "agent-" not in word], suspicious


def test_a_folder_with_an_odd_name(cluster, payload):
    folder = cluster.shared / os.fsdecode(b"a b'c\"\n\xff$HOME")
    folder.mkdir()
    result = cluster.run([*on(*TWO), *dump_folder(cluster), payload("argv_env_dump")], cwd=folder)
    assert result.code == 0, str(result)
    assert dumped(cluster, 1, "cwd") == [os.fsencode(folder)]


@SPAWNERS
def test_a_rank_sees_descriptors_0_1_and_2_only(cluster, payload, spawner):
    result = cluster.run([*on(*TWO), *spawner, "--no-label", payload("fd_lister")])
    numbers = [line.split()[0] for line in lines_of(result)]
    assert numbers == ["0", "0", "1", "1", "2", "2"], str(result)
    assert result.out.count("0 /dev/null") == 2, str(result)


@SPAWNERS
def test_signals_are_as_at_login(cluster, spawner):
    """Nothing blocked, nothing ignored, whatever hvrun and its agent do for themselves."""
    script = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
    result = cluster.run([*on(*TWO), *spawner, "--no-label", "sh", "-c", script])
    assert set(line.split()[1] for line in lines_of(result)) == {"0" * 16}, str(result)


def test_a_clean_environment_has_what_was_asked_for(cluster, payload):
    result = cluster.run([*on(*TWO), "--clean-env", *dump_folder(cluster), "-x", "WANTED", "-x", "SET=here", "-x", "ALL_*",
                          payload("argv_env_dump")], env={"WANTED": "1", "UNWANTED": "2", "ALL_A": "3", "ALL_B": "4"})
    assert result.code == 0, str(result)
    arrived = dict(os.fsdecode(entry).split("=", 1) for entry in dumped(cluster, 1, "environ"))
    assert {name: arrived.get(name) for name in ("WANTED", "SET", "ALL_A", "ALL_B", "UNWANTED")} == {
        "WANTED": "1", "SET": "here", "ALL_A": "3", "ALL_B": "4", "UNWANTED": None}
    assert arrived["HOME"] == "/run/home/root" and arrived["PATH"]


def test_the_umask_is_hvruns_on_every_host(cluster):
    for mask in ("0027", "0000"):
        result = cluster.run(["sh", "-c", f'umask {mask}; exec "$@"', "sh", *on("localhost", "node1"), "sh", "-c", "umask"])
        assert (result.code, lines_of(result)) == (0, [f"[0] {mask}", f"[1] {mask}"]), str(result)


def test_a_link_that_hosts_have_and_its_target_that_they_lack(cluster):
    """As with an automounter: the name is the same everywhere, what it leads to is not."""
    cluster.login.shell("mkdir -p /run/mnt/nfs1/project && ln -s /run/mnt/nfs1/project /run/project")
    cluster["node1"].shell("mkdir /run/project")
    result = cluster.run(["sh", "-c", 'cd /run/project; exec "$@"', "sh", *on("localhost", "node1"), "sh", "-c", "echo $PWD"])
    assert (result.code, lines_of(result)) == (0, ["[0] /run/project", "[1] /run/project"]), str(result)


def test_a_directory_that_a_host_lacks_is_named_with_what_it_leads_to(cluster):
    cluster.login.shell("mkdir -p /run/mnt/nfs1/project && ln -s /run/mnt/nfs1/project /run/project")
    result = cluster.run(["sh", "-c", 'cd /run/project; exec "$@"', "sh", *on("node1"), "true"])
    expect_error(result, START, "node1", "working directory /run/project (/run/mnt/nfs1/project where hvrun runs)", "No such file")
