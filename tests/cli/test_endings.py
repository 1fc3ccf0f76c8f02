"""How jobs end on this machine: exit codes, causes, signals, nothing left behind.

SPDX-License-Identifier: Apache-2.0
"""
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import termios
import time

import pytest

from harness import programs
from harness.processes import look_at, stop
from harness.syscalls import mount, unmount
from harness.training import SAVES_SLOWLY, TRAINER
from harness.waiting import wait_for
from launching import run, start


LOST_PEER = str(programs.hvrun_folder() / "c_lost_peer")


def alive(pid):
    process = look_at(pid)
    return process is not None and process.state != "Z"


def pid_of_rank(process, rank):
    """Of a running hvrun on this machine."""
    below = {process.pid}
    while True:
        more = below | {child for pid in below for child in children(pid)}
        if more == below:
            break
        below = more
    (pid,) = [pid for pid in below if f"HVRUN_RANK={rank}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")]
    return pid


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def pids_in(path, count):
    """The pids that payloads wrote, one a line, once there are that many."""
    wait_for(lambda: path.exists() and len(path.read_text().split()) >= count, 20, f"{count} pids in {path}")
    return [int(word) for word in path.read_text().split()]


STAY = "echo $$ >> {pids}; exec tail -f /dev/null"
ESCAPE = ("import os,signal,sys\n"
          "for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)\n"
          "if os.fork() == 0:\n"
          "    os.setsid()\n"
          "    if os.fork(): os._exit(0)\n"
          "open(sys.argv[1], 'a').write('%d\\n' % os.getpid())\n"
          "signal.pause() if os.getpid() else None\n"
          "while True: signal.pause()\n")


