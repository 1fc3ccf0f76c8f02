# SPDX-License-Identifier: Apache-2.0
"""The time of hvrun.step_times by a clock that a test turns: what data and computing take is said, and nobody waits for it."""

import torch

from hvrun.step_times import StepTimes, times
from hvrun.torch.loaders import watch_loaders


class Clock:
    def __init__(self):
        self.now = 1000

    def __call__(self):
        return self.now


def turn(monkeypatch):
    """The process's own times begin at zero, and are told to nobody; the clock that they go by."""
    clock, fresh = Clock(), StepTimes(None, lambda sums: None)
    for name, value in {**vars(fresh), "_clock": clock}.items():
        monkeypatch.setattr(times, name, value)
    watch_loaders()
    return clock


class Slow(torch.utils.data.Dataset):
    """Numbers from 0 on; each takes so many nanoseconds of the clock."""

    def __init__(self, clock, nanoseconds, count=6):
        self.clock, self.nanoseconds, self.count = clock, nanoseconds, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.clock.now += self.nanoseconds
        return torch.tensor(index)
