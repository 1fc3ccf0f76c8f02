# SPDX-License-Identifier: Apache-2.0
"""Ranks of a real Open MPI and a real MPICH, whose tensors MPI carries."""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from harness import programs
from harness.processes import look_at
from harness.running import Running, run
from harness.waiting import stays, wait_for

pytestmark = pytest.mark.one_of("mpi", "level", "way", "is_one_thread", "ranks")

BIN = programs.hvrun_folder()
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "-np"], "mpich": ["mpirun.mpich", "-np"]}
OF_OTHERS = ("HVRUN_", "PMI", "OMPI", "PMIX")


def environment(**more):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OF_OTHERS)}
    return {**inherited, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "HVRUN_BACKEND": "mpi,native", **more}


@pytest.fixture(params=LAUNCHERS)
def mpi(request):
    if not shutil.which(LAUNCHERS[request.param][0]):
        pytest.skip(f"no {request.param}")
    part = BIN.parent / "lib" / f"libhvrun-{request.param}.so"
    assert part.exists(), f"{part} is not built: its headers are missing here (packaging/test.list), or CMake ran before they came"
    return request.param


def start(mpi, ranks, *words, **more):
    return run([*LAUNCHERS[mpi], str(ranks), *words], env=environment(**more), timeout=600)


def scaled(count):
    return str(max(1, int(count * float(os.environ.get("HVRUN_TEST_SCALE", "1")))))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_random_programs(mpi, ranks):
    result = start(mpi, ranks, BIN / "mpi_programs", scaled(400), "20261125")
    assert result.code == 0 and result.out.count("played") == ranks, str(result)


@pytest.mark.parametrize("words", [["c_types_test", "3"], ["c_operations_test"], ["examples/process_sets"]], ids=lambda words: words[0])
def test_programs_in_c(mpi, words):
    result = start(mpi, 3, BIN / words[0], *words[1:])
    assert result.code == 0, str(result)


@pytest.mark.parametrize("ranks", [2, 3])
def test_pieces_of_a_group_of_tensors(mpi, ranks):
    result = start(mpi, ranks, BIN / "mpi_pieces", HVRUN_LOG_LEVEL="trace")
    assert result.code == 0 and result.out.count("summed") == ranks, str(result)
    assert "mpi starts 8 x allreduce" in result.err, str(result)


# ---- sends and receives ----


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("is_one_thread", ["0", "1"])
def test_sends_and_receives_go_by_mpi(mpi, ranks, is_one_thread):
    result = start(mpi, ranks, BIN / "mpi_cases", "pairs", HVRUN_MPI_THREADS_DISABLE=is_one_thread, HVRUN_LOG_LEVEL="trace")
    assert result.code == 0 and result.out.count("ended") == ranks, str(result)
    assert result.err.count("20000000 bytes by the carrier of pairs") == 4 * ranks, str(result)


def test_sends_and_receives_go_by_the_first_of_the_list(mpi):
    result = start(mpi, 2, BIN / "mpi_cases", "pairs", HVRUN_BACKEND="native,mpi", HVRUN_LOG_LEVEL="trace")
    assert result.code == 0 and "by the carrier of pairs" not in result.err, str(result)


@pytest.mark.parametrize("case, ranks", [("removed", 3), ("left", 2), ("again", 2)])
@pytest.mark.parametrize("way", ["threads", "one thread", "tcp"])
def test_what_is_given_up_between_two_ranks_harms_no_other(mpi, case, ranks, way):
    by_tcp = {"openmpi": {"OMPI_MCA_btl": "tcp,self"}, "mpich": {"UCX_TLS": "tcp,self"}}[mpi]
    knobs = {"threads": {}, "one thread": {"HVRUN_MPI_THREADS_DISABLE": "1"}, "tcp": by_tcp}[way]
    result = start(mpi, ranks, BIN / "mpi_cases", case, **knobs)
    assert result.code == 0 and result.out.count("ended") == ranks, str(result)


