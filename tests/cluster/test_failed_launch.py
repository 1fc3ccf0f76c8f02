# SPDX-License-Identifier: Apache-2.0
"""A launch that fails, and a rank that dies in its first seconds, are told of in the words of a check."""

import re
import signal
import subprocess

import pytest

from harness import programs, sshd
from harness.jobs import LOST, START, agents_and_guards, errors, on
from harness.processes import kill_together
from harness.stalling import STALLING

pytestmark = pytest.mark.usefixtures("hvrun")

ALL = ("node1", "node2", "node3")


def test_a_host_that_does_not_answer_is_named_by_its_verdict(cluster):
    sshd.stop(cluster["node2"])
    result = cluster.run([*on(*ALL), "true"])
    assert result.code == START and len(errors(result)) == 1, str(result)
    assert ("hvrun: node2: the host refuses TCP connections to its ssh port: nobody listens there, or a firewall rejects "
            "them  [ssh-refused]\n") in result.err, str(result)


def test_a_program_that_one_host_lacks_is_named_by_its_verdict(cluster):
    for name in ("node1", "node3"):
        cluster[name].write_file("/run/only-there", "#!/bin/sh\n", mode=0o755)
    result = cluster.run([*on(*ALL), "/run/only-there"])
    assert result.code == START and len(errors(result)) == 1 and "node2" in errors(result)[0][0], str(result)
    assert "[program-missing]" in result.err, str(result)


def test_a_rank_without_its_library_is_explained_with_the_host_that_lacks_it(cluster, tmp_path):
    """The loader ends it at once; what it says is the rank's, what hosts have is the probe's."""
    program, library = cluster.shared / "program", tmp_path / "libpart.so"
    for source, *words in (("int part(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libpart.so", "-o", library),
                           ("int part(void); int main(void) { return part(); }", "-o", program, library)):
        subprocess.run(["cc", "-xc", "-", "-xnone", *words], input=source, text=True, check=True)
    for name in ("node1", "node3"):
        cluster[name].write_file("/run/lib/libpart.so", library.read_bytes(), mode=0o755)
    result = cluster.run([*on(*ALL), "-x", "LD_LIBRARY_PATH=/run/lib", str(program)])
    assert result.code == 127 and "rank 1 on host node2" in errors(result)[0][0], str(result)
    assert f"hvrun: cannot start: node2: {program} lacks libpart.so" in result.err and "[library-missing]" in result.err, str(result)


def test_a_rank_that_dies_for_want_of_room_is_explained_with_the_folder_that_is_full(cluster):
    for node in cluster.nodes:
        node.shell("mkdir -m 1777 /run/own")
    cluster["node2"].shell("mount -t tmpfs -o size=64k none /run/own")
    script = "head -c 90k /dev/zero >/run/own/$HVRUN_RANK || exit 3; sleep 60"
    result = cluster.run([*on(*ALL), "-x", "TMPDIR=/run/own", "sh", "-c", script])
    assert result.code == 3 and "rank 1 on host node2" in errors(result)[0][0], str(result)
    assert "hvrun: harms: node2: " in result.err and "/run/own" in result.err and "[temporary-full]" in result.err, str(result)


def test_a_mistake_in_the_program_is_no_affair_of_the_hosts(cluster):
    for node in cluster.nodes:
        node.shell("mkdir -m 1777 /run/own; mount -t tmpfs -o size=64k none /run/own")  # which a probe would find
    script = "echo 'ZeroDivisionError: division by zero' >&2; exit 1"
    result = cluster.run([*on(*ALL), "-x", "TMPDIR=/run/own", "sh", "-c", script])
    assert result.code == 1 and "why:" not in result.err, str(result)


@pytest.fixture
def lost(cluster, roll_call, payload):
    """lost(act): the result of a job whose agent and guard on node2 are killed once act() has been."""
    for node in cluster.nodes:
        node.shell("mkdir -m 1777 /run/own")

    def lose(act=lambda: None):
        with cluster.start([*on(*ALL), "-x", "TMPDIR=/run/own", payload("orphan_maker"), str(roll_call), "self"]) as running:
            roll_call.wait_for(3, 30)
            agent, guards = agents_and_guards(cluster["node2"], roll_call)
            act()
            kill_together([agent, *guards])
            result = running.wait(30)
        assert result.code == LOST and "node2" in errors(result)[0][0], str(result)
        return result
    return lose


def test_an_agent_that_was_killed_on_a_host_in_order_is_all_there_is_to_tell(lost):
    result = lost()
    assert "why:" not in result.err and "ssh-" not in result.err, str(result)


def test_an_agent_that_was_killed_is_told_with_what_its_host_lacks(cluster, lost):
    cluster["node2"].shell("mount -t tmpfs -o size=64k none /run/own")
    result = lost()
    assert "/run/own" in result.err and "[temporary-full]" in result.err, str(result)


def test_a_host_that_lets_nobody_in_any_more_is_told_by_what_a_second_login_meets(cluster, lost):
    result = lost(lambda: sshd.stop(cluster["node2"]))
    assert "node2" in result.err and "ssh-refused" in result.err, str(result)


def test_a_rank_with_a_segmentation_fault_is_named_with_its_core(cluster):
    for node in cluster.nodes:
        node.shell("mkdir -m 1777 /run/own")
    script = "ulimit -c unlimited; [ $HVRUN_RANK != 1 ] || kill -SEGV $$; sleep 60"
    result = cluster.run([*on(*ALL), "--wdir", "/run/own", "--output-dir", str(cluster.shared / "out"), "sh", "-c", script])
    assert result.code == 128 + signal.SIGSEGV and "rank 1 on host node2 ended with SIGSEGV" in errors(result)[0][0], str(result)
    words = [line for line in result.err.splitlines() if line.startswith("hvrun: ") and "core" in line and "error: " not in line]
    assert len(words) == 1, str(result)
    assert cluster.run(["hvrun", "explain", str(cluster.shared / "out")]).out == result.err, str(result)


def test_a_trace_that_ranks_of_all_hosts_end_with_is_told_once(cluster):
    code = "import os; raise RuntimeError('rank %s of %s' % (os.environ['RANK'], os.uname().nodename))"
    result = cluster.run([*on(*ALL, ranks_per_host=2), "/usr/bin/python3", "-c", code])
    assert result.code == 1 and result.err.count("hvrun: ranks 0-5 said") == 1, str(result)
    own = [line for line in result.err.splitlines() if line.startswith("    ") and "RuntimeError: rank" in line]
    assert len(own) == 1, str(result)


def test_a_stalled_rank_is_named_with_its_host_and_where_it_stands(cluster):
    (cluster.shared / "stall.py").write_text(STALLING)
    library = programs.hvrun_folder().parent / "lib" / "libhvrun.so"
    words = ["-x", f"PYTHONPATH={programs.SOURCE / 'python'}", "-x", f"HVRUN_LIBRARY={library}", "-x", "HVRUN_STALL_SECONDS=1",
             "-x", "HVRUN_STALL_SHUTDOWN_SECONDS=8"]
    result = cluster.run([*on(*ALL), *words, "/usr/bin/python3", str(cluster.shared / "stall.py")], timeout=60)
    told = re.search(r"rank 1 on host node2 stands in \(Python, innermost last\):\n.*stall.py:8 in <module>\n.*stall.py:5 in missing",
                     result.err)
    assert result.code != 0 and "tensor 'w' has waited" in result.err and told, str(result)
