"""What ranks write arrives: whole lines, labelled once, nothing lost, nobody blocked for ever.

SPDX-License-Identifier: Apache-2.0
"""
import datetime
import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest

from harness.processes import stop
from harness.waiting import wait_for
from launching import lines_by_rank, run, start

PRINT = "/usr/bin/printf"


def shell(hvrun, script, *options, ranks=1, **more):
    return run(hvrun, "-np", str(ranks), *options, "sh", "-c", script, **more)


def test_both_streams_are_labelled_and_kept_apart(hvrun):
    result = shell(hvrun, "echo out; echo err >&2", ranks=2)
    assert sorted(result.stdout.splitlines()) == [b"[0] out", b"[1] out"]
    assert sorted(result.stderr.splitlines()) == [b"[0] err", b"[1] err"]


@pytest.mark.parametrize("size", [1024, 8192, 8195, 10240, 65536, (1 << 20) - 1, 1 << 20])
def test_a_line_of_any_length_has_one_label(hvrun, size):
    result = shell(hvrun, f"head -c {size} /dev/zero | tr '\\0' x; echo; echo end")
    assert result.stdout == b"[0] " + b"x" * size + b"\n[0] end\n"


def test_a_longer_line_is_split_with_cont_and_no_byte_is_lost(hvrun):
    size = (5 << 20) // 2
    result = shell(hvrun, f"head -c {size} /dev/zero | tr '\\0' x; echo")
    lines = result.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.endswith(b" [cont]") for line in lines[:-1])
    assert not lines[-1].endswith(b" [cont]")
    assert sum(line.count(b"x") for line in lines) == size


def test_a_last_line_without_newline_is_whole(hvrun):
    assert shell(hvrun, "printf 'a\\nb'").stdout == b"[0] a\n[0] b\n"


def test_a_line_written_in_pieces_has_one_label(hvrun):
    script = "import os\nfor c in b'one line\\n': os.write(1, bytes([c]))"
    assert run(hvrun, "-np", "1", "/usr/bin/python3", "-c", script).stdout == b"[0] one line\n"


def test_bytes_that_are_no_utf8_and_carriage_returns_are_kept_in_pipes(hvrun):
    assert shell(hvrun, r"printf 'a\rb\377\000c\n'").stdout == b"[0] a\rb\xff\x00c\n"


def test_no_label_is_byte_exact_for_one_rank(hvrun):
    assert shell(hvrun, r"printf 'a\rb\nc'", "--no-label").stdout == b"a\rb\nc"


def test_timestamps_are_those_of_the_source(hvrun):
    result = shell(hvrun, "echo x", "--timestamp")
    label, stamp, text = result.stdout.split(b" ", 1)[0], *result.stdout.split(b" ", 1)[1].rsplit(b" ", 1)
    assert label == b"[0]" and text == b"x\n"
    assert any(c.isdigit() for c in stamp.decode())


def test_a_timestamp_is_of_when_the_rank_wrote_not_of_when_hvrun_heard_it(hvrun, tmp_path):
    """hvrun is stopped while the rank writes: only the agent can know when that was."""
    go, done = tmp_path / "go", tmp_path / "done"
    process = start(hvrun, "-np", "1", "--timestamp", "sh", "-c",
                    f"echo $$ > {tmp_path}/pid; until [ -e {go} ]; do sleep 0.01; done; date +%s.%N; : > {done}")
    wait_for((tmp_path / "pid").exists, 10, "the rank")
    stop(process.pid)
    go.touch()
    wait_for(done.exists, 10, "the rank has written")
    written = time.time()
    wait_for(lambda: time.time() > written + 2, 10, "two seconds")
    goes_on = time.time()
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=20)
    _, stamp, told = out.decode().split()
    # Times of the kernel's coarse clock may be a tick late, and a stamp has thousandths.
    assert float(told) - 0.02 < datetime.datetime.fromisoformat(stamp).timestamp() < goes_on


def test_an_output_directory_holds_raw_streams_beside_the_console(hvrun, tmp_path):
    result = shell(hvrun, r"printf 'o\rut'; printf 'err\n' >&2", "--output-dir", str(tmp_path / "logs"), ranks=2)
    assert sorted(result.stderr.splitlines()) == [b"[0] err", b"[1] err"]
    for rank in (0, 1):
        assert (tmp_path / "logs" / f"rank.{rank}" / "stdout").read_bytes() == b"o\rut"
        assert (tmp_path / "logs" / f"rank.{rank}" / "stderr").read_bytes() == b"err\n"


