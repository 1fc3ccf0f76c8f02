# SPDX-License-Identifier: Apache-2.0
"""Python runs this module first in every Python program of a rank, by its module site. It has hvrun's agent ask for the
program's stacks, has waits in torch.distributed reported, and then runs the program's own sitecustomize.

hvrun's agent writes the files of this directory into a directory of the job, which is first on the PYTHONPATH of its ranks.
Python 2 must be able to run this file. It takes a millisecond, without compiled files 2 to 4, and imports no torch.
"""
import os
import sys

_directory = os.path.dirname(__file__)


class _DistributedFinder(object):
    """An import hook that sees torch.distributed's import, and leaves the rest to _hvrun_waits."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch.distributed.distributed_c10d":
            return None
        sys.meta_path.remove(self)
        sys.path.insert(0, _directory)
        try:
            import _hvrun_waits
        except Exception:
            return None
        finally:
            sys.path.remove(_directory)
        return _hvrun_waits.find_spec(name, path, target)


def _begin():
    """Whatever this Python lacks for it, the program runs as it would without hvrun."""
    try:
        import _hvrun_limits
        import _hvrun_stacks

        _hvrun_stacks.offer()
        if _hvrun_limits.STALL > 0 or _hvrun_limits.END > 0:
            sys.meta_path.insert(0, _DistributedFinder())
    except Exception:
        pass


def _hide():
    """Makes sys.path and os.environ what they would be without hvrun. C's environ, which programs that this one starts
    inherit, keeps the directory: Python programs among them are to begin here, too."""
    if _directory in sys.path:
        sys.path.remove(_directory)
    sys.path_importer_cache.pop(_directory, None)
    value = os.environ.get("PYTHONPATH", "")
    try:
        values, name = os.environ._data, os.environ.encodekey("PYTHONPATH")
        if value == _directory:
            del values[name]
        elif value.startswith(_directory + ":"):
            values[name] = os.environ.encodevalue(value[len(_directory) + 1 :])
    except (AttributeError, KeyError, TypeError):
        pass  # another Python's os.environ, which goes on naming the directory


def _run_next():
    """Runs the sitecustomize that this one hides. Its errors are the program's, as they would be without hvrun."""
    this = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this  # there is none, and the import of this one must leave a module


_begin()
_hide()
_run_next()
