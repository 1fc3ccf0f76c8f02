# SPDX-License-Identifier: Apache-2.0
"""hvrun --mpi: a real mpirun of Open MPI and of MPICH starts the ranks, and hvrun tells of them as of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

from harness import programs
from harness.processes import look_at
from harness.waiting import wait_for
from launching import lines_by_rank, run, start

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
RANK = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
STAY = "echo $$ >> {pids}; exec tail -f /dev/null"


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request):
    """The environment that chooses it."""
    if not shutil.which(f"mpirun.{request.param}"):
        pytest.skip(f"no {request.param}")
    return {"HVRUN_MPI": request.param, **AS_ROOT}


@pytest.fixture
def two_hosts(tmp_path):
    """Two names for this machine, reached by a command in ssh's place, which takes ssh's options. Open MPI's daemons, one
    for each name, are in each other's way in one temporary folder."""
    script = tmp_path / "rsh"
    script.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\n'
                      'while :; do case "$1" in -[pilo]) shift 2;; -*) shift;; *) break;; esac; done\n'
                      f'export TMPDIR={tmp_path}/$1; mkdir $TMPDIR; shift; exec sh -c "$*"\n')
    script.chmod(0o755)
    return ["--rsh", str(script)]


def alive(pid):
    process = look_at(pid)
    return process is not None and process.state != "Z"


def pids_in(path, count):
    wait_for(lambda: path.exists() and len(path.read_text().split()) >= count, 20, f"{count} pids in {path}")
    return [int(word) for word in path.read_text().split()]


# ---- what ranks are and say ----


@pytest.mark.parametrize("ranks", ["1", "2", "3"])
def test_ranks_run_on_the_cores_that_hvrun_binds_them_to(hvrun, mpi, ranks):
    words = ["-np", ranks, "--oversubscribe", "sh", "-c", "grep Cpus_allowed_list: /proc/self/status"]
    own, by_mpirun = run(hvrun, *words), run(hvrun, "--mpi", *words, **mpi)
    assert own.returncode == 0 == by_mpirun.returncode, (own, by_mpirun)
    assert lines_by_rank(by_mpirun.stdout) == lines_by_rank(own.stdout) != {}


def test_threads_and_report_of_a_rank_are_as_hvrun_has_them(hvrun, mpi):
    words = ["-np", "2", "--report-bindings", "sh", "-c", "echo threads $OMP_NUM_THREADS"]
    own, by_mpirun = run(hvrun, *words), run(hvrun, "--mpi", *words, **mpi)
    assert own.returncode == 0 == by_mpirun.returncode, (own, by_mpirun)
    assert lines_by_rank(by_mpirun.stdout) == lines_by_rank(own.stdout) != {}

    def reports(text):
        return sorted(line.partition("rank ")[2].replace(socket.gethostname(), "localhost") for line in text.decode().splitlines()
                      if "hvrun: rank " in line)
    assert reports(by_mpirun.stderr) == reports(own.stderr) and len(reports(own.stderr)) == 2, (own, by_mpirun)


def test_each_rank_has_a_core_of_its_own_where_that_is_asked_for(hvrun, mpi):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    result = run(hvrun, "--mpi", "-np", "2", "--bind-to", "core", "sh", "-c", "grep Cpus_allowed_list: /proc/self/status", **mpi)
    said = {rank: lines[0].split()[1] for rank, lines in lines_by_rank(result.stdout).items()}
    assert len(set(said.values())) == 2 and all(word.isdigit() for word in said.values()), result


def test_each_rank_is_labelled_and_both_streams_stay_apart(hvrun, mpi):
    result = run(hvrun, "--mpi", "-np", "3", "sh", "-c", f'echo "out <&> {RANK}"; echo "err ]]> {RANK}" >&2', **mpi)
    assert result.returncode == 0, result
    assert lines_by_rank(result.stdout) == {rank: [b"out <&> %d" % rank] for rank in range(3)}
    told = b"\n".join(line for line in result.stderr.splitlines() if not line.startswith(b"hvrun: warning"))
    assert lines_by_rank(told) == {rank: [b"err ]]> %d" % rank] for rank in range(3)}


