# SPDX-License-Identifier: Apache-2.0
"""hvrun.step_times: what counts as a wait for data or for others, and torch's DataLoader, which is timed without a word of the user's."""

import pickle
import threading

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from harness.turned_clock import Clock, Slow, turn
from hvrun.data import AsyncDataLoaderMixin, BaseDataLoader, Prefetcher
from hvrun.step_times import DATA, EXCHANGE, StepTimes, times
from hvrun.torch.loaders import watch_loaders

SECOND = 1_000_000_000


class Trial:
    """Times by a clock that a test turns."""

    def __init__(self):
        self.clock, self.told = Clock(), []
        self.times = StepTimes(self.clock, lambda sums: self.told.append((sums.steps, sums.nanoseconds)))

    def wait(self, kind, nanoseconds):
        begun = self.times.begin_wait()
        self.clock.now += nanoseconds
        self.times.end_wait(kind, begun)

    def step(self, nanoseconds, optimizer="one"):
        self.clock.now += nanoseconds
        self.times.step_ended(optimizer)

    def sums(self):
        made = self.times.sums
        return made.steps, made.nanoseconds, made.data_nanoseconds, made.exchange_nanoseconds, made.data_waits


def test_the_clock_begins_at_the_end_of_the_first_step():
    trial = Trial()
    trial.wait(DATA, 700)
    trial.wait(EXCHANGE, 70)
    trial.step(7)
    assert trial.sums() == (0, 0, 0, 0, 0)
    trial.wait(DATA, 30)
    trial.wait(EXCHANGE, 5)
    trial.step(15)
    assert trial.sums() == (1, 50, 30, 5, 1)


def test_a_wait_counts_once_whatever_waits_within_it():
    trial = Trial()
    trial.step(1)
    outer = trial.times.begin_wait()
    trial.wait(EXCHANGE, 10)
    trial.wait(DATA, 10)
    trial.times.end_wait(DATA, outer)
    trial.step(5)
    assert trial.sums() == (1, 25, 20, 0, 1)


def test_a_wait_of_another_thread_is_none():
    trial = Trial()
    trial.step(1)
    other = threading.Thread(target=lambda: trial.wait(DATA, 100))
    other.start()
    other.join()
    trial.step(1)
    assert trial.sums() == (1, 101, 0, 0, 0)


def test_a_wait_that_another_thread_steps_in_is_not_that_threads():
    trial = Trial()
    has_begun, has_stepped = threading.Event(), threading.Event()

    def wait_long():
        trial.step(1)
        begun = trial.times.begin_wait()
        has_begun.set()
        assert has_stepped.wait(30)
        trial.clock.now += 5000
        trial.times.end_wait(EXCHANGE, begun)

    other = threading.Thread(target=wait_long)
    other.start()
    assert has_begun.wait(30)
    trial.step(1)
    begun = trial.times.begin_wait()
    has_stepped.set()
    other.join()
    trial.times.end_wait(DATA, begun)
    trial.step(1)
    assert trial.sums() == (1, 5001, 5000, 0, 1)


def test_a_pause_is_no_step():
    trial = Trial()
    trial.step(1)
    for _ in range(20):
        trial.step(10)
    trial.wait(DATA, 90)
    trial.step(11)
    assert trial.sums() == (20, 200, 0, 0, 0)
    trial.wait(DATA, 90)
    trial.step(10)
    assert trial.sums() == (21, 300, 90, 0, 1)


def test_a_pause_among_the_first_steps_is_found_once_there_are_some():
    trial = Trial()
    trial.step(1)
    for number in range(20):
        trial.step(900 if number in (4, 12) else 10)
    assert trial.sums() == (18, 180, 0, 0, 0)


def test_an_optimizer_whose_turn_is_longer_makes_no_pause():
    trial = Trial()
    for number in range(1, 37):
        trial.step(1 if number % 6 else 30, "critic" if number % 6 else "generator")
    assert trial.sums() == (29, 29 + 6 * 30, 0, 0, 0)


def test_after_a_meeting_the_clock_begins_anew_and_the_sums_stay():
    trial = Trial()
    trial.step(1)
    trial.step(10)
    trial.times.begin_anew()
    trial.wait(DATA, 1000)
    trial.step(1000)
    assert trial.sums() == (1, 10, 0, 0, 0)
    trial.step(10)
    assert trial.sums() == (2, 20, 0, 0, 0)


def test_optimizers_that_take_turns_make_one_step_together():
    trial = Trial()
    for _ in range(11):
        trial.step(2, "generator")
        trial.step(3, "critic")
    assert trial.sums()[:2] == (10, 53)


def test_no_step_that_ends_within_a_wait_makes_parts_more_than_the_whole():
    trial = Trial()
    trial.step(1)
    begun = trial.times.begin_wait()
    trial.step(10)
    trial.clock.now += 10
    trial.times.end_wait(DATA, begun)
    trial.step(1)
    assert trial.sums() == (2, 21, 0, 0, 0)


