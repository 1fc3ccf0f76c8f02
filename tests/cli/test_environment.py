"""Arguments, environment, directory and descriptors reach the program unchanged.

SPDX-License-Identifier: Apache-2.0
"""
import ast
import os
import pathlib
import re
import socket

import pytest

from harness.waiting import wait_for
from launching import clean_environment, lines_by_rank, run, start, two_hosts

DUMP = "import os,sys; sys.stdout.buffer.write(repr((list(map(os.fsencode,sys.argv[1:])),dict(os.environb))).encode())"


def dump(hvrun, options, arguments, **environment):
    """(argv, environment) as rank 0 sees them, in bytes."""
    result = run(hvrun, "-np", "1", "--no-label", *options, "/usr/bin/python3", "-c", DUMP, *arguments, **environment)
    assert result.returncode == 0, result.stderr
    return ast.literal_eval(result.stdout.decode())


def random_bytes(chance, limit):
    return bytes(chance.choice(range(1, 256)) for _ in range(chance.randrange(limit)))


def test_arguments_and_environment_arrive_byte_for_byte(hvrun, scaled, chance):
    for _ in range(scaled(50)):
        arguments = [random_bytes(chance, 60) for _ in range(chance.randrange(8))]
        extra = {f"V{i}": os.fsdecode(random_bytes(chance, 60)) for i in range(chance.randrange(6))}
        argv, environment = dump(hvrun, [], [os.fsdecode(word) for word in arguments], **extra)
        assert argv == arguments
        for name, value in extra.items():
            assert environment[name.encode()] == os.fsencode(value)


def test_a_hundred_kilobytes_of_arguments_arrive(hvrun):
    words = ["x" * 1000] * 100
    assert dump(hvrun, [], words)[0] == [word.encode() for word in words]


@pytest.mark.parametrize("word", ["a b", "'", '"', "a\nb", "$HOME", "`id`", "*", "\\", "", "-n", "--", "ä"])
def test_nothing_is_read_by_a_shell(hvrun, word):
    assert dump(hvrun, [], [word])[0] == [os.fsencode(word)]


def test_x_sets_and_overrides(hvrun):
    _, environment = dump(hvrun, ["-x", "A=1 2", "-x", "B", "-x", "P_*"], [], B="b", P_X="x", P_Y="y")
    assert environment[b"A"] == b"1 2"
    assert environment[b"B"] == b"b"
    assert environment[b"P_X"] == b"x" and environment[b"P_Y"] == b"y"


COUNT = "import os; print(sum(os.environb.get(b'V%x' % i) == b'%d' % (i % 10) for i in range(100_000)))"


@pytest.mark.parametrize("given", ["in hvrun's environment", "by -x NAME=VALUE", "by -x 'PREFIX*'",
                                   "in hvrun's environment, below a program's -x"])
def test_a_hundred_thousand_variables_arrive(hvrun, given):
    """Short ones: with the usual stack of 8 MiB, a program starts with at most 2 MiB of arguments and environment."""
    variables = {f"V{i:x}": str(i % 10) for i in range(100_000)}
    options, behind = [], []
    if given == "by -x NAME=VALUE":
        options = [f"-x{name}={value}" for name, value in variables.items()]
        variables = {}
    elif given == "by -x 'PREFIX*'":
        options = ["--clean-env", "-x", "V*"]
    elif given.endswith("a program's -x"):
        variables["V1"] = "mine"
        options, behind = ["-x", "V2=2"], [":", "-np", "1", "-x", "V1=1", "/usr/bin/python3", "-c", COUNT]
    result = run(hvrun, "-np", "1" if behind else "2", *options, "/usr/bin/python3", "-c", COUNT, *behind, **variables)
    assert result.returncode == 0, result.stderr[-1000:]
    assert lines_by_rank(result.stdout) == {0: [b"99999" if behind else b"100000"], 1: [b"100000"]}


