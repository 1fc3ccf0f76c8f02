# SPDX-License-Identifier: Apache-2.0
"""Where this process stands, for hvrun to ask: at SIGQUIT, --timeout and stalls it wants every rank's Python stack.

src/contract/contract.h says the same of the signal and the file's name. Every Python program of a rank runs this module when it
starts (python/rank_start), and the package when it is imported: for programs that left that out.
"""

import os

SIGNAL = 48  # SIGRTMIN + 14 of glibc
FILE = "hvrun-stacks"

_kept = None  # the file's descriptor


def offer():
    """Has every thread's stack written into a memory file when SIGNAL comes. A program's own handler of it stays.

    A convenience: whatever this system lacks for it, the program runs as it would without.
    """
    global _kept
    if _kept is not None or _is_taken():
        return
    try:
        import faulthandler

        kept = os.memfd_create(FILE)
    except (ImportError, AttributeError, OSError):
        return
    try:
        faulthandler.register(SIGNAL, file=kept, all_threads=True, chain=False)
    except (AttributeError, OSError, RuntimeError, ValueError):
        os.close(kept)
        return
    _kept = kept
    _let_agent_look()


def _is_taken():
    """Somebody has a handler of SIGNAL, or ignores it; or nobody can tell."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            masks = [int(line.split()[1], 16) for line in status if line.startswith(("SigIgn:", "SigCgt:"))]
    except (OSError, ValueError, IndexError):
        return True
    return any(mask >> (SIGNAL - 1) & 1 for mask in masks)


def _let_agent_look():
    """Under Yama's ptrace_scope=1 a rank that is a child of a shell's must say that the agent's debugger may look into it."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as scope:
            if scope.read().strip() != "1":
                return
        agent = _agent_above(os.getppid())
        if not agent or agent == os.getppid():
            return  # which has said so itself, when it started this process
        import ctypes

        ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(agent), 0, 0, 0)  # PR_SET_PTRACER
    except (ImportError, AttributeError, OSError, ValueError, IndexError):
        return


def _agent_above(pid):
    """The nearest ancestor that is called hvrun-agent; 0: none."""
    while pid > 1:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            name, _, rest = stat.read().partition("(")[2].rpartition(")")
        if name == "hvrun-agent":
            return pid
        pid = int(rest.split()[1])
    return 0
