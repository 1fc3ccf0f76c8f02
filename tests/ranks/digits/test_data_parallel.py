"""What makes train_digits data-parallel: the rate of the whole job, one checkpoint, fused gradients. SPDX-License-Identifier: Apache-2.0"""

import array
import os
import re
import struct
import subprocess

import pytest
from harness import programs

BIN = programs.hvrun_folder()
TRAIN = BIN / "examples" / "train_digits"
SECONDS = 240  # sanitizers are slow
HEADER = 8 + 4 + 4 + 3 * 8 + 8 + 8  # of a checkpoint: magic, version, layers, their shapes, seed, epochs done
GRADIENTS = 6  # three layers, weights and bias each


def train(ranks, *arguments, program=(TRAIN,), cwd=None, **extra):
    """What hvrun wrote on stderr; 20 epochs or fewer, to a good end."""
    argv = [BIN / "hvrun", "-np", ranks, "--no-label", *program, *arguments]
    done = subprocess.run([str(word) for word in argv], env={**os.environ, **extra}, cwd=cwd, capture_output=True, text=True,
                          timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stderr


def numbers_of(checkpoint):
    """Weights, biases and their momentum; behind them stands a hash."""
    return array.array("f", checkpoint.read_bytes()[HEADER:-8])


def distance(one, other):
    return max(abs(a - b) for a, b in zip(numbers_of(one), numbers_of(other), strict=True))


def epochs_done(checkpoint):
    return struct.unpack_from("<q", checkpoint.read_bytes(), HEADER - 8)[0]


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_rate_grows_with_the_ranks(tmp_path, ranks):
    """N ranks with batches of 512/N each take the steps of one rank with all 512 images and N times the rate."""
    warm = tmp_path / "warm"
    train(1, "--epochs", 3, "--checkpoint", warm)  # the rate grows until here
    ends = {}
    for name, size, batch, rate in [("together", ranks, 512 // ranks, 0.01), ("alone", 1, 512, 0.01 * ranks), ("slow", 1, 512, 0.01)]:
        ends[name] = tmp_path / name
        ends[name].write_bytes(warm.read_bytes())
        train(size, "--epochs", 4, "--batch-size", batch, "--learning-rate", rate, "--checkpoint", ends[name], "--resume")
        assert epochs_done(ends[name]) == 4
    assert distance(ends["together"], ends["alone"]) < distance(ends["together"], ends["slow"]) / 20


def test_the_rate_begins_with_that_of_one_rank(tmp_path):
    """Freshly drawn weights: the first steps of many ranks go no farther than one rank's."""
    ends = {}
    for name, size, batch, rate in [("together", 4, 250, 0.01), ("alone", 1, 1000, 0.01), ("fast", 1, 1000, 0.04)]:
        ends[name] = tmp_path / name
        train(size, "--epochs", 1, "--batch-size", batch, "--learning-rate", rate, "--checkpoint", ends[name])
    assert distance(ends["together"], ends["alone"]) < distance(ends["together"], ends["fast"]) / 2


def test_only_rank_0_writes_the_checkpoint(tmp_path):
    """Each rank in a folder of its own, with a name for the checkpoint that leads into it."""
    script = 'mkdir rank.$HVRUN_RANK && cd rank.$HVRUN_RANK && exec "$0" "$@"'
    train(3, "--epochs", 2, "--checkpoint", "checkpoint", program=("sh", "-c", script, TRAIN), cwd=tmp_path)
    written = {folder.name: [file.name for file in folder.iterdir()] for folder in tmp_path.iterdir()}
    assert written == {"rank.0": ["checkpoint"], "rank.1": [], "rank.2": []}
    assert epochs_done(tmp_path / "rank.0" / "checkpoint") == 2


def gradient_operations(**extra):
    """[how many gradients travelled together] of each operation that rank 0 started."""
    told = train(2, "--epochs", 1, HVRUN_LOG_LEVEL="trace", **extra)
    started = re.findall(r"/0 engine: native starts (\d+) x allreduce, the first 'gradient of", told)
    return [int(count) for count in started]


def operations_of_steps(counts):
    """How many operations carried each step's gradients; no operation carries those of two steps."""
    steps, carried = [0], 0
    for count in counts:
        if carried == GRADIENTS:
            steps.append(0)
            carried = 0
        steps[-1] += 1
        carried += count
        assert carried <= GRADIENTS
    return steps


def test_gradients_travel_fused():
    """A layer's two become ready together: most steps need fewer operations than gradients, on slow machines too."""
    together, apart = gradient_operations(), gradient_operations(HVRUN_FUSION_THRESHOLD="0")
    assert sum(together) == sum(apart) == len(apart) and sum(apart) % GRADIENTS == 0
    steps = operations_of_steps(together)
    assert sum(operations < GRADIENTS for operations in steps) > len(steps) / 2
