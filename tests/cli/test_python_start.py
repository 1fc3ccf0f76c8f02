"""Python programs of ranks that know nothing of hvrun: their stacks, and their waits in torch.distributed.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import signal
import subprocess

import pytest

from harness import processes
from harness.waiting import wait_for
from launching import run, start
from test_endings import pid_of_rank

PYTHON = "/usr/bin/python3"

WAITING = """
import os, pathlib, sys, threading
def step():
    threading.Event().wait()
pathlib.Path(sys.argv[1], "ready.%d" % os.getpid()).write_text(f"{os.getpid()} ")
step()
"""

# What of PyTorch the watch sees: a module of that name, and a call in it that waits.
DISTRIBUTED = """
import os
def init_process_group(backend):
    pass
def all_reduce(tensor):
    os.read(os.pipe()[0], 1)
"""
STALLING = """
import os, threading
import torch.distributed as dist
def elsewhere():
    threading.Event().wait()
dist.init_process_group("gloo")
if os.environ["RANK"] == "1":
    elsewhere()
dist.all_reduce(None)
"""


def stand(tmp_path, count):
    """Returns once so many processes of WAITING stand where they will stay."""
    written = lambda: [text[:-1] for path in tmp_path.glob("ready.*") if (text := path.read_text()).endswith(" ")]
    wait_for(lambda: len(written()) == count and all(map(processes.stands, written())), 30, "all processes")


def quit_of(job):
    job.send_signal(signal.SIGQUIT)
    _, err = job.communicate(timeout=30)
    assert job.returncode == 128 + signal.SIGQUIT, err
    return err.decode()


def directories():
    return {str(each) for parent in ("/dev/shm", "/tmp") for each in pathlib.Path(parent).glob("hvrun-python-*")}


@pytest.fixture(name="script")
def waiting_script(tmp_path):
    (tmp_path / "train.py").write_text(WAITING)
    return tmp_path / "train.py"


def test_sigquit_tells_the_lines_of_every_python_also_behind_a_shell(hvrun, script, tmp_path):
    job = start(hvrun, "-np", "2", "bash", "-c", f"{PYTHON} {script} {tmp_path} & {PYTHON} {script} {tmp_path}; true")
    stand(tmp_path, 4)
    err = quit_of(job)
    assert "ranks 0-1 on host " in err and "2 other processes of ranks 0-1 on host " in err, err
    assert err.count(f"{script}:6 in <module>\n      {script}:4 in step\n") == 2, err


@pytest.mark.parametrize("words, setting", [(["-I"], "1"), ([], "0")])
def test_pythons_own_options_and_hvruns_variable_leave_it_out(hvrun, script, tmp_path, words, setting):
    job = start(hvrun, "-np", "1", PYTHON, *words, script, tmp_path, HVRUN_PYTHON_START=setting)
    stand(tmp_path, 1)
    err = quit_of(job)
    assert "in step" not in err and "Python's own lines need HVRUN_PYTHON_START=1, no -I, -E or -S, and Python 3.8" in err, err


def test_a_program_sees_the_pythonpath_that_the_user_gave(hvrun, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('own')\n")
    say = [PYTHON, "-c", "import os, sys; print(os.environ.get('PYTHONPATH'), [p for p in sys.path if 'hvrun' in p])"]
    for words, expected in ([], "None []"), (["-x", f"PYTHONPATH={tmp_path}"], f"own\n{tmp_path} []"):
        result = run(hvrun, "-np", "1", "--no-label", *words, *say)
        assert (result.returncode, result.stdout.decode(), result.stderr) == (0, expected + "\n", b"")


def test_an_hvrun_within_a_rank_has_its_own_directory_alone(hvrun):
    inner = [hvrun, "-np", "1", "--no-label", "sh", "-c", "echo $PYTHONPATH; echo $HVRUN_JOB_ID"]
    result = run(hvrun, "--nested", "-np", "1", "--no-label", *inner)
    path, job = result.stdout.decode().split()
    assert result.returncode == 0 and path.endswith(f"/hvrun-python-{job}-0"), result


def test_hvrun_that_is_killed_leaves_no_directory(hvrun, script, tmp_path):
    before = directories()
    job = start(hvrun, "-np", "1", PYTHON, script, tmp_path)
    stand(tmp_path, 1)
    path = pathlib.Path(f"/proc/{pid_of_rank(job, 0)}/environ").read_bytes().split(b"PYTHONPATH=")[1].split(b"\0")[0].decode()
    assert path in directories() - before
    job.kill()
    wait_for(lambda: not os.path.exists(path), 30, "the agent's work")


@pytest.fixture(name="stalling")
def stalling_script(tmp_path):
    package = tmp_path / "torch" / "distributed"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from torch.distributed.distributed_c10d import all_reduce, init_process_group\n")
    (package / "distributed_c10d.py").write_text(DISTRIBUTED)
    (tmp_path / "stall.py").write_text(STALLING)
    return str(tmp_path / "stall.py")


def test_a_rank_that_waits_in_torch_distributed_is_told_with_where_all_stand(hvrun, stalling, tmp_path):
    with open(tmp_path / "err", "wb") as err:
        job = start(hvrun, "-np", "2", PYTHON, stalling, stdout=subprocess.DEVNULL, stderr=err, HVRUN_STALL_SECONDS="0.5")
    said = lambda: (tmp_path / "err").read_text()
    wait_for(lambda: "in elsewhere" in said(), 40, "where the ranks stand")
    heading, _, groups = said().partition("\n")
    assert f" in torch.distributed.all_reduce ({stalling}:9); where the ranks stand:" in heading, said()
    assert heading.startswith("hvrun: rank 0 has waited over "), said()
    waiting, _, missing = groups.partition("  rank 1 on host ")
    assert waiting.startswith("  rank 0 on host ") and "in all_reduce\n" in waiting, said()
    assert f"{stalling}:8 in <module>\n      {stalling}:5 in elsewhere\n" in missing, said()
    job.send_signal(signal.SIGTERM)
    job.wait(20)


@pytest.mark.parametrize("variables, code", [({"HVRUN_STALL_SHUTDOWN_SECONDS": "0.5"}, 4), ({"HVRUN_STALL_SECONDS": "0"}, 4)])
def test_such_a_wait_ends_the_job_where_the_user_has_said_so(hvrun, stalling, variables, code):
    """Without that it goes on for as long as torch.distributed's own limit; the time limit of the job ends it here."""
    has_limit = "HVRUN_STALL_SHUTDOWN_SECONDS" in variables
    limit = [] if has_limit else ["--timeout", "4"]
    result = run(hvrun, "-np", "2", *limit, PYTHON, stalling, **variables)
    err = result.stderr.decode()
    assert result.returncode == code and "in elsewhere" in err, err
    assert ("the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)" in err) == has_limit, err
    assert has_limit or "has waited over" not in err, err
