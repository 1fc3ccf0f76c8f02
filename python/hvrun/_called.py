# SPDX-License-Identifier: Apache-2.0
"""Which of hvd's functions the user has called: for errors that come up further inside. Only errors pay for it."""

import sys

_OWN = ("hvrun", "horovod")
_BETWEEN = ("torch",)  # autograd, and a model that calls its layers
_PUBLIC = ("hvrun.torch", "hvrun.basics")


def called():
    """"hvd.allreduce", or "" where the user's own code has called a method, or no function that users know."""
    frame, outermost = sys._getframe(1), None
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in _OWN:
            outermost = frame.f_code
        elif package not in _BETWEEN:
            break
        frame = frame.f_back
    return f"hvd.{outermost.co_name}" if outermost is not None and _is_public(outermost) else ""


def _is_public(code):
    functions = (getattr(sys.modules.get(module), code.co_name, None) for module in _PUBLIC)
    return any(getattr(function, "__code__", None) is code for function in functions)