def test_every_byte_arrives_and_no_line_is_torn(hvrun, mpi, scaled):
    """Lines that are longer than any piece that mpirun writes, and one without an end."""
    count = scaled(20)
    program = ("import os,sys\nr = os.environ.get('OMPI_COMM_WORLD_RANK') or os.environ['PMI_RANK']\n"
               f"for n in range({count}):\n  os.write(1, (r * 10001 + '<&amp;>\\t\\x7f' + str(n) + '\\n').encode())\n"
               "  os.write(1, b'\\xc3\\xa9\\xff\\n\\n')\n"
               "os.write(1, b'no end')\n")
    result = run(hvrun, "--mpi", "-np", "2", "/usr/bin/python3", "-c", program, **mpi)
    assert result.returncode == 0, result.stderr
    expected = {rank: [line for n in range(count) for line in (b"%d" % rank * 10001 + b"<&amp;>\t\x7f%d" % n, b"\xc3\xa9\xff", b"")]
                + [b"no end"] for rank in range(2)}
    assert lines_by_rank(result.stdout) == expected


def test_many_short_lines_at_once_are_not_lost(hvrun, mpi, scaled):
    """As Open MPI's mpirun loses them by itself."""
    count = scaled(100000)
    result = run(hvrun, "--mpi", "-np", "2", "seq", str(count), **mpi)
    assert result.returncode == 0, result.stderr
    assert lines_by_rank(result.stdout) == {rank: [b"%d" % n for n in range(1, count + 1)] for rank in range(2)}


def test_without_labels_and_into_files(hvrun, mpi, tmp_path):
    result = run(hvrun, "--mpi", "-np", "2", "--no-label", "--output-dir", str(tmp_path / "out"), "sh", "-c", f"echo {RANK}", **mpi)
    assert result.returncode == 0 and sorted(result.stdout.split()) == [b"0", b"1"], result
    assert [(tmp_path / "out" / f"rank.{rank}" / "stdout").read_bytes() for rank in range(2)] == [b"0\n", b"1\n"]


def test_mpi_carries_what_libhvrun_is_given(hvrun, mpi):
    result = run(hvrun, "--mpi", "-np", "2", str(programs.hvrun_folder() / "mpi_programs"), "2", "1", HVRUN_LOG_LEVEL="trace", **mpi)
    carriers = {line.split(b"engine: ")[1].split()[0] for line in result.stderr.splitlines() if b" starts " in line}
    assert result.returncode == 0 and b"mpi" in carriers, result


# ---- environment and words ----


def test_variables_arrive_and_their_values_are_on_no_command_line(hvrun, mpi, two_hosts, tmp_path):
    program = f'echo "$A|$B|$HVRUN_BACKEND|$HOME"; [ {RANK} = 0 ] && tr "\\\\0" " " < /proc/$PPID/cmdline > {tmp_path}/line; exit 0'
    result = run(hvrun, "--mpi", "-np", "2", "-H", "a,b", *two_hosts, "-x", "A=secret one", "-x", "B", "--no-label", "sh", "-c", program,
                 B="secret\ntwo", **mpi)
    assert result.returncode == 0 and result.stdout.count(b"secret one|secret\ntwo|mpi,native|") == 2, result
    assert "secret" not in (tmp_path / "calls").read_text() + (tmp_path / "line").read_text()
    dry = run(hvrun, "--mpi", "-np", "2", "-H", "a,b", *two_hosts, "-x", "A=secret one", "--dry-run=offline", "true", **mpi)
    assert dry.returncode == 0 and b"secret" not in dry.stdout, dry


def test_the_name_of_an_mpi_may_be_written_large(hvrun, mpi):
    result = run(hvrun, "--mpi", "-np", "1", "--no-label", "echo", "x", **{**mpi, "HVRUN_MPI": mpi["HVRUN_MPI"].upper()})
    assert result.returncode == 0 and result.stdout == b"x\n", result


def test_ranks_have_their_numbers_as_pytorch_asks_for_them(hvrun, mpi):
    words = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR"
    result = run(hvrun, "--mpi", "-np", "2", "--bind-to", "core", "sh", "-c", words, **mpi)
    assert lines_by_rank(result.stdout) == {rank: [f"{rank} 2 {rank} 2 127.0.0.1".encode()] for rank in range(2)}, result
    result = run(hvrun, "--mpi", "-np", "1", "--no-label", "--master-port", "23456", "sh", "-c", "echo $MASTER_PORT", **mpi)
    assert result.stdout == b"23456\n", result


def test_a_backend_that_is_set_stays(hvrun, mpi):
    result = run(hvrun, "--mpi", "-np", "1", "--no-label", "sh", "-c", "echo $HVRUN_BACKEND", HVRUN_BACKEND="native", **mpi)
    assert result.stdout == b"native\n", result


