# SPDX-License-Identifier: Apache-2.0
"""hvrun on this machine alone: a clean environment, a home of its own, a deadline for everything."""

import os

import pytest

from harness.running import Running

FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Launcher:
    """launcher(*words) runs hvrun to its end; launcher.start(*words) gives the Running program."""

    def __init__(self, program, home):
        self.program = program
        self.environment = {"PATH": f"{os.path.dirname(program)}:{FOLDERS}", "HOME": str(home), "LANG": "C.UTF-8",
                            "SHELL": "/bin/sh", "USER": "tester", "LOGNAME": "tester"}
        self.home = home
        self._started = []

    def start(self, *words, env=None, cwd=None, **options):
        """env: on top of the clean environment; None as a value removes. Other options: see Running."""
        environment = {**self.environment, **(env or {})}
        environment = {name: value for name, value in environment.items() if value is not None}
        running = Running([self.program, *words], env=environment, cwd=cwd or self.home, **options)
        self._started.append(running)
        return running

    def __call__(self, *words, timeout=30, **options):
        return self.start(*words, **options).wait(timeout)

    def end(self):
        for running in self._started:
            running.kill()
            running.process.wait()


@pytest.fixture
def launcher(hvrun, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    made = Launcher(hvrun, home)
    yield made
    made.end()