def test_a_send_whose_receiver_has_it_and_leaves_has_ended(mpi):
    """The receiver's goodbye may be there before MPI says of the send that it is done."""
    result = start(mpi, 2, BIN / "mpi_cases", "again", LD_PRELOAD=str(BIN.parent / "lib" / f"libslow_sends_{mpi}.so"))
    assert result.code == 0 and result.out.count("ended") == 2, str(result)


# ---- what else ranks meet: tests/ranks/engine has more of each ----


def carried(result):
    """(who, what), of all that was started."""
    lines = [line.split("engine: ")[1].split(",")[0] for line in result.err.splitlines() if " starts " in line]
    return {(line.split()[0], line.split(" x ")[1]) for line in lines}


@pytest.mark.parametrize("case", ["join", "group", "sets"])
@pytest.mark.parametrize("is_one_thread", ["0", "1"])
def test_ranks_that_join_and_groups_and_sets_that_overlap(mpi, case, is_one_thread):
    result = start(mpi, 4, BIN / "mpi_cases", case, HVRUN_MPI_THREADS_DISABLE=is_one_thread, HVRUN_LOG_LEVEL="trace")
    assert result.code == 0 and result.out.count("ended") == 4, str(result)
    assert carried(result) == {("mpi", "allreduce")}, str(result)


def test_sparse_sums_go_by_native_beside_mpi(mpi):
    result = start(mpi, 3, BIN / "mpi_cases", "sparse", HVRUN_LOG_LEVEL="trace")
    assert result.code == 0 and result.out.count("ended") == 3, str(result)
    assert {("mpi", "allreduce"), ("native", "sparse allreduce")} <= carried(result), str(result)


def test_ranks_that_disagree_are_told_who_said_what_and_go_on(mpi):
    result = start(mpi, 3, BIN / "mpi_cases", "disagree")
    told = [line for line in result.out.splitlines() if line.startswith("told: ")]
    assert result.code == 0 and len(told) == 12, str(result)
    for what in ("[3]", "int32", "max", "root 1"):
        assert sum("tensor 'd'" in line and "rank 1" in line and what in line for line in told) == 3, f"{what}\n{result}"


def test_a_stall_ends_the_job_in_words_that_name_who_is_missing(mpi):
    result = start(mpi, 3, BIN / "mpi_cases", "stall", HVRUN_STALL_SHUTDOWN_SECONDS="1")
    told = {line for line in result.out.splitlines() if line.startswith("told: ")}
    assert len(told) == 1, str(result)
    words = told.pop()
    assert "tensor 'w' has waited" in words and "for rank 1; it is ready on the other 2 of 3 ranks" in words, str(result)
    assert "rank 1 last enqueued allreduce" in words, str(result)


def test_random_programs_by_one_thread(mpi):
    """As where an MPI has no MPI_THREAD_MULTIPLE."""
    result = start(mpi, 3, BIN / "mpi_programs", scaled(100), "20261126", HVRUN_MPI_THREADS_DISABLE="1")
    assert result.code == 0 and result.out.count("played") == 3, str(result)


@pytest.mark.parametrize("level", ["1", "2"])
def test_an_mpi_of_fewer_threads_than_asked_for(mpi, level):
    """It says MPI_THREAD_FUNNELED or MPI_THREAD_SERIALIZED, and the stand-in sees to it that this is kept to."""
    low = {"LD_PRELOAD": str(BIN.parent / "lib" / f"liblow_level_{mpi}.so"), "TEST_MPI_LEVEL": level}
    result = start(mpi, 3, BIN / "mpi_programs", scaled(60), "20261129", **low)
    assert result.code == 0 and result.out.count("played") == 3, str(result)
    result = start(mpi, 2, BIN / "mpi_cases", "pairs", **low)
    assert result.code == 0 and result.out.count("ended") == 2, str(result)
    result = start(mpi, 2, BIN / f"own_{mpi}", "3", **low)
    if level == "2":
        assert result.code == 0 and result.out.count("here): 3") == 2, str(result)
    else:
        assert result.code != 0 and "this program has begun it with MPI_THREAD_FUNNELED" in result.out, str(result)


# ---- waiting ----


