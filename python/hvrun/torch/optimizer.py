# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: an optimizer of torch.optim whose step() sees the gradients of all ranks."""

import contextlib
import itertools
import weakref
import zlib

import torch

from hvrun._called import warn
from hvrun.process_sets import global_process_set
from hvrun.step_times import times
from hvrun.torch import operations as ops
from hvrun.torch.adasum_optimizer import AdasumSteps
from hvrun.torch.compression import Compression, require_compressor
from hvrun.torch.gradient_exchange import ExchangeTerms, GradientExchange
from hvrun.torch.grad_scaler import watch_grad_scaler
from hvrun.torch.loaders import watch_loaders
from hvrun.torch.plain_copies import PlainCopies

# By these words scripts filter what Horovod warns of.
_HOROVODS_WARNING = ("optimizer.step() called without optimizer.skip_synchronize() context after optimizer.synchronize(). This can "
                     "cause training slowdown. You may want to consider using optimizer.skip_synchronize() context if you use "
                     "optimizer.synchronize() in your code.")
_wrapped = {}  # (a process set's number, a digest of names): how many optimizers. Its ranks wrap theirs in one order


class DistributedSteps(PlainCopies):
    """What a wrapped optimizer's class has before its own: exchange first, then the step."""

    @property
    def backward_passes_per_step(self):
        return self._exchange.passes

    @backward_passes_per_step.setter
    def backward_passes_per_step(self, passes):
        self.set_backward_passes_per_step(passes)

    def set_backward_passes_per_step(self, passes):
        """From now on gradients are summed up over so many backward passes before they are exchanged."""
        self._exchange.set_passes(_whole_passes(passes))

    def synchronize(self):
        """Waits until the gradients are those of all ranks. step() does so by itself; call this before gradients are looked at
        or changed, and step inside skip_synchronize() then."""
        self._exchange.synchronize()
        self._is_synchronized, self._is_scaled = True, False

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Within it step() takes the gradients as they are: synchronize() has been called."""
        before, self._should_synchronize = self._should_synchronize, False
        try:
            yield
        finally:
            self._should_synchronize = before

    def step(self, closure=None):
        """One step with everybody's gradients. With a closure, each time that it is called: its loss is averaged too, so that
        all ranks take the same steps; the result is that average."""
        if closure is not None:
            made = super().step(lambda: self._evaluate(closure))
        else:
            if self._should_synchronize:
                self._synchronize_once()
            self._is_synchronized = self._is_scaled = False
            made = super().step()
        if self._exchange.is_of_all_ranks:
            times.step_ended(self)
        return made

    step.hooked = True  # torch.optim wraps the step below this one already

    def _synchronize_once(self):
        """GradScaler may have done it; so may the user, who then wants to be told of skip_synchronize()."""
        if self._needs_exchange():
            self._exchange.synchronize()
        elif not self._is_scaled:
            warn(f"{_HOROVODS_WARNING} Here it costs no second exchange: the gradients are averaged already, and step() takes "
                 "them as they are")

    def _needs_exchange(self):
        """Whether gradients have come since the last one."""
        return not self._is_synchronized or self._exchange.has_news or self._exchange.is_pending()

    def synchronize_for_scaler(self):
        """GradScaler is going to unscale gradients, and to look for infinities among them. Where it has done so already it has
        left out the step: these are the next ones, also on a rank that has none."""
        if self._is_scaled or self._needs_exchange():
            self.synchronize()
        self._is_scaled = True

    def _evaluate(self, closure):
        self._is_synchronized = False
        with torch.enable_grad():
            loss = closure()
        if self._needs_exchange():  # else the closure has called synchronize()
            self._exchange.synchronize()
        self._is_synchronized = False
        terms = self._terms
        if not terms.process_set.included() or terms.process_set.size() == 1:
            return loss
        if not isinstance(loss, torch.Tensor):
            raise ValueError(f"the closure returned {loss!r}: its loss has to be a tensor, so that all ranks go by their average")
        return ops.allreduce_async(loss, None, f"{self._label}.loss", ops.Average, process_set=terms.process_set).wait()

    def zero_grad(self, *args, **kwargs):
        """As torch.optim's. Gradients that no step has used are discarded on all ranks, and backward passes count anew."""
        self._exchange.discard()
        self._is_synchronized = self._is_scaled = False
        return super().zero_grad(*args, **kwargs)

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        exchange = getattr(self, "_exchange", None)
        if exchange is not None:
            group = len(self.param_groups) - 1
            added = [(one, f"group{group}.{i}") for i, one in enumerate(self.param_groups[-1]["params"])]
            self._parameter_names.update(added)
            exchange.add(added)


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none, backward_passes_per_step=1,
                         op=ops.Average, gradient_predivide_factor=1.0, num_groups=0, groups=None, sparse_as_dense=False,
                         process_set=global_process_set, unused="zeros"):
    """Makes an optimizer one that averages gradients over all ranks while the backward pass goes on, and returns it: the same
    object, still an instance of its class, so that schedulers that have it go on working.

    named_parameters: as model.named_parameters() gives them; names appear in errors and in the timeline, and must be the same
    on all ranks. compression: Compression.none, .fp16, .bf16, or a class with compress and decompress. op: Average, Sum or
    Adasum. gradient_predivide_factor: of the division by the number of ranks, so much is done before the sum; with Average
    only. num_groups, groups: gradients that travel as one, as a number of groups or as lists of parameters; by default this
    is learned. sparse_as_dense: gradients of embeddings travel as dense ones. unused: "zeros" gives parameters that had no
    gradient one of zeros, as Horovod does, so that momentum and decay act; "keep_none" leaves those without that had none on
    any rank, as DistributedDataParallel does. Every rank must give the same.
    """
    if isinstance(optimizer, (DistributedSteps, AdasumSteps)):
        raise ValueError("this optimizer is a DistributedOptimizer already")
    _require_optimizer(optimizer)
    require_compressor(compression)
    op = ops.chosen_op(op, None)
    if gradient_predivide_factor != 1.0 and op is not ops.Average:
        raise ValueError("gradient_predivide_factor divides an average; give op=hvd.Average with it")
    if unused not in ("zeros", "keep_none"):
        raise ValueError(f"unused={unused!r} is neither 'zeros' nor 'keep_none'")
    passes, names = _whole_passes(backward_passes_per_step), parameter_names(optimizer, named_parameters)
    label = _label_in(process_set, names)
    if op is ops.Adasum and process_set.included() and process_set.size() > 1:
        if num_groups or groups is not None or sparse_as_dense or unused != "zeros":
            warn("op=hvd.Adasum combines each parameter's step by itself: groups, num_groups, sparse_as_dense and unused have no "
                 "effect")
        _name_terms(optimizer, op=op, process_set=process_set)
        return AdasumSteps.wrap(optimizer, label, names, compression, passes, process_set)
    terms = ExchangeTerms(op, compression, gradient_predivide_factor, process_set, sparse_as_dense, unused == "keep_none")
    exchange = GradientExchange(label, names, terms, passes, _parameter_groups(names, num_groups, groups))
    _name_terms(optimizer, op=op, process_set=process_set, gradient_predivide_factor=gradient_predivide_factor,
                sparse_as_dense=sparse_as_dense)
    return become(optimizer, DistributedSteps, _exchange=exchange, _terms=terms, _label=label, _parameter_names=dict(names),
                  _should_synchronize=True, _is_synchronized=False, _is_scaled=False,
                  _step_supports_amp_scaling=False)  # GradScaler is to look for infinities after the exchange