@pytest.mark.parametrize("code", [1, 2, 77, 255])
def test_the_exit_code_is_the_failing_ranks(hvrun, code):
    result = run(hvrun, "-np", "2", "sh", "-c", f'[ "$RANK" = 1 ] && exit {code}; exec tail -f /dev/null')
    assert result.returncode == code
    assert b"rank 1 on host localhost ended with exit code %d" % code in result.stderr


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_a_rank_that_dies_of_a_signal_that_the_user_sent_is_a_failure(hvrun, number):
    process = start(hvrun, "-np", "2", "sh", "-c", "echo up; exec tail -f /dev/null")
    for _ in range(2):
        assert process.stdout.readline().endswith(b"up\n")
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert number.name.encode() in err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("program", ["exec tail -f /dev/null", "trap 'exit 0' TERM; while :; do sleep 0.02; done"])
def test_a_guard_that_was_told_to_end_is_a_lost_host_however_its_ranks_end(hvrun, tmp_path, number, program):
    process = start(hvrun, "--summary", str(tmp_path / "s"), "-np", "2", "sh", "-c", "echo up; " + program)
    for _ in range(2):
        assert process.stdout.readline().endswith(b"up\n")
    (guard,) = children(process.pid)
    os.kill(guard, number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 5, err.decode()
    assert b"error: the job was ended on host localhost with ranks 0-1: its agent" in err
    assert b"still runs" not in err and b"was lost" not in err, err.decode()
    summary = json.loads((tmp_path / "s").read_text())
    assert (summary["state"], summary["cause"]["left_behind"], summary["unswept"]) == ("host_lost", "nothing", [])


def test_a_rank_that_leaves_early_and_well_is_told_beside_those_that_fail_after_it(hvrun, tmp_path):
    result = run(hvrun, "--summary", str(tmp_path / "s"), "-np", "3", LOST_PEER, "leave")
    words = result.stderr.decode()
    assert result.returncode == 1, words
    assert re.search("error: rank [02] on host localhost ended with exit code 1", words), words
    assert "before that rank 1 on host localhost had ended with exit code 0 without hvrun_shutdown: if others still needed it" in words
    assert "  try: let every rank take as many steps, or join where one has fewer (hvd.join(), hvrun_join)\n" in words
    assert b"rank 1 ended with exit code 0 without hvrun_shutdown, on this host" in result.stdout
    assert json.loads((tmp_path / "s").read_text())["cause"]["rank"] in (0, 2)


def test_a_rank_that_left_is_not_blamed_for_what_another_does_alone(hvrun):
    result = run(hvrun, "-np", "2", "sh", "-c", '[ "$RANK" = 1 ] && exit 0; exit 3')
    assert result.returncode == 3
    assert b"error: rank 0 on host localhost ended with exit code 3" in result.stderr
    assert b"rank 1" not in result.stderr


def test_ranks_that_fail_alike_on_their_own_are_no_consequence_of_the_first(hvrun):
    result = run(hvrun, "-np", "3", "false")
    words = result.stderr.decode()
    assert result.returncode == 1 and "consequence" not in words, words
    assert words.count("ended with exit code 1") == 1, words


def test_a_rank_that_stands_still_is_the_cause(hvrun, tmp_path):
    process = start(hvrun, "--summary", str(tmp_path / "s"), "--grace", "0.1", "-np", "3", LOST_PEER, "fail", HVRUN_PEER_TIMEOUT="1")
    ready = set()
    while len(ready) < 3:
        line = process.stdout.readline()
        assert line, process.communicate(timeout=20)
        ready.add(line[:3])
    stop(pid_of_rank(process, 1))
    _, err = process.communicate(timeout=20)
    words = err.decode()
    assert process.returncode == 1, words
    assert re.search("error: rank 1 on host localhost was lost to the others after .* s: it gave no sign of life for 1 s", words), words
    assert "; hvrun found it stopped (SIGSTOP, or a debugger)\n" in words
    # Whoever is late on a busy machine is ended with the rest.
    assert re.search("consequence also ended: (ranks 0,2|rank [02]) with exit code 1", words), words
    assert json.loads((tmp_path / "s").read_text())["cause"]["rank"] == 1


def slow_rsh(tmp_path):
    """An rsh for hosts of this machine, on which 'slow' takes long to log in."""
    script = tmp_path / "rsh"
    script.write_text('#!/bin/sh\nhost=$1; shift\n[ "$host" = slow ] && while [ ! -e "%s/go" ]; do sleep 0.05; done\n'
                      'exec sh -c "$*"\n' % tmp_path)  # sleep-ok: a stand-in for a slow network
    script.chmod(0o755)
    return str(script)


def test_signals_that_come_while_a_host_still_logs_in_do_no_harm(hvrun, tmp_path):
    hosts = ["--oversubscribe", "--rsh", slow_rsh(tmp_path), "-H", "fast:1,slow:1"]
    process = start(hvrun, *hosts, "--verbose", "sh", "-c", "echo ran", HOME=str(tmp_path))
    wait_for(lambda: any(path.is_file() for path in (tmp_path / ".cache").glob("**/*")), 20, "the fast host's agent")
    for number in (signal.SIGUSR1, signal.SIGTSTP):
        process.send_signal(number)
        if number == signal.SIGTSTP:
            wait_for(lambda: look_at(process.pid).state == "T", 10, "the stop")
            process.send_signal(signal.SIGCONT)
    (tmp_path / "go").touch()
    out, err = process.communicate(timeout=40)
    assert (process.returncode, sorted(out.splitlines())) == (0, [b"[0] ran", b"[1] ran"]), err


def test_a_signal_gives_128_plus_its_number_and_the_last_lines(hvrun):
    result = run(hvrun, "-np", "2", "sh", "-c", 'echo "words of $RANK" >&2; [ "$RANK" = 0 ] && kill -SEGV $$; exec tail -f /dev/null')
    assert result.returncode == 139
    assert b"SIGSEGV" in result.stderr
    is_above = b"[0] words of 0\nhvrun: error: " in result.stderr and b"its last lines: see above\n" in result.stderr
    assert is_above or b"    words of 0" in result.stderr, result.stderr


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("name", ["/dev/{stream}", "{log}"])
def test_a_summary_never_replaces_what_standard_output_or_error_is_written_to(hvrun, tmp_path, stream, name):
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.write(b"older words\n")
        file.flush()
        process = start(hvrun, "--summary", name.format(stream=stream, log=log), "-np", "1", "true", **{stream: file})
        out, err = process.communicate(timeout=20)
    words = log.read_bytes() + (err or b"")
    assert process.returncode == 2, words
    assert log.read_bytes().startswith(b"older words\n")
    assert b"is the file that standard " + (b"output" if stream == "stdout" else b"error") + b" is written to" in words


def test_a_summary_may_go_to_a_device_that_standard_output_is(hvrun):
    with open("/dev/null", "wb") as null:
        process = start(hvrun, "--summary", "/dev/null", "-np", "1", "true", stdout=null)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, b"")


