# SPDX-License-Identifier: Apache-2.0
"""cgroups for hosts: v2 in a subtree of each host's own, as systemd delegates one; v1's freezer where Slurm uses it.

A hierarchy is mounted in the switch's or a host's own mount namespace: this machine's mounts, wherever they are and
whether it has any of that version, stay as they are.
"""

import os
import pathlib

from harness.syscalls import MS_BIND, mount
from harness.waiting import wait_for

PLACE = "/sys/fs/cgroup"


class Hierarchy:
    """The whole tree as this process may see it, at root."""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    @classmethod
    def mounted_in(cls, switch):
        def mount_it():
            if not os.path.ismount(PLACE):
                mount("tmpfs", PLACE, "tmpfs")
            mount("cgroup2", PLACE, "cgroup2")

        switch.call(mount_it)
        return cls.of(switch)

    @classmethod
    def of(cls, switch):
        return cls(switch.outside(PLACE))

    @staticmethod
    def why_no_freezer():
        """Why there is no freezer of version 1, or None."""
        controllers = pathlib.Path("/proc/cgroups").read_text().splitlines()
        if any(line.split()[0] == "freezer" and line.split()[3] == "1" for line in controllers if not line.startswith("#")):
            return None
        return "this kernel has no freezer of cgroup v1"

    @classmethod
    def freezer_of(cls, host, place, name):
        """v1's freezer at place/all there, and at place/freezer what seems to be all of it: its group of that name."""
        def mount_it():
            for folder in ("all", "freezer"):
                os.makedirs(f"{place}/{folder}")
            mount("cgroup", f"{place}/all", "cgroup", options="freezer")
            os.makedirs(f"{place}/all/{name}")
            mount(f"{place}/all/{name}", f"{place}/freezer", flags=MS_BIND)

        host.call(mount_it)
        return cls(host.outside(f"{place}/all"))

    def group(self, name):
        return Group(self.root / name)

    def make(self, name):
        made = self.group(name)
        made.path.mkdir(parents=True)
        return made

    def remove(self, name):
        """With all below it; everything in it must be ending."""
        wait_for(lambda: _is_removed(self.root / name), 5, f"cgroup {name} is empty")

    def remove_stale(self, prefix, is_stale):
        for left in self.root.glob(prefix + "*"):
            if is_stale(left.name):
                _is_removed(left)


class Group:
    def __init__(self, path):
        self.path = path

    def join(self):
        """Moves the calling process here."""
        (self.path / "cgroup.procs").write_text("0")


def _is_removed(top):
    try:
        for folder, _, _ in os.walk(top, topdown=False):
            os.rmdir(folder)
    except OSError:  # busy, or just gone
        pass
    return not top.exists()
