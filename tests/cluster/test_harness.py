# SPDX-License-Identifier: Apache-2.0
"""The hosts themselves: are they as real, as separate and as mortal as the other tests take them to be?"""

import fcntl
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from harness import cluster as clusters
from harness import cgroup, programs, sshd
from harness.cluster import HostPlan
from harness.keys import key_pair
from harness.mpich import run_past_standstill
from harness.processes import below, look_at
from harness.running import run
from harness.waiting import TooLate, wait_for

SHELLS = ("/bin/sh", "/bin/bash", "/usr/bin/zsh", "/usr/bin/tcsh", "/usr/bin/fish")


def ssh(*words, options=()):
    return ["ssh", "-o", "BatchMode=yes", *options, *words]


def ssh_out(cluster, *words, **options):
    result = cluster.run(ssh(*words), **options)
    assert result.code == 0, str(result)
    return result.out


def test_every_host_answers_ssh_under_its_own_name(cluster):
    for name in ("node1", "node2", "node3"):
        assert ssh_out(cluster, name, "hostname") == f"{name}\n"


def test_hosts_see_only_their_own_processes(cluster):
    names = ssh_out(cluster, "node1", "ps -e -o comm=").split()
    assert names[0] == "host_init"
    assert set(names) <= {"host_init", "sshd", "sh", "ps"}
    assert ssh_out(cluster, "node1", "cat /proc/1/comm") == "host_init\n"


@pytest.mark.parametrize("kind", ["pid", "uts", "ipc", "mnt", "net"])
def test_hosts_share_no_namespace_with_each_other_or_this_machine(cluster, kind):
    seen = {os.readlink(f"/proc/self/ns/{kind}")}
    seen |= {os.readlink(f"/proc/{host.pid}/ns/{kind}") for host in cluster.hosts.values()}
    assert len(seen) == 1 + len(cluster.hosts)


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm", "/run", "/var/tmp"])
def test_temporary_folders_belong_to_one_host(cluster, folder):
    cluster["node1"].write_file(f"{folder}/mark", "here")
    assert cluster["node1"].outside(f"{folder}/mark").exists()
    assert not cluster["node2"].outside(f"{folder}/mark").exists()
    assert not pathlib.Path(folder, "mark").exists()


def test_the_shared_folder_and_the_sources_are_the_same_everywhere(cluster):
    (cluster.shared / "mark").write_text("here")
    assert ssh_out(cluster, "node2", f"cat {cluster.shared}/mark") == "here"
    assert ssh_out(cluster, "node3", f"ls {programs.SOURCE}/CMakeLists.txt")


