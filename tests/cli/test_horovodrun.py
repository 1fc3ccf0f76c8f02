# SPDX-License-Identifier: Apache-2.0
"""Command lines written for horovodrun."""

import re
import shutil
import subprocess

import pytest

from harness import programs
from harness.programs import SOURCE
from launching import run

SHOW = ["sh", "-c", "echo $HVRUN_FUSION_THRESHOLD $HVRUN_STALL_SECONDS $NCCL_IB_DISABLE"]


def test_its_options_reach_the_ranks(hvrun):
    result = run(hvrun, "-np", "2", "--fusion-threshold-mb", "32", "--stall-check-warning-time-seconds", "20", "--tcp", "--no-label", *SHOW)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"32M 20 1\n" * 2, b"")


def test_network_interfaces_given_again_add_up_and_others_are_told_by_their_names(hvrun):
    eth = ["--network-interface", "eth0", "--network-interface", "eth1"]
    result = run(hvrun, "-np", "1", *eth, "--no-label", "sh", "-c", "echo $HVRUN_INTERFACES")
    assert (result.returncode, result.stdout) == (0, b"eth0,eth1\n"), result
    result = run(hvrun, "--cache-capacity", "1", "--cache-capacity", "2", "true")
    assert result.returncode == 2 and b"error: --cache-capacity is given 2 times\n" in result.stderr, result
    result = run(hvrun, "--cache-capacity", "", "true")
    assert result.returncode == 2 and b"error: --cache-capacity has an empty value\n" in result.stderr, result


def test_they_beat_what_is_set(hvrun):
    result = run(hvrun, "-np", "1", "--fusion-threshold-mb", "32", "--no-label", *SHOW, HVRUN_FUSION_THRESHOLD="1M")
    assert result.stdout == b"32M\n", result


SHOW_MPI = ["--no-label", "sh", "-c", "echo $HVRUN_BACKEND ${PMI_RANK-not wired}"]
OF_MPICH = {"HVRUN_MPI": "mpich"}  # wired by the agent itself, whatever is installed


def test_mpi_is_wired_and_first_of_the_backends(hvrun):
    result = run(hvrun, "--mpi", "-np", "2", *SHOW_MPI, **OF_MPICH)
    assert (result.returncode, sorted(result.stdout.splitlines()), result.stderr) == (
        0, [b"mpi,nccl,native 0", b"mpi,nccl,native 1"], b"")


@pytest.mark.parametrize("given", ["environment", "-x", "-x behind :"])
def test_mpi_goes_before_the_users_own_list_with_a_warning(hvrun, given):
    warning = b"hvrun: warning: --mpi puts mpi first: ranks get HVRUN_BACKEND=mpi,native instead of native\n"
    for backend, theirs, said in ("native", b"mpi,native 0\n", warning), ("native,mpi", b"native,mpi 0\n", b""):
        exports = ["-x", f"HVRUN_BACKEND={backend}"]
        if given == "environment":
            result = run(hvrun, "--mpi", "-np", "1", *SHOW_MPI, HVRUN_BACKEND=backend, **OF_MPICH)
        elif given == "-x":
            result = run(hvrun, "--mpi", "-np", "1", *exports, *SHOW_MPI, **OF_MPICH)
        else:
            result = run(hvrun, "--mpi", "--no-label", "-np", "1", "true", ":", "-np", "1", *exports, *SHOW_MPI[1:], **OF_MPICH)
            theirs = theirs.replace(b"0", b"1")
        assert (result.returncode, result.stdout, result.stderr) == (0, theirs, said), result


def test_a_malformed_list_is_told_with_mpi_as_it_was_written(hvrun, tmp_path):
    result = run(hvrun, "--mpi", "-np", "1", "touch", str(tmp_path / "started"), HVRUN_BACKEND="ncl", **OF_MPICH)
    assert result.returncode == 2 and b"error: HVRUN_BACKEND is 'ncl'" in result.stderr, result
    assert not (tmp_path / "started").exists()


SHOW_NUMBERS = ["sh", "-c", "echo ${HOROVOD_RANK-none} ${HOROVOD_SIZE-none} $HOROVOD_LOCAL_RANK $HOROVOD_LOCAL_SIZE $HOROVOD_CROSS_RANK "
                            "$HOROVOD_CROSS_SIZE"]


@pytest.mark.parametrize("way", ["the program by its name", "the command of the distribution"])
def test_its_ranks_have_horovods_variables(hvrun, tmp_path, way):
    command = tmp_path / "horovodrun"
    if way == "the program by its name":
        command.symlink_to(hvrun)
    else:
        command.write_text("#!/usr/bin/python3\nfrom horovod.runner.command import main\nmain()\n")
        command.chmod(0o755)
    found = {"PYTHONPATH": f"{SOURCE}/python:{SOURCE}/python/horovod-compat", "HVRUN_BIN_DIR": str(programs.hvrun_folder()),
             "PYTHONDONTWRITEBYTECODE": "1"}
    result = run(command, "-np", "2", "--no-label", *SHOW_NUMBERS, **found)
    assert (result.returncode, sorted(result.stdout.splitlines()), result.stderr) == (0, [b"0 2 0 2 0 1", b"1 2 1 2 0 1"], b"")


