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


def is_whole_product():
    """Whether tests of a wide product run all of it (--full), or a part that the seed draws."""
    return SCALE >= 1


@pytest.fixture
def chance(request):
    """Seeded randomness: the same for the same HVRUN_TEST_SEED and test."""
    return random.Random(f"{SEED} {request.node.nodeid}")


def pytest_collection_modifyitems(config, items):
    """Of a test that is marked one_of(parameter, ...) the variants with one choice of values stay, drawn by the seed; of tests of
    whatever file that are marked drawn_among(parameter, values) those with one of these values."""
    left_out = [] if is_whole_product() else [item for item in items if not is_drawn(item, items)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def is_drawn(item, items):
    own = parameters_of(item)
    for mark in item.iter_markers("drawn_among"):
        name, values = mark.args
        if own[name] != random.Random(f"{SEED} {values}").choice(values):
            return False
    names = {name for mark in item.iter_markers("one_of") for name in mark.args if name in own}
    return not names or chosen(names, own) == drawn_choice(names, item, items)


def parameters_of(item):
    """{name: value as text}; empty where a test has none."""
    return {name: str(value) for name, value in item.callspec.params.items()} if hasattr(item, "callspec") else {}


def chosen(names, parameters):
    return sorted((name, parameters[name]) for name in names)


def drawn_choice(names, item, items):
    """The same for variants that differ in these parameters alone."""
    def others_of(parameters):
        return sorted((name, value) for name, value in parameters.items() if name not in names)

    others = others_of(parameters_of(item))
    of_same_test = [parameters_of(each) for each in items
                    if each.path == item.path and each.originalname == item.originalname]
    choices = sorted(chosen(names, parameters) for parameters in of_same_test if others_of(parameters) == others)
    return random.Random(f"{SEED} {item.path.name} {item.originalname} {others}").choice(choices)


def pytest_configure(config):
    config.addinivalue_line("markers", "drawn_among(parameter, values): the same for tests of several files with the same values")
    config.addinivalue_line("markers", "one_of(parameter, ...): without --full one choice of their values is drawn for each test")


def pytest_sessionfinish(session, exitstatus):
    """A file of which nothing is drawn has passed; tests/summary knows it by these words from one that has no tests."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and reporter.stats.get("deselected"):
        reporter.write_line("none of its tests is drawn")
        session.exitstatus = pytest.ExitCode.OK


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
