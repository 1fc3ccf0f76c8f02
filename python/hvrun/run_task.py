# SPDX-License-Identifier: Apache-2.0
"""What hvrun.run() starts in every rank: python -m hvrun.run_task MARK."""

import base64
import pickle
import sys

from hvrun import basics, inflight
from hvrun.launch import _pickler

_PIECE = 32 << 10  # of a line


def main():
    (mark,) = sys.argv[1:]
    basics.init()
    is_first = basics.rank() == 0
    packed = inflight.broadcast_bytes("run.function", sys.stdin.buffer.readline() if is_first else None, 0)
    basics.shutdown()  # the function joins by itself, with process sets of its own
    func, args, kwargs = pickle.loads(base64.b64decode(packed))
    result = func(*args, **kwargs)
    basics.init()
    results = inflight.gather_bytes("run.results", _pickler.dumps(result))
    if is_first:
        _tell(mark, _pickler.dumps([pickle.loads(one) for one in results]))
    basics.shutdown()


def _tell(mark, results):
    text = base64.b64encode(results).decode()
    sys.stdout.flush()
    for begin in range(0, len(text), _PIECE):
        sys.stdout.write(f"{mark}{text[begin:begin + _PIECE]}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
