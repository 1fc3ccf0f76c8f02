# SPDX-License-Identifier: Apache-2.0
"""What the ranks of hvrun.run return, as bytes on their way from rank 0 to the caller.

One stream through a pipe: the number of ranks, then for each its length and its bytes; numbers are 8 bytes, little-endian. Nothing
here turns the bytes into objects. run_task imports this module before anything of the user's, so it imports next to nothing.
"""

import os

_MOST_RANKS = 1 << 24
_CHUNK = 1 << 20  # of a read


def take_pipe():
    """The end that this process writes to (rank 0), or None. Nothing inherits it: no program by its number, no forked child, and the
    variable that names it is gone."""
    number = os.environ.pop("HVRUN_RESULT_FD", None)
    if number is None:
        return None
    os.set_inheritable(int(number), False)
    pipe = os.fdopen(int(number), "wb", buffering=0)
    os.register_at_fork(after_in_child=pipe.close)
    return pipe


def write_results(pipe, results):
    """results: bytes by rank. Closes the pipe."""
    with pipe:
        _write(pipe, _number(len(results)))
        for one in results:
            _write(pipe, _number(len(one)))
            _write(pipe, one)


def read_results(pipe):
    """The bytes by rank. EOFError where the stream ends before the last; ValueError where it is another one."""
    count = int.from_bytes(_read(pipe, 8, "the number of ranks"), "little")
    if not 0 < count <= _MOST_RANKS:
        raise ValueError(f"{count} ranks cannot be")
    results = []
    for rank in range(count):
        length = int.from_bytes(_read(pipe, 8, f"the result of rank {rank} of {count}"), "little")
        results.append(_read(pipe, length, f"the result of rank {rank} of {count}"))
    if pipe.read(1):
        raise ValueError(f"there is more behind the result of rank {count - 1}, the last")
    return results


def _number(value):
    return value.to_bytes(8, "little")


def _write(pipe, data):
    rest = memoryview(data)
    while rest:
        rest = rest[pipe.write(rest):]


def _read(pipe, length, what):
    """Never takes more memory than bytes have come, whatever length says."""
    data = bytearray()
    while len(data) < length:
        chunk = pipe.read(min(_CHUNK, length - len(data)))
        if not chunk:
            raise EOFError(f"{what} did not come: its {length} bytes end after {len(data)}")
        data += chunk
    return data
