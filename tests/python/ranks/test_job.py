# SPDX-License-Identifier: Apache-2.0
"""Joining the job, what scripts ask of an installation, and timelines begun by a script."""

import json
import os
import pathlib

import pytest
import torch

import hvrun.torch as hvd
from hvrun.exceptions import NotInitializedError
from sizes import job_size

NUMBERS = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size", "is_homogeneous", "mpi_enabled", "gloo_enabled",
           "mpi_threads_supported")
HAS_MPI = any((pathlib.Path(os.environ["HVRUN_LIBRARY"]).parent / f"libhvrun-{name}.so").exists() for name in ("openmpi", "mpich"))
BY_MPI = "mpi" in os.environ.get("HVRUN_BACKEND", "")
NCCL = hvd.nccl_built() if "HVRUN_TEST_DEVICE" in os.environ else 0
BUILT = {"gloo_built": True, "mpi_built": HAS_MPI, "nccl_built": NCCL, "ddl_built": False, "ccl_built": False, "cuda_built": True,
         "rocm_built": False}


class Communicator:
    """As mpi4py's, of so many ranks."""

    def __init__(self, size):
        self.Get_size = lambda: size


@pytest.fixture
def left():
    """The job is left within it."""
    hvd.barrier()  # before any rank leaves
    hvd.shutdown()
    yield
    hvd.init()


@pytest.mark.parametrize("of", [list, tuple, lambda ranks: ranks, lambda ranks: Communicator(len(ranks))],
                         ids=["list", "tuple", "range", "communicator"])
def test_init_with_all_ranks(of, left):
    size = job_size()
    hvd.init(of(range(size)))
    assert hvd.size() == size
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum) == size
    hvd.init(comm=[0])  # nothing happens: the job has been joined
    assert hvd.size() == size
    hvd.barrier()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("part", [[0], Communicator(1)], ids=["list", "communicator"])
def test_init_with_some_ranks_is_refused_and_the_job_left(part, left):
    with pytest.raises(ValueError, match=r"names 1 of the job's \d ranks.*\n?.*process_sets="):
        hvd.init(comm=part)
    assert not hvd.is_initialized()


def test_init_with_what_names_no_ranks_is_refused(left):
    with pytest.raises(ValueError, match=r"init\(comm='world'\) names no ranks"):
        hvd.init(comm="world")
    assert not hvd.is_initialized()


def test_what_needs_a_job_says_so(left):
    for name in NUMBERS:
        with pytest.raises(NotInitializedError, match=rf"hvd\.{name}\(\) needs a job that has been joined"):
            getattr(hvd, name)()
    for call in (lambda: hvd.start_timeline("t.json"), hvd.stop_timeline):
        with pytest.raises(NotInitializedError, match="timeline"):
            call()
    assert {name: getattr(hvd, name)() for name in BUILT} == BUILT  # which need none


def test_what_the_installation_can():
    assert {name: getattr(hvd, name)() for name in BUILT} == BUILT
    assert {name: getattr(hvd, name)(verbose=True) for name in BUILT if name not in ("cuda_built", "rocm_built")}
    assert (hvd.gloo_enabled(), hvd.mpi_enabled(), hvd.mpi_threads_supported()) == (True, BY_MPI, BY_MPI)


def allreduced_in(path):
    """The names of what this rank has begun; others may be rows already, since other ranks are ready for them."""
    events = json.loads(path.read_text())
    rows = {event["tid"]: event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    return {rows[event["tid"]] for event in events if event["ph"] == "B" and event["name"] == "ALLREDUCE"}


def test_a_timeline_has_what_happens_between_its_start_and_its_end(tmp_path):
    hvd.allreduce(torch.ones(3), name="before")
    with pytest.warns(UserWarning, match="^mark_cycles=True marks nothing"):
        hvd.start_timeline(str(tmp_path / "first-%r.json"), mark_cycles=True)  # one of each rank
    hvd.allreduce(torch.ones(3), name="within")
    with pytest.raises(ValueError, match="timeline"):
        hvd.start_timeline(str(tmp_path / "other-%r.json"))
    hvd.stop_timeline()
    hvd.allreduce(torch.ones(3), name="after")
    assert allreduced_in(tmp_path / f"first-{hvd.rank()}.json") == {"allreduce.within"}
    with pytest.raises(hvd.HorovodInternalError, match="No such file"):
        hvd.start_timeline(str(tmp_path / "none" / "%r.json"))
    hvd.start_timeline(tmp_path / "second.json")  # as Horovod's users write: of rank 0
    hvd.allreduce(torch.ones(3), name="again")
    hvd.stop_timeline()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [f"first-{hvd.rank()}.json", "second.json"][:1 + (hvd.rank() == 0)]
    assert hvd.rank() != 0 or allreduced_in(tmp_path / "second.json") == {"allreduce.again"}
    hvd.barrier()
