"""Rows between hosts: network namespaces with sshd, their links as they are, or slower. SPDX-License-Identifier: Apache-2.0

'3x1' is three hosts with one rank each, '2x2' two with two. Links of 1 Gbit/s are tc's token buckets alone, on both ends
of every host's wire; those of 100 Mbit/s with 1 ms each way lead through relay.c, whose own CPU share is told.
"""

import contextlib
import dataclasses
import os
import subprocess
import sys
import time

import gloo
import programs
from rounds import LEAST_ROUNDS, NotRun
from sweep import Program, Sweep

KIB, MIB = 1 << 10, 1 << 20
BUDGET_S = 0.05  # of one operation and size in a run, about
SLOW_MEGABITS, SLOW_DELAY_US = 100, 1000
RUN_S = 300
LAN, INTERFACE, SUBNET = "lan", "eth-lan", "10.77.0.0/24"
# mpirun does not see that these hosts share two cores: waiting ranks must be told to yield.
YIELD = ["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
MPI_OPTIONS = (YIELD, [*YIELD, "--mca", "btl_tcp_links", "2"], [*YIELD, "--mca", "btl_tcp_eager_limit", "131072"])


@dataclasses.dataclass(frozen=True)
class Net:
    name: str
    hosts: int
    ranks_each: int
    speed: str  # "", "1g" or "100m"
    sizes: tuple
    note: str = ""

    @property
    def ranks(self):
        return self.hosts * self.ranks_each

    @property
    def text(self):
        speeds = {"": "unshaped", "1g": "1 Gbit/s", "100m": "100 Mbit/s, 1 ms"}
        return f"{self.hosts} hosts x {self.ranks_each} ranks, {speeds[self.speed]}{self.note}"

    @property
    def names(self):
        return [f"node{number}" for number in range(1, self.hosts + 1)]


NETS = [Net(f"net-{speed + '-' if speed else ''}{hosts}x{each}", hosts, each, speed, sizes)
        for speed, sizes in (("", (4, 64 * KIB, MIB, 16 * MIB, 64 * MIB)), ("1g", (4, 64 * KIB, MIB, 16 * MIB)),
                             ("100m", (4, 64 * KIB, MIB)))
        for hosts, each in ((3, 1), (2, 2))]
# A call takes a second and more there, an operation beside one peer half an hour.
LARGE = "large-"
LARGE_NETS = [Net(f"{LARGE}net-{speed}-{hosts}x{each}", hosts, each, speed, sizes, ", large tensors")
              for speed, sizes in (("1g", (64 * MIB,)), ("100m", (16 * MIB, 64 * MIB))) for hosts, each in ((3, 1), (2, 2))]
# More hosts than take the same algorithms with HVRUN_DETERMINISTIC=1 and without.
FIVE_HOSTS = Net("net-5x1", 5, 1, "", (16 * KIB,))


class MadeHosts:
    """A net's hosts, made for the length of a 'with'."""

    def __init__(self, bench, net):
        os.environ["HVRUN_BIN_DIR"] = str(bench.hvrun.parent)
        if str(programs.SOURCE / "tests") not in sys.path:
            sys.path.insert(0, str(programs.SOURCE / "tests"))
        from harness import cluster, network, relay

        reason = cluster.why_not("tc") or (net.speed == "100m" and relay.why_not())
        if reason:
            raise NotRun(reason)
        self._wires, self._relays, self._net = network, relay, net
        self.cluster = cluster.Cluster(net.names, visible=[gloo.ENVIRONMENT, programs.SOURCE])
        self._relay_program = bench.program("bench_relay")
        self._relay = None

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            try:
                undo.enter_context(self.cluster)
                if self._net.speed == "1g":
                    for node in self.cluster.nodes:
                        self._wires.shape(node, LAN, "1gbit")
                elif self._net.speed == "100m":
                    self._relay = undo.enter_context(self._relays.Relay(
                        self.cluster.nodes, megabits=SLOW_MEGABITS, delay_us=SLOW_DELAY_US, program=self._relay_program))
            except AssertionError as error:  # how the harness tells that a tool failed
                raise NotRun(f"making hosts: {error}") from error
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *error):
        return self._undo.__exit__(*error)

    def relay_cpu_seconds(self):
        """User and system time of the relay so far; None where there is none."""
        return self._relay.cpu_seconds() if self._relay else None

    def run(self, words):
        """Standard output of a command on the login host."""
        try:
            done = self.cluster.run([str(word) for word in words], timeout=RUN_S, env=programs.PEER_ENVIRONMENT)
        except AssertionError as error:  # too late
            raise NotRun(f"{programs.shown(words)}: {error}") from error
        if done.code != 0:
            raise NotRun(f"{programs.shown(words)}: exit {done.code}: {done.err.strip()[-400:]}")
        return done.out

    def starter(self, name):
        """Starts a program on a host, with pipes; see gloo.Gloo."""
        def start(words, environment):
            running = self.cluster[name].start(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                               stderr=subprocess.DEVNULL, text=True, bufsize=1)
            return running.process

        return start