def _name_terms(optimizer, **terms):
    """As Horovod's optimizer has them; what the optimizer has under such a name is its own, and stays."""
    for name, value in terms.items():
        if not hasattr(optimizer, name):
            setattr(optimizer, name, value)


def _label_in(process_set, names):
    """Before the names that travel, so that two optimizers with parameters of the same names are told apart."""
    digest = zlib.crc32("\0".join(name for _, name in names).encode())
    key = ops.number_of(process_set), digest
    _wrapped[key] = _wrapped.get(key, -1) + 1
    return f"gradients.{digest:08x}.{_wrapped[key]}"


_NOTING = ("_wrapped_by_lr_sched", "_with_counter")  # how schedulers, today's and those of PyTorch 2.1, mark their own step


def _is_noted(step):
    return any(hasattr(step, mark) for mark in _NOTING)


def _require_optimizer(optimizer):
    if isinstance(optimizer, type) or not hasattr(optimizer, "param_groups"):
        given = optimizer.__name__ if isinstance(optimizer, type) else type(optimizer).__name__
        raise TypeError(f"hvd.DistributedOptimizer takes an optimizer of torch.optim, not {given}; try hvd.DistributedOptimizer("
                        "torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters())")
    step = optimizer.__dict__.get("step")
    if step is not None and not _is_noted(step):
        raise ValueError(f"optimizer.step has been replaced by {step!r}, which a DistributedOptimizer would lose; wrap the "
                         "optimizer first")


