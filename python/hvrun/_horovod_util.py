# SPDX-License-Identifier: Apache-2.0
"""horovod.common.util's functions, which scripts import and which mean little here. Imports no framework."""

import importlib.metadata
import os
import sysconfig
from contextlib import contextmanager

EXTENSIONS = ["tensorflow", "torch", "mxnet"]


class HorovodVersionMismatchError(ImportError):
    """A framework's version that an extension was not built for: here nothing is built for one."""

    def __init__(self, name, version, installed_version):
        super().__init__(get_version_mismatch_message(name, version, installed_version))
        self.name, self.version, self.installed_version = name, version, installed_version


def get_version_mismatch_message(name, version, installed_version):
    return f"{name} is {installed_version} here, not {version}"


def get_average_backwards_compatibility_fun(reduce_ops):
    """The function that chooses between `op` and the older `average`."""
    del reduce_ops

    def chosen(op, average):
        from hvrun.torch.operations import chosen_op

        return chosen_op(op, average)

    return chosen


def check_extension(ext_name, ext_env_var, pkg_path, *args):
    """Nothing was compiled, so nothing can be missing."""
    del ext_name, ext_env_var, pkg_path, args


def check_installed_version(name, version, exception=None):
    """Whatever version is installed will do."""
    del name, version, exception


def extension_available(ext_base_name, verbose=False):
    """Whether hvrun has a binding for that framework and it is installed."""
    del verbose
    if ext_base_name != "torch":
        return False
    try:
        importlib.metadata.version(ext_base_name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def gpu_available(ext_base_name, verbose=False):
    """Whether the framework sees a GPU."""
    if not extension_available(ext_base_name, verbose):
        return False
    from hvrun.torch import gpu

    return gpu.is_available()


def get_ext_suffix():
    """How the names of compiled extensions of this Python end."""
    return sysconfig.get_config_var("EXT_SUFFIX") or ".so"


def get_extension_full_path(pkg_path, *args):
    """Where Horovod's compiled extension of that name would lie."""
    *folders, name = args
    return os.path.join(os.path.dirname(pkg_path), *folders, name + get_ext_suffix())


@contextmanager
def env(**kwargs):
    """Variables that are set within it."""
    before = {name: os.environ.get(name) for name in kwargs}
    os.environ.update({name: value for name, value in kwargs.items() if value is not None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def num_rank_is_power_2(num_rank):
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(l, n):  # noqa: E741: its name
    """The list in n parts of about the same length, the longer ones first."""
    each, more = divmod(len(l), n)
    begins = [i * each + min(i, more) for i in range(n + 1)]
    return [l[begin:end] for begin, end in zip(begins, begins[1:])]


def is_iterable(x):
    try:
        iter(x)
    except TypeError:
        return False
    return True


def is_version_greater_equal_than(ver, target):
    def numbers(text):
        return [int(one) for one in text.split("+")[0].split(".")[:3]]

    return numbers(ver) >= numbers(target)


__all__ = [
    "EXTENSIONS", "HorovodVersionMismatchError", "check_extension", "check_installed_version", "env", "extension_available",
    "get_average_backwards_compatibility_fun", "get_ext_suffix", "get_extension_full_path", "get_version_mismatch_message",
    "gpu_available", "is_iterable", "is_version_greater_equal_than", "num_rank_is_power_2", "split_list",
]
