# SPDX-License-Identifier: Apache-2.0
"""The system calls for namespaces and mounts that Python's own library lacks."""

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def setns(fd, flags):
    """fd: of a namespace, or a pidfd and then for every kind in flags."""
    _check(_libc.setns(fd, flags), "setns")


def unshare(flags):
    _check(_libc.unshare(flags), "unshare")


def mount(source, target, kind=None, flags=0, options=None):
    def word(text):
        return os.fsencode(text) if text is not None else None

    _check(_libc.mount(word(source), word(target), word(kind), ctypes.c_ulong(flags), word(options)), f"mount {target}")


def unmount(target):
    _check(_libc.umount2(os.fsencode(target), 2), f"unmount {target}")  # 2: MNT_DETACH
