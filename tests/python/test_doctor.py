# SPDX-License-Identifier: Apache-2.0
"""What python -m hvrun.doctor says of a machine's libraries and programs, with stand-ins for those that this one may not have."""

import os
import platform
import re
import shutil
import subprocess
import sys

import pytest

from harness import programs, torch_jobs

STAND_INS = {
    "libssh.so.4": "void* ssh_new(void) { return 0; }",
    "libcuda.so.1": "int cuInit(unsigned f) { return RESULT; } int cuDriverGetVersion(int* v) { *v = 12040; return 0; }"
                    "int cuDeviceGetCount(int* n) { *n = 2; return 0; }",
    "libnccl.so.2": "int ncclGetVersion(int* v) { *v = 21805; return 0; }",
}


def stand_in(folder, name, *options):
    source = folder / "source.c"
    source.write_text(STAND_INS[name])
    subprocess.run(["cc", "-shared", "-fPIC", "-w", *options, "-o", str(folder / name), str(source)], check=True)
    return folder / name


def look(what, home, **more):
    """The lines of one look; with its facts where it is one at what hvrun tells."""
    facts = "doctor.ask_hvrun()[0]" if what in ("cuda", "nccl", "mpi") else ""
    words = [sys.executable, "-c", f"from hvrun import doctor; print('\\n'.join(doctor.inspect_{what}({facts}).text()))"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=torch_jobs.environment(home, **more))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cuda(tmp_path):
    stand_in(tmp_path, "libcuda.so.1", "-DRESULT=0")
    assert "2 GPUs, driver for CUDA 12.4" in look("cuda", tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    stand_in(tmp_path, "libcuda.so.1", "-DRESULT=100")
    said = look("cuda", tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    assert "no GPU on this host, as on many login nodes: ranks work on CPUs" in said
    stand_in(tmp_path, "libcuda.so.1", "-DRESULT=999")
    said = look("cuda", tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    assert "(cuInit: error 999): ranks work on CPUs" in said and "try: nvidia-smi" in said


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has a driver")
def test_cuda_is_not_there(tmp_path):
    assert look("cuda", tmp_path) == "  --  CUDA         no NVIDIA driver on this host, as on many login nodes: ranks work on CPUs\n"
    assert look("nccl", tmp_path) == "  --  NCCL         not needed: only GPUs use it\n"


def test_libssh(tmp_path):
    path = stand_in(tmp_path, "libssh.so.4")
    assert look("libssh", tmp_path, LD_LIBRARY_PATH=str(tmp_path)) == f"  --  libssh       for hosts over SSH, at {path}\n"
    path.write_bytes(b"no library")
    said = look("libssh", tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    assert "--  libssh       not found: " in said and "--rsh ssh" in said and "try: apt-get install libssh-4" in said, said


LIBRARIES = programs.hvrun_folder().parent / "lib"
NCCL = LIBRARIES / "nccl" / "libnccl.so.2"  # the stand-in, which is 2.28.3 unless told


def with_gpus(folder):
    """LD_LIBRARY_PATH with a driver that works."""
    return str(stand_in(folder, "libcuda.so.1", "-DRESULT=0").parent)


def test_nccl_of_the_system_with_its_path(tmp_path):
    assert look("nccl", tmp_path, LD_LIBRARY_PATH=f"{with_gpus(tmp_path)}:{NCCL.parent}") == f"  --  NCCL         2.28.3 at {NCCL}\n"
    assert look("nccl", tmp_path, LD_LIBRARY_PATH=str(NCCL.parent)) == "  --  NCCL         not needed: only GPUs use it\n"
    assert f"2.28.3 at {NCCL} is there, but no NVIDIA driver" in look("nccl", tmp_path, HVRUN_NCCL=str(NCCL))


def test_nccl_is_the_one_that_is_stated(tmp_path):
    said = look("nccl", tmp_path, HVRUN_NCCL=str(NCCL), LD_LIBRARY_PATH=str(stand_in(tmp_path, "libnccl.so.2").parent))
    assert f"--  NCCL         2.28.3 at {NCCL} is there, but" in said
    said = look("nccl", tmp_path, HVRUN_NCCL="/nowhere/libnccl.so.2", LD_LIBRARY_PATH=str(NCCL.parent))
    assert "--  NCCL         use NCCL: there is no libnccl.so.2" in said and "HVRUN_NCCL=/nowhere/libnccl.so.2 (" in said
    assert "; only GPUs need it" in said


@pytest.mark.parametrize("backend, verdict", [("", "--"), ("nccl, native", "--"), ("mpi,native", "--"), ("nccl", "NO")])
def test_an_nccl_that_is_too_old_is_needed_where_nothing_else_is_named(tmp_path, backend, verdict):
    said = look("nccl", tmp_path, HVRUN_NCCL=str(NCCL), HVRUN_FAKE_NCCL_VERSION="21705", HVRUN_BACKEND=backend)
    assert f"  {verdict}  NCCL         " in said and "2.17.5" in said, said
    assert ("HVRUN_BACKEND=nccl needs it: " in said) == (verdict == "NO")
    assert ("try: NCCL 2.18" in said) == ("nccl" in backend)
    assert ("not needed, for HVRUN_BACKEND=mpi,native" in said) == (backend == "mpi,native")


def test_an_nccl_that_the_backend_names_is_well(tmp_path):
    more = {"HVRUN_NCCL": str(NCCL), "LD_LIBRARY_PATH": with_gpus(tmp_path)}
    assert f"  ok  NCCL         2.28.3 at {NCCL}\n" in look("nccl", tmp_path, HVRUN_BACKEND="nccl, native", **more)
    assert f"  --  NCCL         2.28.3 at {NCCL}; not needed, for " in look("nccl", tmp_path, HVRUN_BACKEND="native", **more)


def test_nccl_without_hvruns_part_for_it(tmp_path):
    path = shutil.copy(LIBRARIES / "libhvrun.so", tmp_path / "libhvrun.so")
    said = look("nccl", tmp_path, HVRUN_LIBRARY=str(path), HVRUN_NCCL=str(NCCL), HVRUN_BACKEND="nccl")
    assert f"  NO  NCCL         HVRUN_BACKEND=nccl needs it: use NCCL: {tmp_path}/libhvrun-nccl.so: " in said
    assert "try: install hvrun anew, as a whole; or HVRUN_BACKEND=nccl,native" in said
    said = look("nccl", tmp_path, HVRUN_LIBRARY="/nowhere/libhvrun.so", HVRUN_NCCL=str(NCCL))
    assert "  --  NCCL         /nowhere/libhvrun.so: cannot open shared object file" in said and "; only GPUs" in said


def test_mpi_with_its_place(tmp_path):
    assert look("mpi", tmp_path) == "  --  MPI          not needed: HVRUN_BACKEND does not name it\n"
    said = look("mpi", tmp_path, HVRUN_BACKEND="mpi,native")
    assert re.search(rf"ok  MPI +.*: Open MPI by {LIBRARIES}/libhvrun-openmpi.so, with .*; MPICH by {LIBRARIES}/libhvrun-mpich.so, with ",
                     said, re.M), said


@pytest.mark.parametrize("parts, more, verdict, words", [
    (["libhvrun-mpich.so"], {}, "ok", "libhvrun-openmpi.so is not there: hvrun was built where that MPI was not; MPICH by "),
    ([], {}, "NO", "libhvrun-mpich.so is not there: hvrun was built where that MPI was not"),
    (["libhvrun-mpich.so"], {"HVRUN_MPI": "MPICH"}, "ok", "HVRUN_BACKEND=mpi,native needs it: MPICH by "),
    (["libhvrun-mpich.so"], {"HVRUN_MPI": "openmpi"}, "NO", "HVRUN_BACKEND=mpi,native needs it: Open MPI: ")])
def test_mpi_where_the_backend_needs_it(parts, more, verdict, words, tmp_path):
    """With these of hvrun's parts beside libhvrun."""
    for name in ["libhvrun.so", *parts]:
        shutil.copy(LIBRARIES / name, tmp_path / name)
    said = look("mpi", tmp_path, HVRUN_LIBRARY=str(tmp_path / "libhvrun.so"), HVRUN_BACKEND="mpi,native", **more)
    assert f"  {verdict}  MPI          HVRUN_BACKEND=mpi,native needs it: " in said and words in said, said
    assert ("try: openmpi-bin and libopenmpi-dev, or mpich" in said) == (verdict == "NO")


def test_a_list_of_backends_may_have_blanks(tmp_path):
    said = look("mpi", tmp_path, HVRUN_BACKEND="native, mpi")
    assert "HVRUN_BACKEND=native, mpi needs it: " in said
    words = [sys.executable, "-c", "from hvrun import basics; print(basics.stated_backends())"]
    for stated, names in [("", []), ("mpi,native", ["mpi", "native"]), (" nccl , mpi", ["nccl", "mpi"])]:
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=torch_jobs.environment(tmp_path, HVRUN_BACKEND=stated))
        assert done.stdout == f"{names}\n"


def test_two_ranks_whose_backends_cannot_add_are_told_in_words_and_once(tmp_path):
    words = [sys.executable, "-c", "from hvrun import doctor; print('\\n'.join(doctor.try_two_ranks().text()))"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=torch_jobs.environment(tmp_path, HVRUN_BACKEND="nccl"))
    assert done.stdout.count("no backend that HVRUN_BACKEND names") == 1 and "Traceback" not in done.stdout, done.stdout
    assert re.search(r"^  NO  two ranks    tensor .*\n +try: name native there, too\n$", done.stdout), done.stdout


def test_the_agent_with_its_version_and_machine(tmp_path):
    agent = programs.hvrun_folder() / "hvrun-agent"
    said = look("agent", tmp_path)
    assert re.search(rf"ok  hvrun-agent +[\d.]+ at {agent}, for {platform.machine()}$", said, re.M), said


@pytest.mark.parametrize("script,words", [("echo hvrun-agent 9.9 build", "9.9 at "), ("echo cannot >&2; exit 1", ": cannot")])
def test_an_agent_that_is_not_this_ones(script, words, tmp_path):
    agent = tmp_path / "hvrun-agent"
    agent.write_text(f"#!/bin/sh\n{script}\n")
    os.chmod(agent, 0o755)
    said = look("agent", tmp_path, HVRUN_BIN_DIR=str(tmp_path))
    assert "NO  hvrun-agent" in said and words in said and "try: pip install --force-reinstall hvrun" in said


def test_an_hvrun_that_does_not_answer_is_told(tmp_path):
    hvrun = tmp_path / "hvrun"
    hvrun.write_text("#!/bin/sh\necho hvrun: error: unknown >&2\nexit 2\n")
    os.chmod(hvrun, 0o755)
    words = [sys.executable, "-c", "from hvrun import doctor; print('\\n'.join(doctor.ask_hvrun()[1].text()))"]
    done = subprocess.run(words, capture_output=True, text=True, check=True,
                          env=torch_jobs.environment(tmp_path, HVRUN_BIN_DIR=str(tmp_path)))
    assert f"NO  hvrun env    {hvrun} env --json: hvrun: error: unknown" in done.stdout, done.stdout


def test_lines_are_short_and_about_what_matters_here(tmp_path):
    words = [sys.executable, "-c", "from hvrun import doctor; print(*(one.what for one in doctor.examine()), sep='\\n');"
             "print(max(len(line) for one in doctor.examine() for line in one.text()))"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=torch_jobs.environment(tmp_path))
    *named, longest = done.stdout.split("\n")[:-1]
    assert not {"native", "TensorFlow", "JAX", "MXNet"} & set(named), named
    assert int(longest) < 140, done.stdout


def test_it_takes_no_arguments_but_help(tmp_path):
    def ask(*words):
        return subprocess.run([sys.executable, "-m", "hvrun.doctor", *words], capture_output=True, text=True, check=False,
                              env=torch_jobs.environment(tmp_path))

    asked, wrong = ask("--help"), ask("--json")
    assert asked.returncode == 0 and "would training work in this environment?" in asked.stdout
    assert wrong.returncode == 2 and "--json" in wrong.stderr
