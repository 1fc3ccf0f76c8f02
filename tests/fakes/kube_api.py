# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the API server, for a real kubectl: pods as tests/harness/kube.py keeps them, and commands run in them.

It knows what `kubectl exec` asks: what kinds there are, a pod, and its subresource exec as a WebSocket of the protocol
v5.channel.k8s.io, each of whose messages begins with the number of its stream (RFC 6455 says how a message is framed).

    kube_api.py FOLDER      writes its address to FOLDER/api
"""

import base64
import hashlib
import http.server
import json
import pathlib
import struct
import subprocess
import sys
import threading
import urllib.parse

STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255
TEXT_OR_BINARY, CLOSED, PING, PONG = (0, 1, 2), 8, 9, 10
KINDS = {
    "api": {"kind": "APIVersions", "versions": ["v1"]},
    "apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
        {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get"], "shortNames": ["po"]},
        {"name": "pods/exec", "singularName": "", "namespaced": True, "kind": "PodExecOptions", "verbs": ["create", "get"]}]},
}
REFUSALS = {
    "unscheduled": (400, "BadRequest", "pod POD does not have a host assigned"),
    "creating": (500, "InternalError", 'container not found ("main")'),
    "unauthorized": (401, "Unauthorized", "Unauthorized"),
    "forbidden": (403, "Forbidden", 'pods "POD" is forbidden: User "ada" cannot create resource "pods/exec" in API group "" in the '
                                    'namespace "jobs"'),
}


class WebSocket:
    """The server's end. Messages of several threads go out whole."""

    def __init__(self, reader, writer):
        self._reader, self._writer, self._lock = reader, writer, threading.Lock()

    def send(self, data, kind=2):
        size = len(data)
        length = bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size) if size < 65536 else b"\x7f" + struct.pack(">Q", size)
        with self._lock:
            self._writer.write(bytes([0x80 | kind]) + length + data)

    def messages(self):
        """Each that the client sends, until it ends."""
        while len(head := self._reader.read(2)) == 2:
            kind, size = head[0] & 15, head[1] & 127
            if size > 125:
                size = int.from_bytes(self._reader.read(2 if size == 126 else 8), "big")
            mask, data = self._reader.read(4), self._reader.read(size)
            whole_mask = (mask * (size // 4 + 1))[:size]
            data = (int.from_bytes(data, "big") ^ int.from_bytes(whole_mask, "big")).to_bytes(size, "big")
            if kind == CLOSED:
                return
            if kind == PING:
                self.send(data, PONG)
            elif kind in TEXT_OR_BINARY and data:
                yield data


def carry_input(socket, command):
    """Up to the end of the client's stdin, or of the client."""
    try:
        for message in socket.messages():
            if message[0] == CLOSE:
                break
            if message[0] == STDIN:
                command.stdin.write(message[1:])
    except OSError:  # the command takes no more
        pass
    command.stdin.close()
    for _ in socket.messages():
        pass


def carry_output(socket, stream, number):
    while data := stream.read(32768):
        try:
            socket.send(bytes([number]) + data)
        except OSError:  # that kubectl is gone
            pass


def run(socket, pod, words):
    command = subprocess.Popen(pod["enter"] + words, env=pod["environment"], cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True, bufsize=0)
    threading.Thread(target=carry_input, args=(socket, command), daemon=True).start()
    outputs = [threading.Thread(target=carry_output, args=(socket, *one))
               for one in ((command.stdout, STDOUT), (command.stderr, STDERR))]
    for output in outputs:
        output.start()
    code = command.wait()
    for output in outputs:
        output.join()
    status = {"metadata": {}, "status": "Success"}
    if code:
        status = {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                  "message": f"command terminated with non-zero exit code: exit status {code}",
                  "details": {"causes": [{"reason": "ExitCode", "message": str(code if code > 0 else 128 - code)}]}}
    socket.send(bytes([STATUS]) + json.dumps(status).encode())
    socket.send(struct.pack(">H", 1000), CLOSED)


class Guest(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        path = url.path.strip("/")
        if path in KINDS:
            return self.answer(200, KINDS[path])
        name = path.split("/")[5] if path.count("/") >= 5 else ""
        try:
            pod = json.loads((self.server.folder / "pods" / name).read_text())
        except OSError:
            return self.refuse(404, "NotFound", f'pods "{name}" not found')
        if not path.endswith("/exec"):
            return self.answer(200, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": pod["namespace"]},
                                     "spec": {"containers": [{"name": one, "image": one} for one in pod["containers"]],
                                              "terminationGracePeriodSeconds": pod["period"]},
                                     "status": {"phase": "Running" if pod["state"] == "running" else "Pending"}})
        if pod["state"] in REFUSALS:
            code, reason, message = REFUSALS[pod["state"]]
            return self.refuse(code, reason, message.replace("POD", name))
        return self.execute(pod, urllib.parse.parse_qs(url.query))

    do_POST = do_GET  # what kubectl falls back to where it was refused a WebSocket

    def execute(self, pod, query):
        assert query["stdin"] == ["true"], "hvrun's own calls have -i"
        digest = hashlib.sha1((self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        self.send_response(101)
        for header, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Protocol", "v5.channel.k8s.io"),
                              ("Sec-WebSocket-Accept", base64.b64encode(digest).decode())):
            self.send_header(header, value)
        self.end_headers()
        self.close_connection = True
        run(WebSocket(self.rfile, self.wfile), pod, query["command"])

    def answer(self, code, content):
        data = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, code, reason, message):
        self.answer(code, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
                           "details": {}, "code": code})

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Guest)
        self.folder = pathlib.Path(folder)
        address = self.folder / ".api"
        address.write_text(f"http://127.0.0.1:{self.server_port}")
        address.rename(self.folder / "api")

    def handle_error(self, *_):  # a kubectl that was killed
        pass


if __name__ == "__main__":
    Server(sys.argv[1]).serve_forever()