def test_the_environment_of_a_launch_is_clean(cluster, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    names = {line.partition("=")[0] for line in cluster.run(["env"]).out.splitlines()}
    assert names == {"HOME", "USER", "LOGNAME", "SHELL", "LANG", "PATH"}


def test_a_reaper_is_pid_1_and_leaves_no_zombies(cluster):
    cluster["node1"].shell("(sleep 0 & exec sh -c 'exit 0') & wait")
    wait_for(lambda: not cluster["node1"].newcomers(), 2, lambda: f"an end of zombies: {cluster['node1'].newcomers()}")


def test_users_log_in_with_their_own_homes(cluster):
    assert ssh_out(cluster, "ada@node1", "id -un; echo $HOME") == "ada\n/run/home/ada\n"
    assert cluster.run(ssh("node2", "id -un"), user="ada").out == "ada\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_login_shell_is_the_one_that_sshd_starts(cluster, shell):
    cluster["node1"].set_login_shell(shell)
    said = ssh_out(cluster, "node1", "ps -o comm= -p $$" if "fish" not in shell else "ps -o comm= -p $fish_pid")
    assert said.strip() in (os.path.basename(shell), os.path.basename(os.path.realpath(shell)), "ps")


@pytest.mark.parametrize("shell", SHELLS)
def test_noisy_start_up_files_print_on_both_streams(cluster, shell):
    cluster["node1"].set_login_shell(shell)
    cluster["node1"].make_login_noisy()
    result = cluster.run(ssh("node1", "true"))
    assert "noise on stdout" in result.out and "noise on stderr" in result.err, str(result)


def test_a_full_home_takes_no_byte_more(cluster):
    cluster["node1"].spoil_home("full")
    result = cluster.run(ssh("node1", "cp /bin/true ~/more"))
    assert result.code != 0 and "No space left" in result.err


def test_a_readonly_home_takes_no_file(cluster):
    cluster["node1"].spoil_home("readonly")
    result = cluster.run(ssh("node1", "touch ~/more"))
    assert result.code != 0 and "Read-only file system" in result.err


def test_a_noexec_home_runs_no_program(cluster):
    cluster["node1"].spoil_home("noexec")
    result = cluster.run(ssh("node1", "cp /bin/true ~/program && ~/program"))
    assert result.code == 126 and "Permission denied" in result.err


def test_a_link_that_is_down_is_silent_until_it_is_up_again(cluster):
    reach = ["timeout", "0.3", "bash", "-c", "exec </dev/tcp/node2/22"]
    assert cluster.run(reach).code == 0
    cluster["node2"].link_down()
    assert cluster.run(reach).code == 124
    cluster["node2"].link_up()
    wait_for(lambda: cluster.run(reach).code == 0, 10, "node2 answers again")


def test_a_dropped_port_is_silent_and_a_refused_one_is_not(cluster):
    connect = ssh("node1", "true", options=("-o", "ConnectTimeout=1"))
    cluster["node1"].firewall.refuse(22)
    assert "Connection refused" in cluster.run(connect).err
    cluster["node1"].firewall.clear()
    cluster["node1"].firewall.drop(port=22)
    assert "timed out" in cluster.run(connect).err
    cluster["node1"].firewall.clear()
    assert cluster.run(connect).code == 0


def test_an_unanswered_name_is_silent(cluster):
    cluster.add_unanswered("void")
    assert "timed out" in cluster.run(ssh("void", "true", options=("-o", "ConnectTimeout=1"))).err
    assert cluster.run(ssh("node1", "true")).code == 0


def test_an_unknown_name_is_refused_at_once(cluster):
    result = cluster.run(ssh("nowhere", "true"))
    assert "Name or service not known" in result.err, str(result)  # a silence is told as a temporary failure


def test_unknown_and_changed_host_keys_are_told_apart(cluster):
    sshd.write_known_hosts(cluster.login, "root", sshd.known_hosts_lines([cluster["node2"]]))
    assert "Host key verification failed" in cluster.run(ssh("node1", "true")).err
    sshd.set_host_key(cluster["node2"], "another")
    sshd.restart(cluster["node2"])
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in cluster.run(ssh("node2", "true")).err


def test_a_host_authority_vouches_for_its_hosts(cluster):
    authority = key_pair("authority")
    sshd.certify(cluster["node1"], authority, ["node1"])
    sshd.restart(cluster["node1"])
    sshd.write_known_hosts(cluster.login, "root", f"@cert-authority * {authority.public}\n")
    assert cluster.run(ssh("node1", "true")).code == 0
    assert cluster.run(ssh("node2", "true")).code == 255


def test_a_host_behind_a_gate_is_reached_only_through_it(make_cluster):
    cluster = make_cluster([HostPlan("gate", nets=("lan", "inner")), HostPlan("vault", nets=("inner",))])
    assert cluster.run(ssh("vault", "true", options=("-o", "ConnectTimeout=1"))).code == 255
    assert ssh_out(cluster, "-J", "gate", "vault", "hostname") == "vault\n"


def test_sessions_outlive_the_listening_sshd_and_end_when_killed(cluster):
    node = cluster["node1"]
    with cluster.start(ssh("node1", "echo there; cat"), stdin=subprocess.PIPE) as session:
        session.wait_for_output("there", 10)
        sshd.stop(node)
        assert not session.ended and node.sshd_sessions()
        for process in node.sshd_sessions():
            process.kill()
        assert session.wait(10).code == 255
    sshd.start(node)
    assert ssh_out(cluster, "node1", "echo again") == "again\n"


def test_a_host_may_be_another_machine_to_uname(cluster):
    cluster["node1"].pretend_machine("aarch64")
    assert ssh_out(cluster, "node1", "uname -m; uname -s") == "aarch64\nLinux\n"
    assert ssh_out(cluster, "node2", "uname -m") == os.uname().machine + "\n"


def test_a_host_has_a_cgroup_tree_of_its_own_only_where_asked(make_cluster):
    begin = "cat /proc/self/cgroup | grep ^0:; mkdir /sys/fs/cgroup/job && echo $$ > /sys/fs/cgroup/job/cgroup.procs && echo moved"
    with_tree = make_cluster(["node1"], cgroup=True)
    assert ssh_out(with_tree, "node1", begin) == "0::/\nmoved\n"
    assert with_tree["node1"].outside("/sys/fs/cgroup/job/cgroup.kill").exists()
    without = make_cluster(["node1"])
    assert "cgroup2" not in ssh_out(without, "node1", "cat /proc/mounts")


def test_the_roll_call_sees_what_a_job_leaves_behind(cluster, roll_call, payload):
    orphans = ["plain", "session", "stubborn", "daemon", "stubborn-daemon", "nameless", "runner"]
    cluster.run(ssh("node2", payload("orphan_maker"), str(roll_call), *orphans, "exit=0", ">/dev/null", "2>&1"))
    for kind in orphans:
        wait_for(lambda: roll_call.alive(kind), 5, f"a living {kind}")
    assert not roll_call.alive("rank")
    with pytest.raises(AssertionError, match="stubborn-daemon|orphan"):
        roll_call.expect_nobody(within=0.2)
    assert not roll_call.pick("node1")


def test_the_roll_call_is_content_once_all_have_ended(cluster, roll_call, payload):
    cluster.run(ssh("node2", payload("orphan_maker"), str(roll_call), "stubborn-daemon", "exit=0"))
    roll_call.wait_for(2, 5)
    for process in roll_call.alive():
        process.kill()
    roll_call.expect_nobody(within=2)


def test_an_empty_roll_call_proves_nothing(cluster, roll_call):
    with pytest.raises(AssertionError, match="nobody ever signed"):
        roll_call.expect_nobody(within=0.1)


def test_a_program_that_takes_too_long_is_ended_and_told(cluster):
    with pytest.raises(TooLate, match="sleep 60"):
        cluster.run(["sleep", "60"], timeout=0.2)


def test_an_end_takes_everything_with_it(needs_hosts, payload):
    with clusters.Cluster(["node1"], cgroup=True) as made:
        (made.shared / "list").touch()
        made.run(ssh("node1", payload("orphan_maker"), str(made.shared / "list"), "stubborn-daemon", "exit=0"))
        folder, pids = made.folder, [process.pid for host in made.hosts.values() for process in host.processes()]
        group = made["node1"].cgroup.path
        assert group.exists()
    assert not folder.exists() and not group.exists()
    assert not any(map(look_at, pids))


def test_hosts_end_with_the_process_that_made_them_and_are_cleared_away_later(needs_hosts):
    maker = subprocess.Popen([sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1])\n"
                              "from harness.cluster import Cluster\n"
                              "print(Cluster(['node1'], cgroup=True).up().folder, flush=True); sys.stdin.read()",
                              str(programs.SOURCE / "tests")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    folder = pathlib.Path(maker.stdout.readline().strip())
    living = below(maker.pid)
    assert len(living) >= 6
    maker.kill()
    maker.wait()
    wait_for(lambda: not any(process.runs for process in living), 5, "an end of the hosts")
    with clusters.Cluster(["node1"], cgroup=True) as later:
        assert not folder.exists()
        assert not cgroup.Hierarchy.of(later.switch).group(folder.name).path.exists()


def test_hosts_that_are_being_made_are_not_cleared_away_by_another_process(needs_hosts, monkeypatch):
    real = fcntl.flock

    def flock(file, how):
        if not how & fcntl.LOCK_NB:  # the new cluster's own
            monkeypatch.setattr(fcntl, "flock", real)
            clusters.remove_stale()
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with clusters.Cluster(["node1"]) as cluster:
        assert cluster.shared.is_dir()


def test_the_command_makes_hosts_uses_and_ends_them(needs_hosts):
    hosts = [sys.executable, str(programs.SOURCE / "tests" / "cluster" / "hosts.py")]
    result = run([*hosts, "run", "--hosts", "2", "--", "sh", "-c", "ssh node2 hostname; exit 7"])
    assert (result.code, result.out) == (7, "node2\n"), str(result)
    folder = run([*hosts, "up", "--hosts", "1"]).out.strip()
    try:
        assert run([*hosts, "exec", "--in", folder, "--", "ssh", "node1", "hostname"]).out == "node1\n"
    finally:
        assert run([*hosts, "down", folder]).code == 0
    assert not os.path.exists(folder)


def test_without_root_tests_skip_and_say_why():
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    code = "import sys; sys.path.insert(0, sys.argv[1]); from harness.cluster import why_not; print(why_not())"
    result = run([sys.executable, "-c", code, str(programs.SOURCE / "tests")], preexec_fn=lambda: os.setuid(65534))
    assert "takes root" in result.out, str(result)


@pytest.mark.parametrize("mpi, still, runs", [("mpich", 0, 1), ("mpich", 1, 2), ("mpich", 9, 3), ("openmpi", 9, 1)])
def test_a_standstill_of_mpich_alone_is_tried_again_twice_at_most_and_told(mpi, still, runs, capsys):
    numbers = iter(range(1, 10))
    assert run_past_standstill(mpi, lambda: next(numbers), lambda number: number <= still) == runs
    told = [f"MPICH stood still in MPI_Finalize: retry {retry} of 2" for retry in range(1, runs)]
    assert capsys.readouterr().err.splitlines() == told


def test_signals_reach_a_program_on_a_host(cluster):
    with cluster.start(["sleep", "60"]) as running:
        running.kill(signal.SIGTERM)
        assert running.wait(5).code == -signal.SIGTERM