def test_the_runtime_is_told_at_most_once_a_second_and_at_the_end():
    trial = Trial()
    for _ in range(26):
        trial.step(SECOND // 10)
    assert trial.told == [(20, 2 * SECOND)]
    trial.times.report()
    assert trial.told[-1] == (25, 25 * SECOND // 10)


def test_what_is_reported_never_shrinks_also_where_a_pause_is_found_late():
    trial = Trial()
    trial.step(1)
    for number in range(30):
        trial.step(900 * SECOND if number == 1 else 7 * SECOND)
    assert trial.told[0] == (1, 7 * SECOND) and trial.sums()[:2] == (29, 29 * 7 * SECOND)
    assert trial.told == sorted(trial.told) and len(trial.told) == 29


def test_nothing_is_told_of_no_steps():
    trial = Trial()
    trial.times.report()
    trial.step(1)
    trial.times.report()
    assert trial.told == []


# ---- loaders -------------------------------------------------------------------------------------------------------------


class Stream(IterableDataset):
    """Reads from another loader."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return iter(self.loader)


class Doubled(DataLoader):
    """A subclass whose __iter__ is a generator, as many have it."""

    def __iter__(self):
        for batch in super().__iter__():
            yield 2 * batch


class Itself(DataLoader):
    """A subclass that is its own iterator, and asks no other."""

    def __iter__(self):
        self.left = 3
        return self

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        self.dataset.clock.now += self.dataset.nanoseconds
        return torch.tensor(self.left)


@pytest.fixture
def turned(monkeypatch):
    return turn(monkeypatch)


def waited(clock, batches):
    """(batches, what the time until each was: data, all, how often), where a step of 5 follows each."""
    times.step_ended("one")
    before = times.sums.data_nanoseconds, times.sums.nanoseconds, times.sums.data_waits
    taken = []
    for batch in batches:
        taken.append(batch)
        clock.now += 5
        times.step_ended("one")
    after = times.sums.data_nanoseconds, times.sums.nanoseconds, times.sums.data_waits
    return taken, *(late - early for late, early in zip(after, before))


def test_the_time_until_a_dataloader_has_a_batch_is_a_wait(turned):
    loader = DataLoader(Slow(turned, 10), batch_size=2)
    taken, data, whole, waits = waited(turned, loader)
    assert [one.tolist() for one in taken] == [[0, 1], [2, 3], [4, 5]]
    assert (data, whole) == (60, 75) and waits >= 3
    assert waited(turned, loader)[1:3] == (60, 75)  # and again in the next epoch


def test_iterators_stay_what_they_were(turned):
    first = iter(DataLoader(Slow(turned, 1)))
    watch_loaders()
    second = iter(DataLoader(Slow(turned, 1)))
    assert type(first) is type(second) and type(first).__module__.startswith("torch.utils.data")
    assert isinstance(next(first), torch.Tensor) and len(list(first)) == 5 and next(first, "none") == "none"
    assert len(pickle.loads(pickle.dumps(DataLoader([1, 2, 3])))) == 3
    assert DataLoader.__iter__.__name__ == "__iter__"


def test_loaders_within_loaders_count_once(turned):
    nested = DataLoader(Stream(DataLoader(Slow(turned, 10), batch_size=None)), batch_size=2)
    taken, data, whole, _ = waited(turned, nested)
    assert len(taken) == 3 and (data, whole) == (60, 75)


def test_subclasses_are_timed_too(turned):
    taken, data, whole, _ = waited(turned, Doubled(Slow(turned, 10), batch_size=2))
    assert [one.tolist() for one in taken] == [[0, 2], [4, 6], [8, 10]]
    assert (data, whole) == (60, 75)
    assert waited(turned, Itself(Slow(turned, 10)))[1:3] == (30, 45)


def test_workers_are_waited_for_and_persist(turned):
    loader = DataLoader(range(8), batch_size=2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        taken, _, _, waits = waited(turned, loader)
        assert [one.tolist() for one in taken] == [[0, 1], [2, 3], [4, 5], [6, 7]] and waits >= 4


def test_what_a_loader_raises_comes_through_and_later_waits_count(turned):
    def fail(samples):
        turned.now += 10
        if samples == [2]:
            raise RuntimeError("no such image")
        return samples

    taken = []
    with pytest.raises(RuntimeError, match="no such image"):
        for one in DataLoader(range(4), batch_size=1, collate_fn=fail):
            taken.append(one)
            times.step_ended("one")
    assert taken == [[0], [1]]
    assert waited(turned, DataLoader(Slow(turned, 10), batch_size=2))[1] == 60


def test_what_is_read_ahead_is_no_wait(turned):
    """All has been read before the training asks for the second batch."""
    is_read = threading.Event()

    def read():
        for number in range(3):
            turned.now += 10
            yield number
        is_read.set()

    batches = iter(Prefetcher(read()))
    first = next(batches)
    assert is_read.wait(30)
    taken, data, _, waits = waited(turned, batches)
    assert [first, *taken] == [0, 1, 2] and waits == 2 and data == 0

    def counted(thread):
        for number in range(3):
            assert threading.get_ident() != thread
            begun = times.begin_wait()
            times.end_wait(DATA, begun)
            assert begun == 0
            yield number

    assert waited(turned, Prefetcher(counted(threading.get_ident())))[0] == [0, 1, 2]


class Own(BaseDataLoader):
    def __init__(self, clock):
        self.clock = clock
        super().__init__()

    def __len__(self):
        return 3

    def _iterate(self):
        for number in range(3):
            self.clock.now += 10
            yield number


class Ahead(AsyncDataLoaderMixin, Own):
    pass


def test_loaders_of_horovods_kind_are_timed(turned):
    assert waited(turned, Own(turned))[1:3] == (30, 45)
    taken, _, _, waits = waited(turned, Ahead(clock=turned))
    assert taken == [0, 1, 2] and waits >= 3
