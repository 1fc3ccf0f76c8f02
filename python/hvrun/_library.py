# SPDX-License-Identifier: Apache-2.0
"""Finds libhvrun and opens it, once, at the first use: importing hvrun needs none."""

import ctypes
import functools
import os
import pathlib

from hvrun import _abi, exceptions

PACKAGE = pathlib.Path(__file__).resolve().parent
NAME = "libhvrun.so.0"


def candidates():
    """Where libhvrun may lie, best first: (path or name, who says so)."""
    stated = os.environ.get("HVRUN_LIBRARY")
    if stated:
        return [(stated, "HVRUN_LIBRARY")]
    places = [(str(PACKAGE / "lib" / NAME), "this package")]
    build = PACKAGE.parents[1] / "build"  # of a checkout
    places += [(str(build / preset / "lib" / "libhvrun.so"), "a build of this checkout") for preset in ("release", "dev")]
    return [place for place in places if os.path.exists(place[0])] + [(NAME, "the system's folders")]


class Library:
    """The functions of hvrun.h, without their prefix."""

    def __init__(self, path, origin, prompt, blocking):
        self.path, self.origin = path, origin
        for table, opened in ((_abi.PROMPT, prompt), (_abi.BLOCKING, blocking)):
            for name, (takes, gives) in table.items():
                function = getattr(opened, name)
                function.argtypes, function.restype = takes, gives
                setattr(self, name[len("hvrun_"):], function)

    def error_of(self, status):
        """The exception for a status that the last call of this thread has returned."""
        words = (self.last_error() or b"").decode(errors="replace")
        return exceptions.of_status(status, self.status_name(status).decode(), words)

    def check(self, status):
        if status != _abi.OK:
            raise self.error_of(status)


def open_library():
    """Raises LibraryError with every place that was tried and the system's word on it."""
    tried = []
    for path, origin in candidates():
        try:
            return Library(path, origin, ctypes.PyDLL(path), ctypes.CDLL(path))
        except (OSError, AttributeError) as error:
            tried.append(f"  {path} ({origin}): {error}")
    raise exceptions.LibraryError(
        "libhvrun, the runtime inside every rank, cannot be loaded:\n" + "\n".join(tried)
        + "\n  try: pip install hvrun again in this environment, or set HVRUN_LIBRARY to a libhvrun.so")


@functools.lru_cache(maxsize=None)
def library():
    return open_library()
