"""What ranks tell of their training's steps, by hvrun.h alone, comes to hvrun's last words and its summary.

SPDX-License-Identifier: Apache-2.0
"""
import json
import sys

from harness import programs
from launching import run

# argv: steps, milliseconds of a step by rank ("data,exchange,all" each), and what becomes of the last rank.
TELLING = """
import ctypes as c, os, signal, sys
class Times(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [(name, c.c_uint64) for name in ("steps", "all", "data", "exchange", "waits")]
library = c.CDLL(os.environ["HVRUN_LIBRARY"])
assert library.hvrun_init(None, None) == 0
rank, size = library.hvrun_rank(None), library.hvrun_size(None)
data, exchange, whole = (int(1e6 * float(part)) for part in sys.argv[2 + rank].split(","))
for steps in (int(sys.argv[1]) // 2, int(sys.argv[1])):
    times = Times(c.sizeof(Times), steps, steps * whole, steps * data, steps * exchange, steps if data else 0)
    assert library.hvrun_report_steps(None, c.byref(times)) == 0
    assert library.hvrun_barrier(None) == 0
    assert library.hvrun_barrier(None) == 0  # what was told before the last one has been sent
if rank == size - 1 and sys.argv[-1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(library.hvrun_shutdown(None) != 0)
"""


def told(hvrun, tmp_path, steps, ranks, end="leave", options=()):
    """(result, summary) of ranks that tell these times."""
    path = tmp_path / "end.json"
    library = programs.hvrun_folder().parent / "lib" / "libhvrun.so"
    result = run(hvrun, "-np", str(len(ranks)), *options, "--summary", str(path), sys.executable, "-c", TELLING, str(steps), *ranks, end,
                 HVRUN_LIBRARY=str(library))
    return result, json.loads(path.read_text())


def test_what_bounded_a_training_and_who_was_slowest_is_told(hvrun, tmp_path):
    result, summary = told(hvrun, tmp_path, 100, ["0.5,35,51", "31,5,51"])
    assert result.returncode == 0, result.stderr
    lines = result.stderr.decode().splitlines()
    assert lines[0] == ("hvrun: the training was input-bound: a step took 51 ms: data 31 ms (61 %), compute 15 ms (29 %), "
                        "exchange, with waiting for others, 5 ms (10 %); without the wait for data it would take at best 20.5 ms"), lines
    assert lines[1].startswith("hvrun: rank 1 on host ") and lines[1].endswith(
        " was the slowest: the others waited 30 ms a step for it, as its wait for data is 30.5 ms longer than theirs"), lines
    assert lines[2].startswith("  try: ") and len(lines) == 3, lines
    assert summary["version"] == 2 and summary["training"]["bound"] == "input" and summary["training"]["slowest_rank"] == 1
    assert [rank["step_times"]["steps"] for rank in summary["ranks"]] == [100, 100]
    assert abs(summary["ranks"][0]["step_times"]["compute_seconds"] - 1.55) < 1e-9


def test_a_killed_rank_has_told_what_it_had_measured(hvrun, tmp_path):
    result, summary = told(hvrun, tmp_path, 100, ["1,35,50", "1,5,50"], "kill")
    assert result.returncode == 137, result.stderr
    assert summary["ranks"][1]["step_times"]["steps"] >= 50, summary
    assert b"the training was compute-bound" in result.stderr
    assert result.stderr.index(b"the training was") < result.stderr.index(b"hvrun: error: rank 1")


def test_who_does_not_want_the_words_has_the_summary_all_the_same(hvrun, tmp_path):
    result, summary = told(hvrun, tmp_path, 100, ["1,5,50"], options=["--no-training-summary"])
    assert (result.returncode, result.stderr) == (0, b"")
    assert summary["training"]["is_long_enough"] is True


def test_few_steps_are_no_training_to_speak_of(hvrun, tmp_path):
    result, summary = told(hvrun, tmp_path, 18, ["1,5,500"])
    assert (result.returncode, result.stderr) == (0, b"")
    assert summary["training"]["is_long_enough"] is False and summary["ranks"][0]["step_times"]["seconds"] == 9
