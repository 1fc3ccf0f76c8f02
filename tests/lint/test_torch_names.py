# SPDX-License-Identifier: Apache-2.0
"""hvrun.torch uses what torch_names.txt lists of PyTorch, and nothing else: so that it works with each version from 2.1 on."""

import re

from harness.programs import SOURCE

LIST = SOURCE / "tests/lint/torch_names.txt"


def used(text):
    """Names under torch, without what is called on tensors."""
    code = re.sub(r'""".*?"""', "", text, flags=re.S)
    code = re.sub(r"#.*", "", code)
    names = {name for name in re.findall(r"(?<![\w.\"])torch(?:\.\w+)+", code) if not name.startswith("torch.elastic")}
    return names | {f"import {name}" for name in re.findall(r"^from (torch[\w.]*) import", code, flags=re.M)}


def names_of_package():
    files = sorted((SOURCE / "python/hvrun/torch").rglob("*.py"))
    return set().union(*(used(file.read_text()) for file in files))


def listed():
    return {line for line in LIST.read_text().splitlines() if line and line[0] != "#"}


def test_the_list_is_what_is_used():
    assert listed() == names_of_package()


def test_a_name_that_is_not_listed_is_seen():
    assert used('x = torch.brand.new(1)  # torch.not_this\n"""torch.nor_this"""') == {"torch.brand.new"}
    assert used("from torch.utils.data import Sampler\n") >= {"import torch.utils.data"}