def test_hvruns_own_ranks_have_none_of_them_also_inside_a_rank_of_horovodrun(hvrun):
    result = run(hvrun, "-np", "1", "--no-label", *SHOW_NUMBERS, HOROVOD_RANK="7", HOROVOD_SIZE="8")
    assert (result.returncode, result.stdout.split(), result.stderr) == (0, [b"none", b"none"], b"")


def test_what_sets_nothing_is_told(hvrun):
    result = run(hvrun, "-np", "1", "--cycle-time-ms", "5", "true")
    assert (result.returncode, result.stderr) == (0, b"hvrun: warning: --cycle-time-ms sets nothing: there are no cycles: "
                                                     b"what is ready goes at once\n")


def test_a_config_file(hvrun, tmp_path):
    config = tmp_path / "conf.yaml"
    config.write_text("params:\n  fusion_threshold_mb: 16\nstall_check:\n  enabled: false\n")
    result = run(hvrun, "-np", "1", "--config-file", str(config), "--no-label", *SHOW)
    assert (result.returncode, result.stdout) == (0, b"16M 0\n"), result
    config.write_text("params:\n  fusion: 16\n")
    result = run(hvrun, "-np", "1", "--config-file", str(config), "true")
    assert result.returncode == 2 and f"{config}:2:11: 'params.fusion' is no setting".encode() in result.stderr, result


def test_hvruns_own_stall_warning_follows(hvrun, tmp_path):
    """Rank 1 never starts libhvrun: it is hvrun that tells."""
    program = f'[ "$RANK" = 0 ] && exec "$0"; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done'
    from launching import start
    from harness import programs
    from harness.waiting import wait_for
    errors = tmp_path / "errors"
    with open(errors, "wb") as stream:
        process = start(hvrun, "-np", "2", "--stall-check-warning-time-seconds", "1", "sh", "-c", program,
                        str(programs.hvrun_folder() / "examples" / "reductions"), stderr=stream)
        wait_for(lambda: b"rank 1" in errors.read_bytes(), 20, "a word about rank 1")
        process.terminate()
        process.communicate(timeout=20)


def test_every_option_is_in_the_man_page():
    table = (SOURCE / "launcher" / "cli" / "horovod_options.cc").read_text()
    options = set(re.findall(r'HorovodOption\{"(--[a-z-]+)', table)) | set(re.findall(r'Refusal\{"(--[a-z-]+)', table))
    manual = set(re.findall(r"-[a-z][a-z-]+", (SOURCE / "man" / "hvrun.1").read_text()))
    assert len(options) > 35
    assert not {option for option in options if option[1:] not in manual}


# ---- --check-build ----

CRASHES = "__attribute__((constructor)) static void crash(void) { __builtin_trap(); }\n"


def marks(result):
    """{"MPI": "X", ...} of the operations."""
    text = result.stdout.decode().split("Available Tensor Operations:\n")[1].split("\n\n")[0]
    return {line[8:]: line[5] for line in text.splitlines()}


def test_check_build_has_horovodruns_form(hvrun):
    result = run(hvrun, "-cb")
    assert result.returncode == 0 and not result.stderr, result
    heads = [line for line in result.stdout.decode().splitlines() if line.startswith("Available")]
    assert heads == ["Available Frameworks:", "Available Controllers:", "Available Tensor Operations:"]
    assert list(marks(result)) == ["NCCL", "DDL", "CCL", "MPI", "Gloo"] and marks(result)["Gloo"] == "X"
    assert result.stdout.count(b"\n    MPI: ") == 1, result


def test_check_build_tells_why_a_backend_is_not_there(hvrun, tmp_path):
    """Not there, no library at all, and one that ends whoever opens it."""
    library = tmp_path / "libhvrun.so"
    library.write_bytes(b"no library")
    (tmp_path / "libhvrun-openmpi.so").write_bytes(b"no library")
    result = run(hvrun, "--check-build", HVRUN_LIBRARY=str(library))
    assert (marks(result)["NCCL"], marks(result)["MPI"]) == (" ", " "), result
    assert b"Open MPI: " + bytes(library) + b": file too short" in result.stdout, result
    assert f"{tmp_path}/libhvrun-mpich.so is not there: hvrun was built where that MPI was not".encode() in result.stdout
    assert b"try: openmpi-bin and libopenmpi-dev, or mpich" in result.stdout
    library.unlink()
    shutil.copy(programs.hvrun_folder().parent / "lib" / "libhvrun.so", library)
    (tmp_path / "crash.c").write_text(CRASHES)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libhvrun-mpich.so", tmp_path / "crash.c"], check=True)
    result = run(hvrun, "--check-build", HVRUN_LIBRARY=str(library))
    assert b"libhvrun-openmpi.so: file too short" in result.stdout and marks(result)["MPI"] == " ", result
    assert result.returncode == 0 and b"the process that opened it was ended by SIG" in result.stdout, result


def test_check_build_knows_frameworks_by_their_python(hvrun, tmp_path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nprintf 'PyTorch\\t2.13.0\\nTensorFlow\\t\\n'\n")
    python.chmod(0o755)
    result = run(hvrun, "--check-build", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert b"    [ ] TensorFlow\n    [X] PyTorch\n    [ ] MXNet\n" in result.stdout and b"    PyTorch: 2.13.0\n" in result.stdout, result
    python.write_text("#!/bin/sh\nexit 1\n")
    result = run(hvrun, "--check-build", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert b"[ ] PyTorch" in result.stdout and f"PyTorch: unknown: {python}: it ended with exit code 1".encode() in result.stdout
