# SPDX-License-Identifier: Apache-2.0
"""Where hvrun's programs are: beside this environment's python, in a build of this checkout, or on PATH."""

import os
import pathlib
import shutil
import sys

from hvrun._library import PACKAGE


def find_program(name):
    """The path of hvrun or hvrun-agent; None where there is none. HVRUN_BIN_DIR goes before all others."""
    stated = os.environ.get("HVRUN_BIN_DIR")
    folders = [stated] if stated else [pathlib.Path(sys.executable).parent]
    if not stated:
        build = PACKAGE.parents[1] / "build"
        folders += [build / preset / "bin" for preset in ("release", "dev")]
    for folder in folders:
        path = pathlib.Path(folder) / name
        if os.access(path, os.X_OK) and path.is_file():
            return str(path)
    return None if stated else shutil.which(name)
