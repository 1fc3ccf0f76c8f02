# SPDX-License-Identifier: Apache-2.0
"""Reports to hvrun that a rank waits in torch.distributed for longer than HVRUN_STALL_SECONDS.

A thread looks at where the thread that called init_process_group stands, a few times within that limit. It waits if it stands
in the same call of torch.distributed each time. Addresses of frames are used again, so the same address proves nothing: the
call's frame is marked by its f_trace, which is freed with it. Holding the frame itself would keep its tensors.

docs/decisions/013-waits-in-torch-distributed.md says why a thread does this, and no other process.
"""
import _thread
import functools
import os
import struct
import sys
import time
import weakref

from _hvrun_limits import END, STALL

_LOOKS = 4  # within the shortest limit
_LONGEST_PAUSE = 15.0  # seconds
_LEAST_REPEAT = 5.0  # seconds between two reports of a wait
_IDLE = 0.05  # of a core, used by all threads of a process that does nothing but wait
_WAITS = 9  # src/rendezvous/messages.h: Type::kWaits
_MOST_TEXT = 200  # wire::kMaxCallText

_INNER = ("torch._ops",)  # called by torch.distributed, to wait
# Parts of torch.distributed that stand still in their own calls while all is well: launchers, servers, writers of files.
_OTHERS = ("checkpoint", "elastic", "launch", "launcher", "rpc", "run")
_BACKWARD = ("torch.autograd", "torch.autograd.graph")  # DistributedDataParallel's exchange is in it
_WRAPPERS = ("contextlib", "functools", __name__)


def _module(frame):
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


def _is_distributed(module):
    parts = module.split(".")
    is_part = parts[:2] == ["torch", "distributed"] and len(parts) > 2
    return is_part and parts[2] not in _OTHERS or module == "torch.nn.parallel.distributed"


def _name(frame):
    return ("torch.distributed." if _module(frame).startswith("torch.distributed.") else "") + frame.f_code.co_name


def waiting_frame(frame):
    """The frame of a call in which a thread with this innermost frame may wait for other ranks, or None; whether that is a
    backward pass, which may as well compute."""
    while frame is not None and _module(frame) in _INNER:
        frame = frame.f_back
    if frame is None:
        return None, False
    if _is_distributed(_module(frame)):
        return frame, False
    is_backward = _module(frame) in _BACKWARD
    return (frame, True) if is_backward else (None, False)


def describe(frame, is_backward):
    """The call as the program made it, and where: ("torch.distributed.all_reduce", "train.py:12")."""
    name = "backward" if is_backward else _name(frame)
    while frame is not None and (_module(frame).split(".")[0] == "torch" or _module(frame) in _WRAPPERS):
        if _is_distributed(_module(frame)) and frame.f_code.co_name != "wrapper" and not frame.f_code.co_name.startswith("_"):
            name = _name(frame)
        frame = frame.f_back
    return name, "%s:%s" % (frame.f_code.co_filename, frame.f_lineno) if frame else ""


class _Mark:
    """Of a frame, as its f_trace."""

    def __call__(self, *_):
        """Where a debugger traces this thread."""


class Watch:
    """The waits of one thread. Nothing here blocks; time is passed in."""

    def __init__(self, stall, end, report):
        """Limits in seconds, 0: never; report(waited, is_too_long, call, place)."""
        self._stall, self._end, self._report = stall, end, report
        self.pause = min(min(limit for limit in (stall, end) if limit > 0) / _LOOKS, _LONGEST_PAUSE)
        self._time = self._busy = 0.0  # at the last look: of the clock, and used by the process
        self._mark = None  # a weak reference to the f_trace of the frame that is waited in
        self._begin()

    def _begin(self, waited=0.0):
        """waited: None while the thread is elsewhere, so that its next wait begins at the look that finds it."""
        self._waited, self._next, self._is_ended = waited, self._stall, False

    def look(self, frame, now, busy):
        """frame: the thread's innermost; busy: seconds of processor time of all threads."""
        # A process that was stopped meanwhile has not waited.
        passed = min(now - self._time, 2 * self.pause)
        is_idle = busy - self._busy <= _IDLE * (now - self._time)
        self._time, self._busy = now, busy
        call, is_backward = waiting_frame(frame)
        if call is None:
            return self._begin(None)
        if not self._is_marked(call) or self._waited is None or (is_backward and not is_idle):
            return self._begin()
        self._waited += passed
        if self._stall > 0 and self._waited >= self._next:
            self._next = self._waited + max(self._stall, _LEAST_REPEAT)
            self._report(self._waited, False, *describe(call, is_backward))
        if self._end > 0 and self._waited >= self._end and not self._is_ended:
            self._is_ended = True
            self._report(self._waited, True, *describe(call, is_backward))

    def _is_marked(self, call):
        """Whether this call was there at the last look; marks it if not. A debugger's f_trace stays: then nothing is known."""
        mark = self._mark() if self._mark is not None else None
        if mark is not None and call.f_trace is mark:
            return True
        self._mark = None
        if call.f_trace is None or isinstance(call.f_trace, _Mark):
            call.f_trace = mark = _Mark()
            self._mark = weakref.ref(mark)
        return False


def _text(value):
    value = value.encode("utf-8", "replace")[-_MOST_TEXT:]
    return struct.pack("<I", len(value)) + value


def encode(rank, waited, is_too_long, call, place):
    """The frame of a rendezvous::Waits."""
    payload = struct.pack("<Id?", rank, waited, is_too_long) + _text(call) + _text(place)
    return struct.pack("<IB", len(payload) + 1, _WAITS) + payload


def tell_agent(*wait):
    import _socket

    agent = os.environ["HVRUN_AGENT"]
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(5)
        connection.connect("\0" + agent[1:] if agent.startswith("@") else agent)
        connection.sendall(encode(int(os.environ["HVRUN_RANK"]), *wait))
    except OSError:  # an agent that has no time for it
        pass
    finally:
        connection.close()


def _run(thread):
    try:
        watch = Watch(STALL, END, tell_agent)
        while True:
            watch.look(sys._current_frames().get(thread), time.monotonic(), time.process_time())
            time.sleep(watch.pause)
    except Exception:  # the program runs as it would without hvrun
        pass


_watched = None  # the process that has the thread: a forked child has none


def _begin_watch():
    global _watched
    if _watched != os.getpid():
        _watched = os.getpid()
        _thread.start_new_thread(_run, (_thread.get_ident(),))


def _follow(module):
    """Has module.init_process_group begin the watch. A program without process groups gets no thread: Python 3.12 warns of forks
    beside threads."""
    init = module.init_process_group

    @functools.wraps(init)
    def init_process_group(*args, **kwargs):
        _begin_watch()
        return init(*args, **kwargs)

    module.init_process_group = init_process_group


def find_spec(name, path, target):
    """The spec of torch.distributed.distributed_c10d by the other import hooks; running it ends in _follow()."""
    specs = (finder.find_spec(name, path, target) for finder in list(sys.meta_path) if hasattr(finder, "find_spec"))
    spec = next((each for each in specs if each is not None), None)
    loader = getattr(spec, "loader", None)
    if not hasattr(loader, "exec_module"):
        return spec
    run = loader.exec_module

    def exec_module(module):
        del loader.exec_module
        run(module)
        try:
            _follow(module)
        except Exception:  # the program runs as it would without hvrun
            pass

    loader.exec_module = exec_module
    return spec
