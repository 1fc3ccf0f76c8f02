"""Horovod's figures of one day, for information: it does not install beside today's PyTorch. SPDX-License-Identifier: Apache-2.0

Horovod 0.28.1 on a virtual machine with 2 cores, November 2026, medians. 'tuned': HOROVOD_CYCLE_TIME=0 over MPI with
yielding waits, the fastest that was found.
"""

KIB, MIB = 1 << 10, 1 << 20
ALLREDUCE_US = {
    2: {"as it comes, MPI": {4: 1070, MIB: 1071, 4 * MIB: 1078, 64 * MIB: 29000},
        "as it comes, Gloo": {4: 1596, MIB: 1086, 4 * MIB: 4019, 64 * MIB: 57770},
        "tuned": {4: 33, MIB: 185, 4 * MIB: 649, 64 * MIB: 46300}},
    4: {"tuned": {4: 84, MIB: 671, 4 * MIB: 2705, 64 * MIB: 90100}},
}
STEP_MS = {("resnet50", 2): {"as it comes, MPI": 100, "as it comes, Gloo": 213, "tuned": 49},
           ("resnet50", 4): {"as it comes, MPI": 172, "as it comes, Gloo": 486, "tuned": 116}}


def _text(figures, unit):
    return ("recorded: Horovod " + ", ".join(f"{figure:,} {unit} ({how})" for how, figure in figures.items())) if figures else ""


def allreduce(ranks, size):
    return _text({how: sizes[size] for how, sizes in ALLREDUCE_US.get(ranks, {}).items() if size in sizes}, "us")


def step(model, ranks):
    return _text(STEP_MS.get((model, ranks), {}), "ms")
