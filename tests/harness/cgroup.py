# SPDX-License-Identifier: Apache-2.0
"""cgroups v2 for hosts: each gets a subtree of its own, as systemd delegates one.

The hierarchy is mounted in the switch's own mount namespace: this machine's mounts, wherever they are and whether
it has any of version 2, stay as they are.
"""

import os
import pathlib

from harness.syscalls import mount
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
