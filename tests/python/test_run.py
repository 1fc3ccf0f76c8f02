# SPDX-License-Identifier: Apache-2.0
"""hvrun.run: what it cannot send, and how results come back. What it is for, examples/torch/run_function.py shows."""

import io
import subprocess
import sys

import pytest

from harness import programs, torch_jobs

sys.path.insert(0, str(torch_jobs.PACKAGE))

from hvrun import _results  # noqa: E402


def python(tmp_path, script, **more):
    """A Python beside tmp_path's mine.py."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path,
                          env=torch_jobs.environment(tmp_path, **more))


def test_a_function_of_a_script_is_not_sent_without_cloudpickle(tmp_path):
    (tmp_path / "script.py").write_text("import sys\nsys.modules['cloudpickle'] = None\nimport hvrun\ndef train():\n    pass\n"
                                        "hvrun.run(train, np=2)\n")
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False,
                          env=torch_jobs.environment(tmp_path))
    assert "hvrun.run: train is a function of this script or notebook, which ranks cannot import; pip install cloudpickle" in done.stderr


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_use_mpi_has_mpi_move_the_data(tmp_path, mpi):
    if not (programs.hvrun_folder() / f"wired_{mpi}").exists():
        pytest.skip(f"no {mpi}")
    done = python(tmp_path, "import hvrun, os\nprint(hvrun.run(os.getenv, ('HVRUN_BACKEND',), np=2, use_mpi=True))\n",
                  HVRUN_MPI=mpi, HVRUN_LOG_LEVEL="info")
    assert (done.returncode, done.stdout) == (0, "['mpi,nccl,native', 'mpi,nccl,native']\n"), done
    assert "collectives are carried on the host's memory mpi (" in done.stderr, done


def test_words_for_mpirun_are_refused_with_what_to_do(tmp_path):
    done = python(tmp_path, "import hvrun, os\nhvrun.run(os.getenv, ('HOME',), np=2, use_mpi=True, mpi_args='--mca btl ^openib')\n")
    assert done.returncode == 1 and "set Open MPI's parameters by env, as in env={'OMPI_MCA_btl': '^openib'}" in done.stderr, done


# Every rank prints what an earlier hvrun.run would have taken for a result: the pickle of a call that makes a file.
PRINTS = """
import base64, os, pickle, subprocess, sys

class Planted:
    def __reduce__(self):
        return os.mkdir, ("planted",)

def links():
    paths = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return {os.readlink(path) for path in paths if os.path.lexists(path)}

def work():
    print(*sys.argv, base64.b64encode(pickle.dumps([Planted(), 0])).decode(), flush=True)
    rank, pipe = int(os.environ["RANK"]), sys.modules["hvrun.run_task"]._PIPE
    if pipe is not None:
        mine = os.readlink(f"/proc/self/fd/{pipe.fileno()}")
        asks = "import mine, os; print(mine.links(), 'HVRUN_RESULT_FD' in os.environ)"
        told = subprocess.run([sys.executable, "-c", asks], close_fds=False, stdout=subprocess.PIPE, text=True, check=True).stdout
        assert mine in links() and mine not in told and told.endswith(" False\\n"), told
        if os.fork() == 0:
            os._exit(mine in links())
        assert os.wait()[1] == 0
    assert (rank == 0) == (pipe is not None)
    return rank, os.urandom(2) * (3 << 20)
"""


def test_no_rank_is_no_default(tmp_path):
    done = python(tmp_path, "import hvrun, os\nhvrun.run(os.getpid, np=0)\n")
    assert done.returncode == 1 and "-np" in done.stderr, done


def test_interfaces_are_names_and_values_of_variables_become_text(tmp_path):
    (tmp_path / "mine.py").write_text("import os\n\n\ndef work():\n    return os.environ['HVRUN_INTERFACES'], os.environ['COUNT']\n")
    script = "import hvrun, mine\nprint(hvrun.run(mine.work, np=1, network_interfaces={}, env={{'COUNT': 7}}))\n"
    for names in ("'lo'", "['lo']"):
        done = python(tmp_path, script.format(names))
        assert (done.returncode, done.stdout) == (0, "[('lo', '7')]\n"), done


def test_ranks_import_nothing_from_a_working_directory_that_their_caller_does_not_use(tmp_path):
    """It may be one where other users write, such as /tmp."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir(), work.mkdir()
    (home / "mine.py").write_text("def work():\n    return 7\n")
    (home / "script.py").write_text("import hvrun, mine\nprint(hvrun.run(mine.work, np=1))\n")
    for name in ("base64", "pickle", "hvrun", "torch"):
        (work / f"{name}.py").write_text("open('planted', 'w')\n")
    done = subprocess.run([sys.executable, str(home / "script.py")], capture_output=True, text=True, check=False, timeout=120, cwd=work,
                          env=torch_jobs.environment(tmp_path))
    assert (done.returncode, done.stdout) == (0, "[7]\n") and not (work / "planted").exists(), done


