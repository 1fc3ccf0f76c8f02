"""Rows of hvrun.torch: training steps beside DistributedDataParallel over Gloo, and what calls and starts cost.

SPDX-License-Identifier: Apache-2.0
"""

import subprocess
import time

import gloo
import programs
from rounds import NotRun, Rounds, interleave

MOST_ROUNDS = 11
MODELS = {"resnet50": "bench/gradients/resnet50.txt", "bert-base": "bench/gradients/bert-base.txt", "mlp": "mlp"}
DDP = ("ddp", "ddp_views")


# Freed gradients stay in the C library's heap, on all sides. As glibc comes it gives some back and takes them again, a page
# fault for every 4 KiB, now of this side's and now of that one's: of 100 MB up to 40 ms, more than what is compared.
STEADY_HEAP = {"MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_MMAP_MAX_": "0"}


def environment(bench):
    return {"PYTHONPATH": str(programs.SOURCE / "python"), "HVRUN_LIBRARY": str(bench.build / "lib/libhvrun.so"),
            "PYTHONPYCACHEPREFIX": str(bench.build / "pycache"), "OMP_NUM_THREADS": "1"}


def words(bench, ranks, program, *more):
    return [bench.hvrun, "-np", str(ranks), "--no-label", gloo.interpreter(), programs.SOURCE / "bench" / program, *more]


def ask(bench, ranks, program, *more, variables=()):
    """The line of JSON that rank 0 prints."""
    line = words(bench, ranks, program, *more)
    answers = programs.json_lines(programs.run(line, {**environment(bench), **dict(variables)}), line)
    if not answers:
        raise NotRun(f"{programs.shown(line)}: printed no result")
    return answers[-1]


def steps(bench, model, ranks):
    """[{side: seconds}] of rounds that are interleaved in one job; measured once for all rows that want them."""
    path = MODELS[model] if model == "mlp" else programs.SOURCE / MODELS[model]
    key = ("torch steps", model, ranks)
    if key not in bench.kept:
        few = ["--steps", "1"] if model == "bert-base" else []
        bench.kept[key] = ask(bench, ranks, "torch_step.py", str(path), "--rounds", str(min(bench.rounds, MOST_ROUNDS)), *few,
                              variables=STEADY_HEAP)
    return bench.kept[key]["rounds"]


def told(bench, model, ranks):
    return programs.shown(words(bench, ranks, "torch_step.py", MODELS[model]))


def exchange(model, ranks):
    """What exchanging gradients adds to a step, beside what it adds to DDP's, in its faster form."""
    def measure(bench):
        rounds = steps(bench, model, ranks)
        pairs = [((one["hvrun"] - one["alone"]) * 1e3, (min(one[side] for side in DDP) - one["alone"]) * 1e3) for one in rounds]
        return Rounds("ms", pairs, "the same job, DistributedDataParallel over Gloo", told(bench, model, ranks))

    return measure


def step(model, ranks):
    """A whole step."""
    def measure(bench):
        pairs = [(one["hvrun"] * 1e3, min(one[side] for side in DDP) * 1e3) for one in steps(bench, model, ranks)]
        return Rounds("ms", pairs, "the same job, DistributedDataParallel over Gloo", told(bench, model, ranks))

    return measure


def memory(model, ranks):
    """Sum over the ranks of their proportional shares of memory, beside that of DDP in its smaller form."""
    def of(bench, side):
        path = MODELS[model] if model == "mlp" else programs.SOURCE / MODELS[model]
        return ask(bench, ranks, "torch_step.py", str(path), "--rounds", "1", "--sides", side)["pss_mib"]

    def measure(bench):
        pairs = [(of(bench, "hvrun"), min(of(bench, side) for side in DDP))]
        return Rounds("MiB", pairs, "the same with --sides ddp, ddp_views", told(bench, model, ranks) + " --sides hvrun", is_counted=True)

    return measure


def cost(what, unit):
    """A figure of torch_cost.py, of each round."""
    def measure(bench):
        pairs = [(ask(bench, 2, "torch_cost.py")[what], None) for _ in range(min(bench.rounds, MOST_ROUNDS))]
        return Rounds(unit, pairs, own_command=programs.shown(words(bench, 2, "torch_cost.py")))

    return measure


def start(bench):
    """hvrun starts two ranks that join and leave, beside two concurrent imports of PyTorch alone."""
    python = gloo.interpreter()
    ours = [bench.hvrun, "-np", "2", "--no-label", python, "-c", "import hvrun.torch as h; h.init()"]
    peer = [python, "-c", "import torch"]

    def own_seconds():
        begun = time.perf_counter()
        programs.run(ours, environment(bench))
        return time.perf_counter() - begun

    def peer_seconds():
        begun = time.perf_counter()
        both = [subprocess.Popen([str(word) for word in peer], env={**programs.environment(), **environment(bench)}) for _ in range(2)]
        if any([one.wait() for one in both]):
            raise NotRun(f"{programs.shown(peer)}: failed")
        return time.perf_counter() - begun

    pairs = interleave(lambda: own_seconds() * 1e3, lambda: peer_seconds() * 1e3, min(bench.rounds, MOST_ROUNDS))
    return Rounds("ms", pairs, "two of: " + programs.shown(peer), programs.shown(ours))
