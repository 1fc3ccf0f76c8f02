# SPDX-License-Identifier: Apache-2.0
"""Joining and leaving the job, and who this rank is in it. The same for every framework."""

import atexit
import ctypes
import os
import sys

from hvrun import _abi
from hvrun._called import warn
from hvrun._identity import forget_rank, has_equal_hosts, not_joined, note_rank, number, refuse_init
from hvrun._library import library
from hvrun.inflight import reduce_numbers
from hvrun.process_sets import ProcessSet, global_process_set, process_sets_begin, process_sets_end
from hvrun.step_times import times

_NO_CYCLES = ("marks nothing: the timeline has no CYCLE_START events, since operations do not wait for a cycle here. What is ready goes "
              "at once, and each tensor's NEGOTIATE_ event shows how long it has waited for other ranks")
_failed = False  # an exception ends this process: its peers are to hear of a loss, not of a goodbye
_watching = False
_jobs = 0  # how many this rank has joined
_meetings = 0  # how often this rank has joined a job, or been brought back together with the others by a join


def init(comm=None, process_sets=None):
    """Joins the job that this process was started into; alone, it is rank 0 of 1. Blocks until every rank has called it.

    comm: None, all ranks of the job as a list (a part of them is a process set here), or a communicator of mpi4py's: where hvrun
    has not started the ranks, its ranks are the job's. process_sets: those to begin with, as ProcessSet
    objects or lists of ranks, the same on every rank; or "dynamic", which is allowed, as sets can always be added here.
    Where the job has been joined already nothing happens. Raises HorovodInternalError where it cannot be joined: a WorkerError
    in a process that a rank has started.
    """
    if is_initialized():
        return
    refuse_init()
    if not (comm is None or isinstance(comm, (list, tuple, range)) or hasattr(comm, "Get_size")):
        raise ValueError(f"init(comm={comm!r}) names no ranks. Try: none, which is all of the job, or a communicator of mpi4py's")
    sets = [] if process_sets is None or _is_dynamic(process_sets) else [_as_set(one) for one in process_sets]
    ranks = [(ctypes.c_int32 * len(one.ranks))(*one.ranks) for one in sets]
    lists = (_abi.RankList * len(sets))(*(_abi.RankList(one, len(one)) for one in ranks))
    options = _abi.Options(ctypes.sizeof(_abi.Options), lists, len(sets), _address_of(comm))
    library().check(library().init(ctypes.byref(options), None))
    process_sets_begin(sets)
    global _jobs
    _jobs += 1
    note_meeting()
    _watch_end()
    note_rank(_has_equal_hosts())
    if comm is not None:
        _require_whole(comm)
    if rank() == 0 and _wants_cycles():
        warn(f"HOROVOD_TIMELINE_MARK_CYCLES {_NO_CYCLES}")


def _wants_cycles():
    return os.environ.get("HOROVOD_TIMELINE_MARK_CYCLES", "0") not in ("", "0") and any(
        os.environ.get(name) for name in ("HVRUN_TIMELINE", "HOROVOD_TIMELINE"))


def note_meeting():
    """All ranks are at one point again: what they have agreed on one by one before does not count any more."""
    global _meetings
    _meetings += 1
    times.begin_anew()


def meetings():
    return _meetings


def jobs():
    return _jobs


def _has_equal_hosts():
    """Asked while every rank is here: is_homogeneous() may later be asked by one alone."""
    mine = local_size()
    return size() == 1 or reduce_numbers("hvrun.local_sizes", [mine, -mine], _abi.MIN) == [mine, -mine]


def _is_dynamic(process_sets):
    return isinstance(process_sets, str) and process_sets.lower() == "dynamic"


def _as_set(one):
    return one if isinstance(one, ProcessSet) else ProcessSet(one)


def _address_of(comm):
    """Where the MPI_Comm of a communicator of mpi4py's lies; None for anything else."""
    mpi = sys.modules.get("mpi4py.MPI")  # whoever has a communicator has it
    return mpi._addressof(comm) if mpi is not None and isinstance(comm, mpi.Comm) else None


def _require_whole(comm):
    """A communicator of MPI's, as mpi4py has it, or a list of ranks."""
    count = len(comm) if isinstance(comm, (list, tuple, range)) else comm.Get_size()
    if count == size():
        return
    whole = size()
    shutdown()
    raise ValueError(f"init(comm=...) names {count} of the job's {whole} ranks: a job is joined by all of its ranks. "
                     "Try: hvd.init(process_sets=[[0, 1]]), and process_set=hvd.ProcessSet([0, 1]) in its operations")


def shutdown():
    """Leaves the job; what is pending ends with an error on every rank. Where it has been left already nothing happens."""
    if is_initialized():
        try:
            times.report()
        finally:
            library().check(library().shutdown(None))
            process_sets_end()
            forget_rank()


def is_initialized():
    """Whether this process has joined the job: False in a rank's workers, where rank() and the like answer all the same."""
    return library().rank(None) >= 0


def _require_joined():
    if not is_initialized():
        raise not_joined()


def rank():
    """This rank's number among all ranks of the job, from 0."""
    return number("rank")


def size():
    """Ranks of the job."""
    return number("size")


def local_rank():
    """This rank's number among those of its host, from 0: the number of its GPU."""
    return number("local_rank")


def local_size():
    """Ranks of this host."""
    return number("local_size")


def cross_rank():
    """The number, from 0, of this rank's host among the hosts that have its local rank."""
    return number("cross_rank")


def cross_size():
    """Hosts that have this local rank."""
    return number("cross_size")