def test_everything_a_rank_wrote_before_it_died_arrives(hvrun):
    result = run(hvrun, "-np", "1", "/usr/bin/python3", "-c",
                 "import os,signal; os.write(1, b'x' * 60000 + b'\\nlast words'); os.kill(os.getpid(), signal.SIGKILL)")
    assert result.returncode == 137
    assert result.stdout == b"[0] " + b"x" * 60000 + b"\n[0] last words\n"


def test_many_lines_of_two_ranks_never_tear(hvrun, scaled):
    count = scaled(200000)
    result = shell(hvrun, f"seq 1 {count}", ranks=2, timeout=120)
    by_rank = lines_by_rank(result.stdout)
    for rank in (0, 1):
        assert by_rank[rank] == [b"%d" % i for i in range(1, count + 1)]


def test_stdin_is_empty_unless_asked_for(hvrun):
    assert run(hvrun, "-np", "2", "cat", stdin=b"data").stdout == b""
    result = run(hvrun, "-np", "2", "--stdin", "cat", stdin=b"data\nmore")
    assert result.stdout == b"[0] data\n[0] more\n"


def test_much_stdin_reaches_rank_0_whole(hvrun):
    data = os.urandom(8 << 20)
    result = run(hvrun, "-np", "1", "--stdin", "--no-label", "cat", stdin=data)
    assert result.stdout == data


def test_a_rank_that_does_not_read_its_stdin_hinders_nobody(hvrun):
    assert run(hvrun, "-np", "1", "--stdin", "true", stdin=b"x" * (4 << 20)).returncode == 0


def test_a_pty_makes_the_rank_see_a_terminal(hvrun):
    result = run(hvrun, "-np", "2", "--pty", "sh", "-c", "test -t 1 && test -t 2 && echo terminal; echo err >&2")
    assert result.returncode == 0
    assert {rank: [line.rstrip(b"\r") for line in lines] for rank, lines in lines_by_rank(result.stdout).items()} == \
        {rank: [b"terminal", b"err"] for rank in (0, 1)}
    assert result.stderr == b""


def test_a_program_that_closes_its_terminal_before_it_ends_ends_well(hvrun, scaled):
    for _ in range(scaled(40)):
        result = run(hvrun, "-np", "1", "--pty", "--no-label", "sh", "-c", "echo hi; exec >&- 2>&-; kill -0 $$")
        assert (result.returncode, result.stdout, result.stderr) == (0, b"hi\r\n", b"")
        result = run(hvrun, "-np", "1", "--pty", "--no-label", "date", "+%%")
        assert (result.returncode, result.stdout, result.stderr) == (0, b"%\r\n", b"")


@pytest.mark.parametrize("options", [[], ["--stdin"]])
def test_a_program_that_lives_on_without_its_terminal_is_not_hung_up(hvrun, tmp_path, options):
    """Its agent has heard of the streams' end before it hands the signal on."""
    process = start(hvrun, "-np", "1", "--pty", *options, "sh", "-c",
                    f"exec </dev/null >{tmp_path}/log 2>&1; trap 'echo fine; exit 0' USR1; : >{tmp_path}/ready; "
                    "while :; do sleep 1; done")
    wait_for(lambda: (tmp_path / "ready").exists() or process.poll() is not None, 20, "the rank")
    process.send_signal(signal.SIGUSR1)
    assert (*process.communicate(timeout=20), process.returncode) == (b"", b"", 0)
    assert (tmp_path / "log").read_text().endswith("fine\n")


def test_a_program_may_come_back_to_its_terminal(hvrun):
    result = shell(hvrun, "exec >/dev/null 2>&1; echo back >/dev/tty", "--pty", "--no-label", ranks=2)
    assert (result.returncode, result.stdout) == (0, b"back\r\n" * 2)


def memory_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_a_reader_that_stands_still_slows_the_ranks_and_loses_nothing(hvrun):
    """Two fast ranks: the job lives, memory stays bounded, nothing is lost once the reader reads."""
    count = 2_000_000
    process = start(hvrun, "-np", "2", "seq", "1", str(count))
    # The pipe fills up; then nothing moves: memory must not either.
    deadline, last = time.monotonic() + 20, -1
    while time.monotonic() < deadline:
        now = memory_of(process.pid)
        if now == last:
            break
        last = now
        select.select([], [], [], 0.5)
    assert memory_of(process.pid) < 100_000  # KiB
    assert process.poll() is None
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, b"")
    by_rank = lines_by_rank(out)
    assert len(by_rank[0]) == len(by_rank[1]) == count


def test_a_reader_that_leaves_ends_the_job(hvrun):
    process = start(hvrun, "-np", "2", "yes")
    assert process.stdout.readline() in (b"[0] y\n", b"[1] y\n")
    process.stdout.close()
    assert process.wait(timeout=10) == 128 + signal.SIGPIPE


