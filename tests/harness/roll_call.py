# SPDX-License-Identifier: Apache-2.0
"""Who of a payload still runs? By the list that its processes wrote themselves, asked from outside."""

import dataclasses

from harness.processes import listing
from harness.waiting import TooLate, wait_for


@dataclasses.dataclass(frozen=True)
class Entry:
    """A line of the list: 'host pid start role', with the PID that the process knows itself by."""

    host: str
    host_pid: int
    start: int
    role: str


class RollCall:
    """Payload programs append to the file (roll_call.h); every host must see it at the same path."""

    def __init__(self, cluster, path):
        self.cluster = cluster
        self.path = path
        path.touch()
        path.chmod(0o666)

    def __str__(self):
        return str(self.path)

    def entries(self, role=None):
        lines = (line.split() for line in self.path.read_text().splitlines())
        entries = [Entry(host, int(pid), int(start), what) for host, pid, start, what in lines]
        return [entry for entry in entries if role is None or entry.role == role]

    def wait_for(self, count, timeout, role=None):
        """Until so many processes (of that role) have signed the list."""
        wait_for(lambda: len(self.entries(role)) >= count, timeout,
                 lambda: f"{count} processes have signed; these have: {self.entries(role)}")

    def alive(self, role=None):
        """Those of the list that still run, as Processes. A zombie does not run."""
        found = []
        for name in {entry.host for entry in self.entries(role)}:
            there = {(process.host_pid, process.start): process for process in self.cluster[name].processes()}
            signed = [there.get((entry.host_pid, entry.start)) for entry in self.entries(role) if entry.host == name]
            found += [process for process in signed if process and process.runs]
        return found

    def pick(self, host, role=None):
        """The living processes of the list on one host."""
        there = {process.pid for process in self.cluster[host].processes()}
        return [process for process in self.alive(role) if process.pid in there]

    def expect_nobody(self, within, but_sshd=False):
        """Nobody of the list runs within so many seconds; nor does anything else of a job on the nodes.

        but_sshd: sessions of sshd may stay; across a dead link they wait for TCP, which nobody can hasten.
        """
        assert self.entries(), "nobody ever signed the list: this would prove nothing"

        def newcomers():
            return [process for process in self.cluster.newcomers()
                    if not (but_sshd and process.name.startswith("sshd"))]

        try:
            wait_for(lambda: not self.alive() and not newcomers(), within, "an end of it all")
        except TooLate:
            raise AssertionError(f"still there after {within:g} s, of the list:\n{listing(self.alive())}\n"
                                 f"and on the nodes:\n{listing(newcomers())}") from None
