# SPDX-License-Identifier: Apache-2.0
"""hvrun.run where it cannot send the function; where it can, examples/torch/run_function.py shows and test_torch_examples.py runs it."""

import subprocess
import sys

from harness import torch_jobs


def test_a_function_of_a_script_is_not_sent_without_cloudpickle(tmp_path):
    (tmp_path / "script.py").write_text("import sys\nsys.modules['cloudpickle'] = None\nimport hvrun\ndef train():\n    pass\n"
                                        "hvrun.run(train, np=2)\n")
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False,
                          env=torch_jobs.environment(tmp_path))
    assert "hvrun.run: train is a function of this script or notebook, which ranks cannot import; pip install cloudpickle" in done.stderr
