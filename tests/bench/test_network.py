"""Hosts of the bench: their slow links are as slow as they say. Needs root. SPDX-License-Identifier: Apache-2.0"""

import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import network  # noqa: E402
from harness import cluster, programs, relay  # noqa: E402
from rounds import NotRun  # noqa: E402

pytestmark = pytest.mark.skipif(bool(cluster.why_not("tc", "ping")), reason=str(cluster.why_not("tc", "ping")))

BYTES = 4 << 20
SEND = """
import socket, sys
with socket.create_server(('', 7000)) as server:
    print('listening', flush=True)
    connection, _ = server.accept()
    while connection.recv(1 << 16):
        pass
    connection.sendall(b'!')
"""
RECEIVE = f"""
import socket, sys, time
begun = time.monotonic()
with socket.create_connection((sys.argv[1], 7000)) as connection:
    connection.sendall(bytes({BYTES}))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)
print(time.monotonic() - begun)
"""


class Bench:
    """Programs from where the tests have them; the relay compiled on its own."""

    hvrun = programs.hvrun()

    @staticmethod
    def program(name):
        assert name == "bench_relay"
        return programs.relay()


def net_of(speed):
    return next(net for net in network.NETS if net.speed == speed and net.hosts == 3)


def least_seconds_of_a_transfer(made):
    one, two = made.cluster["node1"], made.cluster["node2"]
    with two.start([sys.executable, "-c", SEND]) as server:
        server.wait_for_output("listening", 30)
        done = one.run([sys.executable, "-c", RECEIVE, two.address], timeout=60)
    assert done.code == 0, done
    return float(done.out)


@pytest.mark.skipif(bool(relay.why_not()), reason=str(relay.why_not()))
def test_the_relay_delays_both_ways_and_lets_through_no_more_than_its_rate():
    with network.MadeHosts(Bench, net_of("100m")) as made:
        words = made.cluster["node1"].shell(f"ping -c 3 -i 0.01 {made.cluster['node3'].address}")
        assert float(re.search(r"= ([0-9.]+)/", words).group(1)) >= 2 * network.SLOW_DELAY_US / 1000
        assert least_seconds_of_a_transfer(made) >= 8 * BYTES / (network.SLOW_MEGABITS * 1e6)
        assert made.relay_cpu_seconds() > 0
        direct = made.cluster["node1"].shell("ip route get 10.77.0.10")  # the login host
        assert relay.DEVICE not in direct


def test_shaped_wires_let_through_no_more_than_their_rate():
    with network.MadeHosts(Bench, net_of("1g")) as made:
        assert made.relay_cpu_seconds() is None
        assert least_seconds_of_a_transfer(made) >= 8 * (BYTES - (256 << 10)) / 1e9


def test_a_run_that_fails_or_takes_too_long_is_told(monkeypatch):
    monkeypatch.setattr(network, "RUN_S", 5)
    with network.MadeHosts(Bench, net_of("")) as made:
        assert made.run(["echo", "hello"]) == "hello\n"
        with pytest.raises(NotRun, match="exit 3: why"):
            made.run(["sh", "-c", "echo why >&2; exit 3"])
        with pytest.raises(NotRun, match="not ended within 5 s"):
            made.run(["tail", "-f", "/dev/null"])
