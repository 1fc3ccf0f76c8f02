# SPDX-License-Identifier: Apache-2.0
"""The wires between hosts: bridges in a network namespace of their own, and faults put into them.

Nothing here touches the machine's own network namespace, so clusters cannot meet, and two may use the same addresses.
"""

from harness import syscalls
from harness.running import run

BRIDGE_END = 254  # the bridge's own last byte of address
NETS = ("lan", "inner", "third")  # names of bridges, 10.77.N.0/24 or fd77:N::/64 each


def address(net, number, ipv6=False):
    return f"fd77:{NETS.index(net) + 1}::{number:x}" if ipv6 else f"10.77.{NETS.index(net)}.{number}"


def with_prefix(own):
    """As 'ip addr add' wants it; no address of a test need be probed for."""
    return f"{own}/64 nodad" if ":" in own else f"{own}/24"


def in_network_of(host, arguments, input=None):
    """Runs a tool of this machine in a host's network namespace; it sees this machine's files and processes."""
    result = run(arguments, input=input, timeout=20, preexec_fn=lambda: syscalls.setns(host.pidfd, syscalls.CLONE_NEWNET))
    assert result.code == 0, f"{host.name}: {result}\n{input or ''}"
    return result.out


def ip_batch(host, lines):
    in_network_of(host, ["ip", "-batch", "-"], "\n".join(lines) + "\n")


def nft(host, rules):
    return in_network_of(host, ["nft", "-f", "-"], rules)


def make_bridges(switch, nets):
    ip_batch(switch, [line for net in nets for line in (
        f"link add {net} type bridge forward_delay 0",
        f"addr add {address(net, BRIDGE_END)}/24 dev {net}",
        f"link set {net} up",
    )])


def plug_in(switch, hosts):
    """hosts: (host, {net: address}). The host's end of each wire is called eth-NET."""
    ip_batch(switch, [line for host, addresses in hosts for net in addresses for line in (
        f"link add {wire(host, net)} type veth peer name eth-{net} address {station(host, net)} netns {host.pid}",
        f"link set {wire(host, net)} master {net} up",
    )])
    for host, addresses in hosts:
        ip_batch(host, ["link set lo up"] + [line for net, own in addresses.items() for line in (
            f"addr add {with_prefix(own)} dev eth-{net}", f"link set eth-{net} up")])


def introduce(hosts):
    """Each knows all others' stations for good. The kernel's table of neighbours is one for all namespaces and holds
    1,024 that are learnt: 64 hosts that talk to a dozen each would push each other out."""
    for host in hosts:
        ip_batch(host, [f"neigh replace {other.addresses[net]} lladdr {station(other, net)} dev eth-{net} nud permanent"
                        for other in hosts if other is not host for net in host.addresses if net in other.addresses])


def station(host, net):
    """The link-layer address of a host's end of a wire."""
    return f"02:77:{NETS.index(net):02x}:00:00:{host.number:02x}"


def use_link_local_at_once(host):
    """Link-local addresses of interfaces made from now on need no second to be probed for."""
    for which in ("all", "default"):
        in_network_of(host, ["sh", "-c", f"echo 0 > /proc/sys/net/ipv6/conf/{which}/accept_dad"])


def shape(host, net, rate, queue="50ms"):
    """Both directions of a host's wire carry no more than that ('1gbit'). What would wait for longer than the queue is dropped."""
    limit = f"root tbf rate {rate} burst 256kb latency {queue}"
    in_network_of(host, ["sh", "-c", f"tc qdisc replace dev eth-{net} {limit}"])
    in_network_of(host.switch, ["sh", "-c", f"tc qdisc replace dev {wire(host, net)} {limit}"])


def wire(host, net):
    """The switch's end of a host's wire."""
    return f"wire{host.number}-{net}"


class Firewall:
    """Faults between one host and the rest: packets dropped, ports refused. clear() mends them all."""

    def __init__(self, host):
        self.host = host
        self.rules = []

    def drop(self, *, peer=None, port=None, to_port=None):
        """Drops silently in both directions what matches: a peer's address; a port of this host; a port elsewhere."""
        if port is None and to_port is None:
            self._add("incoming", f"{_from(peer)} drop")
            self._add("outgoing", f"{_to(peer)} drop")
        if port is not None:
            self._add("incoming", f"{_from(peer)} tcp dport {port} drop")
            self._add("outgoing", f"{_to(peer)} tcp sport {port} drop")
        if to_port is not None:
            self._add("outgoing", f"{_to(peer)} tcp dport {to_port} drop")
        self._apply()

    def refuse(self, port):
        """Answers every packet to this port of the host with a reset."""
        self._add("incoming", f"tcp dport {port} reject with tcp reset")
        self._apply()

    def only(self, ports):
        """Lets new connections come to these ports only ("22, 20000-20009"), and drops the rest silently."""
        self._add("incoming", f"tcp flags & (syn|ack) == syn tcp dport != {{ {ports} }} drop")
        self._apply()

    def clear(self):
        self.rules = []
        self._apply()

    def _add(self, chain, rule):
        self.rules.append((chain, rule.strip()))

    def _apply(self):
        chains = [
            f" chain {name} {{\n  type filter hook {hook} priority 0;\n  {side} lo accept\n"
            + "".join(f"  {rule}\n" for chain, rule in self.rules if chain == name) + " }\n"
            for name, hook, side in (("incoming", "input", "iifname"), ("outgoing", "output", "oifname"))
        ]
        nft(self.host, "table inet faults\ndelete table inet faults\ntable inet faults {\n" + "".join(chains) + "}\n")


def _from(peer):
    return f"ip saddr {peer}" if peer else ""


def _to(peer):
    return f"ip daddr {peer}" if peer else ""
