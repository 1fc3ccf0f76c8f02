"""What ranks write arrives: whole lines, labelled once, nothing lost, nobody blocked for ever.

SPDX-License-Identifier: Apache-2.0
"""
import datetime
import json
import os
import pty
import select
import signal
import stat
import subprocess
import termios
import time

import pytest

from harness.processes import stop
from harness.waiting import wait_for
from launching import lines_by_rank, run, start, two_hosts

PRINT = "/usr/bin/printf"


def shell(hvrun, script, *options, ranks=1, **more):
    return run(hvrun, "-np", str(ranks), *options, "sh", "-c", script, **more)


def test_both_streams_are_labelled_and_kept_apart(hvrun):
    result = shell(hvrun, "echo out; echo err >&2", ranks=2)
    assert sorted(result.stdout.splitlines()) == [b"[0] out", b"[1] out"]
    assert sorted(result.stderr.splitlines()) == [b"[0] err", b"[1] err"]


@pytest.mark.parametrize("size", [1024, 8192, 8195, 10240, 65536, 1 << 20, (5 << 20) // 2])
def test_a_line_of_any_length_has_one_label(hvrun, size):
    result = shell(hvrun, f"head -c {size} /dev/zero | tr '\\0' x; echo; echo end")
    assert result.stdout == b"[0] " + b"x" * size + b"\n[0] end\n"


def test_a_last_line_without_newline_is_whole(hvrun):
    assert shell(hvrun, "printf 'a\\nb'").stdout == b"[0] a\n[0] b\n"


def test_a_line_written_in_pieces_has_one_label(hvrun):
    script = "import os\nfor c in b'one line\\n': os.write(1, bytes([c]))"
    assert run(hvrun, "-np", "1", "/usr/bin/python3", "-c", script).stdout == b"[0] one line\n"


def test_bytes_that_are_no_utf8_are_kept_in_pipes(hvrun):
    assert shell(hvrun, r"printf 'ab\377\000c\r\n'").stdout == b"[0] ab\xff\x00c\r\n"


@pytest.mark.parametrize("options, label", [([], b"[0] "), (["--no-label"], b"")])
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("size", [6, 1024, 8192, 8195, 1 << 20])
def test_text_without_newline_is_seen_while_its_rank_goes_on(hvrun, tmp_path, options, label, ranks, size):
    go = tmp_path / "go"
    os.mkfifo(go)
    script = (f"import os\nif os.environ['HVRUN_RANK'] == '0':\n  os.write(1, b'x' * {size - 2} + b'? ')\n"
              f"  open('{go}').read()\n  os.write(1, b'yes\\n')")
    process = start(hvrun, *options, "-np", str(ranks), "/usr/bin/python3", "-c", script)
    begun = label + b"x" * (size - 2) + b"? "
    assert process.stdout.read(len(begun)) == begun
    go.write_text("")
    assert process.communicate(timeout=60)[0] == b"yes\n"
    assert process.returncode == 0


@pytest.mark.one_of("size", "stream")
@pytest.mark.parametrize("size", [1024, 8192, 8195, 1 << 20])
@pytest.mark.parametrize("stream", [1, 2])
def test_text_without_newline_passes_tee(hvrun, tmp_path, size, stream):
    go, log = tmp_path / "go", tmp_path / "log"
    os.mkfifo(go)
    script = (f"import os\nif os.environ['HVRUN_RANK'] == '1':\n  os.write({stream}, b'x' * {size - 2} + b'? ')\n"
              f"  open('{go}').read()\n  os.write({stream}, b'yes\\n')")
    process = start("/bin/sh", "-c", '"$@" 2>&1 | tee "$LOG"', "sh", hvrun, "-np", "2", "/usr/bin/python3", "-c", script, LOG=str(log))
    begun = b"[1] " + b"x" * (size - 2) + b"? "
    assert process.stdout.read(len(begun)) == begun
    wait_for(lambda: log.read_bytes() == begun, 30, "the same in tee's file")
    go.write_text("")
    assert process.communicate(timeout=60)[0] == b"yes\n"
    assert log.read_bytes() == begun + b"yes\n"


def test_another_rank_ends_the_line_that_one_has_begun(hvrun, tmp_path):
    """Both streams of both ranks lead to one file, as in a Slurm log: each line has one label, the rest of a line an ellipsis."""
    warn, rest, log = tmp_path / "warn", tmp_path / "rest", tmp_path / "log"
    os.mkfifo(warn)
    os.mkfifo(rest)
    script = f"""case $HVRUN_RANK in
0) printf 'epoch 1 '; read line < {rest}; echo done ;;
1) read line < {warn}; echo warning >&2 ;;
esac"""
    with open(log, "wb") as file:
        process = start(hvrun, "-np", "2", "sh", "-c", script, stdout=file, stderr=subprocess.STDOUT)
        wait_for(lambda: log.read_bytes() == b"[0] epoch 1 ", 30, "the beginning")
        warn.write_text("\n")
        wait_for(lambda: b"warning\n" in log.read_bytes(), 30, "the warning")
        rest.write_text("\n")
        assert process.wait(timeout=60) == 0
    assert log.read_text() == "[0] epoch 1 \n[1] warning\n[0] \u2026done\n"


def test_what_a_rank_wrote_is_there_although_hvrun_is_killed(hvrun, tmp_path):
    log = tmp_path / "log"
    with open(log, "wb") as file:
        process = start(hvrun, "-np", "1", "sh", "-c", "printf 'no newline'; exec sleep 1000", stdout=file)
        wait_for(lambda: log.read_bytes() == b"[0] no newline", 30, "the text")
        process.kill()
        process.wait()
    assert log.read_bytes() == b"[0] no newline"


def test_a_progress_bar_in_a_file_is_a_line_for_each_state_that_is_shown(hvrun, tmp_path):
    log, go = tmp_path / "log", tmp_path / "go"
    os.mkfifo(go)
    script = f"printf '\\r%s/50' $(seq 1 50); read line < {go}; printf '\\rdone\\n'"
    with open(log, "wb") as file:
        process = start(hvrun, "-np", "1", "sh", "-c", script, stdout=file)
        wait_for(lambda: log.read_bytes() == b"[0] 50/50", 30, "the newest state")
        go.write_text("\n")
        assert process.wait(timeout=60) == 0
    assert log.read_bytes() == b"[0] 50/50\n[0] done\n"


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


def test_stdin_goes_to_the_rank_that_is_named(hvrun):
    result = run(hvrun, "-np", "3", "--stdin=2", "cat", stdin=b"data\n")
    assert (result.returncode, result.stdout) == (0, b"[2] data\n")


@pytest.mark.parametrize("rank, word", [("2", b"--stdin=2 names a rank that this job does not have: its ranks are 0 to 1"),
                                        ("x", b"--stdin"), ("-1", b"--stdin")])
def test_stdin_for_a_rank_that_is_none_is_refused(hvrun, rank, word):
    for dry_run in ([], ["--dry-run=offline"]):
        result = run(hvrun, *dry_run, "-np", "2", f"--stdin={rank}", "cat", stdin=b"data\n")
        assert result.returncode == 2 and word in result.stderr


def test_a_label_names_the_host_on_request(hvrun, tmp_path):
    result = run(hvrun, *two_hosts(tmp_path), "--label", "host", "sh", "-c", "echo out; echo err >&2", HOME=str(tmp_path))
    assert sorted(result.stdout.splitlines()) == [b"[0 a] out", b"[1 b] out"], result.stdout
    assert {b"[0 a] err", b"[1 b] err"} <= set(result.stderr.splitlines()), result.stderr


@pytest.mark.parametrize("words, reason", [(["--label", "./train"], b"--label './train' is not understood"),
                                           (["--label", "rank", "--no-label"], b"leave one of them out")])
def test_a_label_that_means_nothing_is_refused(hvrun, words, reason):
    result = run(hvrun, "-np", "1", *words, "true")
    assert result.returncode == 2 and reason in result.stderr, result.stderr


def test_ranks_that_are_not_shown_are_read_and_kept_all_the_same(hvrun, tmp_path):
    """Each rank writes more than may be on its way: one that got no credit would hang."""
    script = f"""head -c 3000000 /dev/zero | tr '\\0' x; echo; echo $RANK; : > {tmp_path}/done.$RANK
[ $RANK = 2 ] || exit 0
until [ $(ls -d {tmp_path}/done.* | wc -l) = 4 ]; do sleep 0.01; done
echo why >&2; exit 7"""
    result = shell(hvrun, script, "--ranks", "3,0-1", "--output-dir", str(tmp_path / "out"), ranks=4)
    assert result.returncode == 7
    assert {rank: lines[-1] for rank, lines in lines_by_rank(result.stdout).items()} == {rank: b"%d" % rank for rank in (0, 1, 3)}
    assert b"[2]" not in result.stderr and b"\n    why\n" in result.stderr, result.stderr
    assert {(tmp_path / f"out/rank.{rank}/stdout").stat().st_size for rank in range(4)} == {3000003}


@pytest.mark.parametrize("ranks, word", [("0,2", b"--ranks 0,2 names a rank that this job does not have: its ranks are 0 to 1"),
                                         ("1-0", b"--ranks: the range 1-0 ends before it begins"), ("0-", b"--ranks"), ("x", b"--ranks")])
def test_ranks_to_show_that_are_none_are_refused(hvrun, ranks, word):
    result = run(hvrun, "--dry-run=offline", "-np", "2", "--ranks", ranks, "true")
    assert result.returncode == 2 and word in result.stderr, result.stderr


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


SIZES = """
import os, signal
def tell(*_):
    print(os.get_terminal_size(), flush=True)
signal.signal(signal.SIGWINCH, tell)
tell()
while True:
    signal.pause()
"""


def test_a_terminals_size_reaches_the_ranks(hvrun):
    """Less the label, so that a bar as wide as the terminal stays on its line; again when it changes, or did while hvrun was stopped."""
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (40, 100))
    process = start(hvrun, "-np", "2", "--pty", "/usr/bin/python3", "-c", SIZES, stderr=follower)
    lines = [process.stdout.readline().split(b"] ")[1].strip() for _ in range(2)]
    assert lines == [b"os.terminal_size(columns=96, lines=40)"] * 2
    termios.tcsetwinsize(follower, (30, 70))
    process.send_signal(signal.SIGWINCH)
    lines = [process.stdout.readline().split(b"] ")[1].strip() for _ in range(2)]
    assert lines == [b"os.terminal_size(columns=66, lines=30)"] * 2
    stop(process.pid)
    termios.tcsetwinsize(follower, (20, 50))
    process.send_signal(signal.SIGCONT)
    lines = [process.stdout.readline().split(b"] ")[1].strip() for _ in range(2)]
    assert lines == [b"os.terminal_size(columns=46, lines=20)"] * 2
    process.terminate()
    process.communicate(timeout=30)
    os.close(leader)
    os.close(follower)


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


def make_full_device(path):
    """What /dev/full is, in a rank's own directory: hvrun follows no link there."""
    path.parent.mkdir(parents=True)
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.stat("/dev/full").st_rdev)
    except PermissionError:
        pytest.skip("only root makes devices")


