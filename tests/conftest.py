# SPDX-License-Identifier: Apache-2.0
"""What every pytest test can ask for: hvrun, payload programs, the scale of counts, seeded chance."""

import os
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import programs, started  # noqa: E402

SEED = int(os.environ.get("HVRUN_TEST_SEED") or random.SystemRandom().randrange(2**32))
SCALE = float(os.environ.get("HVRUN_TEST_SCALE") or 1.0)


@pytest.fixture(scope="session")
def hvrun():
    """The path of hvrun, as text."""
    program = programs.hvrun()
    assert program.exists(), f"{program} is not there: build it, or set HVRUN_BIN_DIR"
    return str(program)


@pytest.fixture(scope="session")
def payload():
    """payload(name): the path of a program of tests/payload."""
    return programs.payload


@pytest.fixture(scope="session")
def scaled():
    """scaled(100): so many times under --full, fewer with a small HVRUN_TEST_SCALE, at least once."""
    return lambda count: max(1, round(count * SCALE))


@pytest.fixture
def chance(request):
    """Seeded randomness: the same for the same HVRUN_TEST_SEED and test."""
    return random.Random(f"{SEED} {request.node.nodeid}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.failed:
        report.sections.append(("repeat with", f"HVRUN_TEST_SEED={SEED} HVRUN_TEST_SCALE={SCALE:g}"))
        if "cluster" in item.funcargs and report.when == "call":
            report.sections.append(("processes of the hosts", item.funcargs["cluster"].report()))
        report.sections.extend(("what was started", words) for words in started.tell_all())
    elif report.when == "teardown":
        started.tell_all()
