"""Where ranks stand: told at SIGQUIT, at --timeout and of stalls, for Python and C alike; equal stacks are one.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import signal
import subprocess
import time

import pytest

from harness import processes, programs
from harness.stalling import STALLING
from harness.waiting import wait_for
from launching import run, start, two_hosts

PACKAGE = str(programs.SOURCE / "python")
PYTHON = "/usr/bin/python3"

STANDING = """
import os, pathlib, sys, threading
import hvrun
def idle():
    threading.Event().wait()
def step():
    threading.Event().wait()
def elsewhere():
    os.read(os.pipe()[0], 1)
threading.Thread(target=idle, daemon=True).start()
pathlib.Path(sys.argv[1], "ready." + os.environ["RANK"]).write_text(f"{os.getpid()} ")
if os.environ["RANK"] in sys.argv[2:]:
    elsewhere()
step()
"""

C_PROGRAM = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void wait_here(int n) { if (n) wait_here(n - 1); else pause(); __asm__ volatile(""); }
int main(int argc, char** argv) {
    FILE* ready = fopen(argv[1], "w");
    fprintf(ready, "%d ", getpid());
    fclose(ready);
    wait_here(2);
    return argc;
}
"""


def line_of(text):
    """Where that stands in STANDING."""
    return STANDING.splitlines().index(text) + 1


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(STANDING)
    return str(path)


@pytest.fixture
def c_program(tmp_path):
    (tmp_path / "wait.c").write_text(C_PROGRAM)
    subprocess.run(["cc", "-g", "-O1", "-o", tmp_path / "waiter", tmp_path / "wait.c"], check=True)
    return str(tmp_path / "waiter")


def ready(tmp_path, ranks):
    """Returns once every rank has written its process ID, with a space behind it, and stands where it will stay."""
    written = lambda: [text[:-1] for path in tmp_path.glob("ready.*") if (text := path.read_text()).endswith(" ")]
    wait_for(lambda: len(written()) == ranks and all(map(processes.stands, written())), 30, "all ranks")


def quit_of(job, tmp_path, ranks):
    """What hvrun says when it gets SIGQUIT once all ranks stand."""
    ready(tmp_path, ranks)
    job.send_signal(signal.SIGQUIT)
    out, err = job.communicate(timeout=30)
    assert job.returncode == 128 + signal.SIGQUIT, err
    return err.decode()


def test_sigquit_tells_where_ranks_stand_and_ends_the_job(hvrun, script, tmp_path):
    job = start(hvrun, "-np", "4", PYTHON, script, tmp_path, "2", PYTHONPATH=PACKAGE)
    err = quit_of(job, tmp_path, 4)
    assert "hvrun: where the ranks stand:\n  ranks 0-1,3 on host " in err, err
    together, _, apart = err.partition("  rank 2 on host ")
    assert f"{script}:{line_of('step()')} in <module>\n" in together and f":{line_of('def step():') + 1} in step\n" in together, err
    assert f"{script}:{line_of('    elsewhere()')} in <module>\n" in apart, err
    assert apart.index("in <module>") < apart.index("in elsewhere"), err
    assert "C, innermost first: read" in apart or "C, innermost first: __libc_read" in apart or "C, innermost first: __read" in apart, err
    assert "other threads: 1 idle" in err, err
    assert err.index("where the ranks stand") < err.index("hvrun: ended by "), err
    assert not re.search("0x[0-9a-f]{6}", err), err


def test_a_c_programs_stack_is_told_by_its_functions(hvrun, c_program, tmp_path):
    job = start(hvrun, "-np", "2", "sh", "-c", f"exec {c_program} {tmp_path}/ready.$RANK")
    err = quit_of(job, tmp_path, 2)
    assert re.search(r"ranks 0-1 on host \S+ stand in \(C, innermost last\):", err), err
    assert err.index(" main (waiter)") < err.index("wait_here (waiter) (3 times)"), err