def test_whoever_waits_for_a_communicator_sleeps_until_it_is_there(mpi):
    """A rank that asked again and again kept the cores from the threads that make it."""
    result = start(mpi, 3, BIN / "mpi_cases", "slow_group", LD_PRELOAD=str(BIN.parent / "lib" / f"libslow_group_{mpi}.so"))
    assert result.code == 0 and result.out.count("slept ") == 2, str(result)


def test_a_rank_that_is_slow_to_leave_costs_nobody_mpis_end(mpi):
    """Others left it behind after 5 s, without MPI_Finalize, which mpirun holds for a failure."""
    with Running([*LAUNCHERS[mpi], "2", BIN / "mpi_cases", "hanging"], env=environment()) as job:
        job.wait_for_output("hangs: ", 30)
        hanging = int(job.out.partition("hangs: ")[2].split()[0])
        wait_for(lambda: look_at(hanging).state == "T", 30, "the stop")
        stays(lambda: not job.ended, 6, "the other waits for it")
        os.kill(hanging, signal.SIGCONT)
        result = job.wait(60)
    assert result.code == 0 and result.out.count("ended") == 2, str(result)


# ---- on GPUs ----


@pytest.mark.parametrize("way", ["staged", "nccl"])
def test_random_programs_on_gpus(mpi, way):
    """The stand-in's GPUs: MPI carries what NCCL does not, through the host's memory."""
    backend = "nccl,mpi,native" if way == "nccl" else "mpi,native"
    result = start(mpi, 3, BIN / "mpi_programs", scaled(60), "20261127", HVRUN_TEST_MEMORY=way, HVRUN_BACKEND=backend)
    assert result.code == 0 and result.out.count("played") == 3, str(result)


def test_an_mpi_that_is_aware_of_cuda_gets_the_gpus_addresses(mpi):
    """No MPI here is: the stand-in's memory is within its reach, or not, and then MPI must fail on it."""
    ways = {"HVRUN_TEST_MEMORY": "staged", "HVRUN_MPI_CUDA": "always", "HVRUN_LOG_LEVEL": "info"}
    result = start(mpi, 3, BIN / "mpi_programs", scaled(60), "20261128", HVRUN_FAKE_CUDA_IN_REACH="1", **ways)
    assert result.code == 0 and result.out.count("played") == 3 and ", aware of CUDA)" in result.err, str(result)
    assert start(mpi, 3, BIN / "mpi_programs", "10", "20261128", **ways).code != 0


@pytest.mark.parametrize("backend, goes", [("mpi,nccl,native", {"by their addresses", "by nccl", "through the host's memory"}),
                                           ("nccl,mpi,native", {"by nccl", "through the host's memory"}),
                                           ("mpi,native,nccl", {"by their addresses", "through the host's memory"})])
def test_on_gpus_the_list_says_who_comes_first(mpi, backend, goes):
    """NCCL and an MPI that is aware of CUDA; through the host goes what neither carries out."""
    ways = {"HVRUN_TEST_MEMORY": "nccl", "HVRUN_MPI_CUDA": "always", "HVRUN_FAKE_CUDA_IN_REACH": "1", "HVRUN_LOG_LEVEL": "trace"}
    result = start(mpi, 3, BIN / "mpi_programs", scaled(60), "20261129", HVRUN_BACKEND=backend, **ways)
    assert result.code == 0 and result.out.count("played") == 3, str(result)
    assert {line.partition(" GPUs and goes ")[2] for line in result.err.splitlines() if " GPUs and goes " in line} == goes


def test_it_is_mpi_that_carries(mpi):
    result = start(mpi, 2, BIN / "mpi_programs", "2", "1", HVRUN_LOG_LEVEL="trace")
    carriers = {line.split("engine: ")[1].split()[0] for line in result.err.splitlines() if " starts " in line}
    assert "mpi" in carriers, str(result)


# ---- the program's own MPI ----


