# SPDX-License-Identifier: Apache-2.0
"""When a parameter's gradient is complete, and how it gets averaged: what stands behind DistributedOptimizer.

A hook of each parameter counts its backward passes. After the last one its gradient is exchanged, between hosts while the
backward pass goes on; synchronize() adds what had no gradient on this rank and waits. The first exchange begins there, when the
ranks have agreed what is exchanged, and is one of single tensors; in it they learn which gradients may share buckets, and rank
0's order of arrival decides which do. A rank that is alone, or not in the process set, exchanges nothing.
"""

import dataclasses
import weakref

import torch

from hvrun import _abi, basics, inflight
from hvrun._called import warn
from hvrun.exceptions import HorovodInternalError
from hvrun.process_sets import ProcessSet, global_process_set
from hvrun.step_times import EXCHANGE, times
from hvrun.torch import operations as ops
from hvrun.torch.agreement import Agreement, form_of, needs_of
from hvrun.torch.compression import Compression, wire_of
from hvrun.torch.gradient_buckets import (
    Bucket, bucket_bytes, can_lie_in_bucket, give_back, give_freed_memory_back, layout_number, split_into_buckets, version_of,
    wants_windows)

_owners = {}  # a parameter's id: a mark of the exchange that it belongs to, which keeps it alive. A parameter is to be pickled
_MOST_NAME = 60  # characters of a parameter's name in its bucket's
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
        return self.op in (ops.Average, ops.Sum) and wire_of(self.compression) is not None


