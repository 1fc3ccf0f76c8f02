# SPDX-License-Identifier: Apache-2.0
"""Who this process is: a rank, or a worker of one. A worker is any process that a rank has started, however: fork, spawn,
forkserver, subprocess.

init() writes HVRUN_RANK_PROCESS into the rank's environment, which all of these inherit: the rank's process, its job, and its
numbers. A worker finds another process there than itself. A job inside a rank has another name, so its ranks are no workers.
"""

import os
import sys

from hvrun._called import called
from hvrun._library import library
from hvrun.exceptions import NotInitializedError, WorkerError

NUMBERS = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
VARIABLE = "HVRUN_RANK_PROCESS"
_JOB_NAMES = ("HVRUN_JOB_ID", "PMIX_NAMESPACE", "SLURM_STEP_ID")  # set by hvrun, by launchers with PMIx, by srun


def note_rank(is_homogeneous):
    """This process has joined the job as a rank."""
    numbers = [getattr(library(), name)(None) for name in NUMBERS]
    os.environ[VARIABLE] = " ".join(map(str, [os.getpid(), _job(), *numbers, int(is_homogeneous)]))


def forget_rank():
    """This rank has left the job: processes that it starts from now on are no workers of it."""
    os.environ.pop(VARIABLE, None)


def has_equal_hosts():
    """Whether every host has as many ranks as every other."""
    return bool(_noted().get("is_homogeneous", True))


def number(name):
    """One of NUMBERS; of a worker, that of its rank. NotInitializedError where there is no job."""
    found = known_number(name)
    if found < 0:
        raise NotInitializedError
    return found


def known_number(name):
    """As number(), but -1 where there is no job."""
    value = getattr(library(), name)(None)
    return value if value >= 0 else (_rank_of_worker() or _contract_of_worker()).get(name, -1)


def not_joined():
    """The exception for an operation in a process that has not joined the job."""
    rank = _rank_of_worker()
    return _worker_error(rank, "try: call it in the rank itself, and hand the worker what it needs, as an argument or through a "
                               "queue; hvd.rank(), hvd.size() and the like answer here, too") if rank else NotInitializedError()


def refuse_init():
    """A worker cannot be a rank. Where a program runs alone, its children may: each is rank 0 of 1."""
    rank = _rank_of_worker()
    if rank and (rank["size"] > 1 or "HVRUN_AGENT" in os.environ):
        raise _worker_error(rank, "try: leave it out, since hvd.rank(), hvd.size() and the like answer here without it; in a "
                                  "script that workers import anew (spawn, forkserver) put it under if __name__ == '__main__':")


def _worker_error(rank, advice):
    what = called()
    return WorkerError(f"this is a worker of rank {rank['rank']} (pid {rank['process']}): {what + '()' if what else 'this'} is for "
                       f"ranks. {advice}")


def _job():
    return "/".join(os.environ.get(name, "") for name in _JOB_NAMES)


def _noted():
    """What note_rank() has written in this job, here or in the process that has started this one; {} where it has not."""
    process, _, rest = os.environ.get(VARIABLE, "").partition(" ")
    job, *numbers = rest.split(" ")
    if job != _job() or len(numbers) != len(NUMBERS) + 1:
        return {}
    return dict(zip((*NUMBERS, "is_homogeneous"), map(int, numbers)), process=int(process))


def _rank_of_worker():
    """The numbers and the process of the rank that has started this process; {} in the rank, and where there is none."""
    found = _noted()
    return found if found.get("process", os.getpid()) != os.getpid() else {}


def _contract_of_worker():
    """A forkserver that was started before the rank has called init() does not have its environment of then. Its workers have
    what hvrun has set for the rank."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return {}
    texts = {name: os.environ.get(f"HVRUN_{name.upper()}", "") for name in NUMBERS}
    return {name: int(text) for name, text in texts.items() if text.isdecimal()}