def test_the_summary_file_tells_the_end(hvrun, tmp_path):
    path = tmp_path / "end.json"
    run(hvrun, "-np", "2", "--summary", str(path), "sh", "-c", 'exit "$RANK"')
    end = json.loads(path.read_text())
    assert end["exit_code"] == 1 and end["cause"]["rank"] == 1
    assert [rank["exit_code"] for rank in end["ranks"]] == [0, 1]


def test_a_rank_that_ignores_sigterm_is_killed_after_the_grace(hvrun, tmp_path):
    pids = tmp_path / "pids"
    os.mkfifo(tmp_path / "trapped")
    result = run(hvrun, "-np", "2", "--grace", "0.5", "sh", "-c",
                 f'echo $$ >> {pids}; [ "$RANK" = 1 ] && read line < {tmp_path}/trapped && exit 3\n'
                 f'trap "" TERM; echo > {tmp_path}/trapped; while :; do sleep 1; done')
    assert result.returncode == 3
    assert not [pid for pid in pids_in(pids, 2) if alive(pid)]
    assert result.stderr.endswith(b"hvrun: SIGKILL ended rank 0 (host localhost) after --grace 0.5 s; it ignored SIGTERM\n"), result.stderr


def test_ranks_that_handle_sigterm_in_vain_are_named_once_they_have_ended(hvrun, tmp_path):
    pids = tmp_path / "pids"
    process = start(hvrun, "-np", "2", "--grace", "0.5", "sh", "-c", f'trap : TERM; echo $$ >> {pids}; while :; do sleep 0.05; done')
    pids_in(pids, 2)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert err == (b"hvrun: ended by SIGTERM (Terminated)\n"
                   b"hvrun: SIGKILL ended ranks 0-1 (host localhost) after --grace 0.5 s; they caught SIGTERM\n")


def test_that_a_signal_has_ended_the_job_is_told_once_it_has(hvrun, tmp_path):
    save = f'trap "echo saving >&2; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo saved >&2; exit 0" TERM'
    with open(tmp_path / "err", "wb") as err:
        process = start(hvrun, "-np", "1", "--grace", "60", "sh", "-c", f"{save}; echo ready >&2; while :; do sleep 0.05; done", stderr=err)
    said = (tmp_path / "err").read_text
    wait_for(lambda: "ready" in said(), 30, "the rank")
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: "saving" in said(), 30, "the handler")
    (tmp_path / "go").touch()
    assert process.wait(30) == 143
    notice = "hvrun: SIGTERM (Terminated): the ranks have --grace 60 s to end, and a second signal ends them at once\n"
    assert said().replace(notice, "") == "[0] ready\n[0] saving\n[0] saved\nhvrun: ended by SIGTERM (Terminated)\n", said()
    assert notice in said()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_hvrun_ends_the_job(hvrun, tmp_path, number):
    pids = tmp_path / "pids"
    process = start(hvrun, "-np", "2", "sh", "-c", STAY.format(pids=pids))
    ranks = pids_in(pids, 2)
    process.send_signal(number)
    process.communicate(timeout=10)
    assert process.returncode == 128 + number
    assert not [pid for pid in ranks if alive(pid)]


def test_a_second_signal_ends_it_at_once(hvrun, tmp_path):
    pids = tmp_path / "pids"
    process = start(hvrun, "-np", "1", "--grace", "30", "sh", "-c", f'trap "" TERM; echo $$ >> {pids}; while :; do sleep 1; done')
    rank, = pids_in(pids, 1)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)  # another one, since two equal ones that wait are one
    process.communicate(timeout=10)
    assert process.returncode in (130, 143)
    assert not alive(rank)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
