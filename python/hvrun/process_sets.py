# SPDX-License-Identifier: Apache-2.0
"""Some ranks of the job that work among themselves."""

import ctypes

from hvrun._identity import known_number, not_joined, number
from hvrun._library import library

NOT_REGISTERED = None


class ProcessSet:
    """Ranks of the job, by their numbers in it. It works once init(process_sets=...) or add_process_set() has registered it.

    ranks: ascending, each once. process_set_id: its number, the same on every rank; None until it is registered and after
    removal.
    """

    def __init__(self, ranks_or_comm):
        if hasattr(ranks_or_comm, "Get_group"):
            raise ValueError("a process set is named by its ranks here, not by a communicator of MPI's: hvd.ProcessSet([0, 1])")
        self.process_set_id = NOT_REGISTERED
        self.mpi_comm = None
        given = list(ranks_or_comm)
        self.ranks = sorted(set(given))
        is_whole = all(isinstance(rank, int) and rank >= 0 for rank in given)
        if not given or not is_whole or len(self.ranks) != len(given):
            raise ValueError(f"a process set is a list of ranks from 0 on, one at least and each once, not {given!r}")

    def included(self):
        """Whether this rank is in it."""
        return known_number("rank") in self.ranks

    def rank(self):
        """This rank's number in the set, from 0; None where the set is not registered. ValueError where it is not in it."""
        if self.process_set_id is NOT_REGISTERED:
            return None
        mine = number("rank")
        if mine not in self.ranks:
            raise ValueError(f"rank {mine} is not in {self}")
        return self.ranks.index(mine)

    def size(self):
        """Ranks of the set; None where it is not registered."""
        return None if self.process_set_id is NOT_REGISTERED else len(self.ranks)

    def rank_of(self, job_rank, what):
        """The number in the set of a rank of the job: what `root` is to the runtime."""
        if job_rank not in self.ranks:
            raise ValueError(f"{what} {job_rank} is not in {self}")
        return self.ranks.index(job_rank)

    def __eq__(self, other):
        return isinstance(other, ProcessSet) and self.ranks == other.ranks and self.process_set_id == other.process_set_id

    def __hash__(self):
        return hash((self.process_set_id, tuple(self.ranks)))

    def __repr__(self):
        number = "not registered" if self.process_set_id is NOT_REGISTERED else f"process_set_id={self.process_set_id}"
        return f"ProcessSet(ranks={self.ranks}, {number})"


class _GlobalProcessSet(ProcessSet):
    """All ranks; which they are is known once the job has been joined."""

    def __init__(self):
        self.process_set_id = 0
        self.mpi_comm = None
        self._ranks = []

    @property
    def ranks(self):
        size = known_number("size")
        if len(self._ranks) != max(size, 0):
            self._ranks = list(range(max(size, 0)))
        return self._ranks

    def size(self):
        return number("size")

    def rank_of(self, job_rank, what):
        size = self.size()
        if not 0 <= job_rank < size:
            raise ValueError(f"{what} {job_rank} is no rank of this job, which has {size}")
        return job_rank

    def __repr__(self):
        return "ProcessSet(all ranks)"


global_process_set = _GlobalProcessSet()
_registered = {0: global_process_set}


def process_sets_begin(sets):
    """Those that init() has made get their numbers, from 1 on."""
    for number, one in enumerate(sets, 1):
        one.process_set_id = number
        _registered[number] = one


def process_sets_end():
    """The job has been left, and its sets with it."""
    for number in [number for number in _registered if number != 0]:
        _registered.pop(number).process_set_id = NOT_REGISTERED


def add_process_set(process_set):
    """Registers a ProcessSet, or a list of ranks, and returns the ProcessSet. Every rank of the job calls it, also those that
    are not in it, in the same order; it blocks until all have."""
    if library().rank(None) < 0:
        raise not_joined()
    one = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    if one.process_set_id is not NOT_REGISTERED:
        raise ValueError(f"{one} is registered already")
    ranks = (ctypes.c_int32 * len(one.ranks))(*one.ranks)
    number = ctypes.c_uint32()
    library().check(library().process_set_add(None, ranks, len(ranks), ctypes.byref(number)))
    one.process_set_id = number.value
    _registered[number.value] = one
    return one


def remove_process_set(process_set):
    """Ends a set; every rank of the job calls it. True where it was one, False for all ranks and for one that is not
    registered."""
    if library().rank(None) < 0:
        raise not_joined()
    if process_set.process_set_id in (NOT_REGISTERED, 0):
        return False
    library().check(library().process_set_remove(None, process_set.process_set_id))
    _registered.pop(process_set.process_set_id, None)
    process_set.process_set_id = NOT_REGISTERED
    return True


def process_set_ids():
    """The numbers of the sets there are, ascending."""
    return sorted(_registered)


def get_process_set_ids_and_ranks():
    """The sets there are: number: ranks."""
    return {number: list(one.ranks) for number, one in sorted(_registered.items())}
