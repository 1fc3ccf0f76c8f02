"""What the command line means.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os

import pytest

from launching import lines_by_rank, run, start


def variables(output, rank):
    return dict(line.split(b"=", 1) for line in lines_by_rank(output)[rank] if b"=" in line)


@pytest.mark.parametrize("words", [("-np", "2", "env"), ("-np", "2", "--", "env"), ("--np=2", "env")])
def test_the_program_env_runs_with_the_contract(hvrun, words):
    result = run(hvrun, *words)
    assert result.returncode == 0, result.stderr
    for rank in (0, 1):
        seen = variables(result.stdout, rank)
        assert seen[b"HVRUN_RANK"] == seen[b"RANK"] == b"%d" % rank
        assert seen[b"HVRUN_SIZE"] == seen[b"WORLD_SIZE"] == b"2"
        assert seen[b"HVRUN_LOCAL_RANK"] == seen[b"LOCAL_RANK"] == b"%d" % rank
        assert seen[b"HVRUN_LOCAL_SIZE"] == seen[b"LOCAL_WORLD_SIZE"] == b"2"
        assert seen[b"HVRUN_CROSS_RANK"] == seen[b"GROUP_RANK"] == b"0"
        assert seen[b"HVRUN_CROSS_SIZE"] == b"1"
        assert seen[b"MASTER_ADDR"] == b"127.0.0.1"
        assert 0 < int(seen[b"MASTER_PORT"]) < 65536
        assert seen[b"PYTHONUNBUFFERED"] == b"1"
        assert not [name for name in seen if b"KEY" in name]


def test_env_alone_is_the_subcommand(hvrun):
    result = run(hvrun, "env", HVRUN_GRACE="7", HOROVOD_FUSION_THRESHOLD="1M")
    assert result.returncode == 0, result.stderr
    rows = {line.split()[0]: line.split() for line in result.stdout.decode().splitlines()}
    assert rows["HVRUN_GRACE"][1:3] == ["7", "HVRUN_GRACE"]
    assert rows["HVRUN_FUSION_THRESHOLD"][1:3] == ["1M", "HOROVOD_FUSION_THRESHOLD"]
    assert rows["HVRUN_LOST_AFTER"][2] == "default"


def test_an_hvrun_inside_a_rank_does_not_take_the_outer_ones_option_for_its_own(hvrun):
    result = run(hvrun, "--lost-after", "7", "-np", "1", "--no-label", hvrun, "env")
    assert result.returncode == 0, result.stderr
    rows = {line.split()[0]: line.split() for line in result.stdout.decode().splitlines()}
    assert rows["HVRUN_LOST_AFTER"][1:3] == ["15", "default"]
    assert rows["HVRUN_PEER_TIMEOUT"][1:3] == ["7", "HVRUN_JOB_LOST_AFTER"]  # which is the rank's


def test_env_says_which_of_horovods_variables_change_nothing_and_why(hvrun):
    result = run(hvrun, "env", HOROVOD_CYCLE_TIME="5", HOROVOD_STALL_CHECK_DISABLE="1")
    assert result.returncode == 0, result.stderr
    rows = {line.split()[0]: line.split(maxsplit=3) for line in result.stdout.decode().splitlines()}
    assert rows["HOROVOD_CYCLE_TIME"][1:3] == ["5", "unused"] and "no cycles" in rows["HOROVOD_CYCLE_TIME"][3]
    assert rows["HVRUN_STALL_SECONDS"][1:3] == ["0", "HOROVOD_STALL_CHECK_DISABLE"]
    assert "HOROVOD_AUTOTUNE" not in rows  # not set


def test_env_prints_the_table_of_algorithms(hvrun):
    result = run(hvrun, "env", "--algorithms", HVRUN_ALGORITHM="cross:ring@1M")
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.decode().splitlines()]
    assert rows[0][:2] == ["COLLECTIVE", "ALGORITHM"]
    assert rows[1] == ["cross", "ring", "HVRUN_ALGORITHM", "1", "MiB"]
    assert ["allreduce", "inplace", "one", "host", "any", "size"] in rows
    assert ["cross", "ring", "several", "hosts", "only", "by", "HVRUN_ALGORITHM"] in rows


@pytest.mark.parametrize("words", [("env",), ("env", "--algorithms"), ("-np", "2", "true")])
def test_algorithms_that_do_not_exist_are_an_error_that_names_those_that_do(hvrun, words):
    result = run(hvrun, *words, HVRUN_ALGORITHM="allreduce:spiral")
    assert result.returncode == 2
    assert result.stderr.count(b"'allreduce:spiral' names no algorithm") == 1
    assert b"cross:ring" in result.stderr


def test_a_malformed_knob_is_an_error_that_names_it(hvrun):
    result = run(hvrun, "true", HVRUN_GRACE="soon")
    assert result.returncode == 2
    assert b"HVRUN_GRACE is 'soon'" in result.stderr


@pytest.mark.parametrize("words", [("env",), ("true",)])
def test_a_knob_below_its_least_value_is_an_error_that_names_it(hvrun, words):
    result = run(hvrun, *words, HVRUN_LOST_AFTER="0.1")
    assert result.returncode == 2
    assert b"HVRUN_LOST_AFTER is '0.1'" in result.stderr and b"at least 0.5 s" in result.stderr


def test_env_shows_the_whole_table_beside_a_malformed_knob(hvrun):
    result = run(hvrun, "env", HVRUN_GRACE="7", HVRUN_STALL_SECONDS="soon", HVRUN_ALGORITHM="allreduce:ring")
    assert result.returncode == 2
    rows = {line.split()[0]: line.split(maxsplit=3) for line in result.stdout.decode().splitlines()}
    assert rows["HVRUN_GRACE"][1:3] == ["7", "HVRUN_GRACE"]
    assert rows["HVRUN_STALL_SECONDS"][1:3] == ["soon", "HVRUN_STALL_SECONDS"]
    assert rows["HVRUN_STALL_SECONDS"][3].startswith("MALFORMED: HVRUN_STALL_SECONDS is 'soon': not a time")
    assert rows["HVRUN_ALGORITHM"][3].startswith("MALFORMED: HVRUN_ALGORITHM: 'allreduce:ring' names no algorithm")
    assert result.stderr.count(b"hvrun: error:") == 1 and b"HVRUN_STALL_SECONDS is 'soon'" in result.stderr


def test_what_an_algorithm_or_a_backend_was_meant_to_be_is_told(hvrun):
    result = run(hvrun, "env", HVRUN_ALGORITHM="allreduce:ring")
    assert b"'allreduce:ring' names no algorithm, did you mean cross:ring?" in result.stderr
    result = run(hvrun, "env", HVRUN_ALGORITHM="cross:halfing@1M")
    assert b"did you mean cross:halving?" in result.stderr
    result = run(hvrun, "true", HVRUN_BACKEND="native,ncl")
    assert b"HVRUN_BACKEND is 'native,ncl': not a list of nccl, mpi, native" in result.stderr
    assert b"try: did you mean nccl? set it to a list of nccl, mpi, native" in run(hvrun, "true", HVRUN_BACKEND="NCCL").stderr
    assert b"try: did you mean nccl? set it to a list of nccl, mpi, native, or unset it" in result.stderr
    assert b"try: did you mean nccl?" in run(hvrun, "true", HVRUN_BACKEND="native, mpi, ncl").stderr


def test_a_list_of_backends_may_have_blanks(hvrun):
    result = run(hvrun, "-np", "1", "--no-label", "sh", "-c", 'echo "$HVRUN_BACKEND"', HVRUN_BACKEND="native, nccl")
    assert (result.returncode, result.stdout) == (0, b"native, nccl\n"), result


@pytest.mark.parametrize("word, meant", [("evn", b"'hvrun env'"), ("scirpt", b"'hvrun script'"), ("chekc", b"'hvrun --check-build'")])
def test_what_a_first_word_was_meant_to_be_is_told_where_no_such_program_is(hvrun, word, meant):
    result = run(hvrun, word)
    assert result.returncode == 3
    assert b"find the program " + word.encode() in result.stderr and b"try: " + meant in result.stderr


def test_a_malformed_knob_of_the_ranks_is_told_once_and_before_the_start(hvrun, tmp_path):
    result = run(hvrun, "-np", "2", "-x", "HVRUN_FUSION_THRESHOLD=64X", "touch", tmp_path / "started")
    assert result.returncode == 2
    assert result.stderr.count(b"HVRUN_FUSION_THRESHOLD is '64X'") == 1
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("words", [("env",), ("true",), ("--dry-run=offline", "true")])
def test_a_variable_that_sets_nothing_is_told(hvrun, words):
    result = run(hvrun, *words, HVRUN_STAL_SECONDS="5", HVRUN_NP="4", HOROVOD_FUSION_TRESHOLD="1", HOROVOD_ELASTIC="1",
                 HVRUN_VERBOSE="1", HOROVOD_CYCLE_TIME="1")
    assert result.returncode == 0
    said = (result.stdout + result.stderr).decode()
    assert "HVRUN_STAL_SECONDS sets nothing; did you mean HVRUN_STALL_SECONDS?" in said
    assert "HOROVOD_FUSION_TRESHOLD sets nothing; did you mean HOROVOD_FUSION_THRESHOLD?" in said
    assert "HVRUN_NP, HVRUN_VERBOSE set nothing; 'hvrun env' lists what does" in said
    assert said.count("set nothing") + said.count("sets nothing") == 3


def test_an_x_that_sets_nothing_is_told(hvrun):
    result = run(hvrun, "-np", "1", "-x", "HVRUN_BACKEN=mpi", "true", ":", "-np", "1", "-x", "HVRUN_STAL_SECONDS=5", "-x", "MINE=1", "true")
    assert (result.returncode, result.stderr.count(b"hvrun: warning: ")) == (0, 2), result
    assert b"HVRUN_BACKEN sets nothing; did you mean HVRUN_BACKEND?" in result.stderr
    assert b"HVRUN_STAL_SECONDS sets nothing; did you mean HVRUN_STALL_SECONDS?" in result.stderr


def test_what_modules_builds_and_tests_set_is_not_told_as_setting_nothing(hvrun):
    names = ["HVRUN_ROOT", "HVRUN_DIR", "HVRUN_HOME", "HVRUN_LIBRARY",
             "HVRUN_BIN_DIR", "HVRUN_TEST_BUILD_DIR", "HVRUN_TEST_SOURCE_DIR", "HVRUN_TEST_SCALE"]
    result = run(hvrun, "-np", "1", "true", **{name: "/opt/hvrun" for name in names})
    assert (result.returncode, result.stderr) == (0, b"")


def test_an_hvrun_inside_a_rank_finds_no_fault_with_the_ranks_environment(hvrun):
    result = run(hvrun, "-np", "1", "--nested", hvrun, "-np", "1", "true")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


@pytest.mark.parametrize("words, advice", [
    (("torchrun", "--nproc-per-node", "4", "train.py", "--lr", "1"), "hvrun -np 4 python3 train.py --lr 1"),
    (("-H", "a:4,b:4", "python", "-m", "torch.distributed.run", "train.py"), "hvrun -H a:4,b:4 python train.py"),
    (("accelerate", "launch", "--num_processes=2", "train.py"), "hvrun -np 2 python3 train.py"),
    (("deepspeed", "--num_gpus", "2", "train.py"), "hvrun -np 2 python3 train.py"),
    (("--dry-run", "mpirun", "-np", "2", "./train"), "hvrun --dry-run -np 2 ./train"),
    (("--dry-run=offline", "mpiexec", "-n", "2", "./train"), "hvrun --dry-run=offline -np 2 ./train"),
    (("-np", "2", "horovodrun", "-np", "2", "python", "train.py"), "try: one hvrun with the options of both, each of them once"),
    (("hvrun", "-np", "2", "./train"), "hvrun -np 2 ./train"),
    (("script", "-np", "2", "torchrun", "train.py"), "hvrun script -np 2 python3 train.py")])
def test_another_launcher_as_the_program_is_refused_with_what_to_type(hvrun, words, advice):
    result = run(hvrun, *words)
    told = result.stderr.decode()
    assert (result.returncode, result.stdout) == (2, b""), told
    assert "is a launcher, too: each rank would start a whole job of its own" in told, told
    assert advice in told and "--nested starts it all the same" in told, told


def test_a_launcher_starts_once_on_each_host_with_its_own_options_or_with_nested(hvrun, tmp_path):
    torchrun = tmp_path / "torchrun"
    torchrun.write_text("#!/bin/sh\necho started\n")
    torchrun.chmod(0o755)
    own = [str(torchrun), "--nnodes=2", "--rdzv-endpoint=a:29500", "train.py"]
    assert run(hvrun, "-np", "1", "--no-label", *own).stdout == b"started\n"
    refused = run(hvrun, "-np", "2", *own)
    assert refused.returncode == 2 and b"try: --npernode 1 for one on each host" in refused.stderr, refused.stderr
    assert run(hvrun, "--npernode", "1", "--no-label", *own).stdout == b"started\n"
    assert run(hvrun, "-np", "2", "--nested", "--no-label", torchrun, "train.py").stdout == b"started\n" * 2


def test_options_behind_the_program_belong_to_it(hvrun):
    result = run(hvrun, "--dry-run=offline", "--format", "json", "-H", "a:2", "train", "--np", "3")
    assert result.returncode == 0, result.stderr
    plan = json.loads(result.stdout)
    assert plan["program"] == ["train", "--np", "3"]
    assert [rank["local_rank"] for rank in plan["ranks"]] == [0, 1]


def test_an_unknown_option_names_the_nearest(hvrun):
    result = run(hvrun, "--nmu", "3", "train")
    assert result.returncode == 2
    assert b"unknown option --nmu" in result.stderr
    assert b"--np" in result.stderr


@pytest.mark.parametrize("words,meaning", [
    (("-N", "2"), "mpirun's -N is --npernode here"), (("-ppn", "2"), "that is -np here on one machine, and --npernode on several"),
    (("-f", "hosts"), "that is --hostfile here"),
    (("--nproc-per-node", "gpu"), "that is -np here on one machine, and --npernode on several"),
    (("--nnodes=2",), "as many hosts as -H"), (("--mca", "a", "b"), "MPI starts nothing here"),
    (("--mpi-args", "--mca btl ^openib"), "start the program by mpirun itself, as in mpirun --mca NAME VALUE -np 4 ./train"),
])
def test_another_launchers_option_is_told_by_what_it_is_here(hvrun, words, meaning):
    result = run(hvrun, *words, "train")
    assert result.returncode == 2
    assert f"unknown option {words[0].split('=')[0]}\n  try: " in result.stderr.decode() and meaning in result.stderr.decode()


def test_a_pattern_of_variables_that_matches_none_is_told(hvrun):
    result = run(hvrun, "-np", "1", "-x", "NOPE_*", "-x", "SOME_*", "true", SOME_THING="1")
    assert result.returncode == 0
    assert result.stderr.count(b"warning: ") == 1 and b"-x 'NOPE_*' adds nothing" in result.stderr


@pytest.mark.parametrize("words,said", [
    (("--rsh", "/no/such/rsh"), "reach hosts by '/no/such/rsh' (--rsh): find the program /no/such/rsh: No such file or directory"),
    (("--rsh", "no-such-rsh -v"), "find the program no-such-rsh: not found in PATH"),
    (("-i", "/no/such/key"), "read the key file /no/such/key: No such file or directory"),
])
def test_a_way_to_hosts_that_cannot_be_is_told_once_before_any_is_connected_to(hvrun, tmp_path, words, said):
    result = run(hvrun, *words, "-H", "a,b,c", "--summary", str(tmp_path / "s"), "true", timeout=20)
    assert result.returncode == 3
    assert result.stderr.count(b"error: ") == 1 and said in result.stderr.decode() and b"\n  try: " in result.stderr
    assert json.loads((tmp_path / "s").read_text())["state"] == "not_started"


@pytest.mark.parametrize("words,said", [
    (("-l", "bob", "-H", "a"), "reach host a: user 'bob' (-l, user@host, user=)"),
    (("-H", "b,bob@a"), "reach host a: user 'bob' (-l, user@host, user=)"),
    (("-p", "2222", "-H", "a"), "port 2222 (-p, port=)"), (("-i", __file__, "-H", "a"), f"key {__file__} (-i, identity=)"),
])
def test_what_a_remote_shell_cannot_be_told_is_refused_before_it_is_run(hvrun, tmp_path, words, said):
    script = tmp_path / "enter"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/was_run\n")
    script.chmod(0o755)
    result = run(hvrun, "--rsh", str(script), *words, "true")
    assert result.returncode == 2 and result.stderr.count(b"error: ") == 1, result
    assert f"{said} cannot be passed on to '{script}'" in result.stderr.decode(), result
    assert b"try: put it into the command itself" in result.stderr, result
    assert not (tmp_path / "was_run").exists()


def test_a_remote_shell_is_not_looked_for_where_nothing_is_remote(hvrun):
    result = run(hvrun, "-np", "1", "true", HVRUN_RSH="/no/such/rsh")
    assert (result.returncode, result.stderr) == (0, b"")


def test_an_error_of_many_hosts_is_told_once(hvrun):
    names = [f"node{number}.invalid" for number in range(1, 11)]
    result = run(hvrun, "--rsh", "sh -c 'exit 4' sh", "-H", ",".join(names), "true")
    assert result.returncode == 3 and result.stderr.count(b"error: ") == 1, result
    assert b"start the agent on hosts node[1-10].invalid (10): " in result.stderr, result


def test_two_ranks_start_without_a_gpu(hvrun):
    result = run(hvrun, "-np", "2", "true")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


def test_a_word_that_is_a_file_is_the_hostfile(hvrun, tmp_path):
    (tmp_path / "hosts").write_text("alpha slots=2 # first\nbeta slots=1\n")
    result = run(hvrun, "--dry-run=offline", "--format=json", "-H", "hosts", "train", cwd=tmp_path)
    assert [rank["host"] for rank in json.loads(result.stdout)["ranks"]] == ["alpha", "alpha", "beta"]
    result = run(hvrun, "--dry-run=offline", "--format=json", "--hostfile", "hosts", "-np", "1", "train", cwd=tmp_path)
    assert len(json.loads(result.stdout)["ranks"]) == 1


def test_a_dry_run_asks_the_hosts_and_says_what_mends_it(hvrun):
    result = run(hvrun, "--dry-run", "no-such-program")
    assert result.returncode == 3
    assert b"cannot start: " in result.stdout and b"no-such-program" in result.stdout and b"\n  try: " in result.stdout, result


def test_another_dry_run_is_not_understood(hvrun):
    result = run(hvrun, "--dry-run=online", "train")
    assert result.returncode == 2 and b"--dry-run=offline" in result.stderr, result


def test_a_check_takes_no_program(hvrun):
    result = run(hvrun, "check", "train")
    assert result.returncode == 2 and b"hvrun --dry-run" in result.stderr, result


def test_the_offline_plan_says_what_it_assumed(hvrun):
    result = run(hvrun, "--dry-run=offline", "-H", "a,b:2", "train")
    assert result.returncode == 0
    assert b"slots not stated" in result.stdout
    plan = json.loads(run(hvrun, "--dry-run=offline", "--format=json", "-H", "a,b:2", "train").stdout)
    assert [host["slots_assumed"] for host in plan["hosts"]] == [True, False]
    for rank in plan["ranks"]:
        assert {"rank", "host", "local_rank", "local_size", "cross_rank", "cross_size"} <= set(rank)
    assert "key" not in json.dumps(plan)


def test_more_ranks_than_slots_on_named_hosts_is_an_error_with_both_numbers(hvrun):
    result = run(hvrun, "-np", "5", "--dry-run=offline", "-H", "a:2,b:2", "train")
    assert result.returncode == 2
    assert b"5 ranks" in result.stderr and b"4 slots" in result.stderr


def test_more_ranks_than_cores_here_run_with_one_warning(hvrun):
    result = run(hvrun, "-np", "9", "true")
    assert result.returncode == 0
    assert result.stderr.count(b"warning") == 1


def test_ranks_that_no_agent_could_be_told_of_are_refused_at_once(hvrun):
    result = run(hvrun, "-np", "200000", "true")
    assert result.returncode == 2
    assert b"200000 ranks on host localhost" in result.stderr and b"at most 64 MiB" in result.stderr


def test_a_mistake_in_a_hostfile_is_shown_with_its_place(hvrun, tmp_path):
    (tmp_path / "hosts").write_text("a slots=2\nb slots=two\n")
    result = run(hvrun, "--hostfile", "hosts", "train", cwd=tmp_path)
    assert result.returncode == 2
    assert b"hosts:2:9: 'two' is no number of slots\n  b slots=two\n          ^" in result.stderr


def test_version_and_help_go_to_stdout(hvrun):
    assert run(hvrun, "--version").stdout.startswith(b"hvrun 0.")
    help_text = run(hvrun, "--help").stdout
    assert b"Usage: hvrun" in help_text and b"--lost-after" in help_text
    assert run(hvrun).returncode == 2


def test_the_help_of_check_has_what_a_check_takes(hvrun):
    result = run(hvrun, "check", "--help")
    assert result.returncode == 0 and b"Usage: hvrun check" in result.stdout, result
    assert b"--hostfile" in result.stdout and b"--topology-html" in result.stdout and b"--grace" not in result.stdout, result


@pytest.fixture
def gone(tmp_path):
    """A prefix that runs a command in a folder that is there no more."""
    return ["/bin/sh", "-c", f'mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir {tmp_path}/gone && exec "$@"', "sh"]


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("env",), ("--wdir", "/tmp", "--no-label", "-np", "1", "pwd")])
def test_a_current_directory_that_is_gone_is_no_matter_where_it_is_not_needed(hvrun, gone, words):
    result = run(gone[0], *gone[1:], hvrun, *words)
    assert result.returncode == 0, result.stderr
    assert result.stdout == b"/tmp\n" or "pwd" not in words


@pytest.mark.parametrize("words", [("true",), ("--wdir", "here", "true")])
def test_a_current_directory_that_is_gone_is_an_error_where_it_is_needed(hvrun, gone, words):
    result = run(gone[0], *gone[1:], hvrun, *words)
    assert result.returncode == 2
    assert b"find the current directory" in result.stderr and b"--wdir" in result.stderr


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("env",), ("--dry-run=offline", "true")])
def test_words_that_cannot_be_written_are_an_error_with_what_to_try(hvrun, words):
    with open("/dev/full", "wb") as full:
        process = start(hvrun, *words, stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert b"write to standard output: No space left" in err and b"\n  try: " in err


@pytest.mark.parametrize("option", ["-H", "--hostfile", "-np", "-x", "--output-dir", "--timeout", "--rsh", "--wdir"])
def test_an_empty_value_is_a_mistake_not_a_default(hvrun, option):
    result = run(hvrun, option, "", "true")
    assert result.returncode == 2
    assert b"has an empty value" in result.stderr


def test_another_tools_command_is_said_to_be_run_as_a_program(hvrun):
    hint = b"hvrun: warning: 'ps' is run as a program: hvrun has no command of that name"
    result = run(hvrun, "ps", "-o", "pid=", "-p", str(os.getpid()))
    assert hint in result.stderr and b"[0]" in result.stdout
    assert hint not in run(hvrun, "--", "ps", "-o", "pid=", "-p", str(os.getpid())).stderr
    for word in ("status", "completion", "run", "job"):
        result = run(hvrun, word, PATH="/nowhere")
        assert b"'%s' is run as a program" % word.encode() in result.stderr and result.returncode != 0, result.stderr