def test_time_in_which_hvrun_was_stopped_is_no_delay_of_a_host(hvrun, tmp_path, number):
    """It was stopped for longer than --start-timeout, while it waited for a host."""
    (tmp_path / "rsh").write_text(f'#!/bin/sh\nshift\necho >{tmp_path}/asked\nread go <{tmp_path}/go\nexec sh -c "$*"\n')
    (tmp_path / "rsh").chmod(0o755)
    for name in ("asked", "go"):
        os.mkfifo(tmp_path / name)
    process = start(hvrun, "--start-timeout", "6", "--rsh", str(tmp_path / "rsh"), "-H", "a:1", "echo", "done", HOME=str(tmp_path))
    (tmp_path / "asked").read_text()
    process.send_signal(number)
    wait_for(lambda: look_at(process.pid).state == "T", 10, "hvrun's stop")
    time.sleep(8)  # sleep-ok: the stop
    process.send_signal(signal.SIGCONT)
    (tmp_path / "go").write_text("go\n")
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, b"[0] done\n"), err


def test_signals_that_were_ignored_at_the_start_stay_ignored(hvrun, tmp_path):
    """As in the background of a shell script, or by nohup. SIGTERM ends the job all the same."""
    pids = tmp_path / "pids"
    process = start("sh", "-c", 'trap "" INT QUIT HUP TERM; exec "$@"', "sh", hvrun, "-np", "1", "sh", "-c", STAY.format(pids=pids))
    rank, = pids_in(pids, 1)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        process.send_signal(number)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 143, err
    assert err == b"hvrun: ended by SIGTERM (Terminated)\n"
    assert not alive(rank)


def test_user_signals_go_to_the_ranks_only(hvrun, tmp_path):
    pids = tmp_path / "pids"
    process = start(hvrun, "-np", "2", "sh", "-c", f'trap "exit 5" USR1; echo $$ >> {pids}; while :; do sleep 0.05; done')
    pids_in(pids, 2)
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=10)
    assert process.returncode == 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("wrapper", [[], ["bash", "-c", '"$@"; echo code $?', "bash"]], ids=["alone", "wrapped"])
def test_a_trainer_with_workers_saves_its_state_on_a_signal(hvrun, tmp_path, number, method, wrapper):
    """Its workers inherit the handler or have none; a wrapper has none either: both would end the training before it has saved."""
    (tmp_path / "trainer.py").write_text(TRAINER)
    process = start(hvrun, "--grace", "60", "-np", "2", *wrapper, "/usr/bin/python3", tmp_path / "trainer.py", method, number.name)
    out = [process.stdout.readline() for _ in range(2)]
    assert sorted(out) == [b"[0] ready\n", b"[1] ready\n"], out
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    code = [b"[0] code 75", b"[1] code 75"] if wrapper else []
    assert sorted(out.splitlines()) == sorted([b"[0] saved", b"[1] saved", *code]), err
    assert process.returncode == (128 + number if number == signal.SIGTERM else 0 if wrapper else 75), err


