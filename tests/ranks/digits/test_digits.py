"""train_digits under hvrun: it learns, all ranks agree, runs repeat, checkpoints resume. SPDX-License-Identifier: Apache-2.0"""

import os
import re
import signal
import subprocess
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import programs
from harness.running import Running
from harness.waiting import wait_for

BIN = programs.hvrun_folder()
TRAIN = BIN / "examples" / "train_digits"
SECONDS = 240  # sanitizers are slow
EPOCH = re.compile(
    r"^epoch (\d+)/(\d+)  loss (\d+\.\d{4})  test accuracy ([01]\.\d{4})  (\d+) images/s  "
    r"waiting for data (\d+\.\d) %, for communication (\d+\.\d) %$"
)
HASH = re.compile(r"^weights hash ([0-9a-f]{16})$", re.MULTILINE)
ACCURACY = re.compile(r"^test accuracy ([01]\.\d{4})$", re.MULTILINE)

Run = namedtuple("Run", "code out err hashes accuracy")
DETERMINISTIC = {"HVRUN_DETERMINISTIC": "1"}


def command(ranks, *arguments):
    return [str(BIN / "hvrun"), "-np", str(ranks), "--no-label", str(TRAIN), *map(str, arguments)]


def environment(extra):
    return {**os.environ, **(extra or {})}


def run(argv, extra=None):
    done = subprocess.run(argv, env=environment(extra), capture_output=True, text=True, timeout=SECONDS)
    accuracy = ACCURACY.search(done.stdout)
    return Run(done.returncode, done.stdout, done.stderr, HASH.findall(done.stdout), float(accuracy[1]) if accuracy else None)


def train(ranks, *arguments, extra=None):
    """Trains to the end and returns the run, whose ranks all hold the same weights."""
    result = run(command(ranks, *arguments), extra)
    assert result.code == 0, result.err
    assert len(result.hashes) == ranks
    assert len(set(result.hashes)) == 1, f"ranks disagree: {result.hashes}"
    return result


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
def test_it_learns_the_digits_and_all_ranks_hold_the_same_weights(ranks):
    assert train(ranks).accuracy >= 0.95


def test_alone_it_is_rank_0_of_1():
    result = run([str(TRAIN), "--epochs", "1"])
    assert result.code == 0
    assert len(result.hashes) == 1
    assert result.hashes == train(1, "--epochs", 1).hashes


def test_each_epoch_shows_its_figures_once():
    lines = [EPOCH.match(line) for line in train(2, "--epochs", 3).out.splitlines() if line.startswith("epoch")]
    assert [line and line[1] for line in lines] == ["1", "2", "3"]
    assert float(lines[2][3]) < float(lines[0][3])  # the loss falls
    assert all(int(line[5]) > 0 for line in lines)
    assert all(0 <= float(line[share]) <= 100 for line in lines for share in (6, 7))


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_deterministic_runs_repeat_bit_for_bit_with_every_fusion_threshold(ranks):
    thresholds = [None, None, "0", "1K", "64M", "0"]
    hashes = []
    for threshold in thresholds:
        extra = {**DETERMINISTIC, **({"HVRUN_FUSION_THRESHOLD": threshold} if threshold else {})}
        hashes += train(ranks, "--epochs", 3, extra=extra).hashes
    assert len(set(hashes)) == 1, list(zip(thresholds, hashes[::ranks]))


def test_the_hash_shows_another_seed():
    assert train(2, "--epochs", 1).hashes != train(2, "--epochs", 1, "--seed", 2).hashes


