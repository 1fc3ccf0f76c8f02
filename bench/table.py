"""All rows: what is measured, beside whom, and what it must hold. SPDX-License-Identifier: Apache-2.0"""

import dataclasses
import functools

import collective
import engine
import idle
import launch
import logs
import mpi
import negotiation
import network
import recorded
import torch_training
from rounds import (Rule, at_least_times_faster, at_most, at_most_larger_of, at_most_more, at_most_times, reported)
from sweep import Sweep

KIB, MIB = 1 << 10, 1 << 20
OPERATIONS = ("allreduce", "allgather", "broadcast", "alltoall", "reducescatter")
LAYER_SIZES = (4, KIB, 16 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
GLOO_SIZES = (4, KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB)
MODELS = {"resnet50": "ResNet-50 (161 gradients, 102 MB)", "gpt2": "GPT-2 (148, 498 MB)", "bert-large": "BERT-large (391, 1.3 GB)"}


@dataclasses.dataclass(frozen=True)
class Row:
    """measure(bench) gives Rounds or raises NotRun; a row of a sweep has its point instead; neither: of later work."""

    name: str
    what: str
    rule: Rule
    measure: callable = None
    group: str = ""
    sweep: Sweep = None
    point: tuple = None
    recorded: str = ""  # figures of other days, for information

    def is_there(self):
        return self.measure is not None or self.sweep is not None

    def rounds(self, bench):
        return self.measure(bench) if self.measure else self.sweep.measure(bench, self.point)


def size_name(size):
    for unit, letter in ((MIB, "m"), (KIB, "k")):
        if size >= unit:
            return f"{size // unit}{letter}"
    return str(size)


def layer_rule(operation, size, ranks, in_host=True):
    """What the collective layer must hold beside OpenMPI."""
    if size < 64 * KIB:
        is_first = operation == "allreduce" and ranks == 2 and in_host
        return at_most_more(3, "us") if is_first else at_most_larger_of(3, "us", 1.3)
    if operation == "allreduce" and in_host and size >= MIB:
        if ranks > 2:
            return at_most_times(1)
        return at_least_times_faster(2.5 if size == 64 * MIB else 2)
    return at_most_times(1.3 if ranks == 4 and not collective.ranks_fit(ranks) else 1.1)


def layer_rows():
    for ranks in (2, 4):
        more = "" if ranks == 2 else f"-{ranks}-ranks"
        for operation in OPERATIONS:
            sweep = collective.beside_mpi(operation, ranks)
            for size in LAYER_SIZES:
                yield Row(f"{operation}{more}-{size_name(size)}", f"collective layer, {operation} of {size} B, {ranks} ranks",
                          layer_rule(operation, size, ranks), group=f"collective-{ranks}", sweep=sweep, point=(operation, size))
    yield Row("allreduce-copy", "collective layer, 64 MiB, beside both ranks copying 64 MiB", at_least_times_faster(0.9),
              collective.beside_copies(64 * MIB), "collective-2")


@functools.cache
def gloo_sweep(operation, ranks):
    return engine.beside_gloo(operation, ranks)


def engine_rows():
    for ranks, name, times in ((2, "engine-4", 0.05), (4, "engine-4-4", 0.06)):
        yield Row(name, f"one 4-byte allreduce through the engine, {ranks} ranks, beside PyTorch's Gloo", at_most_times(times),
                  group="engine", sweep=gloo_sweep("allreduce", ranks), point=("allreduce", 4),
                  recorded=recorded.allreduce(ranks, 4))
    for model, text in MODELS.items():
        yield Row(model, f"one step of {text} through the engine, 2 ranks, beside DDP's exchange over Gloo",
                  at_most_times(0.25 if model == "resnet50" else 1), group="engine", sweep=engine.step_beside_ddp(model),
                  point=engine.STEP, recorded=recorded.step(model, 2))
        yield Row(f"{model}-flat", f"the same step of {text}, beside one call of the collective layer on as many bytes",
                  at_most_times(1.5) if model == "resnet50" else reported(), engine.step_beside_one_buffer(model), "engine")
        yield Row(f"{model}-shared", f"the same step of {text} in memory from hvrun_alloc, beside memory of the program's own",
                  at_most_times(1), engine.step_beside_itself(model, options=["--shared"]), "engine")
    yield Row("resnet50-4-ranks", f"one step of {MODELS['resnet50']} through the engine, 4 ranks, beside DDP's exchange over Gloo",
              at_most_times(1), group="engine", sweep=engine.step_beside_ddp("resnet50", 4), point=engine.STEP,
              recorded=recorded.step("resnet50", 4))
    yield Row("resnet50-deterministic", f"one step of {MODELS['resnet50']} with HVRUN_DETERMINISTIC=1, beside that without",
              reported(), engine.step_beside_itself("resnet50", settings=["HVRUN_DETERMINISTIC=1"]), "engine")
    yield Row("stalled-set", "4-byte allreduce in one process set while one of its ranks waits in another, beside that before",
              at_most_times(1.1), engine.beside_stalled_set, "engine")
    yield Row("init", "hvrun_init beside MPI_Init, 2 ranks", reported(), engine.init, "engine")
    yield Row("idle", "CPU of an initialised, idle runtime", at_most(0.1, "% of a core"), idle.share_of_a_core, "engine")


def gloo_rows():
    for ranks in (2, 4):
        more = "" if ranks == 2 else f"-{ranks}-ranks"
        for operation in OPERATIONS:
            for size in GLOO_SIZES:
                yield Row(f"gloo-{operation}{more}-{size_name(size)}",
                          f"{operation} of {size} B through negotiation, {ranks} ranks, beside PyTorch's Gloo", at_most_times(1),
                          group=f"gloo-{ranks}", sweep=gloo_sweep(operation, ranks), point=(operation, size),
                          recorded=recorded.allreduce(ranks, size) if operation == "allreduce" else "")


def mpi_rows():
    """What hvrun adds to an MPI that carries for it."""
    rule = at_most_larger_of(10, "us", 1.05)
    for library in mpi.LIBRARIES:
        sweep = mpi.beside_bare(library, "allreduce", 2)
        for size in GLOO_SIZES:
            yield Row(f"mpi-{library}-{size_name(size)}", f"allreduce of {size} B by {library}, 2 ranks, beside it bare",
                      rule, group="mpi", sweep=sweep, point=("allreduce", size))
        exchange = mpi.beside_bare(library, "exchange", 2)
        for size in GLOO_SIZES:
            yield Row(f"mpi-{library}-exchange-{size_name(size)}", f"two ranks exchange {size} B by {library}, beside it bare",
                      rule, group="mpi", sweep=exchange, point=("exchange", size))
        yield Row(f"mpi-{library}-resnet50", f"one step of {MODELS['resnet50']} by {library}, beside one bare call on as many bytes",
                  rule, mpi.step(library, "resnet50"), "mpi")
    native = mpi.beside_bare("openmpi", "exchange", 2, "native")
    for size in GLOO_SIZES:
        yield Row(f"mpi-native-exchange-{size_name(size)}", f"two ranks exchange {size} B by hvrun's own way, beside openmpi bare",
                  reported(), group="mpi", sweep=native, point=("exchange", size))


def rows_of_net(net):
    for peer, beside in (("mpi", network.beside_mpi), ("gloo", network.beside_gloo)):
        for operation in OPERATIONS:
            sweep = beside(net, operation)
            for size in net.sizes:
                rule = layer_rule(operation, size, net.ranks, in_host=False) if peer == "mpi" else at_most_times(1)
                yield Row(f"{net.name}-{peer}-{operation}-{size_name(size)}", f"{operation} of {size} B, {net.text}",
                          rule, group=net.name, sweep=sweep, point=(operation, size))


def network_rows():
    for net in network.NETS:
        yield from rows_of_net(net)
    five, operation, settings = network.FIVE_HOSTS, "allreduce", ["HVRUN_DETERMINISTIC=1"]
    sweep = network.beside_itself(five, operation, settings)
    for size in five.sizes:
        yield Row(f"{five.name}-deterministic-{size_name(size)}",
                  f"{operation} of {size} B with {settings[0]}, {five.text}, beside that without", reported(), group=five.name,
                  sweep=sweep, point=(operation, size))
    for net in network.LARGE_NETS:
        yield from rows_of_net(net)


def negotiation_rows():
    # What is fresh becomes complete in pieces, and so travels in a few messages more.
    for step, what, most in (("fresh", "never seen before", 1.1), ("known", "known by number", 1), ("bucket", "known as one bucket", 1),
                             ("late", "known as one bucket, where one rank of 512 comes late", 1)):
        yield Row(f"negotiation-{step}",
                  f"bytes of the busiest leader in a step of tensors {what}, {negotiation.MANY_RANKS} ranks beside {negotiation.FEW_RANKS}",
                  at_most_times(most), negotiation.bytes_of_a_leader(step), "simulation")


def torch_rows():
    ours = "hvrun.torch's DistributedOptimizer"
    for ranks in (2, 4):
        more = "" if ranks == 2 else f"-{ranks}-ranks"
        for model in torch_training.MODELS:
            yield Row(f"torch-{model}{more}-exchange", f"what the exchange adds to a step of {model}, {ranks} ranks, {ours}, beside DDP's",
                      at_most_times(0.25), torch_training.exchange(model, ranks), "torch")
            yield Row(f"torch-{model}{more}-step", f"a whole step of {model}, {ranks} ranks, {ours}, beside DDP", at_most_times(1),
                      torch_training.step(model, ranks), "torch")
    for model in torch_training.MODELS:
        yield Row(f"torch-{model}-memory", f"memory of both ranks of {model}, {ours}, beside DDP", at_most_times(1),
                  torch_training.memory(model, 2), "torch")
    yield Row("torch-call", "one allreduce_async_ of hvrun.torch", at_most(5, "us"), torch_training.cost("call_us", "us"), "torch")
    yield Row("torch-call-busy", "the same beside a busy thread of Python", at_most(5, "us"), torch_training.cost("busy_us", "us"), "torch")
    yield Row("torch-import", "import hvrun.torch after torch", at_most(20, "ms"), torch_training.cost("import_ms", "ms"), "torch")
    yield Row("torch-start", "hvrun -np 2 python -c 'import hvrun.torch as h; h.init()', beside two concurrent imports of torch",
              at_most_times(1.1), torch_training.start, "torch")


ROWS = [
    Row("launch-2", "hvrun -np 2 true, beside mpirun", at_most_times(0.3), launch.local, "launch"),
    Row("version", "hvrun --version", at_most(2.5, "ms"), launch.version, "launch"),
    Row("ssh", "hvrun true over SSH on 3 hosts, beside three ssh at once", at_most_times(0.8), launch.over_ssh, "launch"),
    Row("logs-large", "2 x 1 million labelled lines to a file, 32 KiB writes, beside mpirun --tag-output",
        at_least_times_faster(4), logs.beside_mpirun, "logs"),
    Row("logs-lines", "the same, one write a line, beside two bare pipes into cat", at_most_times(1.2), logs.beside_bare_pipes, "logs"),
    Row("dry-run-64-ssh", "hvrun --dry-run over SSH on 64 hosts, beside 64 ssh at once", at_most_times(1.3), launch.dry_run_over_ssh,
        "launch"),
    Row("dry-run-64", "hvrun --dry-run on 64 names of this machine, beside that on one", at_most_times(2), launch.dry_run_of_stand_ins,
        "launch"),
    Row("agents-1024", "1,024 agents on this machine, through a tree of agents, hvrun itself at most 150 MiB", at_most(15, "s"),
        group="launch"),
    *engine_rows(),
    *negotiation_rows(),
    *layer_rows(),
    *gloo_rows(),
    *mpi_rows(),
    *torch_rows(),
    *network_rows(),
]


def chosen(words, rows=None):
    """The rows that words name. ValueError: none does.

    A word is a group's name, else a row's, else the beginning of either: 'engine' is the whole group. No word: all but
    what takes hours.
    """
    rows = ROWS if rows is None else rows
    if not words:
        return [row for row in rows if not row.group.startswith(network.LARGE)]
    names = set()
    for word in words:
        some = ([row.name for row in rows if row.group == word] or [row.name for row in rows if row.name == word]
                or [row.name for row in rows if row.name.startswith(word) or row.group.startswith(word)])
        if not some:
            raise ValueError(word)
        names.update(some)
    return [row for row in rows if row.name in names]