def is_homogeneous():
    """Whether every host has as many ranks as every other."""
    number("rank")
    return has_equal_hosts()


def start_timeline(file_path, mark_cycles=False):
    """Begins to write what happens to each tensor, in Chrome's trace format; see hvrun(3). file_path: %r in it becomes this
    rank's number; without it rank 0 alone writes. mark_cycles: a warning says that there are none. ValueError where this rank
    writes one already."""
    _require_joined()
    if mark_cycles:
        warn(f"mark_cycles=True {_NO_CYCLES}")
    library().check(library().timeline_start(None, os.fsencode(file_path)))


def stop_timeline():
    """Ends it, and waits until the file is written."""
    _require_joined()
    library().check(library().timeline_stop(None))


def counters():
    """What this rank's runtime has done since init(), by the names of hvrun_counters in hvrun(3)."""
    _require_joined()
    counted = _abi.Counters(ctypes.sizeof(_abi.Counters))
    library().check(library().counters_read(None, ctypes.byref(counted)))
    return {name: getattr(counted, name) for name, _ in _abi.Counters._fields_ if name not in ("struct_size", "reserved")}


# ---- the end of the process ---------------------------------------------------------------------------------------------


def _watch_end():
    """Once: leave the job when the process ends well. When an exception ends it the job is not left, so that the peers are
    told that this rank is lost and hvrun names it, instead of those who noticed."""
    global _watching
    if _watching:
        return
    _watching = True
    told = sys.excepthook

    def note(kind, value, traceback):
        global _failed
        _failed = True
        told(kind, value, traceback)

    sys.excepthook = note
    atexit.register(_leave, os.getpid())


def _leave(owner):
    if os.getpid() == owner and not _failed and is_initialized():
        times.report()
        library().shutdown(None)  # a peer that is gone already is no reason to fail at the end


# ---- what Horovod's users ask --------------------------------------------------------------------------------------------


def mpi_threads_supported():
    """Whether the program may call MPI, by mpi4py say, while hvrun does: MPI carries out operations, with MPI_THREAD_MULTIPLE."""
    return mpi_enabled() and _mpi()[1] == 3


def mpi_enabled():
    """Whether MPI carries out operations: HVRUN_BACKEND names it."""
    number("rank")
    return "mpi" in stated_backends()


def stated_backends():
    """HVRUN_BACKEND's names, in order, which may have blanks beside them; none where it is unset."""
    return [one.strip() for one in os.environ.get("HVRUN_BACKEND", "").split(",") if one.strip()]


def mpi_built(verbose=False):
    """Whether MPI could carry out operations, where HVRUN_BACKEND names it. verbose, here and below, is accepted for Horovod's sake."""
    del verbose
    return _mpi()[0] is not None


def _mpi():
    """Which MPI there is, or None, and its thread level, -1 before it has begun."""
    words, level = ctypes.c_char_p(), ctypes.c_int32(-1)
    status = library().mpi_version(ctypes.byref(words), ctypes.byref(level))
    return (words.value.decode() if status == _abi.OK else None), level.value


def gloo_enabled():
    """Whether operations are carried out on CPUs without MPI: what Horovod's users mean by Gloo hvrun's own backend does."""
    number("rank")
    return True


def gloo_built(verbose=False):
    del verbose
    return True


def nccl_built(verbose=False):
    """The version of the NCCL that operations on GPUs use, 21805 for 2.18.5; 0: none, and `python -m hvrun.doctor` says why."""
    del verbose
    version = ctypes.c_int32()
    return version.value if library().nccl_version(ctypes.byref(version)) == _abi.OK else 0


def ddl_built(verbose=False):
    del verbose
    return False


def ccl_built(verbose=False):
    del verbose
    return False


def cuda_built():
    """Whether operations take what lies in a GPU's memory from there."""
    return True


def rocm_built():
    return False


class HorovodBasics:
    """The functions above as Horovod's class has them."""

    def __init__(self, pkg_path=None, *args):
        del pkg_path, args

    init, shutdown, is_initialized = staticmethod(init), staticmethod(shutdown), staticmethod(is_initialized)
    rank, local_rank, cross_rank = staticmethod(rank), staticmethod(local_rank), staticmethod(cross_rank)
    size, local_size, cross_size = staticmethod(size), staticmethod(local_size), staticmethod(cross_size)
    is_homogeneous = staticmethod(is_homogeneous)
    start_timeline, stop_timeline = staticmethod(start_timeline), staticmethod(stop_timeline)
    mpi_threads_supported, mpi_enabled, mpi_built = map(staticmethod, (mpi_threads_supported, mpi_enabled, mpi_built))
    gloo_enabled, gloo_built = staticmethod(gloo_enabled), staticmethod(gloo_built)
    nccl_built, ddl_built, ccl_built = staticmethod(nccl_built), staticmethod(ddl_built), staticmethod(ccl_built)
    cuda_built, rocm_built = staticmethod(cuda_built), staticmethod(rocm_built)
    Average, Sum, Adasum, Min, Max, Product = range(6)


__all__ = [
    "init", "shutdown", "is_initialized", "rank", "size", "local_rank", "local_size", "cross_rank", "cross_size",
    "is_homogeneous", "start_timeline", "stop_timeline", "counters", "mpi_threads_supported", "mpi_enabled", "mpi_built",
    "gloo_enabled", "gloo_built", "nccl_built", "ddl_built", "ccl_built", "cuda_built", "rocm_built", "global_process_set", "HorovodBasics",
]
