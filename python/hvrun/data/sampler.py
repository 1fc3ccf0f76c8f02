# SPDX-License-Identifier: Apache-2.0
"""Which samples of a dataset are this rank's."""

import math
import random

from hvrun import basics


class DistributedSampler:
    """Shares a dataset's indices among the ranks, as torch.utils.data.DistributedSampler does, and goes on in the middle of an
    epoch: state_dict() belongs into a checkpoint, and load_state_dict() is for any number of ranks.

    Call advance(batch_size) after each batch, set_epoch() at the beginning of each epoch. Without num_replicas and rank they
    are the job's. The order comes from seed and epoch. drop_last: what does not come out even is left out, else indices from
    the beginning fill it up.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        self.dataset, self.shuffle, self.seed, self.drop_last = dataset, shuffle, seed, drop_last
        self.num_replicas = basics.size() if num_replicas is None else num_replicas
        self.rank = basics.rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"rank {self.rank} is not one of {self.num_replicas} replicas")
        self.epoch = 0
        self._done = 0  # samples of this epoch that all ranks together are through with

    def set_epoch(self, epoch):
        """Another epoch begins, unless it is the one that load_state_dict() has come back to."""
        if epoch != self.epoch:
            self.epoch, self._done = epoch, 0

    def advance(self, batch_size):
        """Every rank is through with so many samples more."""
        self._done += batch_size * self.num_replicas

    def state_dict(self):
        return {"epoch": self.epoch, "done": self._done, "seed": self.seed}

    def load_state_dict(self, state):
        self.epoch, self._done, self.seed = state["epoch"], state["done"], state["seed"]

    def _rest(self):
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(f"{self.seed} {self.epoch}").shuffle(indices)
        return indices[self._done:]

    def __len__(self):
        rest = max(len(self.dataset) - self._done, 0)
        return rest // self.num_replicas if self.drop_last else math.ceil(rest / self.num_replicas)

    def __iter__(self):
        rest, total = self._rest(), len(self) * self.num_replicas
        filled = (rest * math.ceil(total / len(rest)))[:total] if rest else []
        return iter(filled[self.rank::self.num_replicas])