class GradientExchange:
    """names: of parameters, in the order of the optimizer's groups, the same on all ranks. groups: lists of parameters that
    travel together; without any, buckets are learned."""

    def __init__(self, label, names, terms, passes, groups):
        self._label, self._names, self._terms = label, dict(names), terms
        self.passes = passes
        self.has_news = False  # a gradient has become complete since this was last asked
        self._left = {}  # parameter: backward passes until its gradient is complete
        self._noted = {}  # parameter: (gradient, its version), complete before the ranks have agreed on what they exchange
        self._alone = {}  # parameter: (handle, gradient, its version), of those that travel by themselves
        self._hooks = {}
        self._own = object()  # in _owners
        self._has_warned_of_discards = False
        self._is_catching_up = False  # with gradients that the ranks have agreed on just now
        weakref.finalize(self, _let_go, self._hooks, self._own)
        self._groups = {parameter: list(group) for group in groups for parameter in group if len(group) > 1}
        self._job = basics.jobs()  # that _noted and what is on its way are of
        self._is_idle = not terms.process_set.included() or terms.process_set.size() == 1
        self._may_learn = terms.allows_buckets() and not groups
        self._agreement = Agreement(label, terms.process_set)
        # The ranks of one host reduce on the very cores that their backward passes compute on: both at once would only make
        # threads wait for each other's turns. Between hosts the network works meanwhile.
        self._is_deferred = basics.local_size() == basics.size()
        self._had_windows = False  # which stay as long as the process set: one for each gradient, not one each time it is learnt
        self._unlearn()
        for parameter in self._names:
            self._watch(parameter)

    def _unlearn(self):
        """What the ranks agree on in the first exchange is to be agreed on anew."""
        self._is_learning = self._may_learn
        self._agreement.forget()
        self._parts = {}  # what the ranks have agreed to exchange: parameter, its form, in the optimizer's order
        self._kinds = {}  # parameter: _DENSE and so on
        self._plain = set()  # parameters that the ranks lay out differently
        self._arrivals = {}  # parameters, in the order of their gradients' completion
        self._places = {}  # parameter: its Place
        self._buckets = []
        self._has_left_memory = False  # all gradients together have lain in the C library's heap, and do so no more

    @property
    def is_of_all_ranks(self):
        return ops.number_of(self._terms.process_set) == 0

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
            arrived = weakref.WeakMethod(self._arrived)  # a parameter must not keep an optimizer that is gone
            self._hooks[parameter] = parameter.register_post_accumulate_grad_hook(lambda one: _call(arrived, one))
            _owners[id(parameter)] = self._own

    def _watched(self):
        """Those that need a gradient now; some may have been frozen when the optimizer was wrapped."""
        for parameter in self._names:
            self._watch(parameter)
        watched = [parameter for parameter in self._names if parameter.requires_grad]
        for parameter in watched:
            if _owners.get(id(parameter)) is not self._own:
                raise ValueError(f"{self._names[parameter]} belongs to a DistributedOptimizer that was made later; use that one, "
                                 "or give each parameter to one only")
        return watched

    def set_passes(self, passes):
        self.passes = passes
        for parameter in self._left:
            self._left[parameter] = passes

    def reset(self):
        """Forgets what is on its way."""
        self._noted, self._alone, self._arrivals = {}, {}, {}
        for bucket in self._buckets:
            bucket.reset()
        for parameter in self._left:
            self._left[parameter] = self.passes

    def discard(self):
        """Forgets the gradients that no step has used, and counts backward passes anew. If the ranks may have begun to exchange
        them, all ranks complete that exchange first: raises MismatchError, on all, where others step meanwhile."""
        if not self.has_news:
            return
        self._leave_job()
        if self.is_pending() and self._may_have_begun():
            self.has_news = False
            self._complete_and_drop()
        self.has_news = False
        self.reset()

    def _may_have_begun(self):
        """Whether any rank may exchange gradients before it synchronizes: the same on all, as they have agreed on it."""
        is_later = (self._is_deferred and all(bucket.is_on_host for bucket in self._buckets)
                    and all(one in self._places for one in self._parts))
        return self._agreement.is_made() and not is_later

    def _complete_and_drop(self):
        discarded = [self._names[one] for one in self._parts if one in self._alone or self._is_taken(one)]
        absent = [one for one in self._parts if one.grad is None]
        self._exchange_all(discards=True)
        for parameter in absent:
            parameter.grad = None
        if not self._has_warned_of_discards and self._terms.process_set.rank() == 0:
            warn(f"gradients of {_some_of(discarded)} were exchanged and discarded: requires_grad_(False) saves that, for these "
                 "parameters and while a backward pass for others goes through them")
        self._has_warned_of_discards = True

    def is_pending(self):
        """Whether a gradient is complete that nobody has waited for."""
        self._leave_job()
        return bool(self._noted) or self._is_on_its_way()

    def _leave_job(self):
        """What was on its way in a job that has been left is lost."""
        if self._job != basics.jobs():
            self._job = basics.jobs()
            self.reset()

    def _is_on_its_way(self):
        return bool(self._alone) or any(place.is_taken for place in self._places.values())

    # ---- during the backward pass ---------------------------------------------------------------------------------------

    def _arrived(self, parameter):
        if _owners.get(id(parameter)) is not self._own:
            return
        self._leave_job()
        if parameter.grad is None:
            raise AssertionError(f"another hook has taken away the gradient of {self._names[parameter]} before it was averaged; "
                                 "register that hook after the optimizer has been wrapped, or step in the training loop")
        self.has_news = True
        left = self._left[parameter] - 1
        if left < 0:
            raise AssertionError(
                f"the gradient of {self._names[parameter]} was computed more often than backward_passes_per_step "
                f"({self.passes}) times before step() or synchronize(); raise backward_passes_per_step to accumulate "
                "gradients over several backward passes, or call optimizer.zero_grad(), not the model's, to discard them")
        self._left[parameter] = left
        if left > 0:
            return
        if not self._agreement.is_made():
            self._noted[parameter] = parameter.grad, version_of(parameter.grad)
        elif self._is_as_agreed(parameter):
            self._exchange(parameter)

    def _is_as_agreed(self, parameter):
        """Else it waits for synchronize(), in which the ranks hear of it."""
        return self._parts.get(parameter) == form_of(parameter) and not self._is_sparse_news(parameter)

    def _is_sparse_news(self, parameter):
        """It has sparse gradients, and nobody's had been so far."""
        return _is_sparse(parameter.grad) and self._kinds.get(parameter, _SPARSE) != _SPARSE

    def _exchange(self, parameter):
        place = self._places.get(parameter)
        if place is not None:
            fits = place.fits(parameter)
            place.take(parameter) if fits else place.skip()
            self._arrived_at(place.bucket)
            if fits:
                return
        self._arrivals.setdefault(parameter)
        self._send_alone(parameter)

    def _send_alone(self, parameter):
        handle = self._start_alone(parameter, parameter.grad)
        self._alone[parameter] = handle, parameter.grad, version_of(parameter.grad)

    def _arrived_at(self, bucket):
        if bucket.arrived() and not (self._is_deferred and bucket.is_on_host):
            self._start_bucket(bucket)

    def _start_bucket(self, bucket):
        before, after = self._terms.scales
        wire = wire_of(self._terms.compression)
        rare = {"compression": wire} if wire and bucket.kind in (_abi.FLOAT32, _abi.FLOAT64) else {}
        bucket.start(process_set=ops.number_of(self._terms.process_set), reduction=ops.reduction_of(self._terms.op),
                     prescale=before, postscale=after, **rare)

    def _start_alone(self, parameter, gradient):
        terms, name = self._terms, f"{self._label}.{self._names[parameter]}"
        if self._kinds.get(parameter) == _SPARSE and not terms.sparse_as_dense:
            return self._start_sparse(gradient if _is_sparse(gradient) else gradient.detach().to_sparse(1), name)
        if _is_sparse(gradient):
            gradient = gradient.to_dense()
        before, after = terms.scales
        return ops.compressed_allreduce_async_(gradient, name, terms.op, terms.compression, before, after, terms.process_set,
                                               **self._group_fields(parameter))

    def _group_fields(self, parameter):
        """Of those in its group that are exchanged."""
        if self._is_catching_up:
            return {}  # the others of the group have gone
        members = [self._names[one] for one in self._groups.get(parameter, ()) if one in self._parts]
        return ops.group_fields(self._label, members) if len(members) > 1 else {}

    def _require_sparse_terms(self, parameters):
        """Of those that have sparse gradients on any rank: raises on all of them alike, before anything is on its way."""
        for parameter in [] if self._terms.sparse_as_dense else parameters:
            if parameter in self._groups:
                raise ValueError(f"{self._names[parameter]} has sparse gradients, which travel in no group; leave it out of "
                                 "groups, or give sparse_as_dense=True")
            if self._terms.predivide_factor != 1:
                raise ValueError("gradient_predivide_factor is for dense gradients; give sparse_as_dense=True")

    def _start_sparse(self, gradient, name):
        if self._terms.compression is not Compression.none:
            warn("sparse gradients are exchanged without compression")
        return ops.sparse_allreduce_async(gradient, name, self._terms.op, self._terms.process_set)

    # ---- afterwards -----------------------------------------------------------------------------------------------------

    def synchronize(self):
        """Exchanges what had no gradient here, waits for all, and leaves the results in `grad`. Raises the first thing that
        went wrong, with nothing left on its way."""
        self.has_news = False
        if not self._is_idle:
            self._exchange_all()

    def _exchange_all(self, discards=False):
        try:
            times.waited(EXCHANGE, self._synchronize, discards)
        except HorovodInternalError as error:
            raise error.with_traceback(None)  # whose steps between here and there tell the user nothing

    def _synchronize(self, discards):
        self._leave_job()
        try:
            self._agree_and_complete(discards)
        except Exception:
            self.reset()
            raise

    def _agree_and_complete(self, discards):
        watched = self._watched()
        needed = needs_of(self._names)
        has_changed = None
        if self._agreement.is_made():
            has_news = any(self._is_sparse_news(one) for one in watched)
            has_changed = self._agreement.begin_check(needed, has_news, discards)
        else:
            self._note_what_was_taken()
            self._unlearn()
            self._agree(watched, needed)
            self._exchange_noted()
        self._complete(list(self._parts))
        if has_changed is not None and has_changed():
            before, kinds = self._parts, self._kinds
            self._unlearn()
            self._agree(watched, needed)
            self._is_catching_up = True
            try:
                self._complete([one for one in watched if before.get(one) != form_of(one)
                                or (kinds[one] == _SPARSE) != (self._kinds[one] == _SPARSE)])
            finally:
                self._is_catching_up = False
            self._arrivals = {}
        elif self._is_learning:
            self._learn(watched)

    def _agree(self, watched, needed):
        """The ranks compare what they need, before those without a gradient contribute one of the right kind."""
        self._agreement.make(needed, list(self._names.values()))
        layouts = [layout_number(parameter) for parameter in watched]
        numbers = self._reduce([*(self._kind_of(parameter) for parameter in watched), *layouts, *(-one for one in layouts)], "kinds",
                               _abi.MAX)
        kinds, most, least = (numbers[len(watched) * i:len(watched) * (i + 1)] for i in range(3))
        self._parts, self._kinds = {one: form_of(one) for one in watched}, dict(zip(watched, kinds))
        try:
            self._require_sparse_terms(one for one, kind in self._kinds.items() if kind == _SPARSE)
        except ValueError:
            self._agreement.forget()
            raise
        self._plain = {one for one, largest, smallest in zip(watched, most, least) if largest != -smallest}

    def _note_what_was_taken(self):
        """Of before the ranks came together anew, perhaps on this one alone: it is for the next agreement."""
        for parameter, place in self._places.items():
            if place.is_taken and not place.bucket.is_started():
                self._noted[parameter] = parameter.grad, version_of(parameter.grad)

    def _exchange_noted(self):
        noted, self._noted = self._noted, {}
        for parameter, (gradient, version) in noted.items():
            if self._is_as_agreed(parameter):  # else as one that has had no backward pass
                self._arrivals.setdefault(parameter)
                self._alone[parameter] = self._start_alone(parameter, gradient), gradient, version

    def _complete(self, parts):
        """parts: parameters that the ranks exchange; those that have a gradient are on their way already."""
        missing = [one for one in parts if one not in self._alone and not self._is_taken(one)]
        used = self._used_anywhere(parts, missing)
        for parameter in missing:
            self._fill(parameter)
        self._complete_buckets()
        is_in_buckets = bool(self._buckets)
        self._wait()
        if is_in_buckets and self._has_left_memory:
            self._has_left_memory = False
            give_freed_memory_back()
        for parameter in missing:
            if used is not None and not used[parameter]:
                parameter.grad = None

    def _is_taken(self, parameter):
        place = self._places.get(parameter)
        return place is not None and place.is_taken

    def _used_anywhere(self, parts, missing):
        """parameter: whether a rank had a gradient for it; None where nobody asks."""
        if not self._terms.keeps_none:
            return None
        absent = set(missing)
        flags = [0 if one in absent and one.grad is None else 1 for one in parts]
        return dict(zip(parts, self._reduce(flags, "used", _abi.MAX)))

    def _reduce(self, numbers, what, reduction):
        return inflight.reduce_numbers(f"{self._label}.{what}", numbers, reduction, ops.number_of(self._terms.process_set))

    def _fill(self, parameter):
        """It has had no backward pass on this rank: what it has, or zeros, is its part."""
        place = self._places.get(parameter)
        if not (parameter.requires_grad and self._is_as_agreed(parameter)):  # zeros, until all ranks have heard of it
            if place is None:
                self._alone[parameter] = self._start_alone(parameter, self._agreed_nothing(parameter)), None, 0
        elif parameter.grad is not None:
            self._exchange(parameter)
        elif place is not None and place.fits(parameter):
            place.take_zeros(parameter)
            self._arrived_at(place.bucket)
        else:
            is_sparse = self._kinds.get(parameter) == _SPARSE  # as the other ranks have it, with rows
            parameter.grad = self._agreed_nothing(parameter) if is_sparse else torch.zeros_like(parameter)
            self._send_alone(parameter)

    def _agreed_nothing(self, parameter):
        """A gradient of zeros in the form that the ranks have agreed on, whatever the parameter has become."""
        dtype, shape = self._parts[parameter]
        if self._kinds.get(parameter) == _SPARSE:
            return torch.sparse_coo_tensor(torch.empty((1, 0), dtype=torch.int64), torch.empty((0, *shape[1:]), dtype=dtype), shape,
                                           device=parameter.device)
        return torch.zeros(shape, dtype=dtype, device=parameter.device)

    def _complete_buckets(self):
        """Places of parameters that need no gradient any more take part with zeros; then all buckets are on their way."""
        for place in self._places.values():
            if not place.is_taken:
                place.skip()
                self._arrived_at(place.bucket)
        for bucket in self._buckets:
            if not bucket.is_started():
                self._start_bucket(bucket)

    def _wait(self):
        """For all, so that nothing is on its way any more when the first thing that went wrong is raised."""
        alone, self._alone = self._alone, {}
        made, errors, changed = {}, [], []
        for parameter, (handle, gradient, version) in alone.items():
            if gradient is None:  # nobody wants the result here
                _outcome(handle.wait, errors)
                continue
            if parameter.grad is not gradient or version_of(gradient) != version:
                changed.append(self._names[parameter])
            made[parameter] = _outcome(handle.wait, errors)
        for bucket in self._buckets:
            _outcome(bucket.finish, errors)
            bucket.begin_anew()
        for parameter in self._left:
            self._left[parameter] = self.passes
        if errors:
            self.reset()
            raise errors[0]
        for parameter, result in made.items():
            _give_back_alone(parameter, result)
        changed += [self._names[one] for one, place in self._places.items() if not place.settle(one)]
        if changed:
            _warn_of_changed(changed)

    # ---- learning -------------------------------------------------------------------------------------------------------

    def _learn(self, watched):
        """After the first exchange, on all ranks: which gradients lie in which bucket."""
        order = self._order_of_root(watched)
        if order is None:
            return  # next time: the set's first rank has run out of data
        dense = [one for one in order if self._kinds.get(one) == _DENSE]
        members = self._terms.process_set
        limit, wish = self._reduce([bucket_bytes() if members.rank() == 0 else 0, self._wants_windows()], "limit", _abi.SUM)
        self._had_windows |= wish == members.size()
        for number, parameters in enumerate(split_into_buckets(dense, limit)):
            bucket = Bucket(self._bucket_name(number, parameters), parameters[0].dtype, parameters, self._plain,
                            ops.number_of(members), in_window=wish == members.size())
            self._buckets.append(bucket)
            self._places.update(bucket.places)
        self._arrivals, self._is_learning = {}, False
        self._has_left_memory = any(bucket.is_on_host for bucket in self._buckets)

    def _bucket_name(self, number, parameters):
        """"gradients.0c5b2b40.0.bucket.0 (conv1.weight and 12 more)": reports and timelines show it."""
        first, others = self._names[parameters[0]], len(parameters) - 1
        return f"{self._label}.bucket.{number} ({first[-_MOST_NAME:]}{f' and {others} more' if others else ''})"

    def _kind_of(self, parameter):
        if _is_sparse(parameter.grad):
            return _SPARSE
        return _DENSE if can_lie_in_bucket(parameter) and parameter.device == self._bucket_device() else _ALONE

    def _wants_windows(self):
        device = self._bucket_device()
        return device is not None and device.type == "cuda" and wants_windows() and not self._had_windows

    def _bucket_device(self):
        """Where this rank's buckets lie: of a model on several devices, what lies on others travels alone."""
        return next((one.device for one in self._names if one.requires_grad and can_lie_in_bucket(one)), None)

    def _order_of_root(self, watched):
        """The first rank's order of arrival, then what never arrived there, last first: as gradients do. None: it has not
        taken part."""
        index = {parameter: i for i, parameter in enumerate(watched)}
        seen = [index[parameter] for parameter in self._arrivals if parameter in index]
        seen += sorted(set(range(len(watched))) - set(seen), reverse=True)
        root = self._terms.process_set.rank() == 0
        numbers = self._reduce(seen if root else [0] * len(seen), "order", _abi.SUM)
        return [watched[i] for i in numbers] if sorted(numbers) == list(range(len(watched))) else None


def _is_sparse(gradient):
    return gradient is not None and gradient.layout is not torch.strided


def _call(method, parameter):
    arrived = method()
    if arrived is not None:
        arrived(parameter)


def _let_go(hooks, own):
    for parameter, hook in hooks.items():
        hook.remove()
        if _owners.get(id(parameter)) is own:
            del _owners[id(parameter)]


def _outcome(wait, errors):
    """What wait() returns; what it raises goes to errors."""
    try:
        return wait()
    except Exception as error:  # raised once all have ended
        errors.append(error)
        return None


def _give_back_alone(parameter, made):
    """made: the very tensor that was the gradient, or one in its stead."""
    gradient = parameter.grad
    if made.layout is not torch.strided:
        parameter.grad = made.coalesce()
    elif gradient is not None and gradient.layout is not torch.strided:  # it travelled as a dense one
        parameter.grad = made.to_sparse(1)
    else:
        give_back(parameter, made)


def _some_of(names):
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _warn_of_changed(names):
    warn(
        f"the gradients of {_some_of(names)} were changed after the backward pass, while they were being averaged: what was changed is "
        "lost or wrong. To clip or scale gradients call optimizer.synchronize() first, then change them, then step inside "
        "'with optimizer.skip_synchronize():'")
