# SPDX-License-Identifier: Apache-2.0
"""What counts as a step, and as its wait for data, in the loops that people write; by a clock that the test turns."""

import needs
import pytest
import torch
from torch.utils.data import DataLoader

import hvrun.torch as hvd
from harness.turned_clock import Slow, turn
from hvrun.step_times import times

DATA, COMPUTE = 10, 5  # nanoseconds that a batch takes


@pytest.fixture
def clock(monkeypatch):
    return turn(monkeypatch)


class Training:
    def __init__(self, clock, **options):
        self.clock, self.model = clock, torch.nn.Linear(1, 1)
        self.optimizer = hvd.DistributedOptimizer(torch.optim.SGD(self.model.parameters(), lr=1e-3), **options)

    def backward(self, batch, factor=1.0, scaler=None):
        self.optimizer.zero_grad()
        loss = self.model(torch.full((1, 1), float(batch))).sum() * factor
        (loss if scaler is None else scaler.scale(loss)).backward()
        self.clock.now += COMPUTE

    def epoch(self, batches):
        for batch in DataLoader(Slow(self.clock, DATA, batches)):
            self.backward(batch)
            self.optimizer.step()


def validate(clock, batches):
    with torch.no_grad():
        for _ in DataLoader(Slow(clock, DATA, batches)):
            clock.now += COMPUTE


def assert_measured(steps, batches=None, more=0):
    """more: what other batches there were between steps."""
    batches = steps if batches is None else batches
    assert (times.sums.steps, times.sums.nanoseconds) == (steps, (DATA + COMPUTE) * (batches + more))
    assert (times.sums.data_nanoseconds, times.sums.exchange_nanoseconds) == (DATA * (batches + more), 0)


def test_steps_between_the_first_and_the_last_count(clock):
    Training(clock).epoch(8)
    assert_measured(7)


@needs.cpu_scaler
@pytest.mark.parametrize("infinite", [[2, 5, 6], [0, 1, 3]], ids=["later", "at first"])
def test_steps_that_a_scaler_skips_are_none_and_their_batches_the_next_ones(clock, infinite):
    training, scaler = Training(clock), torch.amp.GradScaler("cpu", init_scale=4.0)
    for batch in DataLoader(Slow(clock, DATA, 8)):
        is_infinite = int(batch) in infinite and hvd.rank() == hvd.size() - 1
        training.backward(batch, float("inf") if is_infinite else 1.0, scaler)
        scaler.step(training.optimizer)
        scaler.update()
    first = min(set(range(8)) - set(infinite))
    assert_measured(8 - len(infinite) - 1, batches=8 - first - 1)


def test_the_time_that_a_rank_waits_for_the_last_to_join_is_no_step(clock):
    training, batches = Training(clock), 3 + 2 * hvd.rank()
    for _ in range(2):
        training.epoch(batches)
        clock.now += 1000 * (hvd.size() - hvd.rank())
        last = hvd.join()
        hvd.broadcast_parameters(training.model.state_dict(), root_rank=last)
    assert_measured(2 * (batches - 1))


def test_a_validation_of_ten_steps_time_is_neither_a_step_nor_a_wait(clock):
    training = Training(clock)
    for _ in range(3):
        training.epoch(25)
        validate(clock, 12)
    assert_measured(3 * 24)


def test_a_shorter_validation_belongs_to_the_step_after_it(clock):
    training = Training(clock)
    for _ in range(3):
        training.epoch(25)
        validate(clock, 4)
    assert_measured(3 * 25 - 1, more=2 * 4)


def test_a_validation_before_twenty_steps_are_measured_is_no_step_either(clock):
    training = Training(clock)
    for _ in range(5):
        training.epoch(8)
        validate(clock, 30)
    assert_measured(5 * 7)


@pytest.mark.parametrize("per_turn", [1, 5])
def test_optimizers_that_take_turns_make_the_steps_of_the_one_that_steps_more_often(clock, per_turn):
    critic, generator = Training(clock), Training(clock)
    turns = 6
    batches = iter(DataLoader(Slow(clock, DATA, turns * (per_turn + 1))))
    for _ in range(turns):
        for _ in range(per_turn):
            critic.backward(next(batches))
            critic.optimizer.step()
        generator.backward(next(batches))
        generator.optimizer.step()
    steps = turns * per_turn - 1
    assert_measured(steps, batches=steps + turns)


@pytest.mark.parametrize("has_other", [False, True], ids=["alone", "beside one of all ranks"])
def test_an_optimizer_of_some_ranks_is_not_measured_and_one_of_all_beside_it_is(clock, has_other):
    first = hvd.add_process_set([0]) if hvd.size() > 1 else hvd.global_process_set
    of_some = Training(clock, process_set=first)
    of_all = Training(clock) if has_other else None
    for batch in DataLoader(Slow(clock, DATA, 6)):
        for one in [of_some, of_all] if has_other else [of_some]:
            one.backward(batch)
            one.optimizer.step()
    if hvd.size() > 1:
        assert times.sums.steps == 5 * has_other
        assert times.sums.nanoseconds == 5 * (DATA + 2 * COMPUTE) * has_other
    hvd.remove_process_set(first)
