# SPDX-License-Identifier: Apache-2.0
"""Kube: pods for the stand-in tests/fakes/kubectl. A pod is a host of a Cluster, or a folder of this machine.

    with Kube(folder) as kube:
        pod = kube.add("w-0", home=folder / "w-0")
        pod.be("creating")

Commands are started by a process of its own here, outside of every pod, as a node's kubelet does: it ends neither them
nor their streams. What kubectl says of pods that are not ready was taken from real ones.
"""

import array
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading

from harness.running import Running
from harness.waiting import wait_for

KUBECTL = pathlib.Path(__file__).resolve().parents[1] / "fakes" / "kubectl"
MARK = "STAND_IN_KUBE"  # the variable of whoever calls kubectl, and of all that runs in a pod
TROUBLES = {
    "running": None,
    "unscheduled": "Error from server (BadRequest): pod POD does not have a host assigned",
    "creating": 'error: unable to upgrade connection: container not found ("main")',
    "completed": "error: cannot exec into a container in a completed pod; current phase is Succeeded",
    "forbidden": 'Error from server (Forbidden): pods "POD" is forbidden: User "system:serviceaccount:jobs:default" cannot create '
                 'resource "pods/exec" in API group "" in the namespace "jobs"',
    "unauthorized": "error: You must be logged in to the server (Unauthorized)",
    "busy": "Unable to connect to the server: net/http: TLS handshake timeout",
    "without-shell": 'error: Internal error occurred: error executing command in container: failed to exec in container: failed to '
                     'start exec "fc7e": OCI runtime exec failed: exec failed: unable to start container process: exec: "/bin/sh": '
                     'stat /bin/sh: no such file or directory: unknown',
}
SCRIPT = """\
#!/bin/sh
set -x
POD_NAME=$1
shift
./kubectl exec ${POD_NAME} -- /bin/sh -c "$*"
"""


def why_not():
    return None if shutil.which("nsenter") else "pods on hosts take nsenter"


class Pod:
    def __init__(self, file, enter, environment, period):
        self._file = file
        self._state = {"enter": enter, "environment": environment, "namespace": "jobs", "containers": ["main"], "period": period}

    def be(self, state, containers=None, is_default_known=True):
        """One of TROUBLES from now on, or 'missing'. is_default_known: of several containers kubectl takes the first."""
        if state == "missing":
            self._file.unlink(missing_ok=True)
            return
        self._state |= {"state": state, "trouble": TROUBLES[state]}
        self._state["containers"] = containers or self._state["containers"]
        self._state["is_default_known"] = is_default_known
        fresh = self._file.with_name(f".{self._file.name}")
        fresh.write_text(json.dumps(self._state))
        fresh.rename(self._file)


class Kube:
    def __init__(self, folder):
        """folder: empty, seen at the same path by everything that calls kubectl."""
        self.folder = pathlib.Path(folder)
        self._server = self._api = None

    def add(self, name, *, home=None, host=None, enter=(), period=30):
        """A running pod: this machine with that HOME, or a host of a Cluster. enter: words before every command there; period: its
        terminationGracePeriodSeconds."""
        if host:
            enter = ["nsenter", "-t", str(host.pid), "-m", "-u", "-i", "-n", "-p", "--", *enter]
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": name,
                       "HOME": host.users["root"].home if host else str(home), MARK: str(self.folder)}
        pod = Pod(self.folder / "pods" / name, list(enter), environment, period)
        pod.be("running")
        return pod

    def operator(self, *hosts, kubectl=KUBECTL):
        """The environment of the operator's launcher pod; hosts: lines of its hostfile. kubectl: what lies next to the script."""
        (self.folder / "hostfile").write_text("".join(f"{line}\n" for line in hosts))
        file = self.folder / "kubexec.sh"
        file.write_text(SCRIPT)
        file.chmod(0o555)
        if kubectl:
            file.with_name("kubectl").symlink_to(kubectl)
        return {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443",
                "OMPI_MCA_orte_keep_fqdn_hostnames": "t", "OMPI_MCA_orte_default_hostfile": str(self.folder / "hostfile"),
                "OMPI_MCA_plm_rsh_agent": str(file), MARK: str(self.folder)}

    def api(self):
        """The address of an API server with these pods, for a real kubectl."""
        if not self._api:
            self._api = Running([sys.executable, "-B", str(KUBECTL.with_name("kube_api.py")), str(self.folder)])
            wait_for((self.folder / "api").exists, 10, lambda: f"the API server: {self._api.result()}")
        return (self.folder / "api").read_text()

    def residents(self):
        """Whatever runs in a pod, or calls kubectl: agents, guards and ranks, on this machine or its hosts."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={self.folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    found.append(f"{process.name} {(process / 'comm').read_text().strip()}")
            except OSError:
                pass
        return found

    def calls(self):
        """The words of every kubectl so far."""
        try:
            return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def __enter__(self):
        (self.folder / "pods").mkdir(parents=True)
        self._server = Running([sys.executable, "-B", __file__, str(self.folder)],
                               env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[1])})
        wait_for((self.folder / "ready").exists, 10, lambda: f"the server of pods: {self._server.result()}")
        return self

    def __exit__(self, *_):
        for server in (self._server, self._api):
            if server:
                server.__exit__()


# ---- the server's own process

def serve(folder):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{folder}/server")
    os.chmod(f"{folder}/server", 0o777)
    listener.listen(64)
    pathlib.Path(folder, "ready").touch()
    while True:
        guest, _ = listener.accept()
        threading.Thread(target=carry_out, args=(guest,), daemon=True).start()


def carry_out(guest):
    """Runs one command on the streams that came with it, and tells its end to whoever still listens."""
    with guest:
        request, ancillary, _, _ = guest.recvmsg(1 << 20, socket.CMSG_SPACE(3 * 4))
        streams = array.array("i")
        streams.frombytes(ancillary[0][2])
        try:
            code = started(json.loads(request), streams).wait()
            answer = {"code": code if code >= 0 else 128 - code}
        except OSError as error:
            answer = {"trouble": f"error: Internal error occurred: {error}"}
        try:
            guest.send(json.dumps(answer).encode())
        except OSError:  # that kubectl was killed
            pass


def started(wanted, streams):
    """The command; the streams are its alone."""
    try:
        return subprocess.Popen(wanted["pod"]["enter"] + wanted["command"], env=wanted["pod"]["environment"], cwd="/",
                                stdin=streams[0] if wanted["stdin"] else subprocess.DEVNULL, stdout=streams[1], stderr=streams[2],
                                start_new_session=True)
    finally:
        for stream in streams:
            os.close(stream)


if __name__ == "__main__":
    serve(sys.argv[1])