def small_stack(tmp_path):
    """Options by which a host is reached whose programs start with 256 KiB of arguments and environment at most."""
    script = tmp_path / "rsh"
    script.write_text('#!/bin/sh\nshift; exec env -i PATH="$PATH" HOME="$HOME" sh -c "ulimit -s 1024; $*"\n')
    script.chmod(0o755)
    return ["--rsh", str(script), "-H", "small:2"]


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]], ids=["launch", "dry run"])
def test_an_environment_too_long_for_a_host_is_an_error_before_any_rank_starts(hvrun, tmp_path, dry_run):
    marker = tmp_path / "started"
    variables = {"TOKENS": "x" * 120_000, "TABLE": "y" * 110_000, "LESS": "z" * 90_000}
    result = run(hvrun, *small_stack(tmp_path), *dry_run, "touch", str(marker), **variables)
    told = (result.stdout + result.stderr).decode()
    assert result.returncode == 3 and not marker.exists(), told
    assert re.search(r"its arguments and environment take 3[12]\d\.?\d* KiB", told) and "this host takes at most 256 KiB" in told, told
    assert "the largest: TOKENS (117.2 KiB), TABLE (107.4 KiB), LESS (87.9 KiB)" in told, told
    assert "small" in told and "try: unset variables that ranks do not need" in told, told
    assert not dry_run or ("could not start" in told and "could start" not in told), told
    advised = run(hvrun, *small_stack(tmp_path), *dry_run, "--clean-env", "-x", "TOKENS", "touch", str(marker), **variables)
    assert advised.returncode == 0, advised


def test_a_check_without_a_program_never_says_that_jobs_could_start_where_no_probe_could(hvrun, tmp_path):
    variables = {f"BIG{i}": "x" * 120_000 for i in range(3)}
    result = run(hvrun, "check", *small_stack(tmp_path), **variables)
    assert result.returncode == 3 and b"The job could not start." in result.stdout, result
    assert b"[nothing-known]" in result.stdout and b"this host takes at most 256 KiB" in result.stdout, result


def test_a_clean_environment_has_the_contract_and_x_only(hvrun):
    _, environment = dump(hvrun, ["--clean-env", "-x", "KEPT=1"], [], DROPPED="1", P_X="x")
    assert b"DROPPED" not in environment
    assert environment[b"KEPT"] == b"1"
    assert environment[b"HVRUN_SIZE"] == b"1"
    assert b"PATH" in environment


@pytest.mark.parametrize("export", ["HVRUN_RANK=7", "MASTER_PORT", "=1", "NOT_SET_ANYWHERE"])
@pytest.mark.parametrize("dry_run", ["--dry-run", "--dry-run=offline"])
def test_a_dry_run_refuses_the_exports_that_a_launch_refuses(hvrun, dry_run, export):
    launch, dry = run(hvrun, "-x", export, "true"), run(hvrun, dry_run, "-x", export, "true")
    assert launch.returncode == dry.returncode == 2
    assert launch.stderr == dry.stderr


def test_the_contract_cannot_be_overridden(hvrun):
    result = run(hvrun, "-x", "HVRUN_RANK=7", "true")
    assert result.returncode == 2
    assert b"HVRUN_RANK" in result.stderr


def test_the_working_directory_travels(hvrun, tmp_path):
    odd = tmp_path / "with space\nand newline"
    odd.mkdir()
    assert run(hvrun, "--no-label", "-np", "1", "pwd", cwd=odd).stdout == os.fsencode(str(odd)) + b"\n"
    assert run(hvrun, "--no-label", "-np", "1", "--wdir", str(odd), "pwd").stdout == os.fsencode(str(odd)) + b"\n"
    (tmp_path / "sub").mkdir()
    assert run(hvrun, "--no-label", "-np", "1", "--wdir", "sub", "pwd", cwd=tmp_path).stdout.endswith(b"/sub\n")