def test_a_full_disk_is_told_and_ends_the_job(hvrun, tmp_path):
    make_full_device(tmp_path / "rank.0" / "stdout")
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


def test_on_a_terminal_the_line_after_an_answered_prompt_has_its_label(hvrun):
    leader, follower = pty.openpty()
    process = start(hvrun, "-np", "2", "--stdin=1", "sh", "-c", "[ $RANK = 0 ] || { printf 'name? '; read name; echo hello $name; }",
                    stdin=follower, stdout=follower, stderr=follower, TERM="dumb")
    os.close(follower)
    shown = bytearray()

    def has(text):
        if select.select([leader], [], [], 0.05)[0]:
            shown.extend(os.read(leader, 65536))
        return text in shown

    wait_for(lambda: has(b"[1] name? "), 30, lambda: bytes(shown))
    os.write(leader, b"Bob\n")
    wait_for(lambda: has(b"hello Bob\r\n"), 30, lambda: bytes(shown))
    assert process.wait(timeout=30) == 0
    assert bytes(shown) == b"[1] name? Bob\r\n[1] hello Bob\r\n"
    os.close(leader)


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


@pytest.mark.parametrize("options, text", [(["--no-label"], "yes"), ([], "yes"), ([], "yes | tr -d '\\n'")])
def test_output_that_nobody_reads_is_told_with_its_size(hvrun, tmp_path, options, text):
    process = start(hvrun, "-np", "1", *options, "--summary", str(tmp_path / "end.json"), "sh", "-c",
                    f"{text} | head -c 1500000; : >{tmp_path}/done; exec tail -f /dev/null")
    wait_for((tmp_path / "done").exists, 20, "all that the rank writes")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    lost = json.loads((tmp_path / "end.json").read_text())["lost_output_bytes"]
    assert 1_300_000 < lost <= 1_500_000  # all but what a pipe holds, also what the rank had no credit for until nobody was to read it
    assert b"warning: %d bytes that rank 0 wrote are lost" % lost in process.stderr.read()


@pytest.mark.parametrize("options", [[], ["--output-dir"]])
def test_a_full_disk_is_no_success_although_the_ranks_ended_well(hvrun, tmp_path, options, scaled):
    for number in range(scaled(30)):
        if options:
            folder = tmp_path / str(number)
            make_full_device(folder / "rank.0" / "stdout")
            result = run(hvrun, "-np", "2", "--output-dir", str(folder), "echo", "hi")
        else:
            with open("/dev/full", "wb") as full:
                process = start(hvrun, "-np", "2", "echo", "hi", stdout=full)
                _, err = process.communicate(timeout=30)
                result = subprocess.CompletedProcess([], process.returncode, b"", err)
        assert result.returncode == 3
        assert b"No space left" in result.stderr
