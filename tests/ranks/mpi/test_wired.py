# SPDX-License-Identifier: Apache-2.0
"""MPI programs that hvrun itself starts, of a real Open MPI and a real MPICH."""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from harness import programs
from harness.running import Running, run
from harness.waiting import stays, wait_for

pytestmark = pytest.mark.one_of("mpi", "hosts", "of_one", "word")

BIN = programs.hvrun_folder()
RSH = programs.SOURCE / "tests" / "c" / "rsh_to_here.sh"
ONE_HOST = ["--oversubscribe"]
TWO_HOSTS = ["--oversubscribe", "--rsh", RSH, "-H", "a:2,b:1"]  # two names for this machine
OF_OTHERS = ("HVRUN_", "PMI", "OMPI")


def environment(**more):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OF_OTHERS)}
    return {**inherited, **more}


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request):
    if not (BIN / f"wired_{request.param}").exists():
        pytest.skip(f"no {request.param}")
    return request.param


def start(words, *program, timeout=60, **more):
    return run([BIN / "hvrun", "-np", "3", "--no-label", *words, *program], env=environment(**more), timeout=timeout)


def expect_world(result, *of_hosts):
    size = sum(of_hosts)
    ranks = [(local, here) for here in of_hosts for local in range(here)]
    total = size * (size + 1) // 2
    assert result.code == 0 and result.err == "", str(result)
    assert sorted(result.out.splitlines()) == [
        f"rank {rank} of {size}, {local} of {here} here: {total}" for rank, (local, here) in enumerate(ranks)], str(result)


def test_ranks_of_one_host_are_a_world(mpi):
    expect_world(start([*ONE_HOST, "--wire-mpi"], BIN / f"wired_{mpi}"), 3)


def test_ranks_of_two_hosts_are_a_world_and_know_who_shares_a_host(mpi):
    expect_world(start([*TWO_HOSTS, "--wire-mpi"], BIN / f"wired_{mpi}"), 2, 1)


def test_ranks_that_are_dealt_out_in_turn(mpi):
    result = start(["--oversubscribe", "--rsh", RSH, "-H", "a:2,b:2", "--map-by", "node", "--wire-mpi"], BIN / f"wired_{mpi}")
    assert result.code == 0, str(result)
    assert sorted(result.out.splitlines()) == [
        "rank 0 of 3, 0 of 2 here: 6", "rank 1 of 3, 0 of 1 here: 6", "rank 2 of 3, 1 of 2 here: 6"], str(result)


def test_a_rank_knows_which_of_several_programs_it_is_of(mpi):
    wired = [BIN / f"wired_{mpi}", "program"]
    result = run([BIN / "hvrun", "--no-label", *ONE_HOST, "--wire-mpi", "-np", "1", *wired, ":", "-np", "2", *wired],
                 env=environment(), timeout=60)
    assert result.code == 0 and sorted(line for line in result.out.splitlines() if " is of " in line) == [
        "rank 0 is of program 0", "rank 1 is of program 1", "rank 2 is of program 1"], str(result)


@pytest.mark.parametrize("of_one, word", [("openmpi", "pmix"), ("mpich", "pmi")])
def test_one_way_alone_is_enough_for_the_mpi_that_knows_it(of_one, word):
    if not (BIN / f"wired_{of_one}").exists():
        pytest.skip(f"no {of_one}")
    expect_world(start([*ONE_HOST, f"--wire-mpi={word}"], BIN / f"wired_{of_one}"), 3)


def test_without_being_wanted_it_is_not_there():
    result = start(ONE_HOST, "sh", "-c", "env | grep -E '^(PMI|OMPI)'; true")
    assert (result.code, result.out) == (0, ""), str(result)


def test_hvrun_backend_wants_it_and_an_option_can_say_no():
    words = ["sh", "-c", "echo ${PMIX_RANK-no} ${PMI_RANK-no}"]
    result = start(ONE_HOST, *words, HVRUN_BACKEND="mpi,native")
    assert sorted(result.out.splitlines()) == ["0 0", "1 1", "2 2"], str(result)
    result = start([*ONE_HOST, "--wire-mpi=none"], *words, HVRUN_BACKEND="mpi,native")
    assert result.out.splitlines() == ["no no"] * 3, str(result)


# ---- with libhvrun ----