def test_the_working_directory_is_the_one_that_the_user_sees(hvrun, tmp_path):
    """PWD, such as a link or an automounter's name, where it is the current directory, and nothing else."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)

    def shown(**more):
        result = run(hvrun, "--no-label", "-np", "1", "sh", "-c", "echo $PWD; pwd", cwd=real, **more)
        return result.stdout.decode().split()

    assert shown(PWD=str(link)) == [str(link)] * 2
    assert shown(PWD=str(tmp_path)) == [str(real)] * 2
    assert shown(PWD="link") == [str(real)] * 2


def test_a_missing_directory_is_an_error_before_any_rank_starts(hvrun, tmp_path):
    marker = tmp_path / "started"
    result = run(hvrun, "-np", "2", "--wdir", "/no/such/dir", "touch", str(marker))
    assert result.returncode == 3
    assert b"/no/such/dir" in result.stderr and b"localhost" in result.stderr
    assert not marker.exists()


@pytest.mark.parametrize("program", ["no-such-program", "./no-such-program", "/no/such/program", "/etc/passwd", "/tmp"])
def test_a_program_that_cannot_run_is_an_error_naming_it_and_the_host(hvrun, program):
    result = run(hvrun, "-np", "2", program)
    assert result.returncode == 3
    assert program.encode() in result.stderr and b"localhost" in result.stderr
    assert b"try:" in result.stderr
    assert (f" in {os.getcwd()}: ".encode() in result.stderr) == program.startswith(".")


@pytest.mark.parametrize("has_start", [0, 1])
def test_a_rank_sees_exactly_three_descriptors(hvrun, has_start):
    result = run(hvrun, "-np", "2", "-x", f"HVRUN_PYTHON_START={has_start}", "/usr/bin/python3", "-c",
                 "import os; print(sorted(os.listdir('/proc/self/fd'), key=int)[:3], len(os.listdir('/proc/self/fd')))")
    # listdir itself holds one more while it looks, and a Python program the memory file for its stacks.
    assert lines_by_rank(result.stdout) == {rank: [f"['0', '1', '2'] {4 + has_start}".encode()] for rank in (0, 1)}


def test_descriptors_of_hvrun_do_not_leak_into_ranks(hvrun):
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    process = start(hvrun, "-np", "1", "ls", "/proc/self/fd")
    os.close(write_end)
    out, _ = process.communicate(timeout=30)
    os.close(read_end)
    assert len(out.splitlines()) == 4


def test_a_rank_starts_in_the_cgroup_of_its_job(hvrun):
    mounts = [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"]
    (own, *_) = [line[3:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")] or [None]
    if own is None or not mounts or not os.access(f"{mounts[0]}{own}/cgroup.procs", os.W_OK):
        pytest.skip("there is no cgroup v2 that a job may use")
    result = run(hvrun, "-np", "2", "cat", "/proc/self/cgroup")
    assert result.returncode == 0, result.stderr
    for lines in lines_by_rank(result.stdout).values():
        (group,) = [line.decode() for line in lines if line.startswith(b"0::")]
        assert re.fullmatch(rf"0::{re.escape(own.rstrip('/'))}/hvrun-[0-9a-f]+-0", group), group


def test_the_environment_has_no_key(hvrun):
    """The job's key never shows in a rank's environment, nor in any argv of the job."""
    _, environment = dump(hvrun, [], [])
    names = set(environment) - {name.encode() for name in clean_environment()}
    assert not [name for name in names if b"KEY" in name or b"SECRET" in name]


def test_master_port_is_of_the_port_range_and_no_two_jobs_have_the_same(hvrun, tmp_path):
    # sleep-ok: a rank that is busy
    script = f'echo "$MASTER_PORT" && : > {tmp_path}/"$MASTER_PORT" && while [ ! -e {tmp_path}/go ]; do sleep 0.05; done'
    jobs = [start(hvrun, "-np", "1", "--no-label", "sh", "-c", script, HVRUN_PORT_RANGE="23456-23475") for _ in range(3)]
    wait_for(lambda: len(list(tmp_path.glob("23*"))) == 3, 30, "each job has a port of its own")
    (tmp_path / "go").touch()
    ports = set()
    for job in jobs:
        out, err = job.communicate(timeout=30)
        assert (job.returncode, err) == (0, b"")
        ports.add(int(out))
    assert len(ports) == 3 and ports <= set(range(23456, 23476)), ports


def test_an_exported_port_range_counts_and_master_port_may_lie_outside(hvrun):
    _, environment = dump(hvrun, ["-x", "HVRUN_PORT_RANGE=23476-23495"], [])
    assert 23476 <= int(environment[b"MASTER_PORT"]) <= 23495
    _, environment = dump(hvrun, ["--master-port", "23499"], [], HVRUN_PORT_RANGE="23476-23495")
    assert environment[b"MASTER_PORT"] == b"23499"


def test_an_exported_master_port_counts_and_the_other_names_of_the_contract_are_warned_of_once(hvrun):
    result = run(hvrun, "-np", "2", "--no-label", "sh", "-c", 'echo "$MASTER_ADDR $MASTER_PORT $WORLD_SIZE"',
                 MASTER_ADDR="node7", MASTER_PORT="23497", WORLD_SIZE="8")
    assert result.stdout.splitlines() == [b"127.0.0.1 23497 2"] * 2, result.stderr
    assert result.stderr == b"hvrun: warning: WORLD_SIZE and MASTER_ADDR have no effect: hvrun itself sets them for each rank\n"


@pytest.mark.parametrize("options, named", [
    (["-p", "2222", "-i", "/none"], "-p 2222, -i /none have"), (["-H", "localhost", "-p", "2222"], "-p 2222 has"),
    (["-l", "ada"], "-l ada has"), (["--rsh", "ssh -q"], "--rsh ssh -q has")], ids=["default", "localhost", "user", "rsh"])
def test_options_for_logins_without_a_login_are_warned_of(hvrun, options, named):
    result = run(hvrun, *options, "-np", "1", "true", HVRUN_RSH="")
    assert result.returncode == 0
    assert f"warning: {named} no effect, because hvrun logs in to no host\n".encode() in result.stderr, result


def test_a_remote_shell_from_the_environment_is_not_warned_of(hvrun):
    assert run(hvrun, "-np", "1", "true", HVRUN_RSH="ssh -q").stderr == b""


def test_this_machine_by_its_name_takes_any_number_of_ranks_in_a_dry_run_too(hvrun):
    for command in (["hostname"], ["--dry-run=offline", "hostname"]):
        result = run(hvrun, "-H", "localhost", "-np", "200", *command)
        assert result.returncode == 0 and result.stderr.count(b"warning: 200 ranks share the ") == 1, result


def test_an_hvrun_inside_a_rank_takes_no_name_of_the_outer_job(hvrun):
    inner = f'"{hvrun}" -np 1 --no-label sh -c \'echo "$MASTER_PORT $WORLD_SIZE"\'; echo "$MASTER_PORT"'
    result = run(hvrun, "-np", "2", "--ranks", "0", "--no-label", "sh", "-c", inner)
    assert (result.returncode, result.stderr) == (0, b""), result.stderr
    inside, outside = result.stdout.split(b"\n")[:2]
    assert inside.endswith(b" 1") and inside.split()[0] != outside


def test_what_stays_behind_is_named_where_other_hosts_have_ranks(hvrun, tmp_path):
    told = b"TMPDIR and XDG_CACHE_HOME are not passed on: ranks on other hosts have their own host's"
    hosts = two_hosts(tmp_path)
    for options, is_told in ((hosts, True), ([*hosts, "-x", "TMPDIR", "-x", "XDG_CACHE_HOME"], False), (["-np", "2"], False)):
        result = run(hvrun, *options, "true", TMPDIR="/tmp", XDG_CACHE_HOME="/var/cache")
        assert result.returncode == 0, result.stderr
        assert (told in result.stderr) == is_told, (options, result.stderr)


def test_a_port_range_that_is_taken_is_told_with_what_to_try(hvrun):
    with socket.create_server(("", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = run(hvrun, "-np", "1", "true", HVRUN_PORT_RANGE=port)
    told = result.stderr.decode()
    assert result.returncode == 3, told
    assert f"no port of {port} is free" in told and "give HVRUN_PORT_RANGE two more free ports" in told, told