def test_ranks_are_where_hvrun_would_have_put_them(hvrun, mpi, two_hosts):
    program = f"echo {RANK} ${{OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID}}"
    for options, local in ([], [0, 1, 0]), (["--map-by", "node"], [0, 0, 1]):
        result = run(hvrun, "--mpi", "-np", "3", "-H", "a:2,b:1", *two_hosts, *options, "sh", "-c", program, **mpi)
        assert result.returncode == 0, result
        assert lines_by_rank(result.stdout) == {rank: [b"%d %d" % (rank, local[rank])] for rank in range(3)}, options


def test_ssh_is_told_port_and_user(hvrun, mpi, two_hosts, tmp_path):
    result = run(hvrun, "--mpi", "-np", "2", "-H", "a,b", *two_hosts, "-p", "2222", "-l", "ann", "true", **mpi)
    assert result.returncode == 0 and "-p 2222 -l ann" in (tmp_path / "calls").read_text(), result


def test_several_programs(hvrun, mpi):
    result = run(hvrun, "--mpi", "-np", "1", "sh", "-c", "echo one", ":", "-np", "2", "sh", "-c", "echo two", **mpi)
    assert result.returncode == 0 and lines_by_rank(result.stdout) == {0: [b"one"], 1: [b"two"], 2: [b"two"]}, result


def test_more_words_reach_mpirun(hvrun, mpi):
    words = {"openmpi": "--mca mpi_hvrun_test 'a b'", "mpich": "-genv OMPI_MCA_mpi_hvrun_test 'a b'"}[mpi["HVRUN_MPI"]]
    result = run(hvrun, "--mpi", f"--mpi-args={words}", "-np", "1", "--no-label", "sh", "-c", 'echo "$OMPI_MCA_mpi_hvrun_test"', **mpi)
    assert (result.returncode, result.stdout) == (0, b"a b\n"), result


def test_standard_input_reaches_rank_0(hvrun, mpi):
    result = run(hvrun, "--mpi", "-np", "2", "--stdin", "sh", "-c", f"[ {RANK} = 0 ] && cat; exit 0", stdin=b"x\ny\n", **mpi)
    assert result.returncode == 0 and lines_by_rank(result.stdout) == {0: [b"x", b"y"]}, result


SPAWN = """
import sys
from mpi4py import MPI
parent = MPI.Comm.Get_parent()
if parent == MPI.COMM_NULL:
    parent = MPI.COMM_SELF.Spawn(sys.executable, ["-c", sys.argv[1], sys.argv[1]])
else:
    print("one\\ntwo [<&>", flush=True)
parent.Barrier()
parent.Disconnect()
"""


def test_lines_of_processes_that_a_rank_has_spawned_stay_lines(hvrun):
    """Debian's mpi4py is Open MPI's."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import mpi4py"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no mpi4py")
    result = run(hvrun, "--mpi", "--mpi-args=--oversubscribe", "-np", "1", python, "-c", SPAWN, SPAWN, HVRUN_MPI="openmpi", **AS_ROOT)
    assert (result.returncode, lines_by_rank(result.stdout)) == (0, {0: [b"one", b"two [<&>"]}), result


# ---- how it ends ----


def test_a_rank_that_fails_decides_the_exit_code(hvrun, mpi):
    """Hydra lets the others go on where a rank that has not begun MPI ends with a code, and breaks down itself (255) now and
    then where a signal ends one."""
    others = {"openmpi": "exec sleep 600", "mpich": "exit 0"}[mpi["HVRUN_MPI"]]
    result = run(hvrun, "--mpi", "-np", "2", "sh", "-c", f"[ {RANK} = 1 ] && exit 3; {others}", **mpi)
    assert result.returncode == 3 and b"ended with exit code 3" in result.stderr, result
    for _ in range(10):
        result = run(hvrun, "--mpi", "-np", "2", "sh", "-c", f"[ {RANK} = 1 ] && kill -SEGV $$; exec sleep 600", **mpi)
        if b"process manager error" not in result.stderr:
            break
    assert result.returncode == 128 + signal.SIGSEGV and b"SIGSEGV" in result.stderr, result


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_nothing_behind(hvrun, mpi, number, tmp_path):
    process = start(hvrun, "--mpi", "-np", "2", "--grace", "1", "sh", "-c", STAY.format(pids=tmp_path / "pids"), **mpi)
    ranks = pids_in(tmp_path / "pids", 2)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    if number == signal.SIGKILL:
        wait_for(lambda: not any(map(alive, ranks)), 5, "the ranks' end")
        return
    assert process.returncode == 128 + number and b"hvrun: ended by " + number.name.encode() in err, err
    assert not any(map(alive, ranks))


SAVES = """
import os, signal
def save(number, frame):
    os.write(1, b"saved\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, save)
os.write(1, b"ready\\n")
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_ranks_are_told_to_end_by_sigterm(hvrun, mpi, number):
    process = start(hvrun, "--mpi", "-np", "1", "--no-label", "/usr/bin/python3", "-c", SAVES, **mpi)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number and out == b"saved\n", (out, err)
    assert (b"; with --mpi nobody tells where ranks stand\n" in err) == (number == signal.SIGQUIT), err


def memory_of(pid):
    """The files in memory, with names, that it shares with others."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        return {words[5] for words in map(str.split, maps) if len(words) == 6 and words[5].startswith("/dev/shm/")}


def test_a_second_signal_leaves_no_memory_of_open_mpis_ranks_behind(hvrun):
    wired = programs.hvrun_folder() / "wired_openmpi"
    if not wired.exists():
        pytest.skip("no openmpi")
    program = ["sh", "-c", 'echo $$; exec "$0" stay', str(wired)]
    process = start(hvrun, "--mpi", "-np", "2", "--no-label", *program, HVRUN_MPI="openmpi", **AS_ROOT)
    lines = [process.stdout.readline() for _ in range(4)]  # a PID, and that MPI has begun, of each
    files = set().union(*(memory_of(int(line)) for line in lines if line.strip().isdigit()))
    assert files, lines
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == b"hvrun: ended by SIGINT (Interrupt)\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGINT and not any(map(os.path.exists, files)), files


GET_AWAY = """
import os, signal, sys
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 1000)  # Hydra waits for the end of its own socket to a rank
    with open(sys.argv[1], "a") as file:
        print(os.getpid(), file=file)
    signal.pause()
