# SPDX-License-Identifier: Apache-2.0
"""The guides for PyTorch's users: every block of Python runs, and every command says what the guide shows.

A block whose first line is '# name.py' is a whole program; any other runs after PRELUDE, in both ranks of a job. Of a console
block all commands run, one after the other, where the guide's programs are; each line that is shown must come, in whatever
order, with whatever decimal fractions and widths of columns.
"""

import ast
import re
import subprocess

import pytest

from harness import programs, torch_environment, torch_jobs

GUIDES = ("docs/pytorch.md", "docs/from-horovod.md", "docs/from-ddp.md", "docs/from-torchrun.md", "README.md")
PRELUDE = '''
import torch
import hvrun.torch as hvd
hvd.init()
torch.manual_seed(1)
inputs, targets = torch.randn(8, 4), torch.randn(8, 1)
data = torch.utils.data.TensorDataset(inputs, targets)
loss_function = torch.nn.functional.mse_loss
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
plain = torch.optim.SGD(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters())
if not hasattr(torch.amp, "GradScaler"):  # before PyTorch 2.3
    torch.amp.GradScaler = lambda device, **options: torch.cuda.amp.GradScaler(**options)
'''
RUN_ALL = '''
import pathlib
import sys
import traceback
prelude, *fragments = [pathlib.Path(name) for name in sys.argv[1:]]
for fragment in fragments:
    space = {}
    try:
        for one in (prelude, fragment):
            exec(compile(one.read_text(), one.name, "exec"), space)
        space["hvd"].barrier()
    except BaseException:
        sys.exit(f"{traceback.format_exc()}in this block:\\n{fragment.read_text()}")
'''


def blocks(guide, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (programs.SOURCE / guide).read_text(), re.MULTILINE | re.DOTALL)


def whole_programs(guide):
    """{name: text}"""
    found = {re.match(r"# ([\w-]+\.py)\n", text): text for text in blocks(guide, "python")}
    return {match.group(1): text for match, text in found.items() if match}


def masked(text):
    """Its lines without what differs from run to run: durations and other decimals."""
    return {re.sub(r" +", " ", re.sub(r"\d+\.\d+", "#", re.sub(r"[\d.]+ m?s\b", "# s", line))) for line in text.splitlines()}


# On a busy machine a program that trains by DistributedDataParallel over Gloo, and knows nothing of hvrun, is now and then
# aborted by a thread of PyTorch's after its last line: only such a run is repeated.
GLOO_AT_ITS_END = "terminate called without an active exception"


def call(command, folder):
    """As a user's shell does; two names for this machine stand for hosts."""
    path = f"{programs.hvrun_folder()}:{torch_jobs.directory_with_warm_python()}:{torch_environment.interpreter().parent}:/usr/bin:/bin"
    if " -H " in command:
        command = command.replace("hvrun ", "hvrun --oversubscribe ", 1)
    env = torch_jobs.environment(folder, PATH=path, PYTHONPATH=torch_jobs.WITH_HOROVODS_NAMES, HVRUN_RSH=torch_jobs.RSH)
    for _ in range(3):
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=240, check=False, cwd=folder, env=env)
        if GLOO_AT_ITS_END not in done.stderr:
            break
    return done


@pytest.fixture
def folder(request, tmp_path):
    for name, text in whole_programs(request.getfixturevalue("guide")).items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.one_of("guide")
@pytest.mark.parametrize("guide", GUIDES[:-1])
def test_its_commands_say_what_it_shows(guide, folder):
    for block in blocks(guide, "console"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            done = call(command, folder)
            assert (done.returncode == 0) == ("hvrun: error" not in shown), f"{command}\n{done.stdout}{done.stderr}"
            missing = masked(shown) - masked(done.stdout + done.stderr) - {"..."}
            assert not missing, f"{command}\n{missing} is not in\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("guide", GUIDES)
def test_its_programs_run(guide, folder):
    """Those that no command of the guide runs."""
    commands = " ".join(blocks(guide, "console"))
    for name in whole_programs(guide):
        if guide == "README.md" or f"python {name}" not in commands:
            done = call(f"hvrun -np 2 python {name}", folder)
            assert done.returncode == 0, f"{name}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("guide", GUIDES[:-1])
def test_its_fragments_run(guide, folder):
    fragments = [text for text in blocks(guide, "python") if text not in whole_programs(guide).values()]
    names = [f"block{number}" for number in range(len(fragments))]
    for name, text in zip(["prelude", "run_all.py", *names], [PRELUDE, RUN_ALL, *fragments]):
        (folder / name).write_text(text)
    done = call(f"hvrun -np 2 python run_all.py prelude {' '.join(names)}", folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_is_in_a_guide():
    tree = ast.parse((torch_jobs.PACKAGE / "hvrun" / "torch" / "__init__.py").read_text())
    names = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    text = "".join((programs.SOURCE / guide).read_text() for guide in GUIDES[:2])
    assert len(names) > 60 and [name for name in names if not re.search(rf"\b{name}\b", text)] == []
