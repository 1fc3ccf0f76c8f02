# SPDX-License-Identifier: Apache-2.0
"""When a parameter's gradient is complete, and how it gets averaged: what stands behind DistributedOptimizer.

A hook of each parameter counts its backward passes. After the last one its gradient is exchanged, between hosts while the
backward pass goes on; synchronize() adds what had no gradient on this rank and waits. The first exchange is one of single
tensors; in it the ranks learn which gradients may share buckets, and rank 0's order of arrival decides which do. A rank that is
alone, or not in the process set, exchanges nothing.
"""

import dataclasses
import os
import warnings

import torch

from hvrun import _abi, basics, inflight
from hvrun.process_sets import ProcessSet, global_process_set
from hvrun.torch import operations as ops
from hvrun.torch.compression import Compression, wire_of
from hvrun.torch.gradient_buckets import Bucket, can_lie_in_bucket, split_into_buckets

_BUCKET_BYTES = 25 << 20
_DENSE, _ALONE, _SPARSE = 0, 1, 2  # may lie in a bucket; may not; has sparse gradients


@dataclasses.dataclass(frozen=True)
class ExchangeTerms:
    """How gradients are averaged: the same on every rank."""

    op: ops.ReduceOp = ops.Average
    compression: type = Compression.none
    predivide_factor: float = 1.0
    process_set: ProcessSet = global_process_set
    sparse_as_dense: bool = False
    keeps_none: bool = False  # what had a gradient on no rank has none afterwards, as in DistributedDataParallel

    @property
    def scales(self):
        """What gradients are multiplied by before and after the reduction."""
        return 1.0 / self.predivide_factor, self.predivide_factor

    def allows_buckets(self):
        return self.op in (ops.Average, ops.Sum) and getattr(self.compression, "wire", None) is not None