def hosts_of(bench, net):
    return bench.keep(("hosts", net.name), lambda: MadeHosts(bench, net))


def host_list(net):
    return ",".join(f"{name}:{net.ranks_each}" for name in net.names)


def ours(bench, net, program, settings=()):
    """settings: NAME=VALUE of the ranks' environment."""
    def words(operations, sizes):
        return [bench.hvrun, "-H", host_list(net), "--no-label", *programs.exported(settings),
                bench.program(program), "--op", operations, "--sizes", sizes, "--json", "--budget", str(BUDGET_S)]

    return Program(words, lambda command: hosts_of(bench, net).run(command))


def mpi(bench, net, options):
    start = [programs.need_program("mpirun"), "--host", host_list(net), "--mca", "oob_tcp_if_include", SUBNET,
             "--mca", "btl_tcp_if_include", SUBNET, *options]
    return Program(lambda operations, sizes: [*start, bench.program("bench_mpi"), "--op", operations, "--sizes", sizes, "--json",
                                              "--budget", str(BUDGET_S)], lambda command: hosts_of(bench, net).run(command))


def gloo_of(bench, net):
    hosts = hosts_of(bench, net)
    starters = [hosts.starter(name) for name in net.names for _ in range(net.ranks_each)]
    return bench.keep(("gloo", net.name), lambda: gloo.Gloo(starters, interface=INTERFACE, folder=str(hosts.cluster.shared)))


@contextlib.contextmanager
def watched(bench, net):
    """Around a sweep: gives a function that tells how busy the relay was, if there is one."""
    hosts = hosts_of(bench, net)
    before, begun = hosts.relay_cpu_seconds(), time.monotonic()

    def share():
        if before is None:
            return ""
        return f"relay: {100 * (hosts.relay_cpu_seconds() - before) / (time.monotonic() - begun):.0f} % of a core"

    yield share


def beside_mpi(net, operation):
    def candidates(bench):
        return [(ours(bench, net, "bench_collective"), mpi(bench, net, options))
                for options in MPI_OPTIONS]

    return Sweep(f"collective layer, {operation}, {net.text}", "OpenMPI", candidates, most_rounds=LEAST_ROUNDS, tries=1,
                 watch=lambda bench: watched(bench, net))


def beside_itself(net, operation, settings):
    def candidates(bench):
        return [(ours(bench, net, "bench_engine", settings), ours(bench, net, "bench_engine"))]

    return Sweep(f"with {' '.join(settings)}, {operation}, {net.text}", "hvrun without", candidates, most_rounds=LEAST_ROUNDS, tries=1)


def beside_gloo(net, operation):
    def candidates(bench):
        return [(ours(bench, net, "bench_engine"), gloo.Collectives(lambda: gloo_of(bench, net), BUDGET_S))]

    return Sweep(f"through negotiation, {operation}, {net.text}", "PyTorch's Gloo", candidates, most_rounds=LEAST_ROUNDS, tries=1,
                 watch=lambda bench: watched(bench, net))
