"""Which backends `hvrun env` and `hvrun --check-build` say are here, and who they say carries out what.

SPDX-License-Identifier: Apache-2.0
"""
import json
import subprocess

import pytest

from harness import programs
from launching import run

LIBRARIES = programs.hvrun_folder().parent / "lib"
NCCL = LIBRARIES / "nccl" / "libnccl.so.2"  # the stand-ins
CUDA = LIBRARIES / "cuda"
ASKED = [["env"], ["--check-build"]]


def line_of(result, start):
    """The first line that begins so, without that."""
    return next(line[len(start):].strip() for line in result.stdout.decode().splitlines() if line.startswith(start))


def driver(folder, code):
    """A stand-in for CUDA's driver whose cuInit() answers that; None: what is no library."""
    path = folder / "libcuda.so.1"
    path.write_bytes(b"no library")
    if code is not None:
        (folder / "driver.c").write_text(f"int cuInit(unsigned flags) {{ return {code}; }}")
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", path, folder / "driver.c"], check=True)
    return {"LD_LIBRARY_PATH": str(folder), "HVRUN_NCCL": str(NCCL)}


@pytest.mark.parametrize("code, here, words", [
    (None, "no", ", but no NVIDIA driver on this host, as on many login nodes (FOLDER/libcuda.so.1: file too short)"),
    (100, "no", ", but no GPU on this host, as on many login nodes"),
    (999, "no", ", but CUDA's driver does not begin on this host (cuInit: error 999); try: nvidia-smi, which says more of it"),
    (0, "yes", "")])
def test_nccl_is_told_with_its_place_and_whether_this_host_can_use_it(hvrun, tmp_path, code, here, words):
    result = run(hvrun, "env", **driver(tmp_path, code))
    text = line_of(result, "nccl     ")
    assert text.startswith(f"{here:<6}2.28.3 at {NCCL}") and (" is there" in text) == (here == "no"), result
    assert text.endswith(words.replace("FOLDER", str(tmp_path))), result
    told = json.loads(run(hvrun, "env", "--format", "json", **driver(tmp_path, code)).stdout)["nccl"]
    assert (told["is_usable"], told["text"]) == (here == "yes", text[6:]), told
    # Installed it is all the same.
    built = run(hvrun, "--check-build", **driver(tmp_path, code))
    assert b"    [X] NCCL\n" in built.stdout and line_of(built, "    NCCL: ") == text[6:], built


@pytest.mark.parametrize("words", ASKED, ids=lambda words: words[0])
@pytest.mark.parametrize("backend, rows", [
    ("", {"allreduce ": "native         nccl, else native through the host's", "  by Adasum": "native         native through the host's"}),
    ("mpi", {"allreduce ": "mpi            mpi through the host's", "  by Adasum": "nobody         nobody",
             "  HVRUN_DETERMINISTIC=1": "nobody         nobody", "  of sparse tensors": "nobody         nobody"}),
    ("mpi, native", {"  of sparse tensors": "native         native through the host's"}),
    ("native,nccl", {"allreduce ": "native         native through the host's", "NCCL is never asked: ": "native, which is named before it, "
                     "carries out all that it can."})])
def test_who_carries_out_what(hvrun, words, backend, rows):
    result = run(hvrun, *words, HVRUN_BACKEND=backend)
    assert result.returncode == 0, result
    assert {row: line_of(result, row) for row in rows} == rows


@pytest.mark.parametrize("words", ASKED, ids=lambda words: words[0])
def test_a_list_that_is_none_is_said_where_its_table_would_be(hvrun, words):
    result = run(hvrun, *words, HVRUN_BACKEND="ncl")
    said = b"Who carries out what is not known: HVRUN_BACKEND is 'ncl': not a list of nccl, mpi, native; did you mean nccl?"
    assert result.returncode == 2 and said in result.stdout and b"OPERATION" not in result.stdout, result
    assert b"hvrun: error: HVRUN_BACKEND is 'ncl'" in result.stderr


def test_json_has_settings_frameworks_and_backends_even_where_a_setting_is_malformed(hvrun):
    result = run(hvrun, "env", "--json", HVRUN_BACKEND="ncl", HOROVOD_CYCLE_TIME="1", HVRUN_NOTHING="1")
    told = json.loads(result.stdout)
    settings = {setting["name"]: setting for setting in told["settings"]}
    assert told["version"] == 2 and told["hvrun_version"], told
    assert result.returncode == 2 and b"hvrun: error: HVRUN_BACKEND is 'ncl'" in result.stderr, result
    assert settings["HVRUN_BACKEND"]["summary"].startswith("MALFORMED: ") and settings["HVRUN_GRACE"]["origin"] == "default"
    assert settings["HOROVOD_CYCLE_TIME"]["origin"] == "unused" and any("HVRUN_NOTHING" in line for line in told["ignored"])
    assert [framework["name"] for framework in told["frameworks"]] == ["TensorFlow", "PyTorch", "MXNet", "JAX"]
    assert not told["operations"]["is_usable"] and {"mpi", "nccl", "cuda"} <= told.keys()


def test_a_library_of_another_hvrun_is_told_as_that(hvrun, tmp_path):
    (tmp_path / "other.c").write_text("const char* hvrun_last_error(void) { return 0; } int hvrun_nccl_version(int* v) { return 0; }")
    path = tmp_path / "libhvrun.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", path, tmp_path / "other.c"], check=True)
    result = run(hvrun, "env", HVRUN_LIBRARY=str(path))
    assert line_of(result, "Who carries out what is not known: ").startswith(f"{path} is not of this hvrun: "), result