@pytest.mark.parametrize("hosts", [ONE_HOST, TWO_HOSTS], ids=["one-host", "two-hosts"])
def test_libhvruns_tensors_are_carried_by_mpi(mpi, hosts):
    result = start(hosts, BIN / "mpi_programs", "20", "1", HVRUN_BACKEND="mpi,native", HVRUN_MPI=mpi, HVRUN_LOG_LEVEL="trace")
    carriers = {line.split("engine: ")[1].split()[0] for line in result.err.splitlines() if " starts " in line}
    assert result.code == 0 and result.out.count("played") == 3 and "mpi" in carriers, str(result)


@pytest.mark.parametrize("hosts", [ONE_HOST, TWO_HOSTS], ids=["one-host", "two-hosts"])
def test_mpi_as_an_option_is_a_world_whose_mpi_moves_libhvruns_tensors(mpi, hosts):
    expect_world(start([*hosts, "--mpi"], BIN / f"wired_{mpi}"), *([3] if hosts == ONE_HOST else [2, 1]))
    result = start([*hosts, "--mpi"], BIN / "mpi_programs", "20", "1", HVRUN_MPI=mpi, HVRUN_LOG_LEVEL="trace")
    backends = {line.split("engine: ")[1].split()[0] for line in result.err.splitlines() if " starts " in line}
    assert result.code == 0 and result.out.count("played") == 3 and "mpi" in backends, str(result)
    order = "collectives are carried on the host's memory mpi (" + {"openmpi": "Open MPI", "mpich": "MPICH"}[mpi]
    assert order in result.err, str(result)


def test_a_program_that_has_begun_mpi_itself(mpi):
    result = start(ONE_HOST, BIN / f"own_{mpi}", "3", HVRUN_BACKEND="mpi,native")
    assert result.code == 0 and result.out.count("of 3 here): 6") == 3, str(result)


