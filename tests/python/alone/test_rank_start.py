# SPDX-License-Identifier: Apache-2.0
"""python/rank_start: what Python programs of a rank begin with, and which waits in torch.distributed are reported."""

import importlib
import os
import pathlib
import struct
import subprocess
import sys
import threading
import types

import pytest

SOURCE = pathlib.Path(__file__).parents[3]
START = SOURCE / "python" / "rank_start"
PYTHON = "/usr/bin/python3"


@pytest.fixture(name="waits")
def waits_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "_hvrun_limits", types.SimpleNamespace(STALL=60.0, END=0.0))
    monkeypatch.syspath_prepend(str(START))
    yield importlib.import_module("_hvrun_waits")
    del sys.modules["_hvrun_waits"]


class Code:
    def __init__(self, name, file):
        self.co_name, self.co_filename = name, file


class Frame:
    """Innermost first: (module, function) of each."""

    def __init__(self, *calls, f_trace=None):
        (module, function), *outer = calls
        self.f_globals, self.f_code, self.f_lineno = {"__name__": module}, Code(function, f"{module}.py"), 7
        self.f_back, self.f_trace = Frame(*outer) if outer else None, f_trace


C10D = "torch.distributed.distributed_c10d"
MAIN = ("__main__", "train")


@pytest.mark.parametrize("calls, wait", [
    ([(C10D, "all_reduce"), ("torch.distributed.c10d_logger", "wrapper"), MAIN], ("torch.distributed.all_reduce", "__main__.py:7")),
    ([(C10D, "all_gather"), (C10D, "all_gather_object"), MAIN], ("torch.distributed.all_gather_object", "__main__.py:7")),
    ([("torch.distributed.rendezvous", "_create_c10d_store"), (C10D, "init_process_group"), ("_hvrun_waits", "init_process_group"), MAIN],
     ("torch.distributed.init_process_group", "__main__.py:7")),
    ([("torch._ops", "__call__"), ("torch.distributed._functional_collectives", "wait_tensor"), MAIN],
     ("torch.distributed.wait_tensor", "__main__.py:7")),
    ([("torch.nn.parallel.distributed", "forward"), ("torch.nn.modules.module", "_call_impl"), MAIN], ("forward", "__main__.py:7")),
    ([("torch.autograd.graph", "_engine_run_backward"), ("torch.autograd", "backward"), MAIN], ("backward", "__main__.py:7")),
    ([("torch.nn.modules.linear", "forward"), ("torch.nn.parallel.distributed", "forward"), MAIN], None),
    ([("torch.distributed.elastic.agent.server.api", "_invoke_run"), MAIN], None),
    ([("torch.distributed.checkpoint.filesystem", "write_data"), MAIN], None),
    ([("torch.distributed.rpc.api", "shutdown"), MAIN], None),
    ([MAIN], None),
    ([("torch._ops", "__call__")], None),
])
def test_which_frames_wait_and_how_they_are_told(waits, calls, wait):
    frame, is_backward = waits.waiting_frame(Frame(*calls))
    assert (waits.describe(frame, is_backward) if frame else None) == wait


def test_no_frame_is_no_wait(waits):
    """The thread has ended."""
    assert waits.waiting_frame(None) == (None, False)


class Trial:
    def __init__(self, waits, stall=60.0, end=0.0):
        self.told, self.now, self.busy = [], 0.0, 0.0
        self.watch = waits.Watch(stall, end, lambda waited, is_too_long, call, place: self.told.append((waited, is_too_long)))

    def look(self, frame, seconds, cores=0.0):
        """After so many seconds in which the process has used so many cores."""
        self.now += seconds
        self.busy += cores * seconds
        self.watch.look(frame, self.now, self.busy)


def all_reduce():
    return Frame((C10D, "all_reduce"), MAIN)


