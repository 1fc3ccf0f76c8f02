# SPDX-License-Identifier: Apache-2.0
"""hvrun.torch over two SSH hosts: its own tests in every rank, a training, and a rank that is killed."""

import re

import pytest

from harness import torch_environment, torch_jobs
from harness.jobs import errors
from harness.programs import SOURCE

pytestmark = pytest.mark.usefixtures("hvrun")

RANKS = SOURCE / "tests" / "python" / "ranks"
PAYLOAD = SOURCE / "tests" / "payload"
SIZE = 3
MOST_SECONDS = 30  # stalls and silence count from 60 s on: it is the end itself that tells the others


@pytest.fixture
def run(make_cluster):
    """run(hosts, words): a Python program on hosts of 'node1' and 'node2'."""
    python = str(torch_environment.interpreter())
    cluster = make_cluster(["node1", "node2"], visible=[torch_environment.FOLDER.resolve()])
    command = ["hvrun", "--lost-after", "60", "-H"]
    return lambda hosts, words, timeout=60, **more: cluster.run([*command, hosts, python, *map(str, words)], timeout=timeout,
                                                                env=torch_jobs.settings(**more))


@pytest.mark.drawn_among("launcher", torch_jobs.LAUNCHERS)
@pytest.mark.parametrize("launcher", ["2 real hosts"])
def test_every_test_of_ranks_passes_over_two_hosts(run, launcher):
    del launcher
    result = run("node1:2,node2:1", ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", RANKS], timeout=300)
    counts = re.findall(r"(\d+) passed", result.out)
    assert result.code == 0 and len(counts) == SIZE and len(set(counts)) == 1, str(result)


@pytest.mark.one_of("hosts")
@pytest.mark.parametrize("hosts", ["node1:2,node2:1", "node1:1,node2:2"])
def test_a_training_ends_with_the_same_bits_on_all_hosts(run, hosts):
    result = run(hosts, [PAYLOAD / "torch_training.py"])
    told = re.findall(r"rank \d of 3: as one process alone, weights ([0-9a-f]{16})$", result.out, re.MULTILINE)
    assert result.code == 0 and len(told) == SIZE and len(set(told)) == 1, str(result)


@pytest.mark.one_of("names")
@pytest.mark.parametrize("names", ["loopback", "unknown"])
def test_gloo_trains_whatever_hosts_resolve_their_own_names_to(make_cluster, names):
    """127.0.1.1, as Debian's installer writes it, or nothing; hvrun check has the line."""
    cluster = make_cluster(["node1", "node2"], visible=[torch_environment.FOLDER.resolve()])
    for node in cluster.nodes:
        line = f"127.0.1.1 {node.name}\n" if names == "loopback" else ""
        (node.folder / "etc" / "hosts").write_text("127.0.0.1 localhost\n" + line)
    program = ("import torch, torch.distributed as dist; dist.init_process_group('gloo'); x = torch.ones(1); "
               "dist.all_reduce(x); print('sum', int(x)); dist.destroy_process_group()")
    words = ["hvrun", "-H", "node1:1,node2:1", str(torch_environment.interpreter()), "-c", program]
    result = cluster.run(words, timeout=60, env=torch_jobs.settings())
    assert result.code == 0 and sorted(result.out.splitlines()) == ["[0] sum 2", "[1] sum 2"], str(result)
    told = cluster.run(["hvrun", "check", "-H", "node1:1,node2:1"]).out
    assert f"hostname-{names}" in told, told
    assert names == "unknown" or "/etc/hosts, line 2: 127.0.1.1 node2" in told, told


@pytest.mark.one_of("place")
@pytest.mark.parametrize("place", ["backward", "exchange"])
def test_a_rank_that_is_killed_ends_those_of_the_other_host_and_is_named(run, place):
    result = run("node1:1,node2:2", [PAYLOAD / "torch_fault.py", "kill", place])
    gone = float(re.search(r"gone at ([\d.]+)", result.out).group(1))
    heard = re.findall(r"\[(\d)\] heard at ([\d.]+): (.*)", result.out)
    assert sorted(rank for rank, _, _ in heard) == ["0", "2"], str(result)
    assert all(float(at) - gone < MOST_SECONDS and "rank 1" in words for _, at, words in heard), str(result)
    assert result.code == 137 and "rank 1 on host node2" in errors(result)[0][0], str(result)
