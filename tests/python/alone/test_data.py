# SPDX-License-Identifier: Apache-2.0
"""hvrun.data: shares of a dataset, and reading ahead."""

import itertools
import multiprocessing
import threading

import pytest
import torch

from hvrun.data import AsyncDataLoaderMixin, BaseDataLoader, DistributedSampler, Prefetcher


def shares(size, replicas, **options):
    return [list(DistributedSampler(range(size), replicas, rank, **options)) for rank in range(replicas)]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 12])
@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
@pytest.mark.parametrize("drop_last", [False, True])
def test_shares_are_equal_and_together_everything(size, replicas, drop_last):
    made = shares(size, replicas, drop_last=drop_last)
    assert len({len(share) for share in made}) == 1
    assert len(made[0]) == len(DistributedSampler(range(size), replicas, 0, drop_last=drop_last))
    together = set().union(*made)
    assert together <= set(range(size))
    if not drop_last:
        assert together == set(range(size))
    else:
        assert len(together) == size - size % replicas


def test_epochs_differ_and_repeat():
    sampler = DistributedSampler(range(50), 2, 0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first
    sampler.set_epoch(0)
    assert list(sampler) == first
    assert list(DistributedSampler(range(5), 1, 0, shuffle=False)) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="not one of"):
        DistributedSampler(range(5), 2, 2)


@pytest.mark.parametrize("later", [1, 2, 3, 4])
def test_an_epoch_goes_on_with_any_number_of_ranks(later):
    samplers = [DistributedSampler(range(24), 2, rank, seed=9) for rank in range(2)]
    seen = {index for sampler in samplers for index in list(sampler)[:4]}
    for sampler in samplers:
        sampler.advance(4)
    rest = []
    for rank in range(later):
        other = DistributedSampler(range(24), later, rank)
        other.load_state_dict(samplers[0].state_dict())
        other.set_epoch(0)  # as a training loop says at the beginning of the epoch that it goes on with
        rest += list(other)
    assert set(rest) == set(range(24)) - seen
    assert len(rest) - len(set(rest)) < later


def test_batches_come_in_order_and_again():
    ahead = Prefetcher([1, 2, 3], depth=2, prepare=lambda batch: batch * 10)
    assert list(ahead) == [10, 20, 30] and list(ahead) == [10, 20, 30] and len(ahead) == 3


def test_no_more_is_read_than_may_wait():
    read, may_go_on = [], threading.Event()

    def source():
        for number in range(100):
            read.append(number)
            if number == 3:
                may_go_on.set()
            yield number

    batches = iter(Prefetcher(source(), depth=2))
    assert next(batches) == 0
    assert may_go_on.wait(10)  # one that was taken, two that wait, one in the reader's hands
    assert len(read) == 4
    batches.close()
    assert threading.active_count() == 1


class Tensors(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.full((2,), float(index))


def test_a_loader_with_workers_is_read_ahead():
    loader = torch.utils.data.DataLoader(Tensors(), batch_size=2, num_workers=2)
    for _ in range(2):  # its epochs
        assert [batch[:, 0].tolist() for batch in Prefetcher(loader)] == [[0, 1], [2, 3], [4, 5]]
    for batch in Prefetcher(loader):
        assert batch.shape == (2, 2)
        break
    assert not [one for one in threading.enumerate() if one.name == "hvrun-prefetcher"]
    assert multiprocessing.active_children() == []


def test_what_has_no_end_can_be_left():
    seen = []
    for number in Prefetcher(itertools.count(), depth=3):
        seen.append(number)
        if number == 5:
            break
    assert seen == [0, 1, 2, 3, 4, 5]
    assert not [one for one in threading.enumerate() if one.name == "hvrun-prefetcher"]


def test_what_the_reader_meets_is_told():
    def source():
        yield 1
        raise OSError("the disk is gone")

    batches = iter(Prefetcher(source()))
    assert next(batches) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(batches)
    with pytest.raises(ValueError, match="from 1 on"):
        Prefetcher([], depth=0)


class Numbers(BaseDataLoader):
    def __len__(self):
        return 3

    def _iterate(self):
        yield from range(3)

    def _process_batch(self, batch):
        return batch + 100


class Ahead(AsyncDataLoaderMixin, Numbers):
    pass


def test_loaders_of_ones_own():
    assert list(Numbers()) == [100, 101, 102]
    for size in (0, 1, 64):
        loader = Ahead(async_loader_queue_size=size)
        assert list(loader) == [100, 101, 102] and list(loader) == [100, 101, 102]
        iteration = iter(loader)
        next(iteration)
        loader.close_async_loader()
    iteration.close()
    assert threading.active_count() == 1