@pytest.mark.parametrize("option", ["--wire-mpi", "--mpi"])
def test_mpi4py(option):
    """Debian's is of Open MPI."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import mpi4py"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no mpi4py")
    result = start([*ONE_HOST, option], python, "-c",
                   "from mpi4py import MPI; world = MPI.COMM_WORLD; print(world.rank, world.size, world.allgather(world.rank))")
    assert sorted(result.out.splitlines()) == [f"{rank} 3 [0, 1, 2]" for rank in range(3)], str(result)


# ---- ends ----


@pytest.mark.parametrize("hosts", [ONE_HOST, TWO_HOSTS], ids=["one-host", "two-hosts"])
def test_a_killed_rank_ends_the_job_in_hvruns_words_and_leaves_nothing(mpi, hosts):
    result = start([*hosts, "--wire-mpi"], "sh", "-c", f'echo folder $PMIX_SERVER_TMPDIR; exec {BIN / f"wired_{mpi}"} killed')
    assert result.code == 128 + signal.SIGKILL and "ended with SIGKILL" in result.err and "rank 1 on host" in result.err, str(result)
    folders = {line.split()[1] for line in result.out.splitlines() if line.startswith("folder ")}
    assert len(folders) == (1 if hosts == ONE_HOST else 2) and not any(map(os.path.exists, folders)), str(result)


def test_mpi_abort_ends_the_job_with_its_code(mpi):
    result = start([*ONE_HOST, "--wire-mpi"], BIN / f"wired_{mpi}", "abort")
    assert result.code == 7 and "rank 1 on host localhost ended with exit code 7" in result.err, str(result)


def test_a_rank_that_ends_before_it_begins_mpi_is_the_cause(mpi):
    result = start([*ONE_HOST, "--wire-mpi"], BIN / f"wired_{mpi}", "late")
    assert result.code == 5 and "rank 1 on host localhost ended with exit code 5" in result.err, str(result)


DEALT_OUT = ["--oversubscribe", "--rsh", RSH, "-H", "a:2,b:2", "--map-by", "node"]  # rank 1 is alone on its host


@pytest.mark.parametrize("hosts", [ONE_HOST, TWO_HOSTS, DEALT_OUT], ids=["one-host", "two-hosts", "dealt-out"])
def test_a_rank_that_ends_well_before_it_begins_mpi_is_named_where_others_wait(mpi, hosts):
    result = start([*hosts, "--wire-mpi"], BIN / f"wired_{mpi}", "absent")
    assert result.code == 1 and "rank 1 on host " in result.err, str(result)
    assert "with exit code 0 without MPI_Init, in which others wait for it" in result.err, str(result)


@pytest.mark.parametrize("hosts", [ONE_HOST, DEALT_OUT], ids=["one-host", "dealt-out"])
def test_a_rank_that_ends_well_amid_mpi_is_named_where_others_wait(mpi, hosts):
    """PMIx itself counts such a rank out where others of its host go on."""
    result = start([*hosts, "--wire-mpi"], BIN / f"wired_{mpi}", "leaves")
    if mpi == "openmpi" and hosts == ONE_HOST:
        assert result.code == 0, str(result)
        return
    assert result.code == 1 and "rank 1 on host " in result.err, str(result)
    assert "with exit code 0 without MPI_Finalize, in which others wait for it" in result.err, str(result)


@pytest.mark.parametrize("hosts", [ONE_HOST, TWO_HOSTS, DEALT_OUT], ids=["one-host", "two-hosts", "dealt-out"])
def test_a_rank_that_never_begins_mpi_is_named_and_then_ends_the_job(mpi, hosts):
    result = start([*hosts, "--wire-mpi"], BIN / f"wired_{mpi}", "never", HVRUN_STALL_SECONDS="1", HVRUN_STALL_SHUTDOWN_SECONDS="10")
    assert result.code == 4 and "warning: ranks have waited over 1 s to meet the others (MPI_Init" in result.err, str(result)
    assert "not there: rank 1 on host " in result.err and "the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)" in result.err, str(result)


@pytest.mark.parametrize("hosts", [ONE_HOST, DEALT_OUT], ids=["one-host", "dealt-out"])
def test_a_rank_that_is_long_before_mpi_finalize_is_named_and_ends_nothing(mpi, hosts):
    if mpi == "openmpi":  # who waits inside a host PMIx does not tell
        hosts = DEALT_OUT
    limit = "10"  # for MPI_Init, too: a busy machine takes seconds for it
    with Running([BIN / "hvrun", "-np", "3", *hosts, "--wire-mpi", BIN / f"wired_{mpi}", "lingers"],
                 env=environment(HVRUN_STALL_SECONDS="1", HVRUN_STALL_SHUTDOWN_SECONDS=limit)) as running:
        wait_for(lambda: "waited over 1 s to meet the others" in running.err, 60, "one limit has passed")
        stays(lambda: not running.ended, 1.5 * float(limit), "the job as it is")
        assert "not there: rank 1 on host " in running.err and "the job ends" not in running.err, running.err
        assert running.process.poll() is None
        running.process.send_signal(signal.SIGINT)


@pytest.mark.parametrize("of_one, word", [("openmpi", "pmix"), ("mpich", "pmi")])
def test_ranks_that_have_begun_mpi_may_work_as_long_as_they_like(of_one, word):
    if not (BIN / f"wired_{of_one}").exists():
        pytest.skip(f"no {of_one}")
    with Running([BIN / "hvrun", "-np", "2", *ONE_HOST, f"--wire-mpi={word}", BIN / f"wired_{of_one}", "stay"],
                 env=environment(HVRUN_STALL_SECONDS="1", HVRUN_STALL_SHUTDOWN_SECONDS="30")) as running:
        wait_for(lambda: running.out.count("here: 3") == 2, 60, "both ranks have begun MPI")
        told = running.err  # of a rank that a busy machine kept from that for a second
        stays(lambda: not running.ended and running.err == told, 3, "the job as it is")


def test_a_rank_that_lags_behind_in_mpi_is_named_to_those_in_hvrun_init(mpi):
    with Running([BIN / "hvrun", "-np", "2", *ONE_HOST, "--wire-mpi", BIN / f"own_{mpi}", "lags"],
                 env=environment(HVRUN_STALL_SECONDS="1")) as running:
        wait_for(lambda: "waited over 1 s to meet the others (hvrun_init); not there: rank 1" in running.err, 30,
                 lambda: f"a warning: {running.result()}")
        assert running.process.poll() is None


def folder_of(running):
    """What MPI and PMIx keep while the job runs."""
    for pid, name in processes_of(running).items():
        if name.startswith("wired_"):
            entries = pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0")
            return pathlib.Path(next(entry.partition("=")[2] for entry in entries if entry.startswith("PMIX_SERVER_TMPDIR=")))
    raise AssertionError("no rank runs")


def processes_of(running):
    """Those whose environment has this test's mark, hvrun-pmix among them."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if running.mark in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "comm").read_text().strip()
        except (OSError, ValueError):
            continue
    return found