def test_a_resumed_training_ends_with_the_bits_of_an_uninterrupted_one(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    uninterrupted = train(3, "--epochs", 6, "--checkpoint", whole, extra=DETERMINISTIC)
    train(3, "--epochs", 2, "--checkpoint", parts, extra=DETERMINISTIC)
    resumed = train(3, "--epochs", 6, "--checkpoint", parts, "--resume", extra=DETERMINISTIC)
    assert f"resuming {parts} after epoch 2\n" in resumed.out
    assert "epoch 2/6" not in resumed.out and "epoch 3/6" in resumed.out
    assert resumed.hashes == uninterrupted.hashes
    assert whole.read_bytes() == parts.read_bytes()  # the momentum too


def test_a_training_resumes_with_another_number_of_ranks(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    train(2, "--epochs", 2, "--checkpoint", checkpoint)
    assert "resuming" in train(3, "--epochs", 3, "--checkpoint", checkpoint, "--resume").out


def test_resume_without_a_checkpoint_starts_afresh(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    afresh = train(2, "--epochs", 1, "--checkpoint", checkpoint, "--resume")
    assert "resuming" not in afresh.out
    assert checkpoint.exists()


def ranks_of(hvrun_arguments):
    """The pids of the processes that run with exactly these arguments."""
    wanted = "\0".join(hvrun_arguments).encode() + b"\0"
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes() == wanted:
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):  # gone in between
            pass
    return found


@contextmanager
def endless_training(checkpoint, ranks=3):
    """A training that has done some epochs and has no end."""
    argv = command(ranks, "--epochs", 1000000, "--checkpoint", checkpoint)
    with Running(argv, env=environment(DETERMINISTIC)) as job:
        job.wait_for_output("\nepoch 3/", SECONDS)
        yield job, argv[argv.index(str(TRAIN)):]


def check_it_resumes(checkpoint, ranks=3):
    """Two more epochs from the checkpoint give the bits of a training that was never killed."""
    header = 8 + 4 + 4 + 3 * 8 + 8  # magic, version, layers, their shapes, seed
    done = int.from_bytes(checkpoint.read_bytes()[header:header + 8], "little")
    assert done >= 2
    resumed = train(ranks, "--epochs", done + 2, "--checkpoint", checkpoint, "--resume", extra=DETERMINISTIC)
    assert f"after epoch {done}\n" in resumed.out
    assert resumed.hashes == train(ranks, "--epochs", done + 2, extra=DETERMINISTIC).hashes


def test_a_killed_rank_ends_the_job_and_its_checkpoint_resumes(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    with endless_training(checkpoint) as (job, rank_arguments):
        ranks = ranks_of(rank_arguments)
        assert len(ranks) == 3
        os.kill(ranks[-1], signal.SIGKILL)
        assert job.wait(SECONDS).code == 128 + signal.SIGKILL
        assert ranks_of(rank_arguments) == []
    check_it_resumes(checkpoint)


def test_a_killed_hvrun_leaves_a_checkpoint_that_resumes(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    with endless_training(checkpoint) as (job, rank_arguments):
        job.kill()
        wait_for(lambda: not ranks_of(rank_arguments), 5, "the end of all ranks after hvrun was killed")
    check_it_resumes(checkpoint)


def test_a_damaged_checkpoint_is_refused_by_name_and_ends_the_job(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    train(2, "--epochs", 1, "--checkpoint", checkpoint)
    damaged = bytearray(checkpoint.read_bytes())
    damaged[1000] ^= 1
    checkpoint.write_bytes(damaged)
    result = run(command(2, "--checkpoint", checkpoint, "--resume"))
    assert result.code == 1
    assert f"reading the checkpoint {checkpoint}: it is damaged: its hash does not fit" in result.err
    assert not result.hashes


def test_a_missing_data_file_is_named(tmp_path):
    result = run(command(2, "--data", tmp_path / "none"))
    assert result.code == 1
    assert f"train_digits: reading the digits: cannot open {tmp_path}/none: No such file or directory\n" in result.err


@pytest.mark.parametrize("place, reason", [("none/x", "No such file or directory"), (".", "Is a directory")])
def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_training(tmp_path, place, reason):
    result = run(command(2, "--checkpoint", tmp_path / place))
    assert result.code == 1
    assert f"writing the checkpoint {tmp_path / place}" in result.err and f": {reason}\n" in result.err
    assert "epoch" not in result.out


def test_a_training_of_no_epochs_leaves_its_checkpoint_as_it_was(tmp_path):
    (tmp_path / "checkpoint").write_text("something else")
    train(2, "--epochs", 0, "--checkpoint", tmp_path / "checkpoint")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("checkpoint", "something else")]


def alone(*arguments):
    return run([str(TRAIN), *arguments])


@pytest.mark.parametrize("arguments", [["--epochs", "many"], ["--epochs", "-1"], ["--seed", "-1"], ["--resume"]])
def test_a_wrong_value_is_a_usage_error(arguments):
    result = alone(*arguments)
    assert result.code == 2 and arguments[0] in result.err


@pytest.mark.parametrize("arguments, words", [
    (["--epoch", "3"], "'--epoch'; the nearest is --epochs"),
    (["--batchsize=3", "--epoch", "3"], "'--batchsize=3'; the nearest is --batch-size"),
    (["--xyz"], "'--xyz'"),
    (["3"], "'3'"),
])
def test_an_unknown_option_is_named_with_the_nearest(arguments, words):
    result = alone(*arguments)
    assert (result.code, result.err) == (2, f"train_digits: unknown argument {words}; --help lists all options\n")


def test_the_help_shows_each_option_plainly_with_its_default():
    text = " ".join(alone("--help").out.split())
    assert "--epochs N Times that every training image is seen (default: 20)" in text
    assert "(default: 0.02)" in text and "--data FILE" in text


@pytest.mark.parametrize("ranks", [1, 4])
def test_hello_ranks_adds_up(ranks):
    result = run([str(BIN / "hvrun"), "-np", str(ranks), "--no-label", str(BIN / "examples" / "hello_ranks")])
    assert result.code == 0, result.err
    assert sorted(result.out.splitlines()) == [
        f"I am rank {rank} of {ranks}; all our numbers add up to {ranks * (ranks - 1) // 2}" for rank in range(ranks)
    ]


def test_process_sets_adds_up_by_team():
    result = run([str(BIN / "hvrun"), "-np", "5", "--no-label", str(BIN / "examples" / "process_sets")])
    assert result.code == 0, result.err
    assert sorted(result.out.splitlines()) == [
        f"I am rank {rank}, among the {team} ones: our numbers add up to {total}"
        for rank, team, total in ((0, "even", 6), (1, "odd", 4), (2, "even", 6), (3, "odd", 4), (4, "even", 6))
    ]
    alone = run([str(BIN / "examples" / "process_sets")])
    assert (alone.code, alone.out) == (2, "") and "try: hvrun -np 4" in alone.err


def test_a_rank_says_in_its_log_what_it_joined_what_it_started_and_that_it_left():
    result = train(2, "--epochs", "1", extra={"HOROVOD_LOG_LEVEL": "TRACE"})
    for rank in (0, 1):
        for words in (f"joined the job: .* rank={rank} size=2 .*backends=native", "native starts 1 x broadcast", "left the job"):
            assert re.search(f"/{rank} (runtime|engine): {words}", result.err), f"{words}\n{result.err[-2000:]}"
    assert train(2, "--epochs", "1", extra={"HOROVOD_LOG_LEVEL": "warning"}).err == ""
