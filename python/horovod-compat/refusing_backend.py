# SPDX-License-Identifier: Apache-2.0
"""setuptools, unless a real Horovod is installed where this would go: nobody's Horovod is replaced unasked."""

import pathlib
import sysconfig

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403: all hooks but those below

OURS = "+hvrun"


def real_horovods(folders=None):
    """What is installed as horovod and is not this."""
    folders = folders or {sysconfig.get_paths()[name] for name in ("purelib", "platlib")}
    found = [path for folder in folders for path in pathlib.Path(folder).glob("horovod-*.dist-info")]
    return [path for path in found if OURS not in path.name]


def _refuse():
    found = real_horovods()
    if found:
        raise SystemExit(f"horovod (of hvrun): a real Horovod is installed here ({found[0]}), and this would replace it.\n"
                         "try: pip uninstall horovod, if that is wanted; or another environment; or 'import hvrun.torch as hvd', "
                         "which needs neither")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _refuse()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    _refuse()
    return build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)
