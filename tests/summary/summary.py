"""Counts what ctest, pytest and doctest ran in one or more build directories, names failures and skips, prints the last line.

SPDX-License-Identifier: Apache-2.0

Each build directory holds junit.xml, written by ctest. A ctest test that is a pytest file counts as its single tests, read from
the junit file that pytest itself left; one that is a source of a doctest program, as its cases, read from what doctest printed.
A skip that is not allowed counts as a failure: where everything that a test needs is there, a skipped test is one that did not run.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
LINES_OF_A_FAILURE = 40
SLOWEST = 25  # shown by --times
DOCTEST_TIME = re.compile(r"^([0-9.]+) s: (.+)$", re.MULTILINE)  # what --duration=true prints behind each case
NONE_DRAWN = re.compile(r"^none of its tests is drawn$", re.MULTILINE)  # tests/conftest.py says so
DOCTEST_BLOCK = re.compile(r"^={70,}$", re.MULTILINE)  # between what it prints of a case and of the next
DOCTEST_NAME = re.compile(r"^TEST CASE: +(.+)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Case:
    """One test: where it ran, its label, how it ended and, unless it passed, why."""

    build: str
    label: str
    name: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0


def ctest_tests(listing):
    """{name: (label, path of its pytest junit or None)} from ctest --show-only=json-v1."""
    tests = {}
    for test in json.loads(listing)["tests"]:
        labels = [p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"]
        prefix = "--junitxml="
        junits = [word[len(prefix):] for word in test.get("command", []) if word.startswith(prefix)]
        label = labels[0][0] if labels and labels[0] else "unlabelled"
        tests[test["name"]] = (label, junits[0] if junits else None)
    return tests


def ctest_outcome(element):
    """A testcase of ctest's junit: only a skip that the test itself asked for is a skip."""
    status = element.get("status")
    output = (element.findtext("system-out") or "").strip()
    if status == "run":
        return PASSED, ""
    skipped = element.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith(("SKIP_RETURN_CODE", "SKIP_REGULAR")):
        return SKIPPED, output.splitlines()[-1] if output else "gave no reason"
    if status == "disabled":
        return SKIPPED, "disabled in CMake"
    return FAILED, output or "no output"


def pytest_cases(build, label, file_name, junit_text):
    """The single tests of one pytest run."""
    for element in ElementTree.fromstring(junit_text).iter("testcase"):
        name = f"{file_name}::{element.get('name')}"
        seconds = float(element.get("time") or 0)
        broken = element.find("failure") if element.find("failure") is not None else element.find("error")
        skipped = element.find("skipped")
        if broken is not None:
            yield Case(build, label, name, FAILED, (broken.text or broken.get("message") or "").strip(), seconds)
        elif skipped is not None:
            yield Case(build, label, name, SKIPPED, skipped.get("message", "gave no reason"), seconds)
        else:
            yield Case(build, label, name, PASSED, "", seconds)


def doctest_cases(build, label, test_name, output):
    """The cases of one source of a doctest program, from what it printed; none where it printed no case's time."""
    errors = {}
    for block in DOCTEST_BLOCK.split(output):
        name = DOCTEST_NAME.search(block)
        if name and "ERROR:" in block:
            # The time behind an error is the case's own; what follows belongs to later cases.
            errors[name.group(1).strip()] = DOCTEST_TIME.sub("", block).strip()
    for seconds, name in DOCTEST_TIME.findall(output):
        name = name.strip()
        outcome = FAILED if name in errors else PASSED
        yield Case(build, label, f"{test_name}::{name}", outcome, errors.pop(name, ""), float(seconds))
    for name, reason in errors.items():  # it ended within this case
        yield Case(build, label, f"{test_name}::{name}", FAILED, reason)


