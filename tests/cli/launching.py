"""Runs hvrun on this machine for the tests in this folder.

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal
import subprocess

from harness import started

DEADLINE = 60  # seconds; a run that takes longer hangs


def clean_environment(**more):
    """What a plain login has: nothing of Python, no shell quirks."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/root"), "LANG": "C.UTF-8"}
    environment.update(more)
    return environment


def run(hvrun, *words, stdin=b"", cwd=None, timeout=DEADLINE, enter=None, **environment):
    """hvrun's result with bytes in stdout and stderr; the whole process group is ended at the deadline."""
    process = start(hvrun, *words, stdin=subprocess.PIPE, cwd=cwd, enter=enter, **environment)
    try:
        out, err = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"hvrun {words} still runs after {timeout} s\n{out!r}\n{err!r}") from None
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def start(hvrun, *words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=None, enter=None, pass_fds=(),
          **environment):
    """Ends with the test at the latest; where the test fails before it has read what hvrun wrote, that is told.

    enter: called in the child before it is hvrun.
    """
    process = subprocess.Popen(
        [hvrun, *words], stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd,
        env=clean_environment(**environment), start_new_session=True, preexec_fn=enter, pass_fds=pass_fds)
    started.remember(started.OverPipes(process))
    return process


def two_hosts(tmp_path, slots=1):
    """Two names for this machine, each with an agent of its own: which takes --oversubscribe."""
    script = tmp_path / "rsh"
    script.write_text("#!/bin/sh\nshift; exec sh -c \"$*\"\n")
    script.chmod(0o755)
    return ["--oversubscribe", "--rsh", str(script), "-H", f"a:{slots},b:{slots}"]


def lines_by_rank(output):
    """{rank: [line, ...]} of labelled output; fails for a line without label."""
    result = {}
    for line in output.splitlines():
        label, _, rest = line.partition(b"] ")
        assert label[:1] == b"[" and label[1:].isdigit(), f"no label: {line!r}"
        result.setdefault(int(label[1:]), []).append(rest)
    return result