@pytest.mark.parametrize("level", ["2", "3"])
def test_a_program_that_has_begun_mpi_itself(mpi, level):
    """MPI_THREAD_SERIALIZED and MPI_THREAD_MULTIPLE, with MPI carrying or not."""
    for backend in ("mpi", "native"):
        result = start(mpi, 2, BIN / f"own_{mpi}", level, HVRUN_BACKEND=backend)
        assert result.code == 0, str(result)
        assert sorted(result.out.splitlines()) == ["rank 0 of 2 (0 of 2 here): 3", "rank 1 of 2 (1 of 2 here): 3"], str(result)


@pytest.mark.parametrize("level", ["0", "1"])
def test_a_level_that_does_not_allow_it_is_told_with_what_does(mpi, level):
    result = start(mpi, 2, BIN / f"own_{mpi}", level)
    assert result.code != 0 and "MPI_THREAD_MULTIPLE, or mpi4py.rc.thread_level" in result.out, str(result)


@pytest.mark.parametrize("backend", ["mpi", "native"])
def test_the_ranks_of_a_communicator_are_a_job(mpi, backend):
    result = start(mpi, 5, BIN / f"own_{mpi}", "halves", HVRUN_BACKEND=backend)
    assert result.code == 0, str(result)
    assert sorted(result.out.splitlines()) == [
        "rank 0 of 2 (0 of 2 here): 3", "rank 0 of 3 (0 of 3 here): 6", "rank 1 of 2 (1 of 2 here): 3",
        "rank 1 of 3 (1 of 3 here): 6", "rank 2 of 3 (2 of 3 here): 6"], str(result)


@pytest.mark.parametrize("is_told_by_mpi", [False, True])
def test_a_killed_rank_is_named_to_the_others_and_nothing_hangs(mpi, tmp_path, is_told_by_mpi):
    """An error of MPI's is held back until it is known whose end it was: all survivors have the same."""
    before = {"LD_PRELOAD": str(BIN.parent / "lib" / f"libtold_by_mpi_{mpi}.so"), "HVRUN_TEST_ALIVE": f"{tmp_path}-alive"}
    # A shell that ended before the others had spoken, or in another way, the launcher would take them down for.
    quietly = f'"$0" death; touch {tmp_path}/$$; while [ $(ls {tmp_path} | wc -l) -lt 3 ]; do sleep 0.05; done; exit 0'
    result = start(mpi, 3, "sh", "-c", quietly, BIN / f"own_{mpi}", **(before if is_told_by_mpi else {}))
    told = [line for line in result.out.splitlines() if line.startswith("sum: ")]
    assert len(told) == 2 and all("rank 1" in line for line in told), str(result)


# ---- mpi4py ----

WITH_MPI4PY = """
import os
from mpi4py import MPI
from hvrun import basics, inflight, _abi
class Own(MPI.Intracomm):
    pass
half = {kind}(MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2))
basics.init(comm=half)
said = [basics.rank(), basics.size(), inflight.reduce_numbers("w", [1], _abi.SUM)[0], basics.mpi_enabled(), basics.mpi_threads_supported()]
os.write(1, (" ".join(map(str, said)) + "\\n").encode())
assert half.allreduce(1) == basics.size()
basics.shutdown()
"""


