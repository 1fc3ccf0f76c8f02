"""The project's own files, and C++ text without comments and strings. SPDX-License-Identifier: Apache-2.0"""

import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_OURS = {".git", "build", "__pycache__", ".pytest_cache", "demo-out"}
CXX = (".cc", ".h", ".c")


def files(root=ROOT):
    """Every file below root, as (path from root with slashes), sorted."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        found += [pathlib.Path(folder, name).relative_to(root).as_posix() for name in names]
    return sorted(found)


def read(path, root=ROOT):
    return (pathlib.Path(root) / path).read_text(encoding="utf-8", errors="replace")


def is_script(path, text):
    return path.endswith(".sh") or text.startswith(("#!/bin/sh", "#!/bin/bash", "#!/usr/bin/env bash"))


TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\\ ]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)


def without_comments(text):
    """C or C++ with its comments blanked; every line and every literal stays where it was."""
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]) if match[0][:2] in ("//", "/*") else match[0], text)


def bare(text):
    """C or C++ with comments and literals blanked; every line stays where it was."""
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