def test_ranks_have_all_of_the_grace_when_an_agent_is_told_to_end(hvrun, tmp_path):
    """As by a scheduler that takes the hosts back: on that host and on all others."""
    (tmp_path / "rsh").write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    (tmp_path / "rsh").chmod(0o755)
    process = start(hvrun, "--oversubscribe", "--grace", "60", "--rsh", str(tmp_path / "rsh"), "-H", "a:1,b:1",
                    "/usr/bin/python3", "-c", SAVES_SLOWLY, "3", HOME=str(tmp_path))
    agents = [int(process.stdout.readline().split()[-1]) for _ in range(2)]
    assert len(set(agents)) == 2
    os.kill(agents[0], signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert sorted(out.splitlines()) == [b"[0] saved", b"[1] saved"], err
    assert process.returncode == 5, err
    assert re.search(rb"error: the job was ended on host [ab] with rank [01]: its agent was ended by SIGTERM \(Terminated\)\n", err), err
    assert b"lost" not in err and b"still runs" not in err, err


DAEMON_AND_RANK = """setsid sh -c 'echo daemon $$; exec tail -f /dev/null' &
echo agent $PPID
exec tail -f /dev/null"""


def test_a_host_that_nothing_could_sweep_is_named_with_how_to_find_what_is_left(hvrun, tmp_path):
    """Agent and guard are gone at once, and the host lets nobody in any more. The advice is followed."""
    closed = f"[ ! -e {tmp_path}/closed ] || {{ echo it is closed >&2; exit 1; }}"
    (tmp_path / "rsh").write_text(f'#!/bin/sh\nshift\n{closed}\nexec sh -c "$*"\n')
    (tmp_path / "rsh").chmod(0o755)
    process = start(hvrun, "--no-label", "--rsh", str(tmp_path / "rsh"), "-H", "a:1", "sh", "-c", DAEMON_AND_RANK, HOME=str(tmp_path))
    pids = dict(process.stdout.readline().split() for _ in range(2))
    agent, daemon = int(pids[b"agent"]), int(pids[b"daemon"])
    guard = look_at(agent).parent
    (tmp_path / "closed").touch()
    for pid in (guard, agent):
        stop(pid)
    for pid in (guard, agent):
        os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 5 and alive(daemon), err
    assert b"hvrun: processes of this job may still run on host a: no second agent has ended them: " in err, err
    assert b"it is closed" in err and b"by itself" not in err, err
    command = re.search(rb"  try: once that host can be reached, list them there: (grep .*)\n", err)[1]
    listed = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, timeout=30)
    os.kill(daemon, signal.SIGKILL)
    assert listed.stdout == b"/proc/%d/environ\n" % daemon


# It serves one request: after an earlier SIGTERM the rank would wait for the answer in vain.
SERVER = """
import os, signal
{daemon}
served = []
signal.signal(signal.SIGTERM, lambda *_: (open("ended", "w").write(str(served)), os._exit(0)))
open("up", "w").write("up\\n")
served.append(open("request").read())
open("answer", "w").write("saved\\n")
while True: signal.pause()
"""
DAEMONS = {
    "child": "",
    "orphan": "os.fork() and os._exit(0)",
    "session": "os.fork() and os._exit(0)\nos.setsid()\nos.fork() and os._exit(0)",
    "nameless": ("if not os.environ.pop('NAMELESS', 0):\n    os.fork() and os._exit(0)\n    os.setsid()\n"
                 "    os.execve('/usr/bin/python3', ['python3', 'server.py'], {'NAMELESS': '1'})"),
}


@pytest.mark.parametrize("daemon", DAEMONS)
def test_what_a_rank_leaves_behind_gets_sigterm_once_the_rank_has_ended(hvrun, tmp_path, daemon):
    """A server that the rank has started is there as long as the rank saves its state with it."""
    for name in ("up", "request", "answer", "go"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "server.py").write_text(SERVER.format(daemon=DAEMONS[daemon]))
    script = """/usr/bin/python3 server.py & read line < up
trap 'read line < go; echo store > request; read line < answer; echo $line; exit 0' TERM
echo ready
while :; do sleep 0.05; done"""
    process = start(hvrun, "--grace", "60", "-np", "1", "bash", "-c", script, cwd=tmp_path)
    assert process.stdout.readline() == b"[0] ready\n"
    process.terminate()
    (tmp_path / "go").write_text("go\n")
    out, err = process.communicate(timeout=60)
    assert out == b"[0] saved\n", err
    assert (tmp_path / "ended").read_text() == "['store\\n']"


def test_a_program_after_the_first_one_gets_sigterm_too(hvrun, tmp_path):
    """In a wrapper, that runs the next program whenever one has ended."""
    (tmp_path / "save.py").write_text("import os, signal\n"
                                      "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), os._exit(1)))\n"
                                      "print('ready', flush=True)\nwhile True: signal.pause()\n")
    process = start(hvrun, "--grace", "600", "-np", "1", "bash", "-c", f"until python3 {tmp_path}/save.py; do :; done")
    assert process.stdout.readline() == b"[0] ready\n"
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143 and err.endswith(b"hvrun: ended by SIGTERM (Terminated)\n"), err
    assert out.startswith(b"[0] saved\n"), out


