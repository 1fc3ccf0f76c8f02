# SPDX-License-Identifier: Apache-2.0
"""Processes that a rank has started, in any way, know whose workers they are, and that operations are not for them."""

import json
import multiprocessing
import os
import subprocess
import sys
import warnings

import pytest
import torch

import hvrun.torch as hvd
import needs
import whoami
from hvrun._programs import find_program


def _by_context(method, target):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of forks beside threads
        worker = context.Process(target=target, args=(queue,))
        worker.start()
    found = queue.get(timeout=120)
    worker.join()
    return found


def _as_program():
    return json.loads(subprocess.run([sys.executable, whoami.__file__], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver", "program"])
def test_a_worker_has_the_numbers_of_its_rank_and_no_operations(way):
    found = _as_program() if way == "program" else _by_context(way, whoami.put_answers)
    assert isinstance(found, dict), found
    assert found["numbers"] == [getattr(hvd, name)() for name in whoami.NUMBERS]
    assert found["of all ranks"] == [hvd.rank(), hvd.size(), True]
    assert found["is_initialized"] is False
    if hvd.size() == 1 and "HVRUN_AGENT" not in os.environ:
        return  # see alone/test_workers.py
    for words in found["errors"].values():
        assert words.startswith(f"WorkerError: this is a worker of rank {hvd.rank()} (pid {os.getpid()}): "), words
        assert " is for ranks. try: " in words


@needs.no_gpu
def test_an_operation_in_a_forked_child_names_its_rank():
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            hvd.allreduce(torch.ones(1))
            words = "no error"
        except hvd.HorovodInternalError as error:
            words = str(error)
        os.write(writer, words.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1000).decode().startswith(
        f"this is a worker of rank {hvd.rank()} (pid {os.getpid()}): hvd.allreduce() is for ranks. try: ")


@pytest.mark.skipif("HVRUN_AGENT" not in os.environ, reason="other launchers say nothing that is the same for their ranks")
def test_a_worker_of_a_forkserver_that_is_older_than_the_job_knows_its_rank_from_hvrun():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    worker = context.Process(target=whoami.put_rank_and_init, args=(queue,))
    worker.start()
    rank, (told, refused) = queue.get(timeout=120), queue.get(timeout=120)
    worker.join()
    assert (rank, told) == (hvd.rank(), "no error")
    assert f"this is a worker of rank {hvd.rank()}, which has joined already, as pid {os.getpid()}" in refused


def test_a_job_that_a_rank_starts_has_ranks_of_its_own():
    program = "import hvrun.basics as b; b.init(); print(b.rank(), b.size())"
    if hvd.rank() == 0:
        done = subprocess.run([find_program("hvrun"), "--no-label", "--oversubscribe", "-np", "2", sys.executable, "-c", program],
                              capture_output=True, text=True, check=False)
        assert (sorted(done.stdout.splitlines()), done.stderr, done.returncode) == (["0 2", "1 2"], "", 0)


class _Ranks(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.tensor([hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()])


@needs.no_gpu
def test_workers_of_a_loader_know_which_ranks_they_are():
    mine = _Ranks()[0].tolist()

    def begin(number):
        assert hvd.rank() == mine[0], number

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = torch.utils.data.DataLoader(_Ranks(), batch_size=1, num_workers=2, worker_init_fn=begin, multiprocessing_context="fork")
        assert [one.tolist() for one in loader] == [[mine]] * 4