while not os.path.exists(sys.argv[1]):
    os.sched_yield()
"""


def test_whoever_gets_away_from_mpirun_is_ended_with_it(hvrun, mpi, tmp_path):
    result = run(hvrun, "--mpi", "-np", "1", "/usr/bin/python3", "-c", GET_AWAY, str(tmp_path / "pids"), **mpi)
    assert result.returncode == 0, result
    assert not any(map(alive, pids_in(tmp_path / "pids", 1)))


def test_a_time_limit(hvrun, mpi):
    result = run(hvrun, "--mpi", "-np", "2", "--timeout", "1", "--grace", "1", "sleep", "600", **mpi)
    assert result.returncode == 4 and b"longer than --timeout 1 s" in result.stderr, result


def test_a_reader_that_goes_ends_the_job(hvrun, mpi, tmp_path):
    process = start(hvrun, "--mpi", "-np", "2", "sh", "-c", f"echo $$ >> {tmp_path}/pids; exec yes", **mpi)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=20) == 128 + signal.SIGPIPE
    assert not any(map(alive, pids_in(tmp_path / "pids", 2)))


# ---- what is told ----


def test_a_dry_run_shows_mpiruns_command_line(hvrun, mpi):
    result = run(hvrun, "--mpi", "-np", "3", "-H", "a:2,b:1", "--mpi-args", "--verbose", "--dry-run=offline", "./train", "a b", **mpi)
    line = result.stdout.splitlines()[-1].decode()
    mpiruns = [f"/mpirun.{mpi['HVRUN_MPI']}", "/mpirun"]
    assert result.returncode == 0 and line.split()[0].endswith(tuple(mpiruns)) and "a:2,b:1" in line, result
    assert " --verbose " in line and line.endswith("./train 'a b'")
    result = run(hvrun, "--mpi", "-np", "3", "-H", "a:2,b:1", "--dry-run=offline", "--format", "json", "./train", "a b", **mpi)
    words = json.loads(result.stdout)["mpirun"]
    assert words[0].endswith(tuple(mpiruns)) and words[-2:] == ["./train", "a b"], result


@pytest.mark.parametrize("program, words", [("nosuch", b"not found in PATH ("), ("./plain", b"Permission denied\n  try: chmod +x ./plain")])
def test_a_program_that_is_not_there_is_told_as_without_mpi(hvrun, mpi, program, words, tmp_path):
    (tmp_path / "plain").write_text("x")
    started = time.monotonic()
    for others in ([], [":", "-np", "1", "sleep", "600"]):
        result = run(hvrun, "--mpi", "--wdir", str(tmp_path), "-np", "2", program, *others, **mpi)
        assert result.returncode == 3 and result.stderr.count(b"hvrun: error: on host ") == 1, result
        assert b": find the program " + program.encode() in result.stderr and words in result.stderr, result
        assert result.stderr.count(b"\n  try: ") == 1 and b"\x01" not in result.stderr, result
    assert time.monotonic() - started < 60


def test_a_program_that_hydra_itself_does_not_find(hvrun):
    if not shutil.which("mpirun.mpich"):
        pytest.skip("no mpich")
    result = run(hvrun, "--mpi", "--bind-to", "none", "-np", "1", "nosuch", HVRUN_MPI="mpich")
    assert result.returncode != 0 and b"\n  try: install nosuch on host " in result.stderr, result


@pytest.mark.parametrize("word", ["--frobnicate", "frobnicate"])
def test_words_that_mpirun_does_not_know_are_told_to_be_of_mpi_args(hvrun, mpi, word):
    result = run(hvrun, "--mpi", f"--mpi-args={word}", "-np", "1", "true", **mpi)
    assert result.returncode not in (0, 134) and f"\n  try: --mpi-args without {word}, or as ".encode() in result.stderr, result


def test_no_mpirun_is_told_with_what_was_looked_for(hvrun, tmp_path):
    result = run(hvrun, "--mpi", "-np", "1", "true", PATH=str(tmp_path))
    assert result.returncode == 3 and b"looked for mpirun (" in result.stderr and b"mpiexec.hydra (" in result.stderr, result
    assert b"openmpi-bin or mpich" in result.stderr
    (tmp_path / "mpirun").write_text("#!/bin/sh\necho some other mpirun\n")
    (tmp_path / "mpirun").chmod(0o755)
    result = run(hvrun, "--mpi", "-np", "1", "true", PATH=str(tmp_path))
    assert result.returncode == 3 and b"(neither Open MPI's nor MPICH's)" in result.stderr, result


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mpirun.openmpi"), reason="needs root and Open MPI")
def test_open_mpis_own_words_on_root_are_told_with_what_to_try(hvrun):
    result = run(hvrun, "--mpi", "-np", "1", "true", HVRUN_MPI="openmpi")
    assert result.returncode == 1 and b"has detected an attempt to run as root" in result.stderr, result
    assert b"try: as another user; or, in a container" in result.stderr
    one = {"HVRUN_MPI": "openmpi", "OMPI_ALLOW_RUN_AS_ROOT": "1"}
    assert run(hvrun, "--mpi", "-np", "1", "true", **one).returncode == 1
    result = run(hvrun, "--mpi", "-np", "1", "true", **one, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    assert result.returncode == 0, result


@pytest.mark.parametrize("options, variables, words", [
    ([], {"HVRUN_BACKEND": "ncl"}, b"HVRUN_BACKEND"),
    (["-x", "HVRUN_FUSION_THRESHOLD=lots"], {}, b"HVRUN_FUSION_THRESHOLD"),
])
def test_a_malformed_knob_is_told_before_the_start(hvrun, mpi, options, variables, words, tmp_path):
    result = run(hvrun, "--mpi", "-np", "2", *options, "touch", str(tmp_path / "started"), **mpi, **variables)
    assert result.returncode == 2 and words in result.stderr and result.stderr.count(b"hvrun: error: ") == 1, result
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("options, words", [
    (["--mpi", "--spawner", "ssh"], b"--spawner is nothing that --mpi can do"),
    (["--mpi", "--pty"], b"--pty is nothing that --mpi can do"),
    (["--mpi", "--gpu-bind=visible"], b"--gpu-bind=visible and --gpus-per-rank above 1 is nothing"),
    (["--mpi", "--mpi-args", "'x"], b"a quote is open"),
    (["--mpi", "--mpi-args", "-np 3"], b"--mpi-args says -np, which hvrun tells mpirun itself"),
    (["--mpi", "--mpi-args", "--host a"], b"--mpi-args says --host, which hvrun tells mpirun itself"),
    (["--mpi", "--mpi-args", "-n 3"], b"--mpi-args says -n, which hvrun tells mpirun itself"),
    (["--mpi", "--mpi-args", "-hosts=a"], b"--mpi-args says -hosts=a, which hvrun tells mpirun itself"),
    (["--mpi-args", "x"], b"--mpi-args is for mpirun, which starts nothing here"),
    (["--mpi", "--rsh", "kubectl exec", "-H", "a"], b"pods"),
    (["--mpi", "--wire-mpi=pmi"], b"--wire-mpi is nothing that --mpi can do"),
    (["--mpi", "-H", "a", "--gpus-per-rank", "1"], b"--gpus-per-rank is nothing that --mpi can do"),
    (["--mpi", "-H", "[fd00::1]:2"], b"no address with colons"),
])
def test_what_mpirun_cannot_do_is_refused(hvrun, options, words):
    result = run(hvrun, "-np", "1", *options, "true")
    assert result.returncode == 2 and words in result.stderr and b"\n  try: " in result.stderr, result
