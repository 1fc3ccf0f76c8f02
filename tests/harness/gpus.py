# SPDX-License-Identifier: Apache-2.0
"""GPUs for a host that has none: /proc/driver/nvidia and device nodes, and the stand-in for the driver's library.

The machine is that of tests/fakes/nvml: 8 GPUs, of which 5 is cut into three MIG devices and 6 has an ECC fault.
"""

import os

from harness import programs
from harness.syscalls import CLONE_NEWNS, MS_BIND, MS_NOSUID, MS_PRIVATE, MS_REC, mount, unshare

BUSES = ("1b", "29", "45", "4e", "9b", "a9", "c5", "ce")
MINORS = (2, 3, 0, 1, 6, 7, 4, 5)
CUT = 5
INSTANCES = ((7, 66), (8, 68), (5, 70))  # of the GPU that is cut: GPU instance, number of its capability
MODEL = "NVIDIA A100-SXM4-80GB"
KEPT_NODES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")


def uuid(gpu):
    return f"GPU-00000000-0000-4000-8000-00000000000{gpu}"


def mig_uuid(part):
    return f"MIG-0000000{CUT}-0000-4000-8000-00000000000{part}"


def library_folder(kind="nvml"):
    return programs.hvrun_folder().parent / "lib" / kind


def why_not():
    """Why there is no driver's library to stand in, or None."""
    library = library_folder() / "libnvidia-ml.so.1"
    return None if library.exists() else f"{library} is not built (target fake_nvml)"


class Gpus:
    """hidden: GPUs whose nodes a scheduler's cgroup keeps back; models: of other GPUs than usual, by number; kernel_log: its text."""

    def __init__(self, host, *, knows_uuids=False, hidden=(), hidden_parts=(), is_cut=True, models=None, kernel_log=None):
        self.host = host
        if kernel_log is not None:
            host.write_file("/run/dev/kmsg", kernel_log)
        self._write_proc(knows_uuids, is_cut, models or {})
        nodes = [f"nvidia{minor}" for gpu, minor in enumerate(MINORS) if gpu not in hidden]
        nodes += ["nvidiactl", *(f"nvidia-caps/nvidia-cap{number + more}" for part, (_, number) in enumerate(INSTANCES)
                                 for more in (0, 1) if part not in hidden_parts)]
        host.call(lambda: self._mount(nodes))

    def _write_proc(self, knows_uuids, is_cut, models):
        for gpu, (bus, minor) in enumerate(zip(BUSES, MINORS)):
            told = uuid(gpu) if knows_uuids else "GPU-????????-????-????-????-????????????"
            self.host.write_file(f"/run/nvidia/gpus/0000:{bus}:00.0/information",
                                 f"Model: \t\t {models.get(gpu, MODEL)}\nIRQ:   \t\t 77\nGPU UUID: \t {told}\n"
                                 f"Bus Location: \t 0000:{bus}:00.0\nDevice Minor: \t {minor}\n")
        for instance, number in INSTANCES if is_cut else ():
            folder = f"/run/nvidia/capabilities/gpu{MINORS[CUT]}/mig/gi{instance}"
            self.host.write_file(f"{folder}/access", f"DeviceFileMinor: {number}\nDeviceFileMode: 292\n")
            self.host.write_file(f"{folder}/ci0/access", f"DeviceFileMinor: {number + 1}\nDeviceFileMode: 292\n")

    @staticmethod
    def _mount(nodes):
        mount("tmpfs", "/proc/driver", "tmpfs", MS_NOSUID, "mode=755")
        os.mkdir("/proc/driver/nvidia")
        mount("/run/nvidia", "/proc/driver/nvidia", None, MS_BIND)
        os.makedirs("/run/dev/nvidia-caps", exist_ok=True)
        for name in KEPT_NODES:
            kept = f"/run/dev/{name}"
            if os.path.isdir(f"/dev/{name}"):
                os.mkdir(kept)
            else:
                open(kept, "w").close()
            mount(f"/dev/{name}", kept, None, MS_BIND | MS_REC)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            os.symlink(f"/proc/self/fd/{number}", f"/run/dev/{name}")
        os.symlink("/proc/self/fd", "/run/dev/fd")
        for name in nodes:
            open(f"/run/dev/{name}", "w").close()
            os.chmod(f"/run/dev/{name}", 0o666)
        mount("/run/dev", "/dev", None, MS_BIND | MS_REC)

    def set_environment(self, **variables):
        """Of every login there; the driver's library is the stand-in unless LD_LIBRARY_PATH says otherwise."""
        variables = {"LD_LIBRARY_PATH": library_folder(), **variables}
        self.host.set_login_shell("/bin/bash")
        lines = "".join(f"export {name}='{value}'\n" for name, value in variables.items())
        self.host.write_file(f"{self.host.users['root'].home}/.bashrc", lines)


class _ThisProcess:
    """As far as Gpus needs a host: the process itself, in mounts of its own."""

    @staticmethod
    def write_file(path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    @staticmethod
    def call(act):
        act()


def enter_machine(**options):
    """For a child that is about to be a program: that machine's GPUs are this one's, for it and what it starts."""
    unshare(CLONE_NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", "/run", "tmpfs", MS_NOSUID, "mode=755")
    Gpus(_ThisProcess(), **options)