def test_a_shell_that_waits_for_python_is_passed_over(hvrun, script, tmp_path):
    job = start(hvrun, "-np", "1", "sh", "-c", f"{PYTHON} {script} {tmp_path}; echo ended", PYTHONPATH=PACKAGE)
    err = quit_of(job, tmp_path, 1)
    assert "in step" in err and "another process" not in err and "(sh" not in err, err


def test_a_stopped_rank_is_told_as_such_and_stays_stopped(hvrun, c_program, script, tmp_path):
    words = [f"if [ $RANK = 0 ]; then exec {c_program} {tmp_path}/ready.0; else exec {PYTHON} {script} {tmp_path}; fi"]
    job = start(hvrun, "-np", "2", "sh", "-c", *words, PYTHONPATH=PACKAGE)
    ready(tmp_path, 2)
    (stopped,) = [process.pid for process in processes.below(job.pid) if process.name == "waiter"]
    processes.stop(stopped)
    err = quit_of(job, tmp_path, 2)
    assert re.search(r"rank 0 on host \S+ is stopped \(SIGSTOP, SIGTSTP\) and stands in \(C", err), err
    assert "in step" in err, err


def test_the_time_limit_tells_where_ranks_stand_before_its_error(hvrun, script, tmp_path):
    job = start(hvrun, *two_hosts(tmp_path), "--timeout", "10", PYTHON, script, tmp_path, PYTHONPATH=PACKAGE, HOME=str(tmp_path))
    _, err = job.communicate(timeout=40)
    err = err.decode()
    assert job.returncode == 4, err
    assert "ranks 0-1 on hosts a,b stand in (Python, innermost last):" in err, err
    assert err.index("in step") < err.index("error: the job ran longer than --timeout 10 s"), err


def test_a_rank_that_heeds_no_signal_is_ended_all_the_same(hvrun, tmp_path):
    words = f"trap '' TERM INT QUIT HUP; printf '%s ' $$ >{tmp_path}/ready.0; while :; do sleep 60; done"
    job = start(hvrun, "-np", "1", "--grace", "0.5", "sh", "-c", words)
    wait_for(lambda: any((each.name, each.state) == ("sleep", "S") for each in processes.below(job.pid)), 30, "sleep sleeps")
    err = quit_of(job, tmp_path, 1)
    assert "(C, innermost last):" in err and "nanosleep" in err, err


def test_without_a_reader_the_kernel_is_asked_and_the_package_is_named(hvrun, c_program, script, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    words = f"if [ $RANK = 0 ]; then exec {c_program} {tmp_path}/ready.0; else exec {PYTHON} {script} {tmp_path}; fi"
    job = start(hvrun, "-np", "2", "/bin/sh", "-c", words, PYTHONPATH=PACKAGE, PATH=str(tools))
    err = quit_of(job, tmp_path, 2)
    assert "its stack is told where eu-stack (elfutils) or gdb is installed" in err, err
    assert "in step" in err, err


def test_a_second_signal_does_not_wait(hvrun, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "eu-stack").write_text(f"#!/bin/sh\n: >{tmp_path}/reading\nexec /bin/sleep 60\n")
    (tools / "eu-stack").chmod(0o755)
    job = start(hvrun, "-np", "1", "/bin/sh", "-c", f"printf '%s ' $$ >{tmp_path}/ready.0; exec /bin/sleep 60", PATH=str(tools))
    ready(tmp_path, 1)
    job.send_signal(signal.SIGQUIT)
    wait_for(lambda: (tmp_path / "reading").exists(), 10, "the reader")
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=4)
    assert job.returncode == 128 + signal.SIGQUIT and b"where the ranks" not in err, err


TWO_MISSING = """
import os, threading
from hvrun import _abi, basics, inflight
def missing_a():
    threading.Event().wait()
def missing_b():
    threading.Event().wait()
basics.init()
rank = os.environ["RANK"]
for other, name in (("1", "a"), ("2", "b")):
    if rank != other:
        threading.Thread(target=inflight.reduce_numbers, args=(name, [1], _abi.SUM), daemon=True).start()
{"0": threading.Event().wait, "1": missing_a, "2": missing_b}[rank]()
"""


