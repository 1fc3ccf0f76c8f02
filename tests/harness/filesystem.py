# SPDX-License-Identifier: Apache-2.0
"""What a host has for itself of the file system: /tmp, /run, /dev/shm, homes, and some files of /etc.

Everything else is this machine's own, the sources and the build among it, at the same paths on every host, as on a
cluster with a shared file system. Homes lie in /run/home, where nothing of this machine can be hidden by them.
"""

import os
import pathlib

from harness.syscalls import MS_BIND, MS_NODEV, MS_NOSUID, MS_REC, mount, unmount

HOMES = "/run/home"
MASKED = ("/tmp", "/var/tmp", "/var/log", "/run", "/dev/shm")
OWN_ETC = ("hosts", "hostname", "nsswitch.conf", "resolv.conf", "passwd", "group", "shadow", "ssh")


def lay_out(etc, visible, cgroup):
    """Run in the host by its setup. etc: folder with the host's own files; visible: paths to keep where they are."""
    kept = [(path, os.open(path, os.O_PATH)) for path in visible if is_masked(path) and os.path.exists(path)]
    own_etc = os.open(etc, os.O_PATH)
    for path in ("/proc", "/sys", "/dev/pts", "/dev/shm"):
        _uncover(path)  # what is only covered still stands in /proc/mounts, cgroup2 for one
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
    mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV)
    if cgroup:
        mount("cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV)
    for path in MASKED:
        mode = "1777" if path in ("/tmp", "/var/tmp", "/dev/shm") else "755"
        mount("tmpfs", os.path.realpath(path), "tmpfs", MS_NOSUID | MS_NODEV, f"mode={mode}")
    mount("devpts", "/dev/pts", "devpts", MS_NOSUID, "newinstance,ptmxmode=666,mode=620,gid=5")
    for path, fd in kept:
        os.makedirs(path, exist_ok=True)
        mount(f"/proc/self/fd/{fd}", path, None, MS_BIND | MS_REC)
    for name in OWN_ETC:
        _bind_over(f"/proc/self/fd/{own_etc}/{name}", os.path.realpath(f"/etc/{name}"))
    os.makedirs("/run/sshd", mode=0o755)
    os.makedirs(HOMES, mode=0o755)


def _uncover(path):
    """Takes away every mount at path, and what lies below them."""
    while os.path.ismount(path):
        unmount(path)


def _bind_over(source, target):
    if not os.path.exists(target):  # a link into /run, say
        os.makedirs(os.path.dirname(target), exist_ok=True)
        pathlib.Path(target).touch()
    mount(source, target, None, MS_BIND)


def is_masked(path):
    return any(os.path.realpath(path).startswith(os.path.realpath(masked) + "/") for masked in MASKED)


def write_etc(folder, name):
    """A host's files for /etc, before its users, names and SSH keys are added."""
    folder.mkdir(parents=True)
    (folder / "ssh").mkdir()
    (folder / "hosts").write_text("127.0.0.1 localhost\n")
    (folder / "hostname").write_text(name + "\n")
    (folder / "nsswitch.conf").write_text("passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
    (folder / "resolv.conf").write_text("")
    (folder / "group").write_text(pathlib.Path("/etc/group").read_text())
    (folder / "shadow").write_text("")
    (folder / "shadow").chmod(0o600)
    system = [line for line in pathlib.Path("/etc/passwd").read_text().splitlines(keepends=True)
              if not line.startswith("root:") and 0 < int(line.split(":")[2]) < 1000]
    (folder / "passwd").write_text("".join(system))


def full(path):
    """Fills up the file system at path to its last byte. Run in the host."""
    with open(f"{path}/filler", "wb", buffering=0) as filler:
        for size in (4096, 1):
            try:
                while True:
                    filler.write(b"\0" * size)
            except OSError:
                pass