@pytest.mark.parametrize("kind", ["MPI.Intracomm", "Own"])
def test_init_with_a_communicator_of_mpi4py(kind):
    """Debian's mpi4py is of Open MPI."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import mpi4py"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no mpi4py")
    result = start("openmpi", 3, python, "-c", WITH_MPI4PY.format(kind=kind), PYTHONPATH=str(programs.SOURCE / "python"),
                   HVRUN_LIBRARY=str(BIN.parent / "lib" / "libhvrun.so"))
    assert result.code == 0, str(result)
    assert sorted(result.out.splitlines()) == ["0 1 1 True True", "0 2 2 True True", "1 2 2 True True"], str(result)


ASKS = """
import ctypes, sys
said = ctypes.c_char_p()
assert ctypes.CDLL(sys.argv[1]).hvrun_mpi_version(ctypes.byref(said), None) == 0
print(said.value.decode(), hasattr(ctypes.CDLL(None), "MPI_Init"))
"""


def test_a_question_shows_no_mpi_to_what_is_loaded_afterwards():
    variables = {name: value for name, value in environment().items() if name != "HVRUN_MPI"}
    result = run(["/usr/bin/python3", "-c", ASKS, BIN.parent / "lib" / "libhvrun.so"], env=variables, timeout=60)
    assert result.code == 0 and result.out.split()[-1] == "False" and result.out.startswith(("Open MPI v", "MPICH ")), str(result)


# ---- mistakes ----


@pytest.mark.skipif(not all(shutil.which(words[0]) for words in LAUNCHERS.values()), reason="needs both")
@pytest.mark.parametrize("own, other", [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_a_program_with_another_mpi_than_hvrun_is_told_to_use(own, other):
    result = start(own, 2, BIN / f"own_{own}", "3", HVRUN_MPI=other)
    assert result.code != 0 and "use MPI: this program has " in result.out, str(result)
    assert "try: HVRUN_MPI as the program has it" in result.out, str(result)


def test_ranks_that_no_mpi_connects_are_told_how_to_start():
    words = ["-np", "2", "--oversubscribe", "--wire-mpi=none"]
    result = run([BIN / "hvrun", *words, BIN / "mpi_programs", "1", "1"], env=environment(), timeout=60)
    assert result.code != 0 and "try: hvrun --wire-mpi, hvrun --mpi, mpirun, or srun --mpi=pmix" in result.err, str(result)


@pytest.mark.skipif(not all(shutil.which(words[0]) for words in LAUNCHERS.values()), reason="needs both")
@pytest.mark.parametrize("launcher, other", [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_a_launcher_of_another_mpi_is_told(launcher, other):
    result = start(launcher, 2, BIN / "mpi_programs", "1", "1", HVRUN_MPI=other)
    assert result.code != 0 and "it is not that launcher's; try: HVRUN_MPI=openmpi or mpich, whichever" in result.err, str(result)


def with_junk(folder, bytes_=b"junk"):
    """The environment of ranks that find this as Open MPI's library."""
    folder.mkdir(parents=True)
    (folder / "libmpi.so.40").write_bytes(bytes_)
    return {"LD_LIBRARY_PATH": str(folder)}


def by_hvrun(*program, **more):
    return run([BIN / "hvrun", "-np", "2", "--oversubscribe", *program], env=environment(**more), timeout=60)


def test_an_error_of_hvrun_init_is_told_whole(tmp_path):
    """However long the folders are, that the words name."""
    result = by_hvrun(BIN / "mpi_programs", "1", "1", HVRUN_MPI="openmpi", **with_junk(tmp_path / ("x" * 250) / ("y" * 250) / ("z" * 250)))
    told = [line for line in result.err.splitlines() if "libmpi.so.40: file too short" in line]
    assert result.code != 0 and len(told) == 3, str(result)  # of both ranks, and hvrun's
    assert all(line.endswith("(Debian, Ubuntu) installed anew") for line in told), str(result)


NO_MPI = next(iter(pathlib.Path("/lib").glob("*-linux-gnu/libm.so.6")), pathlib.Path("/lib64/libm.so.6"))


@pytest.mark.parametrize("what, reason", [("junk", "file too short"), ("no mpi", "it is no MPI"), ("mpich", "it is another MPI")])
def test_a_file_that_is_no_open_mpi_is_named_with_its_folder(tmp_path, what, reason):
    if what == "mpich" and not shutil.which("mpirun.mpich"):
        pytest.skip("no mpich")
    found = {"junk": b"junk", "no mpi": NO_MPI.read_bytes(), "mpich": b""}[what]
    junk = with_junk(tmp_path / "lib", found)
    if what == "mpich":
        shutil.copy(library_of_mpich(), tmp_path / "lib" / "libmpi.so.40")
    result = by_hvrun(BIN / "mpi_programs", "1", "1", HVRUN_MPI="openmpi", **junk)
    assert result.code != 0 and f"as Open MPI cannot be used: {tmp_path}/lib/libmpi.so.40: {reason}" in result.err, str(result)
    assert f"; try: LD_LIBRARY_PATH without {tmp_path}/lib, or " in result.err, str(result)


