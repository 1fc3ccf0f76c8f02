# SPDX-License-Identifier: Apache-2.0
"""Bad links between hosts: slow, late, out of order, lossy, all by one seed (bench/relay.c)."""

import json
import os
import subprocess

from harness import network, programs

DEVICE, TUN = "relay", "/dev/net/tun"


def why_not():
    """Why there can be no relay here, or None."""
    try:
        os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"relaying packets takes TUN devices: {TUN}: {error.strerror}"
    return None


class Relay:
    """For the length of a 'with' these hosts' way to each other; to others, such as the login host, it is as before.

    megabits: of each host's link, 0: no limit. delay_us: each way. jitter_us: at most so much more, each packet its own.
    """

    def __init__(self, hosts, *, megabits=0, delay_us=0, jitter_us=0, loss_percent=0, seed=1, program=None):
        self._hosts = hosts
        self._words = [str(word) for word in (program or programs.relay(), megabits, delay_us, jitter_us, loss_percent, seed,
                                              *(f"{host.pid}:{host.address}" for host in hosts))]
        self._process = None

    def __enter__(self):
        self._process = subprocess.Popen(self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            ready = self._process.stdout.readline()
            assert ready == "ready\n", f"the relay did not start: {ready}{self._process.stderr.read()}"
            for host in self._hosts:
                network.ip_batch(host, [f"link set {DEVICE} up", *(f"route add {other.address}/32 dev {DEVICE} src {host.address}"
                                                                   for other in self._hosts if other is not host)])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def end(self):
        """Ends it; how many packets were carried, lost by chance, dropped by full buffers, and overtaken by later ones."""
        said, complaints = self._process.communicate(timeout=10)
        assert self._process.returncode == 0, f"the relay ended with {self._process.returncode}: {complaints}"
        return json.loads(said)

    def cpu_seconds(self):
        """User and system time so far."""
        with open(f"/proc/{self._process.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