def test_ctrl_z_stops_the_ranks_and_fg_continues_them(hvrun, tmp_path):
    pids = tmp_path / "pids"
    os.mkfifo(tmp_path / "go")
    process = start(hvrun, "-np", "2", "--lost-after", "1", "sh", "-c", f"echo $$ >> {pids}; read line < {tmp_path}/go; exit 0")
    ranks = pids_in(pids, 2)
    process.send_signal(signal.SIGTSTP)
    wait_for(lambda: all(look_at(pid).state == "T" for pid in [process.pid, *ranks]), 5, "all stopped")
    # Longer than --lost-after: the agent was told to wait.
    time.sleep(2.5)  # sleep-ok: the silence itself is under test
    assert all(look_at(pid).state == "T" for pid in ranks)
    process.send_signal(signal.SIGCONT)
    wait_for(lambda: all(look_at(pid).state != "T" for pid in ranks), 5, "all continued")
    # Opened both ways, so that this never waits for a reader: a rank that has read its line is gone.
    go = os.open(tmp_path / "go", os.O_RDWR)
    os.write(go, b"\n" * len(ranks))
    process.communicate(timeout=20)
    os.close(go)
    assert process.returncode == 0


@pytest.fixture
def terminal():
    """terminal(): for start(), by which that has a terminal of its own; and what types there."""
    typing, follower = os.openpty()
    yield {"stdin": follower, "enter": lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)}, typing
    os.close(typing)
    os.close(follower)


UNTIL_IT_CONTINUES = ["-np", "1", "--no-label", "sh", "-c", 'trap "echo continued; exit 0" CONT; echo up; while :; do sleep 0.05; done']


def test_ctrl_z_at_a_terminal_that_no_shell_reads_stops_nothing_for_long(hvrun, terminal):
    """As of 'ssh -t host hvrun ...': nobody could let it go on."""
    its, typing = terminal
    process = start(hvrun, *UNTIL_IT_CONTINUES, **its)
    assert process.stdout.readline() == b"up\n"
    os.write(typing, b"\x1a")
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, b"continued\n"), err


SHELL = """
import os, signal, sys
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
_, status = os.waitpid(pid, os.WUNTRACED)
print("stopped by", os.WIFSTOPPED(status) and os.WSTOPSIG(status), flush=True)
os.kill(-pid, signal.SIGCONT)
_, status = os.waitpid(pid, 0)
print("ended with", os.waitstatus_to_exitcode(status))
"""


def test_ctrl_z_in_a_shell_stops_and_fg_continues(hvrun, terminal):
    its, typing = terminal
    process = start("/usr/bin/python3", "-c", SHELL, hvrun, *UNTIL_IT_CONTINUES, **its)
    assert process.stdout.readline() == b"up\n"
    os.write(typing, b"\x1a")
    out, err = process.communicate(timeout=20)
    assert out == b"stopped by %d\ncontinued\nended with 0\n" % signal.SIGTSTP, err


SHELL_THAT_IS_RESIZED = SHELL.replace("os.kill(-pid, signal.SIGCONT)", """
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.tcsetpgrp(0, os.getpid())
import termios
termios.tcsetwinsize(0, (30, 70))
os.tcsetpgrp(0, pid)
os.kill(-pid, signal.SIGCONT)""")
SIZE_AT_EACH_CHANGE = """
import os, signal
def show(*_):
    print(*os.get_terminal_size(), flush=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
show()
signal.sigwait([signal.SIGWINCH])
show()
"""


def test_ranks_get_the_size_that_the_terminal_got_while_hvrun_was_stopped(hvrun, terminal):
    """The kernel sends SIGWINCH to the foreground: to the shell."""
    its, typing = terminal
    termios.tcsetwinsize(its["stdin"], (40, 100))
    process = start("/usr/bin/python3", "-c", SHELL_THAT_IS_RESIZED, hvrun, "-np", "1", "--no-label", "--pty", "/usr/bin/python3",
                    "-c", SIZE_AT_EACH_CHANGE, **its)
    assert process.stdout.readline().strip() == b"100 40"
    os.write(typing, b"\x1a")
    out, err = process.communicate(timeout=30)
    assert [line.strip() for line in out.splitlines()] == [b"stopped by %d" % signal.SIGTSTP, b"70 30", b"ended with 0"], err