def test_tensors_that_wait_for_different_ranks_are_all_told(hvrun, tmp_path):
    script = tmp_path / "two.py"
    script.write_text(TWO_MISSING)
    library = programs.hvrun_folder().parent / "lib" / "libhvrun.so"
    with open(tmp_path / "err", "wb") as err:
        job = start(hvrun, "-np", "3", "--output-dir", tmp_path / "out", PYTHON, script, stdout=subprocess.DEVNULL, stderr=err,
                    PYTHONPATH=PACKAGE, HVRUN_LIBRARY=str(library), HVRUN_STALL_SECONDS="0.5")
    said = lambda: (tmp_path / "err").read_text()
    wait_for(lambda: "in missing_a" in said() and "in missing_b" in said(), 40, "both")
    assert said().count("for rank 1; where they stand") == said().count("for rank 2; where they stand") == 1, said()
    job.send_signal(signal.SIGTERM)
    job.wait(20)
    told = [stall for stall in json.loads((tmp_path / "out/job.json").read_text())["stacks"]]
    assert len(told) == 2 and any("in missing_a" in line for group in told[0]["groups"] + told[1]["groups"] for line in group), told
    later = run(hvrun, "explain", str(tmp_path / "out")).stdout.decode()
    assert "in missing_a" in later and "in missing_b" in later, later


def test_a_stalled_tensor_is_followed_by_where_the_missing_rank_stands(hvrun, tmp_path):
    script = tmp_path / "stall.py"
    script.write_text(STALLING)
    library = programs.hvrun_folder().parent / "lib" / "libhvrun.so"
    with open(tmp_path / "err", "wb") as err:
        job = start(hvrun, "-np", "2", PYTHON, script, stdout=subprocess.DEVNULL, stderr=err, PYTHONPATH=PACKAGE,
                    HVRUN_LIBRARY=str(library), HVRUN_STALL_SECONDS="0.5")
    said = lambda: (tmp_path / "err").read_text()
    wait_for(lambda: "in reduce_numbers" in said(), 40, "where the ranks stand")
    told = time.monotonic()
    wait_for(lambda: time.monotonic() > told + 3, 20, "the times of two more warnings")
    # By the engine, with what the ranks did last, and by hvrun, with their stacks; the engine's may come again with rank 1's answer.
    assert said().count("for rank 1; where they stand, and one that waits:") == 1, said()
    assert 2 <= said().count("tensor 'w' has waited") <= 3, said()
    report = said()[said().index("where they stand, and one"):]
    _, _, missing = report.partition("rank 1 on host ")
    assert re.match(r"\S+ stands in \(Python, innermost last\):\n.*stall.py:8 in <module>\n.*stall.py:5 in missing", missing), report
    assert "in reduce_numbers" in report, report
    job.send_signal(signal.SIGTERM)
    job.wait(20)


def test_a_rank_that_never_joins_is_told_with_where_it_stands(hvrun, tmp_path):
    script = tmp_path / "stall.py"
    script.write_text(STALLING.replace("basics.init()\n", "").replace("inflight.reduce", "basics.init()\ninflight.reduce"))
    library = programs.hvrun_folder().parent / "lib" / "libhvrun.so"
    with open(tmp_path / "err", "wb") as err:
        job = start(hvrun, "-np", "2", PYTHON, script, stdout=subprocess.DEVNULL, stderr=err, PYTHONPATH=PACKAGE,
                    HVRUN_LIBRARY=str(library), HVRUN_STALL_SECONDS="0.5")
    said = lambda: (tmp_path / "err").read_text()
    wait_for(lambda: "in missing" in said(), 40, "where it stands")
    # Its agent reports the wait again once it has lasted 1 s, 2 s, 4 s.
    told = time.monotonic()
    wait_for(lambda: time.monotonic() > told + 3, 20, "two more reports")
    job.send_signal(signal.SIGTERM)
    job.wait(20)
    assert said().count("to meet the others") == 1, said()
    assert said().count("where those stand that are not there, and one that waits:") == 1, said()
