# SPDX-License-Identifier: Apache-2.0
"""Cluster: some hosts and the login host that programs are launched from.

    with Cluster(["node1", "node2"]) as cluster:
        cluster.run(["ssh", "node1", "true"])
        cluster["node2"].link_down()

Each host is a PID, mount, UTS, IPC, cgroup and network namespace, with PID 1 a reaper (host_init.c). Their wires end
in the switch, one more such namespace. All of it lives as long as this process (follow=True) and not a moment
longer, however that ends; what stays is a folder and, with cgroup=True, empty cgroups: the next cluster removes them.
"""

import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import tempfile

from harness import cgroup, filesystem, host, network, programs, sshd
from harness.keys import key_pair
from harness.processes import listing

PREFIX = "hvrun-hosts-"
LOGIN = "login"
USERS = ("root", "ada")
CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21
MANY_HOSTS = 16  # that learn each other's stations one by one
UNANSWERED = 200  # last byte of an address that drops every packet


@dataclasses.dataclass(frozen=True)
class HostPlan:
    """One host to make. nets: the bridges it is plugged into; the login host is on 'lan' only."""

    name: str
    nets: tuple = ("lan",)
    key_kinds: tuple = ("ed25519",)


def why_not(*more_tools):
    """Why this process cannot make hosts, or None. more_tools: that faults need, such as nft."""
    if os.geteuid() != 0:
        return "making hosts takes root (network and mount namespaces)"
    with open("/proc/self/status") as status:
        powers = int(next(line.split()[1] for line in status if line.startswith("CapEff:")), 16)
    if not all(powers >> power & 1 for power in (CAP_NET_ADMIN, CAP_SYS_ADMIN)):
        return "this root may not make namespaces (no CAP_SYS_ADMIN or CAP_NET_ADMIN)"
    missing = [tool for tool in ("ip", "ssh", "ssh-keygen", sshd.SERVER, *more_tools) if not shutil.which(tool)]
    return f"making hosts takes {', '.join(missing)}" if missing else None


