# SPDX-License-Identifier: Apache-2.0
"""setuptools, unless a real Horovod is installed where this would go: nobody's Horovod is replaced unasked.

pip builds this by the Python of the environment that it installs into, but with a sys.path of the build's own, in which that
environment cannot be seen. So the same Python is asked for its usual sys.path: the environment's folders, the user's where they
count, and what .pth files add.
"""

import ast
import os
import pathlib
import subprocess
import sys

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403: all hooks but those below

OURS = "+hvrun"
AS_INSTALLED = ("horovod-*.dist-info", "horovod-*.egg-info", "horovod-*.egg", "horovod.egg-link")  # files or folders
OF_THE_BUILD = ("PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONSTARTUP")  # pip sets the former two


def usual_path():
    """sys.path of this Python outside of the build."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_THE_BUILD}
    done = subprocess.run([sys.executable, "-c", "import sys; print(sys.path[1:])"], env=kept, capture_output=True, text=True,
                          check=False)
    return ast.literal_eval(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else []


def real_horovods():
    """What is installed as horovod and is not this."""
    folders = dict.fromkeys(pathlib.Path(one) for one in [*sys.path, *usual_path()] if one)
    found = [path for folder in folders for form in AS_INSTALLED for path in sorted(folder.glob(form))]
    return [path for path in found if OURS not in path.name]


def _unless_there_is_one(hook):
    def refuse_or_do(*args, **kwargs):
        found = real_horovods()
        if found:
            raise SystemExit(f"horovod (of hvrun): a real Horovod is installed here ({found[0]}), and this would replace it.\n"
                             "try: pip uninstall horovod, if that is wanted; or another environment; or 'import hvrun.torch as "
                             "hvd', which needs neither")
        return hook(*args, **kwargs)

    return refuse_or_do


build_wheel = _unless_there_is_one(build_meta.build_wheel)
build_editable = _unless_there_is_one(build_meta.build_editable)
prepare_metadata_for_build_wheel = _unless_there_is_one(build_meta.prepare_metadata_for_build_wheel)
prepare_metadata_for_build_editable = _unless_there_is_one(build_meta.prepare_metadata_for_build_editable)
