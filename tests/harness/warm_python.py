# SPDX-License-Identifier: Apache-2.0
"""A Python that has imported PyTorch already, for tests of what is computed with it: a rank costs a tenth of a second, not three.

    warm_python.py --serve SOCKET_FD PID_FD  imports PyTorch, then forks a child for each request, until that process has ended
    warm_python.py SOCKET [-m|-c] WORDS...   in a rank: has such a child do what `python WORDS...` would, and ends as it does

The child has the rank's streams, environment and folder, but is nobody's descendant: it ends when the rank does, and no signal
reaches it. So tests of endings and signals start Pythons of their own.
"""

import atexit
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
import types

_SIZE = struct.Struct("=Q")
_LATER = ("torch._dynamo", "torch.optim", "torch.utils.data", "pytest", "sklearn.datasets")  # what programs import in their course


def _receive(connection, size):
    parts = b""
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise EOFError
        parts += part
    return parts


def _leave_at_once(ended_well):
    """The interpreter would take PyTorch apart first, and copy each page of it."""
    if ended_well:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _become(streams, request, base_path):
    """In the child: the program itself. Its exceptions and exit codes go on to the interpreter."""
    ended_well = []
    atexit.register(_leave_at_once, ended_well)  # the first to be registered is the last to be called
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    try:
        _run(request["words"], base_path)
    except SystemExit as end:
        if end.code:
            raise
    ended_well.append(True)


def _run(words, base_path):
    """As `python WORDS...` would."""
    kind, *words = words if words[0] in ("-m", "-c") else ["", *words]
    sys.argv = words if not kind else [kind, *words[1:]]
    first = os.path.dirname(os.path.abspath(words[0])) if not kind else os.getcwd()
    sys.path[:] = [first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *base_path]
    if kind == "-m":
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        return
    sys.modules["__main__"] = main_module = types.ModuleType("__main__")
    text = words[0]
    if not kind:
        main_module.__file__ = words[0]
        with open(words[0], encoding="utf-8") as file:
            text = file.read()
    exec(compile(text, "<string>" if kind else words[0], "exec"), main_module.__dict__)


def _read_request(connection):
    head, streams, _, _ = socket.recv_fds(connection, _SIZE.size, 3)
    if len(head) < _SIZE.size:
        raise EOFError
    return streams, json.loads(_receive(connection, *_SIZE.unpack(head)))


def _serve(listener, until):
    """Returns in each child, with what it is to become; ends, and removes the socket's directory, when the process `until` has."""
    selector, running = selectors.DefaultSelector(), {}  # {pidfd: (pid, connection)}
    selector.register(listener, selectors.EVENT_READ)
    selector.register(until, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if selector.get_map().get(key.fd) is not key:  # a child's end, in this same round, has closed it
                continue
            if key.fileobj == until:
                for pid, _ in running.values():
                    os.kill(pid, signal.SIGKILL)
                import shutil

                shutil.rmtree(os.path.dirname(listener.getsockname()), ignore_errors=True)
                os._exit(0)
            elif key.fileobj is listener:
                connection, _ = listener.accept()
                try:
                    streams, request = _read_request(connection)
                except (OSError, EOFError):  # the rank has ended already
                    connection.close()
                    continue
                pid = os.fork()
                if pid == 0:
                    for fd in (until, *running):
                        os.close(fd)
                    for one in (connection, listener, selector, *(each for _, each in running.values())):
                        one.close()
                    return streams, request
                for stream in streams:
                    os.close(stream)
                pidfd = os.pidfd_open(pid)
                running[pidfd] = pid, connection
                selector.register(pidfd, selectors.EVENT_READ)
                selector.register(connection, selectors.EVENT_READ, pid)
            elif key.fileobj in running:
                pid, connection = running.pop(key.fileobj)
                selector.unregister(key.fileobj)
                os.close(key.fileobj)
                status = os.waitpid(pid, 0)[1]
                if connection.fileno() in selector.get_map():
                    selector.unregister(connection)
                try:
                    connection.sendall(struct.pack("=i", status))
                except OSError:  # the rank has ended first
                    pass
                connection.close()
            else:  # the rank has ended first
                selector.unregister(key.fileobj)
                os.kill(key.data, signal.SIGKILL)


def _ask(path, words):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        body = json.dumps({"words": words, "environment": dict(os.environ), "folder": os.getcwd()}).encode()
        socket.send_fds(connection, [_SIZE.pack(len(body))], [0, 1, 2])
        connection.sendall(body)
        try:
            (status,) = struct.unpack("=i", _receive(connection, 4))
        except EOFError:
            with open(os.path.join(os.path.dirname(path), "errors"), encoding="utf-8") as errors:
                sys.exit(f"the Python that has imported PyTorch has ended: {errors.read()}")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def main():
    if sys.argv[1] != "--serve":
        _ask(sys.argv[1], sys.argv[2:])
    import importlib  # here, for a rank that asks is to start quickly

    for name in ("torch", *_LATER):
        importlib.import_module(name)
    gc.freeze()  # a collection in a child would go through all of PyTorch, and copy each page of it
    base_path = sys.path[1:]
    _become(*_serve(socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3])), base_path)


if __name__ == "__main__":
    main()