def become(optimizer, steps, **attributes):
    """The optimizer gets a class that has `steps` before its own, and these attributes."""
    is_noted = _is_noted(optimizer.__dict__.pop("step", None))
    own = type(optimizer)
    optimizer.__class__ = type(own.__name__, (steps, own), {"__module__": own.__module__})
    for name, value in attributes.items():
        setattr(optimizer, name, value)
    if is_noted:
        optimizer.step = _noting_step(optimizer)
    watch_grad_scaler()
    watch_loaders()
    return optimizer


def _noting_step(optimizer):
    """What schedulers look for: whether the optimizer has taken a step, and how many."""
    owner = weakref.ref(optimizer)

    def step(*args, **kwargs):
        one = owner()
        one._opt_called = True
        one._step_count = getattr(one, "_step_count", 0) + 1
        return type(one).step(one, *args, **kwargs)

    for mark in _NOTING:
        setattr(step, mark, True)
    return step


def _whole_passes(passes):
    if int(passes) != passes or passes < 1:
        raise ValueError(f"backward_passes_per_step is a whole number from 1 on, not {passes!r}")
    return int(passes)


def parameter_names(optimizer, named_parameters):
    """[(parameter, name)] in the order of the optimizer's groups. Raises ValueError for names that will not do."""
    inside = [one for group in optimizer.param_groups for one in group["params"]]
    if named_parameters is None:
        return [(one, f"parameter.{number}") for number, one in enumerate(inside)]
    given = list(named_parameters)
    if any(not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str) for pair in given):
        raise ValueError("named_parameters should be a sequence of (name, parameter), usually model.named_parameters()")
    names = {}
    for name, parameter in given:
        names.setdefault(parameter, name)
    counts = {}
    for name, _ in given:
        counts[name] = counts.get(name, 0) + 1
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise ValueError(f"names in named_parameters must be unique; these come more than once: {', '.join(twice)}")
    unnamed = sum(1 for one in inside if one not in names)
    if unnamed:
        raise ValueError(f"named_parameters names {len(inside) - unnamed} of the optimizer's {len(inside)} parameters; "
                         "name all of them, usually by model.named_parameters(), or none")
    return [(one, names[one]) for one in inside]


def _parameter_groups(names, num_groups, groups):
    """Lists of parameters that travel together."""
    if groups is None and not num_groups:
        return []
    if num_groups:
        warn("num_groups= is the older way; give groups=, a number or lists of parameters", DeprecationWarning)
    if isinstance(groups, int):
        num_groups, groups = groups, None
        if num_groups < 1:
            raise ValueError(f"groups is a number from 1 on, or lists of parameters, not {num_groups}")
    inside = [parameter for parameter, _ in names]
    if groups is None:
        if num_groups < 0:
            raise ValueError(f"num_groups is a number of groups from 0 on, not {num_groups}")
        trained = [one for one in inside if one.requires_grad]
        each, more = divmod(len(trained), max(num_groups, 1))
        sizes = [each + (i < more) for i in range(num_groups)]
        begins = list(itertools.accumulate([0, *sizes]))
        return [trained[begin:begin + size] for begin, size in zip(begins, sizes) if size]
    known, grouped = set(inside), set()
    for group in groups:
        for one in group:
            if one not in known:
                raise ValueError("groups has a parameter that the optimizer does not have")
            if one in grouped:
                raise ValueError("groups has a parameter twice")
            grouped.add(one)
    return [[one for one in group if one.requires_grad] for group in groups]
