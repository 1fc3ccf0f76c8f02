# SPDX-License-Identifier: Apache-2.0
"""Every program of examples/torch, with a small setting."""

import re
import subprocess

import pytest

from harness import programs, torch_environment, torch_jobs

EXAMPLES = programs.SOURCE / "examples" / "torch"


def run(name, tmp_path, *arguments, ranks=2, **more):
    done = torch_jobs.run(["-np", str(ranks), "--no-label"], [str(EXAMPLES / name), *arguments], tmp_path, warm=True, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.one_of("ranks")
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_digits(ranks, tmp_path):
    said = run("digits.py", tmp_path, ranks=ranks)
    assert float(re.search(r"test accuracy ([\d.]+)", said).group(1)) >= 0.97, said


def test_digits_go_on_from_a_checkpoint_with_other_ranks(tmp_path):
    path = str(tmp_path / "digits.pt")
    run("digits.py", tmp_path, "--epochs", "10", "--checkpoint", path, ranks=2)
    said = run("digits_horovod.py", tmp_path, "--epochs", "16", "--checkpoint", path, ranks=3, PYTHONPATH=torch_jobs.WITH_HOROVODS_NAMES)
    assert "going on with epoch 10" in said
    assert float(re.search(r"test accuracy ([\d.]+)", said).group(1)) >= 0.97, said
    said = run("digits.py", tmp_path, "--epochs", "16", "--checkpoint", path)
    assert said.startswith(f"nothing left to train: {path} has 16 epochs\ntest accuracy "), said


def test_digits_differ_only_in_the_import():
    def code(name):
        return (EXAMPLES / name).read_text().split('"""', 2)[2].replace("horovod.torch", "hvrun.torch")

    assert code("digits.py") == code("digits_horovod.py")


def test_fashion_mnist(tmp_path):
    said = run("fashion_mnist.py", tmp_path, "--epochs", "2", "--samples", "12000")
    assert float(re.findall(r"test accuracy ([\d.]+)", said)[-1]) > 0.5, said
    assert "images/s" in run("fashion_mnist.py", tmp_path, "--epochs", "1", "--samples", "2000", "--synthetic")


@pytest.mark.one_of("precision")
@pytest.mark.parametrize("precision", [[], ["--autocast"]], ids=["float32", "bfloat16"])
def test_gpt(precision, tmp_path):
    said = run("gpt.py", tmp_path, "--steps", "41", "--width", "64", *precision)
    losses = [float(one) for one in re.findall(r"loss ([\d.]+)", said)]
    assert losses[-1] < losses[0] - 1, said


@pytest.mark.one_of("name")
@pytest.mark.parametrize("name", ["digits.py", "gpt.py"])
def test_a_batch_again_and_again_is_learnt_by_heart(name, tmp_path):
    said = run(name, tmp_path, *{"digits.py": ["--epochs", "8"], "gpt.py": ["--steps", "41", "--width", "64"]}[name], "--synthetic")
    losses = [float(one) for one in re.findall(r"loss ([\d.]+)", said)]
    assert losses[-1] < losses[0] * 0.7, said


def test_embedding(tmp_path):
    assert float(re.search(r"([\d.]+) of the words", run("embedding.py", tmp_path)).group(1)) > 0.9


def test_uneven_data(tmp_path):
    said = sorted(run("uneven_join.py", tmp_path, ranks=3).splitlines())
    assert said == [f"rank {rank} had {10 + 5 * rank} batches; the last one to join was rank 2" for rank in range(3)]


def test_sync_batch_norm(tmp_path):
    said = run("sync_batch_norm.py", tmp_path, "--steps", "150", ranks=4)
    assert float(re.search(r"accuracy ([\d.]+)", said).group(1)) > 0.7, said


def test_resnet50_on_noise_and_on_a_folder(tmp_path):
    small = ["--steps", "2", "--batch-size", "2", "--image-size", "64", "--width", "8"]
    assert "images/s" in run("resnet50.py", tmp_path, "--synthetic", *small)
    images = tmp_path / "images"
    for number in range(3):
        (images / f"class{number}").mkdir(parents=True)
        for image in range(6):  # a format that pillow reads and anybody can write
            pixels = bytes((number * 80 + image + i) % 256 for i in range(16 * 16 * 3))
            (images / f"class{number}" / f"{image}.ppm").write_bytes(b"P6 16 16 255\n" + pixels)
    path = str(tmp_path / "resnet.pt")
    args = ["--folder", str(images), "--workers", "1", *small[2:], "--checkpoint", path]
    run("resnet50.py", tmp_path, *args, "--epochs", "1")
    assert "epoch 1" in run("resnet50.py", tmp_path, *args, "--epochs", "2")
    assert run("resnet50.py", tmp_path, *args, "--epochs", "2") == f"nothing left to train: {path} has 2 epochs\n"


def test_a_function_from_inside_python(tmp_path):
    words = [str(torch_environment.interpreter()), str(EXAMPLES / "run_function.py")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
                          env=torch_jobs.environment(tmp_path))
    assert done.stdout.splitlines() == [f"rank {rank} has learned 3.00 x + 1.00" for rank in range(2)], done.stderr


@pytest.mark.parametrize("says, end", [
    ("raise KeyError('learning_rate')", "KeyError: 'learning_rate'"),
    ("raise ValueError('two lines\\n\\nof it')", "ValueError: two lines\n    \n    of it"),
    ("raise ValueError('x' * 100000)", "xxx"),
    ("print('no exception', file=sys.stderr); os._exit(9)", "no exception"),
], ids=["an exception", "of some lines", "a long one", "none"])
def test_what_a_function_has_raised_is_in_the_error_of_run(says, end, tmp_path):
    (tmp_path / "mine.py").write_text(f"import os, sys\ndef train():\n    if os.environ['RANK'] == '1':\n        {says}\n")
    (tmp_path / "main.py").write_text("import hvrun, mine\ntry:\n    hvrun.run(mine.train, np=2)\nexcept RuntimeError as error:\n"
                                      "    print(error)\n")
    done = subprocess.run([str(torch_environment.interpreter()), "main.py"], capture_output=True, text=True, timeout=120, check=False,
                          cwd=tmp_path, env=torch_jobs.environment(tmp_path))
    told, _, last = done.stdout.rstrip("\n").partition("\n    ")
    assert re.fullmatch(r"hvrun.run: the job ended with exit code (\d): rank 1 on host \S+: exit code \1; its last lines:", told), done
    assert last.endswith(end) and len(last) < 4000, done


def test_why_no_function_was_called_is_in_the_error_of_run(tmp_path):
    (tmp_path / "main.py").write_text("import hvrun\ntry:\n    hvrun.run(print, np=2, hosts='nowhere.invalid')\n"
                                      "except RuntimeError as error:\n    print(error)\n")
    done = subprocess.run([str(torch_environment.interpreter()), "main.py"], capture_output=True, text=True, timeout=120, check=False,
                          cwd=tmp_path, env=torch_jobs.environment(tmp_path))
    assert done.stdout.startswith("hvrun.run: the job ended with exit code ") and "nowhere.invalid" in done.stdout, done


def test_every_example_is_in_their_readme():
    text = (EXAMPLES / "README.md").read_text()
    assert [one.name for one in sorted(EXAMPLES.glob("*.py")) if f"python {one.name}" not in text] == []
    for arguments in re.findall(r"python (\w+\.py[^`|]*)`", text):
        name, *words = arguments.split()
        options = [word for word in words if word.startswith("--")]
        assert all(f'"{option}"' in (EXAMPLES / name).read_text() for option in options), arguments
