# SPDX-License-Identifier: Apache-2.0
"""A sampler that goes on in the middle of an epoch, with another number of ranks if need be."""

import math
import random

from torch.utils.data import Sampler

from hvrun import basics


class ElasticSampler(Sampler):
    """Shares the indices of a dataset among the ranks, without those that have been processed in this epoch.

    Call record_batch() after each batch, set_epoch() at an epoch's end, and put it into a TorchState. The order is the same on
    all ranks: it comes from seed and epoch. Where the rest does not come out even, indices from its beginning fill it up.
    """

    def __init__(self, dataset, shuffle=True, seed=0):
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch):
        """Another epoch begins: nothing of it is processed."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx, batch_size):
        """So many samples were processed on every rank. The iteration that goes on does not change; the next one does."""
        del batch_idx
        self.processed_num += batch_size * self.num_replicas

    @property
    def processed_indices(self):
        """The set of what all ranks together have processed in this epoch."""
        return set(self._order[:self.processed_num])

    def state_dict(self):
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict):
        self.epoch, self.processed_num = state_dict["epoch"], state_dict["processed_num"]
        self.reset()

    def reset(self):
        """The ranks may be others: their shares are made anew of what is left."""
        self.num_replicas, self.rank = basics.size(), basics.rank()
        self._order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(self._order)
        self.remaining_indices = self._order[self.processed_num:]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self):
        rest = self.remaining_indices
        filled = (rest * math.ceil(self.total_size / len(rest)))[:self.total_size] if rest else []
        self.indices = filled[self.rank:self.total_size:self.num_replicas]
        return iter(self.indices)

    def __len__(self):
        return self.num_samples