@pytest.fixture
def freezer_of_version_1(tmp_path):
    """The root of cgroup v1's freezer: what that freezes is in state D and heeds no signal, unlike what version 2 freezes.

    Where the system has version 2 alone it can still be mounted, for it is no controller there; it leaves no mount behind,
    however the test ends."""
    place = pathlib.Path("/sys/fs/cgroup/freezer")
    if place.is_dir():
        yield place
        return
    place = tmp_path / "freezer"
    place.mkdir()
    try:
        mount("cgroup", place, "cgroup", options="freezer")
    except OSError as error:
        pytest.skip(f"no cgroup v1 freezer: {error}")
    try:
        root = os.open(place, os.O_PATH | os.O_DIRECTORY)
    finally:
        unmount(place)  # from the tree of files; what is open lives on
    try:
        yield pathlib.Path(f"/proc/self/fd/{root}")
    finally:
        os.close(root)


@pytest.fixture
def freezer(freezer_of_version_1):
    """A group whose processes can be frozen; all thawed at the end, so that what was killed dies."""
    group = freezer_of_version_1 / f"hvrun-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup v1 freezer: {error}")
    try:
        yield group
    finally:
        (group / "freezer.state").write_text("THAWED")
        wait_for(lambda: not (group / "tasks").read_text(), 10, "the end of what was frozen")
        group.rmdir()


@pytest.mark.parametrize("why, code", [("another rank fails", 7), ("hvrun is told to end", 128 + signal.SIGTERM)])
def test_a_rank_in_state_d_is_named_and_not_waited_for(hvrun, tmp_path, freezer, why, code):
    process = start(hvrun, "-np", "2", "--grace", "1", "sh", "-c",
                    f"echo $$ >> {tmp_path}/pids; until [ -e {tmp_path}/go-$HVRUN_RANK ]; do sleep 0.01; done; exit 7")
    stuck = next(pid for pid in pids_in(tmp_path / "pids", 2) if look_at(pid).environment["HVRUN_RANK"] == "1")
    (freezer / "tasks").write_text(str(stuck))
    (freezer / "freezer.state").write_text("FROZEN")
    wait_for(lambda: look_at(stuck).state == "D", 5, "state D")
    if why == "another rank fails":
        (tmp_path / "go-0").touch()
    else:
        process.terminate()
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert look_at(stuck).state == "D"
    assert (f"warning: on host localhost pid {stuck} (sh) is stuck in the kernel (state D) and was not waited for"
            in err.decode())


def test_timeout_ends_the_job_with_code_4(hvrun):
    result = run(hvrun, "-np", "2", "--timeout", "0.5", "tail", "-f", "/dev/null")
    assert result.returncode == 4
    assert (b"the job ran longer than --timeout 0.5 s; still running: ranks 0-1 on host localhost\n"
            b"  try: a longer --timeout") in result.stderr


@pytest.mark.parametrize("how", ["normal end", "rank fails", "SIGINT", "SIGKILL of hvrun"])
def test_nothing_is_left_behind(hvrun, tmp_path, how):
    """Also not what has its own session, was forked twice and ignores every polite signal."""
    pids = tmp_path / "pids"
    tail = {"normal end": "exit 0", "rank fails": "exit 9"}.get(how, "exec tail -f /dev/null")
    wait_for_pids = f'while [ "$(wc -l < {pids} 2>/dev/null || echo 0)" -lt 3 ]; do sleep 0.05; done'
    process = start(hvrun, "-np", "1", "sh", "-c",
                    f"/usr/bin/python3 -c \"{ESCAPE}\" {pids} & echo $$ >> {pids}; {wait_for_pids}; {tail}")
    processes = pids_in(pids, 3)
    if how == "SIGINT":
        process.send_signal(signal.SIGINT)
    elif how == "SIGKILL of hvrun":
        process.kill()
    process.communicate(timeout=15)
    wait_for(lambda: not any(map(alive, processes)), 5, "the end of every process")
