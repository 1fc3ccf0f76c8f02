# SPDX-License-Identifier: Apache-2.0
"""Modules of Horovod's that hvrun does not have: an import of one says so, and what is there.

`try: import horovod.spark` ends in an ImportError as it would without this module, and importlib.util.find_spec finds none.
"""

import importlib.util
import sys

_FRAMEWORK = ("hvrun moves tensors of PyTorch only. `hvrun -np 4 python train.py` starts programs of any framework, and the framework's "
              "own way of being distributed works there")
_ELASTIC = "a job keeps its ranks here. Try: a checkpoint, hvd.elastic.run for failures in which no rank is lost, and hvrun --restarts"
WHY = {
    "horovod.tensorflow": _FRAMEWORK,
    "horovod.keras": _FRAMEWORK,
    "horovod._keras": _FRAMEWORK,
    "horovod.mxnet": _FRAMEWORK,
    "horovod.spark": "hvrun has no estimators and no jobs inside Spark. Try: horovod.run(function, num_proc=4), or hvrun in the batch job",
    "horovod.ray": "hvrun has no executor for Ray. Try: horovod.run(function, num_proc=4), or hvrun on the hosts that Ray would use",
    "horovod.runner.elastic": _ELASTIC,
    "horovod.runner.launch": "the launcher is the program hvrun. Try: horovod.run(function, num_proc=4), or subprocess.run(['hvrun', ...])",
}
PRESENT = "horovod.torch, horovod.common, horovod.data and horovod.run"


class _Finder:
    """The last one that Python asks."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        del path, target
        is_question = sys._getframe(2).f_code is importlib.util.find_spec.__code__
        if name in WHY and not is_question:
            # Without its name= the text also reaches `from horovod import spark`, which else says only that it cannot import that.
            raise ModuleNotFoundError(f"{name} is not there: this is hvrun's horovod, which has {PRESENT}; {WHY[name]}")
        return None


def tell_on_import():
    sys.meta_path.append(_Finder)