def test_a_wait_is_told_at_the_limit_and_again_while_it_lasts(waits):
    trial, frame = Trial(waits), all_reduce()
    for _ in range(9):
        trial.look(frame, 15, cores=1.0)  # NCCL's barrier spins
    assert trial.told == [(60, False), (120, False)]


def test_other_calls_of_the_same_function_are_other_waits(waits):
    trial = Trial(waits)
    for _ in range(100):
        trial.look(all_reduce(), 15)  # with the address, perhaps, of the one before
    assert not trial.told


def test_calls_that_take_turns_are_waits_of_their_own_and_either_may_wait_later(waits):
    trial, outer, inner = Trial(waits), all_reduce(), all_reduce()
    for _ in range(20):
        trial.look(outer, 15)
        trial.look(inner, 15)
    assert not trial.told
    for _ in range(5):
        trial.look(outer, 15)
    assert trial.told == [(60, False)]


def test_a_wait_begins_anew_once_the_thread_was_elsewhere(waits):
    trial, frame = Trial(waits), all_reduce()
    for _ in range(4):
        trial.look(frame, 15)
    trial.look(Frame(("torch.nn.modules.linear", "forward"), (C10D, "all_reduce")), 15)
    for _ in range(4):
        trial.look(frame, 15)
    assert not trial.told


def test_time_in_which_the_process_was_stopped_does_not_count(waits):
    trial, frame = Trial(waits), all_reduce()
    trial.look(frame, 15)
    trial.look(frame, 3600)
    assert not trial.told


@pytest.mark.parametrize("cores, told", [(0.01, [(60, False)]), (0.5, [])])
def test_a_backward_pass_waits_if_the_process_does_nothing(waits, cores, told):
    trial, frame = Trial(waits), Frame(("torch.autograd.graph", "_engine_run_backward"), MAIN)
    for _ in range(6):
        trial.look(frame, 15, cores)
    assert trial.told == told


def test_a_debuggers_frame_is_left_alone(waits):
    trial, tracer = Trial(waits), lambda *_: None
    frame = Frame((C10D, "all_reduce"), MAIN, f_trace=tracer)
    for _ in range(9):
        trial.look(frame, 15)
    assert frame.f_trace is tracer and not trial.told


def test_the_end_is_told_once_also_where_warnings_are_off(waits):
    trial, frame = Trial(waits, stall=0.0, end=300.0), all_reduce()
    for _ in range(50):
        trial.look(frame, trial.watch.pause)
    assert trial.told == [(300, True)]


def test_the_mark_of_a_real_frame_goes_with_it(waits):
    """Frames of a real thread, in a function of a module that is called like one of torch.distributed."""
    module = types.ModuleType(C10D)
    exec("def all_reduce(go):\n    entered.set()\n    go.wait()\n", vars(module))  # pylint: disable=exec-used
    watch, told = waits.Watch(60.0, 0.0, lambda *wait: told.append(wait)), []
    frame_of = lambda thread: next(f for f in frames_of(sys._current_frames()[thread.ident]) if f.f_globals["__name__"] == C10D)

    def frames_of(frame):
        while frame:
            yield frame
            frame = frame.f_back

    for _ in range(2):
        module.entered, go = threading.Event(), threading.Event()
        thread = threading.Thread(target=module.all_reduce, args=(go,))
        thread.start()
        assert module.entered.wait(60)
        for turn in range(4):
            watch.look(frame_of(thread), 1000.0 * len(told) + 15 * turn, 0.0)
        go.set()
        thread.join()
        assert watch._mark() is None  # freed with the frame: nothing of it is kept
    assert not told


def test_a_report_has_the_fields_of_the_agents_message(waits):
    place = "é" * 300 + "train.py:12"
    frame = waits.encode(3, 61.5, True, "all_reduce", place)
    size, kind, rank, waited, is_too_long, length = struct.unpack_from("<IBId?I", frame)
    assert (size + 4, kind, rank, waited, is_too_long, length) == (len(frame), 9, 3, 61.5, True, 10)
    assert frame.endswith(b"train.py:12") and len(frame) < 300