@pytest.fixture
def staying(mpi, tmp_path):
    """A job whose ranks have met and wait."""
    mark = f"WIRED_TEST={tmp_path}"
    with Running([BIN / "hvrun", "-np", "2", "--oversubscribe", "--wire-mpi", BIN / f"wired_{mpi}", "stay"],
                 env=environment(WIRED_TEST=str(tmp_path))) as running:
        running.mark = mark.encode()
        wait_for(lambda: running.out.count("here: 3") == 2, 60, "both ranks have met")
        yield running


@pytest.mark.parametrize("victim", ["hvrun", "hvrun-agent", "hvrun-guard"])
def test_nothing_is_left_behind_whoever_is_killed(staying, victim):
    processes = processes_of(staying)
    assert "hvrun-pmix" in processes.values(), processes
    folder = folder_of(staying)
    assert folder.stat().st_mode & 0o777 == 0o700 and list(folder.iterdir())
    os.kill(next(pid for pid, name in processes.items() if name == victim), signal.SIGKILL)
    wait_for(lambda: not processes_of(staying), 10, lambda: f"nothing runs any more: {processes_of(staying)}")
    wait_for(lambda: not folder.exists(), 10, "its folder is gone")


def test_an_hvrun_pmix_that_is_killed_is_told_and_the_ranks_go_on(staying):
    pid = next(pid for pid, name in processes_of(staying).items() if name == "hvrun-pmix")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: "hvrun-pmix ended with SIGKILL" in staying.err, 10, "it is told")
    assert sum(name.startswith("wired_") for name in processes_of(staying).values()) == 2
    staying.process.send_signal(signal.SIGINT)
    wait_for(lambda: not processes_of(staying), 10, "nothing runs any more")


# ---- programs of two MPIs ----


@pytest.mark.skipif(not all((BIN / f"wired_{one}").exists() for one in ("openmpi", "mpich")), reason="needs both")
@pytest.mark.parametrize("hosts", [[], ["--rsh", RSH, "-H", "a:1,b:1"]], ids=["one-host", "two-hosts"])
@pytest.mark.parametrize("first, second", [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_programs_of_two_mpis_are_told_at_once_and_end_the_job(hosts, first, second):
    result = run([BIN / "hvrun", "--oversubscribe", *hosts, "--wire-mpi", "-np", "1", BIN / f"wired_{first}", ":", "-np", "1",
                  BIN / f"wired_{second}"], env=environment(), timeout=60)
    ways = {"openmpi": "by PMIx (as Open MPI's programs do)", "mpich": "by PMI-1 (as MPICH's)"}
    assert result.code == 3 and "hvrun: error: in MPI_Init rank " in result.err, str(result)
    for rank, one in enumerate((first, second)):
        host = ("a", "b")[rank] if hosts else "localhost"
        assert f"rank {rank} on host {host} " in result.err.partition(ways[one])[0].rpartition(" and ")[2], str(result)
    assert "\n  try: programs that are linked with the same MPI" in result.err, str(result)


@pytest.mark.skipif(not all((BIN / f"wired_{one}").exists() for one in ("openmpi", "mpich")), reason="needs both")
def test_programs_of_two_mpis_one_after_the_other_are_two_worlds():
    result = start(ONE_HOST + ["--wire-mpi"], "sh", "-c", f"{BIN}/wired_openmpi && exec {BIN}/wired_mpich")
    assert result.code == 0 and result.out.count("here: 6") == 6 and result.err == "", str(result)


# ---- where a host lacks something ----


def test_a_host_without_libpmix_is_told_with_the_package(tmp_path):
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("hiding a library takes root")
    hide = "for f in $(ldconfig -p | sed -n 's/.*libpmix.so.* => //p'); do mount --bind /dev/null $(readlink -f $f); done; "
    result = run(["unshare", "--mount", "sh", "-c", hide + 'exec "$@"', "sh", BIN / "hvrun", "-np", "1", "--wire-mpi=pmix", "true"],
                 env=environment(), timeout=60)
    assert result.code == 3 and "on localhost: open libpmix.so.2" in result.err and "(Debian: libpmix2)" in result.err, str(result)
