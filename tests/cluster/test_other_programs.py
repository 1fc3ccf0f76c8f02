# SPDX-License-Identifier: Apache-2.0
"""Programs that know nothing of hvrun, as they are, on three SSH hosts."""

import pytest

from harness import torch_environment
from harness.cluster import HostPlan
from harness.jobs import TIMEOUT, lines_of, on
from harness.programs import SOURCE

pytestmark = pytest.mark.usefixtures("hvrun")

DDP = SOURCE / "tests" / "payload" / "ddp.py"
NODES = ("node1", "node2", "node3")


@pytest.fixture(scope="session")
def torch_python():
    return torch_environment.interpreter()


@pytest.mark.one_of("ranks_per_host")
@pytest.mark.parametrize("ranks_per_host", [1, 2])
def test_pytorch_ddp_over_gloo(make_cluster, torch_python, ranks_per_host):
    cluster = make_cluster(visible=[torch_environment.FOLDER, SOURCE])
    result = cluster.run([*on(*NODES, ranks_per_host=ranks_per_host), "--no-label", str(torch_python), str(DDP)], timeout=120)
    size = 3 * ranks_per_host
    said = [line.split(",")[0] for line in lines_of(result)]
    assert (result.code, said) == (0, [f"rank {rank} of {size}: as one process alone" for rank in range(size)]), str(result)


STALLING = """
import os, threading
import torch
import torch.distributed as dist
def elsewhere():
    threading.Event().wait()
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
loss = model(torch.ones(1, 2)).sum()
if dist.get_rank() == 1:
    elsewhere()
if os.environ["CALL"] == "all_reduce":
    dist.all_reduce(torch.ones(1))
loss.backward()
"""


@pytest.mark.one_of("call")
@pytest.mark.parametrize("call", ["all_reduce", "backward"])
def test_a_rank_that_waits_for_gloo_is_told_with_where_the_others_stand(make_cluster, torch_python, call):
    cluster = make_cluster(NODES[:2], visible=[torch_environment.FOLDER, SOURCE])
    (cluster.shared / "stall.py").write_text(STALLING)
    limits = ["-x", f"CALL={call}", "-x", "HVRUN_STALL_SECONDS=1", "-x", "HVRUN_STALL_SHUTDOWN_SECONDS=3"]
    result = cluster.run([*on(*NODES[:2]), *limits, str(torch_python), str(cluster.shared / "stall.py")], timeout=120)
    name, line = {"all_reduce": ("torch.distributed.all_reduce", 13), "backward": ("backward", 14)}[call]
    place = f" in {name} ({cluster.shared}/stall.py:{line})"
    assert result.code == TIMEOUT and place + "; where the ranks stand:" in result.err, str(result)
    told, _, end = result.err.partition("hvrun: error: ")
    assert "stall.py:11 in <module>\n" in told and "stall.py:6 in elsewhere\n" in told, str(result)
    assert place + ": the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)" in end, str(result)


def test_a_program_with_its_own_sockets(cluster):
    """It binds MASTER_PORT as simple programs do, and sends each rank's words round."""
    program = cluster.shared / "talk.py"
    program.write_text('''
import os, socket
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(place) as server:  # SO_REUSEADDR, as servers do
        others = [server.accept()[0] for _ in range(size - 1)]
        said = sorted(one.makefile("r").readline().strip() for one in others)
        for one in others:
            one.sendall((" ".join(said) + "\\n").encode())
    print("0 heard", *said)
else:
    while True:
        try:
            to_first = socket.create_connection(place)
            break
        except ConnectionRefusedError:
            pass
    to_first.sendall(f"{socket.gethostname()}\\n".encode())
    print(rank, "heard", to_first.makefile("r").readline().strip())
''')
    result = cluster.run([*on(*NODES), "--no-label", "/usr/bin/python3", str(program)])
    assert (result.code, lines_of(result)) == (0, [f"{rank} heard node2 node3" for rank in range(3)]), str(result)


def test_a_shell_script(cluster):
    script = cluster.shared / "each.sh"
    script.write_text('#!/bin/sh\nset -eu\necho "$0 $1: $RANK of $WORLD_SIZE on $(hostname), $LOCAL_RANK of $LOCAL_WORLD_SIZE here"\n')
    script.chmod(0o755)
    result = cluster.run([*on(*NODES), "--no-label", str(script), "two words"])
    places = [f"{script} two words: {rank} of 3 on node{rank + 1}, 0 of 1 here" for rank in range(3)]
    assert (result.code, lines_of(result)) == (0, places), str(result)
