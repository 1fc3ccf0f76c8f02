# SPDX-License-Identifier: Apache-2.0
"""Training that goes on after a failure, in the same processes."""

import pytest
import torch

import hvrun.torch as hvd
from hvrun.elastic import REMOVED


class Data:
    def __len__(self):
        return 23


def test_a_failed_operation_brings_all_ranks_back_to_the_last_commit():
    torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(2, 1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    resets, seen = [], []

    @hvd.elastic.run
    def train(state):
        while state.step < 6:
            seen.append(state.step)
            optimizer.zero_grad()
            model(torch.full((2, 2), hvd.rank() + 1.0)).mean().backward()
            optimizer.step()
            if state.step == 4 and not resets:  # what would be averaged is not alike: an error on every rank
                hvd.allreduce(torch.ones(1 + hvd.rank()), name="broken")
                raise hvd.HorovodInternalError("alone nothing is broken")
            scheduler.step()
            state.step += 1
            if state.step % 3 == 0:
                state.commit()
        return state.step

    state = hvd.elastic.TorchState(model, optimizer, scheduler=scheduler, step=0)
    state.register_reset_callbacks([lambda: resets.append(hvd.size())])
    assert train(state) == 6
    assert resets == [hvd.size()]
    assert seen == [0, 1, 2, 3, 4, 3, 4, 5]
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * 0.5 ** 3)
    for one in model.parameters():
        assert torch.equal(one, hvd.broadcast(one.detach().clone(), 0))


@pytest.mark.ranks(2)
def test_a_failure_that_one_rank_alone_has_brings_all_back():
    """Such as one of its own library's: the others hear of it where they wait for it."""
    seen = []

    @hvd.elastic.run
    def train(state):
        while state.step < 4:
            seen.append(state.step)
            hvd.allreduce(torch.ones(1), name="step")
            if len(seen) == 3 and hvd.rank() == hvd.size() - 1:
                raise hvd.HorovodInternalError("only here")
            state.step += 1
            if state.step == 2:
                state.commit()
        return hvd.allreduce(torch.ones(1), op=hvd.Sum).item()

    assert train(hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=0)) == hvd.size()
    assert seen[:3] == [0, 1, 2] and seen[-2:] == [2, 3]


def test_sync_gives_all_ranks_the_first_ones_state():
    model = torch.nn.Linear(2, 1)
    state = hvd.elastic.TorchState(model=model, epoch=hvd.rank(), names=["a"] * hvd.rank())
    state.sync()
    assert (state.epoch, state.names) == (0, [])
    state.epoch, state.names = 5, ["changed"]
    state.restore()
    assert (state.epoch, state.names) == (0, [])
    state.model = other = torch.nn.Linear(2, 1)
    state.restore()
    assert state.model is other


def test_hosts_that_change_interrupt_all_ranks_at_a_commit():
    state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, batch=0)
    state.commit()
    if hvd.rank() == 0:
        state.on_hosts_updated(1, REMOVED)
    with pytest.raises(hvd.HostsUpdatedInterrupt) as interrupt:
        state.commit()
    assert interrupt.value.skip_sync
    state.commit()  # heard once


def test_a_changed_job_goes_on_from_the_state_as_it_is():
    calls = []

    @hvd.elastic.run
    def train(state, more):
        calls.append(state.batch)
        if len(calls) == 1:
            state.batch = 7
            raise hvd.HostsUpdatedInterrupt(skip_sync=True)
        return state.batch + more

    assert train(hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, batch=1), 1) == 8
    assert calls == [1, 7]


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_sampler_shares_what_is_left(shuffle):
    sampler = hvd.elastic.ElasticSampler(Data(), shuffle=shuffle, seed=3)
    shares = hvd.allgather_object(list(sampler))
    assert all(len(share) == len(sampler) for share in shares)
    assert set().union(*shares) == set(range(23))
    done = {index for share in shares for index in share[:2]}
    sampler.record_batch(0, 2)
    other = hvd.elastic.ElasticSampler(Data(), shuffle=shuffle, seed=3)
    other.load_state_dict(sampler.state_dict())
    rest = hvd.allgather_object(list(other))
    assert set().union(*rest) - done == set(range(23)) - done
    if len(done) + hvd.size() <= 23:
        assert not done & {index for share in rest for index in share[:-1]}
    sampler.set_epoch(1)
    again = hvd.allgather_object(list(sampler))
    assert set().union(*again) == set(range(23)) and (again != shares) == shuffle


def test_the_sampler_counts_batches_as_horovod_also_a_partial_one_and_more_than_there_are():
    sampler = hvd.elastic.ElasticSampler(Data())
    counts = []
    for batch, told in enumerate([8, 3, 23]):
        sampler.record_batch(batch, told)
        counts.append(sampler.processed_num)
    assert counts == [8 * hvd.size(), 11 * hvd.size(), 34 * hvd.size()]
    sampler.load_state_dict(sampler.state_dict())
    assert (sampler.processed_num, len(sampler), list(sampler)) == (34 * hvd.size(), 0, [])
    assert sampler.processed_indices == set(range(23))