def test_results_come_through_a_pipe_of_their_own_whatever_ranks_print(tmp_path):
    (tmp_path / "mine.py").write_text(PRINTS)
    done = python(tmp_path, "import hvrun, mine\nprint([(rank, len(data)) for rank, data in hvrun.run(mine.work, np=3)])\n")
    assert done.returncode == 0 and done.stdout.endswith(f"{[(rank, 6 << 20) for rank in range(3)]}\n"), done
    assert done.stdout.count("gAS") == 3 and not (tmp_path / "planted").exists(), done


# What a function of mine.py does, and how hvrun.run ends.
@pytest.mark.parametrize("function, message", [
    ("return Odd() if os.environ['RANK'] == '1' else 7",
     "what rank 1 returned cannot be loaded here: ValueError: invalid literal for int() with base 10: 'x'"),
    ("os._exit(0)", "the ranks ended with exit code 0 before all had returned a result; the function must return"),
    ("raise SystemExit", "the job ended with exit code 1: rank "),
    ("_results._write = half\n    return bytes(1 << 20)", "the job ended with exit code 137: rank 0 on host "),
], ids=["cannot be loaded", "an end without results", "sys.exit()", "killed in the middle"])
def test_a_result_that_is_not_there_is_an_error_that_says_which(tmp_path, function, message):
    (tmp_path / "mine.py").write_text("import os\nfrom hvrun import _results\n"
                                      "class Odd:\n    def __reduce__(self):\n        return int, ('x',)\n"
                                      "def half(pipe, data):\n    pipe.write(data if len(data) == 8 else data[:len(data) // 2])\n"
                                      "    if len(data) > 8:\n        os.kill(os.getpid(), 9)\n"
                                      f"def work():\n    {function}\n")
    done = python(tmp_path, "import hvrun, mine\ntry:\n    hvrun.run(mine.work, np=2)\nexcept RuntimeError as error:\n    print(error)\n")
    assert done.stdout.startswith("hvrun.run: " + message), done
    assert function != "raise SystemExit" or "the function ended its process (sys.exit) instead of returning a result" in done.stdout, done


def test_a_stream_of_results_says_where_it_ends_too_soon_and_what_does_not_belong_there():
    class Kept(io.BytesIO):
        def close(self):
            self.text = self.getvalue()
    pipe = Kept()
    _results.write_results(pipe, [b"zero", b"", b"two"])
    assert _results.read_results(io.BytesIO(pipe.text)) == [b"zero", b"", b"two"]
    for size in range(len(pipe.text)):
        with pytest.raises(EOFError, match="did not come: its [348] bytes end after"):
            _results.read_results(io.BytesIO(pipe.text[:size]))
    with pytest.raises(EOFError, match="the result of rank 2 of 3 did not come: its 3 bytes end after 2"):
        _results.read_results(io.BytesIO(pipe.text[:-1]))
    with pytest.raises(ValueError, match="there is more behind the result of rank 2, the last"):
        _results.read_results(io.BytesIO(pipe.text + b"x"))
    with pytest.raises(ValueError, match="ranks cannot be"):
        _results.read_results(io.BytesIO(b"\xff" * 8))
    with pytest.raises(EOFError, match="its 18446744073709551615 bytes end after 3"):  # and no memory is taken for them
        _results.read_results(io.BytesIO(b"\x01" + bytes(7) + b"\xff" * 8 + b"abc"))