class GradientExchange:
    """names: of parameters, in the order of the optimizer's groups, the same on all ranks. groups: lists of parameters that
    travel together; without any, buckets are learned."""

    def __init__(self, label, names, terms, passes, groups):
        self._label, self._names, self._terms = label, dict(names), terms
        self.passes = passes
        self._left = {}  # parameter: backward passes until its gradient is complete
        self._handles = {}  # parameter: (its handle, its gradient's version), of those that travel by themselves
        self._kinds = {}  # parameter: _DENSE and so on, once learned
        self._arrivals = []  # parameters, in the order of their gradients' completion in the first exchange
        self._places = {}  # parameter: its Place
        self._buckets = []
        self._hooks = {}
        self._is_idle = not terms.process_set.included() or terms.process_set.size() == 1
        self._is_learning = terms.allows_buckets() and not groups
        # The ranks of one host reduce on the very cores that their backward passes compute on: both at once would only make
        # threads wait for each other's turns. Between hosts the network works meanwhile.
        self._is_deferred = basics.local_size() == basics.size()
        self._groups = self._group_fields(groups)
        for parameter in self._names:
            self._watch(parameter)

    # ---- parameters -----------------------------------------------------------------------------------------------------

    def add(self, names):
        """More parameters: of a group that was added to the optimizer."""
        for parameter, name in names:
            if parameter not in self._names:
                self._names[parameter] = name
                self._watch(parameter)

    def _watch(self, parameter):
        if parameter.requires_grad and parameter not in self._hooks and not self._is_idle:
            self._left[parameter] = self.passes
            self._hooks[parameter] = parameter.register_post_accumulate_grad_hook(self._arrived)

    def _watched(self):
        """Those that need a gradient now; some may have been frozen when the optimizer was wrapped."""
        for parameter in self._names:
            self._watch(parameter)
        return [parameter for parameter in self._names if parameter.requires_grad]

    def _group_fields(self, groups):
        fields = {}
        for group in groups:
            names = [self._names[parameter] for parameter in group]
            shared = ops.group_fields(self._label, names) if len(group) > 1 else {}
            fields.update({parameter: shared for parameter in group})
        return fields

    def set_passes(self, passes):
        self.passes = passes
        for parameter in self._left:
            self._left[parameter] = passes

    def reset(self):
        """Forgets what is on its way: the job has been left, or the optimizer's state is another one."""
        self._handles = {}
        for bucket in self._buckets:
            bucket.reset()
        for parameter in self._left:
            self._left[parameter] = self.passes

    def is_pending(self):
        """Whether a gradient is on its way that nobody has waited for."""
        return bool(self._handles) or any(place.is_taken for place in self._places.values())

    # ---- during the backward pass ---------------------------------------------------------------------------------------

    def _arrived(self, parameter):
        left = self._left[parameter] - 1
        if left < 0:
            raise AssertionError(
                f"the gradient of {self._names[parameter]} was computed more often than backward_passes_per_step "
                f"({self.passes}) times before step() or synchronize(); raise backward_passes_per_step to accumulate "
                "gradients over several backward passes")
        self._left[parameter] = left
        if left == 0:
            self._exchange(parameter)

    def _exchange(self, parameter):
        place = self._places.get(parameter)
        if place is not None:
            fits = parameter.grad.shape == place.view.shape  # not where its parameter has got other data meanwhile
            place.take(parameter) if fits else place.skip()
            self._arrived_at(place.bucket)
            if fits:
                return
        if self._is_learning:
            self._arrivals.append(parameter)
        self._send_alone(parameter)

    def _send_alone(self, parameter):
        self._handles[parameter] = self._start_alone(parameter), parameter.grad._version

    def _arrived_at(self, bucket):
        if bucket.arrived() and not self._is_deferred:
            self._start_bucket(bucket)

    def _start_bucket(self, bucket):
        before, after = self._terms.scales
        wire = getattr(self._terms.compression, "wire", _abi.COMPRESSION_NONE)
        rare = {"compression": wire} if wire and bucket.kind in (_abi.FLOAT32, _abi.FLOAT64) else {}
        bucket.start(process_set=ops.number_of(self._terms.process_set), reduction=ops.reduction_of(self._terms.op),
                     prescale=before, postscale=after, **rare)

    def _start_alone(self, parameter):
        terms, name = self._terms, f"{self._label}.{self._names[parameter]}"
        gradient = parameter.grad
        if gradient.layout is not torch.strided:
            if not terms.sparse_as_dense:
                return self._start_sparse(parameter, name)
            gradient = gradient.to_dense()
        before, after = terms.scales
        return ops.compressed_allreduce_async_(gradient, name, terms.op, terms.compression, before, after, terms.process_set,
                                               **self._groups.get(parameter, {}))

    def _start_sparse(self, parameter, name):
        if self._groups.get(parameter):
            raise ValueError(f"{self._names[parameter]} has sparse gradients, which travel in no group; leave it out of "
                             "groups, or give sparse_as_dense=True")
        if self._terms.compression is not Compression.none:
            warnings.warn("sparse gradients are exchanged without compression", stacklevel=2)
        if self._terms.predivide_factor != 1:
            raise ValueError("gradient_predivide_factor is for dense gradients; give sparse_as_dense=True")
        return ops.sparse_allreduce_async(parameter.grad, name, self._terms.op, self._terms.process_set)

    # ---- afterwards -----------------------------------------------------------------------------------------------------

    def synchronize(self):
        """Exchanges what had no gradient here, waits for all, and leaves the results in `grad`. Raises the first thing that
        went wrong, with nothing left on its way."""
        if self._is_idle:
            return
        watched = self._watched()
        missing = [one for one in watched if one not in self._handles and not self._is_taken(one)]
        used = self._used_anywhere(watched, missing)
        for parameter in missing:
            self._fill(parameter)
        for bucket in self._buckets:
            if bucket.is_complete() and not bucket.is_started():
                self._start_bucket(bucket)
        self._wait()
        for parameter in missing:
            if used is not None and not used[parameter]:
                parameter.grad = None
        if self._is_learning:
            self._learn(watched)

    def _is_taken(self, parameter):
        place = self._places.get(parameter)
        return place is not None and place.is_taken

    def _used_anywhere(self, watched, missing):
        """parameter: whether a rank had a gradient for it; None where nobody asks."""
        if not self._terms.keeps_none:
            return None
        absent = set(missing)
        flags = [0 if one in absent and one.grad is None else 1 for one in watched]
        return dict(zip(watched, self._reduce(flags, "used", _abi.MAX)))

    def _reduce(self, numbers, what, reduction):
        return inflight.reduce_numbers(f"{self._label}.{what}", numbers, reduction, ops.number_of(self._terms.process_set))

    def _fill(self, parameter):
        """It has had no backward pass on this rank: what it has, or zeros, is its part."""
        if parameter.grad is not None:
            self._exchange(parameter)
            return
        place = self._places.get(parameter)
        if place is not None:
            place.take_zeros(parameter)
            self._arrived_at(place.bucket)
            return
        if self._kinds.get(parameter) == _SPARSE:
            parameter.grad = _no_rows(parameter)  # as the other ranks have it, with rows
        else:
            parameter.grad = torch.zeros_like(parameter)
        self._send_alone(parameter)

    def _wait(self):
        handles, self._handles = self._handles, {}
        changed = [self._names[one] for one, (_, version) in handles.items() if one.grad._version != version]
        error = None
        for wait, settle in self._waits(handles):
            try:
                settle(wait())
            except Exception as failure:  # the rest must end before anybody touches the gradients again
                error = error or failure
        for parameter in self._left:
            self._left[parameter] = self.passes
        changed += [self._names[one] for one, place in self._places.items() if place.is_taken and not place.settle(one)]
        if error is not None:
            raise error
        if changed:
            _warn_of_changed(changed)

    def _waits(self, handles):
        for parameter, (handle, _) in handles.items():
            yield handle.wait, lambda made, parameter=parameter: _give_back(parameter, made)
        for bucket in self._buckets:
            if bucket.is_started():
                yield bucket.finish, lambda made: None

    # ---- learning -------------------------------------------------------------------------------------------------------

    def _learn(self, watched):
        """After the first exchange, on all ranks: what may lie in buckets, and in which."""
        self._is_learning = False
        mine = [self._kind_of(parameter) for parameter in watched]
        self._kinds = dict(zip(watched, self._reduce(mine, "kinds", _abi.MAX)))
        order = self._order_of_root(watched)
        dense = [one for one in order if self._kinds[one] == _DENSE]
        limit = int(os.environ.get("HVRUN_BUCKET_BYTES") or _BUCKET_BYTES)
        for number, parameters in enumerate(split_into_buckets(dense, limit)):
            bucket = Bucket(f"{self._label}.bucket.{number}", parameters[0].dtype, parameters)
            self._buckets.append(bucket)
            self._places.update(bucket.places)
        self._arrivals = []

    def _kind_of(self, parameter):
        if parameter.grad is not None and parameter.grad.layout is not torch.strided:
            return _SPARSE
        return _DENSE if can_lie_in_bucket(parameter) else _ALONE

    def _order_of_root(self, watched):
        """The first rank's order of arrival, then what never arrived there, last first: as gradients do."""
        index = {parameter: i for i, parameter in enumerate(watched)}
        seen = [index[parameter] for parameter in self._arrivals]
        seen += sorted(set(range(len(watched))) - set(seen), reverse=True)
        root = self._terms.process_set.rank() == 0
        numbers = self._reduce(seen if root else [0] * len(seen), "order", _abi.SUM)
        return [watched[i] for i in numbers]


def _no_rows(parameter):
    return torch.sparse_coo_tensor(torch.empty((1, 0), dtype=torch.int64),
                                   torch.empty((0, *parameter.shape[1:]), dtype=parameter.dtype), parameter.shape,
                                   device=parameter.device)


def _give_back(parameter, made):
    """made: the very tensor that was the gradient, or one in its stead."""
    if made.layout is not torch.strided:
        parameter.grad = made.coalesce()
    elif parameter.grad.layout is not torch.strided:  # it travelled as a dense one
        parameter.grad = made.to_sparse(1)


def _warn_of_changed(names):
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    warnings.warn(
        f"the gradients of {shown} were changed after the backward pass, while they were being averaged: what was changed is "
        "lost or wrong. To clip or scale gradients call optimizer.synchronize() first, then change them, then step inside "
        "'with optimizer.skip_synchronize():'", stacklevel=4)
