# SPDX-License-Identifier: Apache-2.0
"""Host: one of them, with its users, files, processes, sshd and faults. Made by cluster.py."""

import contextlib
import dataclasses
import os
import pathlib
import re
import select
import signal
import subprocess
import traceback

from harness import filesystem, network, processes, programs
from harness.running import Running
from harness.syscalls import (CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUTS,
                              MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REMOUNT, mount, setns)

EVERY_KIND_BUT_PID = CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS
FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass
class User:
    name: str
    number: int
    home: str
    shell: str = "/bin/sh"


class Host:
    """Everything about one host that a test can ask or do. The file /x of the host is outside(x) for the test."""

    def __init__(self, name, number, folder, pid, cgroup=None):
        self.name = name
        self.number = number
        self.folder = pathlib.Path(folder)
        self.pid = pid  # of its PID 1, outside
        self.cgroup = cgroup  # a cgroup.Group, or None
        self.pidfd = os.pidfd_open(pid)
        self.namespace = processes.pid_namespace(pid)
        self.addresses = {}
        self.users = {}
        self.firewall = network.Firewall(self)
        self.switch = None

    def __repr__(self):
        return f"Host({self.name})"

    @property
    def address(self):
        return next(iter(self.addresses.values()))

    # ---- running things there

    def start(self, arguments, *, user="root", env=None, cwd=None, clean_path=False, **options):
        """A Running program in the host, with a clean environment and env on top. Its pid is the outside one."""
        login = self.users[user]
        environment = {"HOME": login.home, "USER": login.name, "LOGNAME": login.name, "SHELL": login.shell, "LANG": "C.UTF-8",
                       "PATH": FOLDERS if clean_path else f"{programs.hvrun_folder()}:{FOLDERS}"}
        environment.update(env or {})
        environment = {name: value for name, value in environment.items() if value is not None}

        def become_resident():
            self._move_in()
            os.chdir(cwd or login.home)
            os.initgroups(login.name, login.number)
            os.setgid(login.number)
            os.setuid(login.number)

        with self._births_here():
            return Running(arguments, env=environment, preexec_fn=become_resident, **options)

    def run(self, arguments, *, timeout=30, **options):
        with self.start(arguments, **options) as running:
            return running.wait(timeout)

    def shell(self, text, **options):
        """Runs a sh script, which must succeed; returns its stdout."""
        result = self.run(["sh", "-ec", text], **options)
        assert result.code == 0, f"{self.name}: {result}"
        return result.out

    def call(self, action):
        """Runs action() there, in a process of its own; what it raises is raised here, as text."""
        reader, writer = os.pipe()
        with self._births_here():
            child = os.fork()
            if child == 0:
                self._act_and_exit(action, writer)
        os.close(writer)
        with open(reader, errors="replace") as words:
            said = words.read()
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            raise AssertionError(f"on {self.name}: {said}")

    def _act_and_exit(self, action, complaints):
        status = 1
        try:
            self._move_in()
            action()
            status = 0
        except BaseException:  # told to the parent
            os.write(complaints, traceback.format_exc().encode())
        finally:
            os._exit(status)

    def _move_in(self):
        if self.cgroup:
            self.cgroup.join()
        setns(self.pidfd, EVERY_KIND_BUT_PID)

    @contextlib.contextmanager
    def _births_here(self):
        """Processes that this thread starts meanwhile are born in the host's PID namespace."""
        home = os.open("/proc/thread-self/ns/pid", os.O_RDONLY)
        try:
            setns(self.pidfd, CLONE_NEWPID)
            yield
        finally:
            setns(home, CLONE_NEWPID)
            os.close(home)

    # ---- its processes

    def processes(self):
        return processes.processes_in(self.namespace)

    def newcomers(self):
        """Every process but PID 1 and the listening sshd: a job's, and its ssh sessions'."""
        listener = self.sshd.pid if self.sshd else None
        return [process for process in self.processes() if process.pid not in (self.pid, listener)]

    def process(self, host_pid):
        """The living process that the host knows by this PID, or None."""
        return next((process for process in self.processes() if process.host_pid == host_pid), None)

    # ---- its sshd

    @property
    def sshd(self):
        """The sshd that listens (the last one started), or None."""
        try:
            return self.process(int(self.outside("/run/sshd.pid").read_text()))
        except (OSError, ValueError):
            return None

    def sshd_sessions(self):
        listener = self.sshd
        return [process for process in self.processes()
                if process.name.startswith("sshd") and process.pid != (listener and listener.pid)]

    # ---- its files

    def outside(self, path):
        """Where a path of the host is for the test. Not for paths with absolute links in them."""
        return pathlib.Path(f"/proc/{self.pid}/root{path}")

    def write_file(self, path, content, mode=0o644, user="root"):
        place = self.outside(path)
        missing = [parent for parent in place.parents if not parent.exists()]
        for parent in reversed(missing):
            parent.mkdir(mode=0o755)
            os.chown(parent, self.users[user].number, self.users[user].number)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        place.chmod(mode)
        os.chown(place, self.users[user].number, self.users[user].number)

    def add_user(self, name, number=None, shell="/bin/sh"):
        """A user with an empty home of its own."""
        number = number if number is not None else 2000 + len(self.users)
        user = self.users[name] = User(name, number, f"{filesystem.HOMES}/{name}", shell)
        etc = self.folder / "etc"
        with open(etc / "passwd", "a") as passwd, open(etc / "shadow", "a") as shadow, open(etc / "group", "a") as group:
            passwd.write(f"{name}:x:{number}:{number}::{user.home}:{shell}\n")
            shadow.write(f"{name}:*:19000:0:99999:7:::\n")
            if number:
                group.write(f"{name}:x:{number}:\n")
        self.mount_home(name)
        return user

    def set_login_shell(self, shell, user="root"):
        """shell: a path."""
        self.users[user].shell = shell
        passwd = self.folder / "etc" / "passwd"
        passwd.write_text(re.sub(rf"^({user}:.*):[^:]*$", rf"\1:{shell}", passwd.read_text(), flags=re.MULTILINE))

    def set_home(self, path, user="root"):
        """Only in passwd: nothing is moved there or made."""
        passwd = self.folder / "etc" / "passwd"
        passwd.write_text(passwd.read_text().replace(f":{self.users[user].home}:", f":{path}:"))

    def mount_home(self, user):
        """An empty home: a file system of its own."""
        login = self.users[user]

        def make():
            os.makedirs(login.home, exist_ok=True)
            mount("tmpfs", login.home, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=755,uid={login.number},gid={login.number}")

        self.call(make)

    def limit_home(self, size, user="root"):
        """At most so many bytes ('300k') in it from now on."""
        home = self.users[user].home
        self.call(lambda: mount("tmpfs", home, "tmpfs", MS_REMOUNT | MS_NOSUID | MS_NODEV, f"size={size}"))

    def spoil_home(self, how, user="root"):
        """how: 'full', 'readonly' or 'noexec'. What lies in the home stays readable."""
        home = self.users[user].home
        if how == "full":
            self.limit_home("64k", user)
            self.call(lambda: filesystem.full(home))
        else:
            flag = {"readonly": MS_RDONLY, "noexec": MS_NOEXEC}[how]
            self.call(lambda: mount("tmpfs", home, "tmpfs", MS_REMOUNT | MS_NOSUID | MS_NODEV | flag))

    def resolve_through(self, server):
        """Names that /etc/hosts does not have are asked from this DNS server."""
        etc = self.folder / "etc"
        (etc / "resolv.conf").write_text(f"nameserver {server}\n")
        (etc / "nsswitch.conf").write_text((etc / "nsswitch.conf").read_text().replace("hosts: files", "hosts: files dns"))

    def make_login_noisy(self, user="root"):
        """Start-up files of every shell, and ~/.ssh/rc for those that read none, print on stdout and stderr."""
        noise = "echo noise on stdout; sh -c 'echo noise on stderr >&2'\n"
        for name in (".bashrc", ".bash_profile", ".profile", ".zshenv", ".zshrc", ".cshrc", ".tcshrc", ".login",
                     ".config/fish/config.fish", ".ssh/rc"):
            self.write_file(f"{self.users[user].home}/{name}", noise, user=user)

    def pretend_machine(self, machine):
        """'uname -m' says so from now on; every other answer stays true."""
        self.write_file("/run/real-uname", pathlib.Path("/usr/bin/uname").read_bytes(), mode=0o755)
        script = f'#!/bin/sh\n[ "$*" != -m ] || {{ echo {machine}; exit; }}\nexec /run/real-uname "$@"\n'
        self.write_file("/run/uname", script, mode=0o755)
        self.call(lambda: mount("/run/uname", "/usr/bin/uname", None, MS_BIND))

    # ---- its wires

    def link_down(self):
        """As when its cables are pulled: nobody is told, on either side."""
        self._set_links("down")

    def link_up(self):
        self._set_links("up")

    def _set_links(self, state):
        network.ip_batch(self.switch, [f"link set {network.wire(self, net)} {state}" for net in self.addresses])

    # ---- its end

    def end(self):
        """Kills PID 1, and with it everything in the host; has_ended() waits for that. Idempotent."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def has_ended(self):
        """Waits until nothing in it runs; for the last time that this object is used."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        assert poll.poll(10_000), f"{self.name} does not end:\n{processes.listing(self.processes())}"
        os.close(self.pidfd)


def make(name, number, folder, *, follow, cgroup=None, keep_open=()):
    """Starts a host's PID 1 and lays out its files. Returns (Host, the process whose child PID 1 is)."""
    holder = subprocess.Popen([programs.host_init(), name, "follow" if follow else "stay"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, pass_fds=keep_open, start_new_session=True,
                              preexec_fn=cgroup.join if cgroup else None)
    holder.stdin.write(b"!")
    holder.stdin.close()
    pid = int(holder.stdout.readline() or b"0")
    holder.stdout.close()
    assert pid, f"{name}: its PID 1 did not start (code {holder.wait()})"
    return Host(name, number, folder, pid, cgroup), holder