@pytest.mark.parametrize("before", ["", "trap '' TERM; "])
@pytest.mark.parametrize("sink", ["file", "reader"])
def test_a_sink_that_blocks_slows_the_ranks_and_ctrl_c_still_ends_the_job(hvrun, tmp_path, sink, before):
    options = []
    if sink == "file":
        options = ["--output-dir", str(tmp_path)]
        (tmp_path / "rank.0").mkdir()
        os.mkfifo(tmp_path / "rank.0" / "stdout")
    process = start(hvrun, "-np", "2", *options, "sh", "-c",
                    f"{before}echo up; [ $RANK = 0 ] && exec yes; exec tail -f /dev/null")
    assert process.stdout.readline().endswith(b"up\n")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    process.communicate()


def test_a_full_disk_is_told_and_ends_the_job(hvrun, tmp_path):
    (tmp_path / "rank.0").mkdir()
    (tmp_path / "rank.0" / "stdout").symlink_to("/dev/full")
    result = run(hvrun, "-np", "1", "--output-dir", str(tmp_path), "yes")
    assert result.returncode != 0
    assert b"No space left" in result.stderr


def on_terminal(hvrun, *words):
    """What hvrun shows on a terminal."""
    leader, follower = pty.openpty()
    process = start(hvrun, *words, stdout=follower, stderr=follower, TERM="xterm")
    os.close(follower)
    shown = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    assert process.wait(timeout=30) == 0
    return shown


def test_a_terminal_skips_fast_updates_and_shows_the_last(hvrun):
    script = "import sys\nfor i in range(2000): sys.stdout.write('step %d\\r' % i); sys.stdout.flush()\nprint('done')"
    shown = on_terminal(hvrun, "-np", "1", "/usr/bin/python3", "-c", script)
    assert shown.count(b"step ") < 100
    assert b"done" in shown
    assert on_terminal(hvrun, "-np", "1", "--no-label", "printf", "x").rstrip(b"\r\n").endswith(b"x")


def test_colour_only_on_a_terminal(hvrun):
    assert b"\x1b[" not in shell(hvrun, "echo x", ranks=2).stdout
    assert b"\x1b[" in on_terminal(hvrun, "-np", "2", "echo", "x")


@pytest.mark.parametrize("stop", ["--timeout", "SIGTERM", "SIGTERM, no grace"])
def test_a_reader_that_comes_within_3_s_of_the_end_still_gets_everything(hvrun, tmp_path, stop):
    count = 1_500_000  # more than a rank may have on its way: the rest waits at its agent
    options = {"--timeout": ["--timeout", "5"], "SIGTERM": [], "SIGTERM, no grace": ["--grace", "0"]}[stop]
    process = start(hvrun, "-np", "1", *options, "--no-label", "sh", "-c",
                    f"yes | head -c {count}; : >{tmp_path}/done; exec tail -f /dev/null")
    wait_for((tmp_path / "done").exists, 20, "all that the rank writes")
    if stop != "--timeout":
        process.send_signal(signal.SIGTERM)
    select.select([], [], [], 2.5)  # the reader is busy elsewhere
    out, err = process.communicate(timeout=20)
    assert len(out) == count
    assert b"are lost" not in err


def test_output_that_nobody_reads_is_told_with_its_size(hvrun, tmp_path):
    process = start(hvrun, "-np", "1", "--no-label", "--summary", str(tmp_path / "end.json"), "sh", "-c",
                    f"yes | head -c 400000; : >{tmp_path}/done; exec tail -f /dev/null")
    wait_for((tmp_path / "done").exists, 20, "all that the rank writes")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    lost = json.loads((tmp_path / "end.json").read_text())["lost_output_bytes"]
    assert 0 < lost <= 400_000
    assert b"warning: %d bytes that rank 0 wrote are lost" % lost in process.stderr.read()


@pytest.mark.parametrize("options", [[], ["--output-dir"]])
def test_a_full_disk_is_no_success_although_the_ranks_ended_well(hvrun, tmp_path, options, scaled):
    for number in range(scaled(30)):
        if options:
            folder = tmp_path / str(number)
            (folder / "rank.0").mkdir(parents=True)
            (folder / "rank.0" / "stdout").symlink_to("/dev/full")
            result = run(hvrun, "-np", "2", "--output-dir", str(folder), "echo", "hi")
        else:
            with open("/dev/full", "wb") as full:
                process = start(hvrun, "-np", "2", "echo", "hi", stdout=full)
                _, err = process.communicate(timeout=30)
                result = subprocess.CompletedProcess([], process.returncode, b"", err)
        assert result.returncode == 3
        assert b"No space left" in result.stderr
