"""Rows of the runtime as programs call it, through negotiation, beside PyTorch's Gloo. SPDX-License-Identifier: Apache-2.0"""

import gloo
import programs
from collective import own_words as layer_words
from collective import ranks_fit
from rounds import NotRun, Rounds, interleave
from sweep import Program, Sweep

GRADIENTS = programs.SOURCE / "bench/gradients"
STEP_BUDGET_S = 0.5
SLOW_ROUNDS = 7
STALL_S = 2  # twice that long one set stands still
STEP = ("gradients", 0)
FIRST_MODEL = "resnet50"


def words(bench, ranks, *more):
    return [bench.hvrun, "-np", str(ranks), "--no-label", bench.program("bench_engine"), "--json", *more]


def pinned_words(pinned):
    return ["--pin"] if pinned else []


def collectives(bench, ranks, pinned):
    return Program(lambda operations, sizes: words(bench, ranks, "--budget", str(gloo.BUDGET_S), *pinned_words(pinned), "--op",
                                                   operations, "--sizes", sizes))


def pinnings(ranks):
    return (False, True) if ranks_fit(ranks) else (False,)


def beside_gloo(operation, ranks):
    def candidates(bench):
        return [(collectives(bench, ranks, pinned), gloo.Collectives(lambda pinned=pinned: bench.gloo(ranks, pinned)))
                for pinned in pinnings(ranks)]

    return Sweep(f"through negotiation, {operation}, {ranks} ranks", "PyTorch's Gloo", candidates)


class Step:
    """A sweep's side: every gradient of a list enqueued, all awaited."""

    def __init__(self, bench, ranks, pinned, model):
        self._words = words(bench, ranks, "--gradients", GRADIENTS / f"{model}.txt", "--budget", str(STEP_BUDGET_S),
                            *pinned_words(pinned))

    def command(self, _):
        return programs.shown(self._words)

    def run(self, points):
        return {points[0]: programs.median_us(self._words)}


def step_beside_ddp(model, ranks=2):
    """DistributedDataParallel's exchange in its fastest form; of the larger models, pinned ranks are not tried."""
    def candidates(bench):
        return [(Step(bench, ranks, pinned, model),
                 gloo.Gradients(lambda pinned=pinned: bench.gloo(ranks, pinned), GRADIENTS / f"{model}.txt", form, STEP_BUDGET_S))
                for pinned in (pinnings(ranks) if model == FIRST_MODEL else [False]) for form in ("copies", "views")]

    return Sweep(f"gradients of {model}, {ranks} ranks", "DDP's exchange over Gloo", candidates, most_rounds=SLOW_ROUNDS, tries=1)


def bytes_of(model):
    total = 0
    for line in (GRADIENTS / f"{model}.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            count = 4
            for extent in line.split()[1:]:
                count *= int(extent)
            total += count
    return total


def step_beside_one_buffer(model, ranks=2):
    """One call of the collective layer on one buffer of the same bytes, in place as the gradients are."""
    def measure(bench):
        ours = words(bench, ranks, "--gradients", GRADIENTS / f"{model}.txt", "--budget", str(STEP_BUDGET_S))
        flat = layer_words(bench, ranks, False, "--in-place", "--sizes", str(bytes_of(model)))
        pairs = interleave(lambda: programs.median_us(ours), lambda: programs.median_us(flat), min(bench.rounds, SLOW_ROUNDS))
        return Rounds("us", pairs, programs.shown(flat), programs.shown(ours))

    return measure


def step_beside_itself(model, options=(), settings=(), ranks=2):
    """The same step with more options of the program, or with more variables, beside that without."""
    def measure(bench):
        own = words(bench, ranks, "--gradients", GRADIENTS / f"{model}.txt", "--budget", str(STEP_BUDGET_S))
        place = own.index("--no-label")
        changed = [*own[:place], *programs.exported(settings), *own[place:], *options]
        pairs = interleave(lambda: programs.median_us(changed), lambda: programs.median_us(own), min(bench.rounds, SLOW_ROUNDS))
        return Rounds("us", pairs, programs.shown(own), programs.shown(changed))

    return measure


def beside_stalled_set(bench):
    """The latency of a set of two ranks while one of them waits in another set, beside that before."""
    ours = words(bench, 3, "--stalled", str(STALL_S), "--budget", "0.05")

    def once():
        results = programs.json_lines(programs.run(ours), ours)
        if not results:
            raise NotRun(f"{programs.shown(ours)}: printed no result")
        return results[-1]["beside_us"], results[-1]["alone_us"]

    return Rounds("us", [once() for _ in range(min(bench.rounds, SLOW_ROUNDS))], "the same run, before the other set waits",
                  programs.shown(ours))


def init(bench):
    """hvrun_init beside MPI_Init."""
    ours = words(bench, 2, "--init")
    peer = [programs.need_program("mpirun"), "-np", "2", bench.program("bench_mpi"), "--init", "--json"]
    pairs = interleave(lambda: programs.median_us(ours) / 1e3, lambda: programs.median_us(peer) / 1e3, bench.rounds)
    return Rounds("ms", pairs, programs.shown(peer), programs.shown(ours))