class Cluster:
    def __init__(self, plans=("node1", "node2", "node3"), *, cgroup=False, follow=True, visible=(), ipv6=False):
        """plans: names or HostPlans. cgroup: every host gets a cgroup v2 subtree. visible: folders all hosts see.

        ipv6: their nets have IPv6 addresses only."""
        self.plans = [plan if isinstance(plan, HostPlan) else HostPlan(plan) for plan in plans]
        self.follow = follow
        self.with_cgroup = cgroup
        self.ipv6 = ipv6
        self.folder = self.switch = None
        self.hosts = {}
        self.holders = []
        self.extra_names = {}
        self._visible = [str(path) for path in (programs.SOURCE, programs.hvrun_folder().parent, *visible)]

    # ---- use

    def __getitem__(self, name):
        return self.hosts[name]

    @property
    def login(self):
        return self.hosts[LOGIN]

    @property
    def nodes(self):
        """Every host but the login host."""
        return [one for name, one in self.hosts.items() if name != LOGIN]

    @property
    def names(self):
        return [one.name for one in self.nodes]

    @property
    def shared(self):
        """A folder that every host and the test see at the same path."""
        return self.folder / "shared"

    def start(self, arguments, **options):
        """On the login host; see Host.start."""
        return self.login.start(arguments, **options)

    def run(self, arguments, **options):
        """On the login host; see Host.start."""
        return self.login.run(arguments, **options)

    def newcomers(self):
        """What a job has left or still runs on the nodes."""
        return [process for node in self.nodes for process in node.newcomers()]

    def add_name(self, name, address):
        """Every host resolves it from now on."""
        self.extra_names[name] = address
        self._write_names()

    def add_unanswered(self, name):
        """A name whose address is there and drops every packet."""
        address = network.address("lan", UNANSWERED)
        network.ip_batch(self.switch, [f"addr replace {address}/24 dev lan"])
        self.switch.firewall.drop()  # the switch's own addresses only: what it bridges passes
        self.add_name(name, address)

    def report(self):
        return "\n".join(f"{one.name}:\n{listing(one.processes())}" for one in self.hosts.values())

    # ---- making and ending

    def up(self):
        remove_stale()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX))
        self.folder.chmod(0o755)
        self.shared.mkdir()
        self.shared.chmod(0o1777)
        try:
            self._make_hosts()
            self._write_state()
        except BaseException:
            self.down()
            raise
        return self

    __enter__ = up

    def __exit__(self, *_):
        self.down()

    def down(self):
        """Ends every host and waits until nothing of them is left."""
        for one in self.hosts.values():
            one.end()
        for one in self.hosts.values():
            one.has_ended()
        if self.switch:
            if self.with_cgroup:
                cgroup.Hierarchy.of(self.switch).remove(self.folder.name)
            self.switch.end()
            self.switch.has_ended()
        for holder in self.holders:
            holder.wait()
        self.hosts, self.holders, self.switch = {}, [], None
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _make_hosts(self):
        # Locked before it has its name: remove_stale() of another process takes an unlocked file for one of a dead cluster.
        lock = os.open(self.folder / "lock.new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(self.folder / "lock.new", self.folder / "lock")
        self.switch, holder = host.make("switch", 0, self.folder, follow=self.follow, keep_open=(lock,))
        os.close(lock)  # the switch holds it
        self.holders.append(holder)
        tree = cgroup.Hierarchy.mounted_in(self.switch) if self.with_cgroup else None
        if tree:
            tree.remove_stale(PREFIX, lambda name: not (self.folder.parent / name).exists())
        for number, plan in enumerate([HostPlan(LOGIN), *self.plans], 10):
            self._make_host(plan, number, tree)
        network.make_bridges(self.switch, sorted({net for plan in self.plans for net in plan.nets} | {"lan"}))
        network.plug_in(self.switch, [(one, one.addresses) for one in self.hosts.values()])
        if len(self.hosts) > MANY_HOSTS:
            network.introduce(list(self.hosts.values()))
        self._write_names()
        for one in self.hosts.values():
            self._settle(one)
        for one in self.nodes:
            sshd.begin(one)
        for one in self.nodes:
            sshd.await_listening(one)

    def _make_host(self, plan, number, tree):
        folder = self.folder / plan.name
        filesystem.write_etc(folder / "etc", plan.name)
        group = tree.make(f"{self.folder.name}/{plan.name}") if tree else None
        made, holder = host.make(plan.name, number, folder, follow=self.follow, cgroup=group)
        self.hosts[plan.name] = made
        self.holders.append(holder)
        made.switch = self.switch
        if self.ipv6:
            network.use_link_local_at_once(made)
        made.addresses = {net: network.address(net, number, self.ipv6) for net in plan.nets}
        sshd.set_up(made, plan.key_kinds)

    def _settle(self, one):
        visible = [*self._visible, str(self.shared)]
        one.call(lambda: filesystem.lay_out(one.folder / "etc", visible, one.cgroup is not None))
        for number, user in enumerate(USERS):
            one.add_user(user, 0 if user == "root" else 2000 + number)
            sshd.authorize(one, user, key_pair("user").public)
            if one is self.login:
                sshd.give_key(one, user, key_pair("user"))
                sshd.write_known_hosts(one, user, self.known_hosts())

    def known_hosts(self):
        """What the login host knows: every key of every node."""
        return "".join(sshd.known_hosts_lines([self.hosts[plan.name]], plan.key_kinds) for plan in self.plans)

    def _write_names(self):
        lines = [f"{one.address} {one.name}" for one in self.hosts.values()]
        lines += [f"{address} {name}" for name, address in self.extra_names.items()]
        for one in self.hosts.values():
            (one.folder / "etc" / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines]) + "\n")

    # ---- from one command to the next

    def _write_state(self):
        def of(one):
            return {"name": one.name, "number": one.number, "pid": one.pid, "addresses": one.addresses,
                    "users": [dataclasses.asdict(user) for user in one.users.values()]}

        state = {"hosts": [of(one) for one in self.hosts.values()], "switch": of(self.switch), "cgroup": self.with_cgroup}
        (self.folder / "state.json").write_text(json.dumps(state))

    @classmethod
    def opened(cls, folder):
        """The cluster that another process made with follow=False."""
        self = cls([])
        self.folder = pathlib.Path(folder)
        state = json.loads((self.folder / "state.json").read_text())
        self.with_cgroup = state["cgroup"]
        self.switch = host.Host("switch", 0, self.folder, state["switch"]["pid"])
        for one in state["hosts"]:
            group = None
            if self.with_cgroup:
                group = cgroup.Hierarchy.of(self.switch).group(f"{self.folder.name}/{one['name']}")
            opened = host.Host(one["name"], one["number"], self.folder / one["name"], one["pid"], group)
            opened.addresses, opened.switch = one["addresses"], self.switch
            opened.users = {user["name"]: host.User(**user) for user in one["users"]}
            self.hosts[opened.name] = opened
        return self


def remove_stale():
    """Folders and cgroups of clusters whose switch has ended."""
    for folder in pathlib.Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # just being made, or just being removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
