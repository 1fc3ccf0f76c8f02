# SPDX-License-Identifier: Apache-2.0
"""What hvrun.run() starts in every rank."""

# Before all other imports, some of which run code of the user's: what that starts must not hold the pipe open, or write to it.
# Python's own start has run a sitecustomize and .pth files before; -S would leave them out, but also in what this process starts.
from hvrun import _results

_PIPE = _results.take_pipe()

import base64  # noqa: E402
import pickle  # noqa: E402
import sys  # noqa: E402

from hvrun import basics, inflight  # noqa: E402
from hvrun.launch import _pickler  # noqa: E402


def _call(func, args, kwargs):
    try:
        return func(*args, **kwargs)
    except SystemExit as end:
        if end.code:
            raise
        raise RuntimeError("hvrun.run: the function ended its process (sys.exit) instead of returning a result") from end


def main():
    basics.init()
    is_first = basics.rank() == 0
    packed = inflight.broadcast_bytes("run.function", sys.stdin.buffer.readline() if is_first else None, 0)
    basics.shutdown()  # the function joins by itself, with process sets of its own
    func, args, kwargs = pickle.loads(base64.b64decode(packed))
    result = _pickler.dumps(_call(func, args, kwargs))
    basics.init()
    results = inflight.gather_bytes("run.results", result)
    if is_first:
        _results.write_results(_PIPE, results)
    basics.shutdown()