def library_of_mpich():
    words = subprocess.run(["ldd", BIN / "wired_mpich"], check=True, capture_output=True, text=True).stdout
    return next(line.split()[2] for line in words.splitlines() if "libmpi" in line)


@pytest.mark.skipif(not all(shutil.which(words[0]) for words in LAUNCHERS.values()), reason="needs both")
def test_another_mpi_in_the_place_of_a_broken_one_is_told_once(tmp_path):
    result = by_hvrun(BIN / "mpi_programs", "1", "1", **with_junk(tmp_path / "lib"))
    assert result.code == 0 and result.out.count("played") == 2, str(result)
    words = f"what is found as Open MPI cannot be used: {tmp_path}/lib/libmpi.so.40: file too short; this job uses MPICH "
    assert result.err.count(words) == 1 and f" instead; try: LD_LIBRARY_PATH without {tmp_path}/lib, or " in result.err, str(result)


def test_ranks_that_meet_in_two_ways_are_told_what_must_be_alike(mpi):
    words = {"openmpi": ["-x", "HVRUN_BACKEND={}"], "mpich": ["-env", "HVRUN_BACKEND", "{}"]}[mpi]
    of_each = [[word.format(backend) for word in words] for backend in ("mpi", "native")]
    program = [BIN / "mpi_programs", "1", "1"]
    result = run([*LAUNCHERS[mpi], "1", *of_each[0], *program, ":", "-np", "1", *of_each[1], *program],
                 env={name: value for name, value in environment().items() if name != "HVRUN_BACKEND"}, timeout=60)
    assert result.code != 0 and "rank 1 on host " in result.err and "rank 0 has not said who it is" in result.err, str(result)
    assert "; try: HVRUN_BACKEND and HVRUN_MPI alike on all ranks (mpirun -x HVRUN_BACKEND -x HVRUN_MPI)" in result.err, str(result)


def with_parts(folder, *flavours):
    """mpi_programs of a hvrun that was built beside these MPIs alone."""
    for name, files in {"bin": [BIN / "mpi_programs"], "lib": [BIN.parent / "lib" / f"libhvrun-{one}.so" for one in flavours]}.items():
        (folder / name).mkdir()
        for file in files:
            shutil.copy(file, folder / name)
    return folder / "bin" / "mpi_programs"


@pytest.mark.parametrize("flavours", [[], ["mpich"]])
def test_a_launcher_whose_mpi_hvrun_was_not_built_beside_is_told_once(tmp_path, flavours):
    if not shutil.which("mpirun.openmpi"):
        pytest.skip("no openmpi")
    program = with_parts(tmp_path, *flavours)
    result = start("openmpi", 1, program, "1", "1")
    words = (f"use MPI: {tmp_path}/bin/libhvrun-openmpi.so is not there: this hvrun was built where Open MPI was not; try: "
             "openmpi-bin and libopenmpi-dev (Debian, Ubuntu), and build hvrun again")
    assert result.code != 0 and words in result.err, str(result)
    assert ("or HVRUN_MPI=mpich, whose part is there" in result.err) == (flavours == ["mpich"]), str(result)


@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_under_a_launcher_that_speaks_pmix_alone_any_mpi_that_is_there_is_tried(tmp_path, flavour):
    """As srun --mpi=pmix. No MPICH here knows PMIx: it finds itself alone, which is told."""
    if not shutil.which(LAUNCHERS[flavour][0]):
        pytest.skip(f"no {flavour}")
    program = with_parts(tmp_path, flavour)
    result = run([program, "1", "1"], env=environment(PMIX_NAMESPACE="x", SLURM_STEP_NUM_TASKS="2"), timeout=60)
    assert result.code != 0, str(result)
    if flavour == "mpich":
        assert "the launcher has started 2 ranks, and MPICH" in result.err and "finds this one alone" in result.err, str(result)


def test_what_mpi_cannot_do_names_who_can(mpi):
    result = start(mpi, 2, BIN / "mpi_programs", "20", "1", HVRUN_BACKEND="mpi")
    assert result.code != 0 and "; try: name native there, too" in result.err, str(result)
