# SPDX-License-Identifier: Apache-2.0
"""Processes seen from outside, by the PID namespace that they live in."""

import dataclasses
import os
import signal
import time

from harness.waiting import wait_for

ZOMBIE_STATES = ("Z", "X")


@dataclasses.dataclass(frozen=True)
class Process:
    """One process of a host. pid is the outside one; host_pid the one that it knows itself by."""

    pid: int
    host_pid: int
    parent: int  # outside
    name: str
    state: str
    start: int  # clock ticks since boot: tells a process from a later one of the same PID

    @property
    def arguments(self):
        return _split_zeros(_read(self.pid, "cmdline"))

    @property
    def environment(self):
        entries = (entry.partition("=") for entry in _split_zeros(_read(self.pid, "environ")))
        return {name: value for name, _, value in entries}

    @property
    def executable(self):
        try:
            return os.readlink(f"/proc/{self.pid}/exe")
        except OSError:
            return ""

    @property
    def runs(self):
        """Still there, still the same one, and not just waiting to be reaped."""
        now = look_at(self.pid)
        return now is not None and now.start == self.start and now.state not in ZOMBIE_STATES

    def kill(self, number=signal.SIGKILL):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def __str__(self):
        return f"{self.pid} (there {self.host_pid}) {self.state} {' '.join(self.arguments)[:200] or self.name}"


def _read(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _split_zeros(data):
    return [part.decode(errors="backslashreplace") for part in data.split(b"\0")[:-1]]


def look_at(pid):
    """The process, or None when there is none."""
    stat = _read(pid, "stat").decode(errors="replace")
    status = _read(pid, "status").decode(errors="replace")
    if not stat or not status:
        return None
    name = stat[stat.index("(") + 1:stat.rindex(")")]
    fields = stat[stat.rindex(")") + 2:].split()
    numbers = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [str(pid)])
    return Process(pid, int(numbers[-1]), int(fields[1]), name, fields[0], int(fields[19]))


def pid_namespace(pid):
    """Its identity, or None when the process is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def all_processes():
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [process for process in map(look_at, pids) if process]


def processes_in(namespace):
    """Every process of one PID namespace."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    found = [look_at(pid) for pid in pids if pid_namespace(pid) == namespace]
    return [process for process in found if process]


def below(pid):
    """Every descendant of a process that still hangs on it."""
    everyone = all_processes()
    found, wanted = [], {pid}
    while wanted:
        children = [process for process in everyone if process.parent in wanted]
        found += children
        wanted = {child.pid for child in children}
    return found


def kill_together(processes, number=signal.SIGKILL):
    """As near to one instant as one caller can come."""
    for process in processes:
        process.kill(number)


def stop(pid):
    """Stops a process, and returns once it has: SIGSTOP is only on its way when kill() returns."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: (seen := look_at(pid)) is None or seen.state == "T", 30, f"{pid} stops")


def stands(pid):
    """Whether its main thread has arrived where it waits: it sleeps or is stopped, and did not run between two looks."""
    before = _sleep(pid)
    time.sleep(0.05)  # sleep-ok: the time between two looks; a thread that waits for Python's lock wakes every 5 ms
    return before is not None and _sleep(pid) == before


def _sleep(pid):
    """Tells a sleep of the main thread from its next one; None while it runs, waits for a disk or is gone."""
    lines = (line.partition(":") for line in _read(pid, "status").decode(errors="replace").splitlines())
    fields = {name: value.split() for name, _, value in lines}
    if fields.get("State", ["Z"])[0] not in ("S", "T"):
        return None
    return fields["voluntary_ctxt_switches"], fields["nonvoluntary_ctxt_switches"]


def listing(processes):
    return "\n".join(f"  {process}" for process in processes) or "  (none)"