# ---- sitecustomize


@pytest.fixture(name="start")
def start_directory(tmp_path):
    """As an agent writes it."""
    directory = tmp_path / "start"
    directory.mkdir()
    for file in START.glob("*.py"):
        (directory / file.name).write_text(file.read_text())
    (directory / "_hvrun_stacks.py").write_text((SOURCE / "python/hvrun/_stacks.py").read_text())
    (directory / "_hvrun_limits.py").write_text("STALL, END = 60.0, 0.0\n")
    return directory


def run(start, *words, path=None, environment=None):
    value = ":".join([*([str(start)] if start else []), *([str(path)] if path else [])])
    variables = {"PATH": os.environ["PATH"], **({"PYTHONPATH": value} if value else {}), **(environment or {})}
    return subprocess.run([PYTHON, *words], capture_output=True, text=True, timeout=60, check=False, env=variables)


SAY = "import os, sys; print(sorted(os.environ.items()), sys.path, sorted(sys.path_importer_cache))"
OFFERS = "import sys; print(getattr(sys.modules.get('_hvrun_stacks'), '_kept', None) is not None, end='')"


@pytest.mark.parametrize("user_path", [False, True])
def test_a_program_sees_what_it_would_see_without(start, tmp_path, user_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('own', __name__)\n")
    with_start = run(start, "-c", SAY, path=own if user_path else None)
    without = run(None, "-c", SAY, path=own if user_path else None)
    assert with_start.stderr == without.stderr == ""
    if user_path:
        assert with_start.stdout.startswith("own sitecustomize\n") and str(start) not in with_start.stdout
    assert with_start.stdout == without.stdout


@pytest.mark.parametrize("own", ["raise ValueError('mine')", "import no_such_module_at_all"])
def test_errors_of_the_programs_own_sitecustomize_are_as_without(start, tmp_path, own):
    (tmp_path / "sitecustomize.py").write_text(own + "\n")
    with_start, without = (run(which, "-c", "print('runs')", path=tmp_path) for which in (start, None))
    assert (with_start.returncode, with_start.stdout, with_start.stderr) == (without.returncode, without.stdout, without.stderr)


@pytest.mark.parametrize("words, offers", [([], "True"), (["-I"], "False"), (["-E"], "False"), (["-S"], "False")])
def test_options_that_leave_out_site_or_the_path_leave_it_out(start, words, offers):
    assert run(start, *words, "-c", OFFERS).stdout == offers


def test_programs_that_a_program_starts_begin_there_too(start):
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {OFFERS!r}])"
    assert run(start, "-c", child).stdout == "True"


def test_it_imports_next_to_nothing(start):
    """Above all no torch; and only what every Python has built in."""
    say = "import sys; print(sorted(name for name in sys.modules if not name.startswith('encodings')))"
    with_start, without = (set(eval(run(which, "-c", say).stdout)) for which in (start, None))  # pylint: disable=eval-used
    assert with_start - without <= {"_hvrun_limits", "_hvrun_stacks", "faulthandler", "sitecustomize"}


def test_init_process_group_begins_the_watch_and_nothing_else_does(start, tmp_path):
    package = tmp_path / "own" / "torch" / "distributed"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from torch.distributed.distributed_c10d import init_process_group\n")
    (package / "distributed_c10d.py").write_text("def init_process_group(backend):\n    '''Its words.'''\n    return backend\n")
    program = ("import os, torch.distributed as d\n"
               "def threads(): return len(os.listdir('/proc/self/task'))\n"
               "print(threads(), d.init_process_group.__doc__, d.init_process_group('gloo'), d.init_process_group(backend='x'), threads())")
    done = run(start, "-c", program, path=package.parents[1])
    assert (done.stdout, done.stderr) == ("1 Its words. gloo x 2\n", "")
