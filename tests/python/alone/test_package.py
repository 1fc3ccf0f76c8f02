# SPDX-License-Identifier: Apache-2.0
"""The package as it lies there: how it calls the library, what it needs of a machine, and the command horovodrun."""

import ctypes
import os
import pathlib
import re
import subprocess
import sys

import pytest

import hvrun
from hvrun import _abi
from hvrun._library import library

COMPAT = pathlib.Path(hvrun.__file__).parents[1] / "horovod-compat"


def run(program, *arguments, **variables):
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **variables})


def keeps_the_lock(name):
    """Whether a call of that function keeps the interpreter's lock; else other threads run meanwhile."""
    return bool(getattr(library(), name.removeprefix("hvrun_"))._flags_ & ctypes._FUNCFLAG_PYTHONAPI)


@pytest.mark.parametrize("name", _abi.PROMPT)
def test_what_never_blocks_keeps_the_interpreters_lock(name):
    assert keeps_the_lock(name)


@pytest.mark.parametrize("name", _abi.BLOCKING)
def test_what_blocks_lets_other_threads_run(name):
    assert not keeps_the_lock(name)


def test_what_is_called_for_each_tensor_is_prompt_and_what_waits_for_ranks_is_not():
    assert {"hvrun_enqueue", "hvrun_poll", "hvrun_release"} <= set(_abi.PROMPT)
    assert {"hvrun_init", "hvrun_shutdown", "hvrun_wait", "hvrun_barrier", "hvrun_process_set_add"} <= set(_abi.BLOCKING)


def test_it_works_without_a_compiler_or_any_program():
    program = ("import torch, hvrun.torch as hvd; hvd.init(); model = torch.nn.Linear(2, 1);"
               "optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters());"
               "model(torch.ones(1, 2)).sum().backward(); optimizer.step(); print(hvd.allreduce(torch.ones(1), op=hvd.Sum).item())")
    done = run(program, PATH="", CC="/nowhere/cc", CXX="/nowhere/c++")
    assert (done.returncode, done.stdout) == (0, "1.0\n"), done.stderr


@pytest.fixture(scope="module")
def horovodrun():
    """A program that does what pip's script for this entry point does."""
    (entry,) = re.findall(r'^horovodrun = "([\w.]+):(\w+)"$', (COMPAT / "pyproject.toml").read_text(), re.MULTILINE)
    return "import sys; from {} import {} as main; sys.exit(main())".format(*entry)


def test_horovodrun_starts_ranks(horovodrun):
    done = run(horovodrun, "-np", "2", "--oversubscribe", "--no-label", "sh", "-c", "echo rank $HVRUN_RANK of $HVRUN_SIZE")
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"], done.stderr
    assert run(horovodrun, "-np", "1", "sh", "-c", "exit 7").returncode == 7


def test_horovodrun_without_hvrun(horovodrun, tmp_path):
    done = run(horovodrun, "-np", "1", "true", HVRUN_BIN_DIR=str(tmp_path))
    assert done.returncode == 1 and "try: pip install hvrun" in done.stderr


OFFERS = "import os, hvrun\nprint([os.readlink('/proc/self/fd/' + fd) for fd in os.listdir('/proc/self/fd')" \
         " if os.path.exists('/proc/self/fd/' + fd) or os.path.islink('/proc/self/fd/' + fd)])\n"


def test_a_rank_offers_its_python_stack_and_a_plain_program_does_not():
    contract = {"HVRUN_RANK": "0", "HVRUN_AGENT": "@nobody"}
    assert "hvrun-stacks" in run(OFFERS, **contract).stdout
    assert "hvrun-stacks" not in run(OFFERS).stdout


@pytest.mark.parametrize("handler", ["signal.SIG_IGN", "lambda *_: print('mine')"])
def test_a_programs_own_handler_of_that_signal_stays(handler):
    program = f"import os, signal; signal.signal(48, {handler}); import hvrun; os.kill(os.getpid(), 48); print(hvrun._stacks._kept)"
    done = run(program, HVRUN_RANK="0", HVRUN_AGENT="@nobody")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "None"), done.stderr
    assert ("mine" in done.stdout) == ("mine" in handler)


def test_without_memory_files_a_rank_runs_as_it_would():
    program = "import os; del os.memfd_create; import hvrun; print(hvrun._stacks._kept)"
    done = run(program, HVRUN_RANK="0", HVRUN_AGENT="@nobody")
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr


def test_signal_and_name_of_stacks_are_those_of_the_agents():
    header = (pathlib.Path(hvrun.__file__).parents[2] / "src" / "contract" / "contract.h").read_text()
    from hvrun import _stacks
    assert f"kStacksSignal = {_stacks.SIGNAL};" in header and f'kStacksFile[] = "{_stacks.FILE}";' in header
