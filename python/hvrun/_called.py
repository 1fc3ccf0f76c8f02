# SPDX-License-Identifier: Apache-2.0
"""Which of hvd's functions the user has called, and where: for errors and warnings that come up further inside. Only those
pay for it."""

import sys
import warnings

_OWN = ("hvrun", "horovod")
_BETWEEN = ("torch",)  # autograd, and a model that calls its layers
_PUBLIC = ("hvrun.torch", "hvrun.basics")


def _frames_inside(frame):
    """Those up to the user's own code: (package, frame), the innermost first."""
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in _OWN + _BETWEEN:
            return
        yield package, frame
        frame = frame.f_back


def called():
    """"hvd.allreduce", or "" where the user's own code has called a method, or no function that users know."""
    outermost = None
    for package, frame in _frames_inside(sys._getframe(1)):
        outermost = frame.f_code if package in _OWN else outermost
    return f"hvd.{outermost.co_name}" if outermost is not None and _is_public(outermost) else ""


def warn(text, category=UserWarning):
    """Names the line of the user's own code that has led to it."""
    warnings.warn(text, category, stacklevel=1 + len(list(_frames_inside(sys._getframe(0)))))


def _is_public(code):
    functions = (getattr(sys.modules.get(module), code.co_name, None) for module in _PUBLIC)
    return any(getattr(function, "__code__", None) is code for function in functions)