def merge(build, junit_text, listing, read_text):
    """Every case of one build directory. read_text(path) gives a pytest junit's text, or None where there is none."""
    tests = ctest_tests(listing)
    cases = []
    for element in ElementTree.fromstring(junit_text).iter("testcase"):
        name = element.get("name")
        label, junit = tests.get(name, ("unlabelled", None))
        outcome, reason = ctest_outcome(element)
        text = read_text(junit) if junit else None
        if outcome == SKIPPED:
            single = []
        elif text:
            single = list(pytest_cases(build, label, name, text))
        else:
            single = list(doctest_cases(build, label, name, element.findtext("system-out") or ""))
        if junit and not single and outcome == PASSED and NONE_DRAWN.search(element.findtext("system-out") or ""):
            continue
        cases.extend(single)
        # A file that crashed, timed out or collected nothing failed as a whole, whatever its tests say.
        explained = any(case.outcome == FAILED for case in single)
        if not single or (outcome == FAILED and not explained):
            cases.append(Case(build, label, name, FAILED if junit and not single else outcome, reason, float(element.get("time") or 0)))
    if not cases:
        cases.append(Case(build, "unlabelled", "ctest", FAILED, "no test ran"))
    return cases


def judge_skips(cases, allowed_labels):
    """Turns every skip outside the allowed labels into a failure."""
    return [
        dataclasses.replace(case, outcome=FAILED, reason="skipped, which is not allowed here: " + case.reason)
        if case.outcome == SKIPPED and case.label not in allowed_labels
        else case
        for case in cases
    ]


def count_lines(cases):
    """A table: tests per build directory and label."""
    counts = collections.defaultdict(collections.Counter)
    for case in cases:
        counts[(case.build, case.label)][case.outcome] += 1
    yield f"{'preset':8} {'label':10} {'tests':>6} {PASSED:>7} {FAILED:>7} {SKIPPED:>8}"
    for (build, label), outcomes in sorted(counts.items()):
        total = sum(outcomes.values())
        yield f"{build:8} {label:10} {total:6} {outcomes[PASSED]:7} {outcomes[FAILED]:7} {outcomes[SKIPPED]:8}"


def explanation_lines(cases):
    """Each skip with its reason, then each failure with the end of what it said."""
    for case in cases:
        if case.outcome == SKIPPED:
            yield f"SKIPPED {case.build} {case.label} {case.name}: {case.reason}"
    for case in cases:
        if case.outcome == FAILED:
            yield f"FAILED {case.build} {case.label} {case.name}"
            yield from ("    " + line for line in case.reason.splitlines()[-LINES_OF_A_FAILURE:])


def file_of(case):
    return case.name.partition("::")[0]


def time_lines(cases):
    """Where the time went: per label, the slowest files and the slowest single tests."""
    views = (("label", lambda case: case.label, None), ("file", file_of, SLOWEST), ("test", lambda case: case.name, SLOWEST))
    for title, key, limit in views:
        seconds = collections.Counter()
        for case in cases:
            seconds[(case.build, key(case))] += case.seconds
        yield f"{'seconds':>9}  {title}"
        for (build, name), total in seconds.most_common(limit):
            yield f"{total:9.1f}  {build} {name}"


def last_line(cases):
    outcomes = collections.Counter(case.outcome for case in cases)
    line = f"{outcomes[PASSED]} passed, {outcomes[FAILED]} failed"
    return line + (f", {outcomes[SKIPPED]} skipped" if outcomes[SKIPPED] else "")


def read_or_none(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def cases_of_build(directory):
    """Runs nothing but 'ctest --show-only'."""
    junit = read_or_none(directory / "junit.xml")
    if not junit:
        return [Case(directory.name, "unlabelled", "ctest", FAILED, "ctest left no junit.xml")]
    listing = subprocess.run(["ctest", "--test-dir", directory, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    return merge(directory.name, junit, listing.stdout, read_or_none)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-skips-but", metavar="LABEL", action="append", help="any other skip is a failure")
    parser.add_argument("--times", action="store_true", help="show where the time went")
    parser.add_argument("builds", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    cases = [case for directory in arguments.builds for case in cases_of_build(directory)]
    if arguments.no_skips_but:
        cases = judge_skips(cases, arguments.no_skips_but)
    for line in (*(time_lines(cases) if arguments.times else ()), *count_lines(cases), *explanation_lines(cases), last_line(cases)):
        print(line)
    return 1 if any(case.outcome == FAILED for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
