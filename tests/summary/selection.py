"""Chooses ctest tests by what a person types: labels, paths below tests/, or what changed since a commit.

SPDX-License-Identifier: Apache-2.0

    selection.py BUILD words WORD...    labels (unit, cli, ...) and paths (tests/cli, tests/unit/engine/driver_test.cc)
    selection.py BUILD since COMMIT     the tests of what changed since COMMIT, uncommitted changes included
    selection.py BUILD not-drawn SEED   what a run without --full leaves out: of a source that is run with tensors in several kinds
                                        of memory, all but one, drawn by the seed
Prints the tests' names as one regular expression for ctest -R or -E, nothing where nothing has changed; exit 2 and a sentence
where a word chooses no test.
"""

import difflib
import json
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVERYTHING = ("unit", "ranks", "c", "cli", "cluster", "python", "lint", "fuzz")
# Who owns what: the first row that fits a changed file names the labels that its tests have. docs/testing.md shows this table.
OWNERS = (
    ("docs/", ("lint",)), ("man/", ("lint", "c")), ("hostfiles/", ("unit", "cli")),
    ("launcher/pmix/", ("unit", "ranks", "cluster")),
    ("launcher/agent/", ("unit", "ranks", "c", "cli", "cluster", "fuzz")),
    ("launcher/plan/", ("unit", "ranks", "cli", "cluster", "fuzz")),
    ("launcher/cli/", ("unit", "ranks", "cli", "cluster", "python", "fuzz")),
    ("launcher/commands/", ("unit", "ranks", "cli", "cluster", "python", "fuzz")),
    ("launcher/", ("unit", "cli", "cluster", "fuzz")),
    ("runtime/", ("unit", "ranks", "c", "cli", "cluster", "python", "fuzz")),
    ("python/", ("python", "cli", "cluster")), ("examples/", ("unit", "ranks", "c", "python")),
    ("bench/", ("lint", "ranks", "cluster")),
    ("src/", EVERYTHING), ("cmake/", EVERYTHING), ("packaging/", EVERYTHING), ("tests/harness/", EVERYTHING),
    ("tests/fakes/", EVERYTHING), ("tests/payload/", ("cli", "cluster")),
)
MEMORY = re.compile(r"(?P<source>.+/(?P<name>[^/]+)) \((host|staged|nccl)\)")
OF_GPUS = ("gpu_", "nccl_")  # such a source has little or nothing to run in a host's memory
PAGES = (".md", ".svg", ".png")


class NothingChosen(Exception):
    """A word or change that no test belongs to, in a sentence."""


def read_tests(build):
    """{name: label} of every test of this build."""
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    tests = {}
    for test in json.loads(listing.stdout)["tests"]:
        labels = [each["value"] for each in test.get("properties", []) if each["name"] == "LABELS"]
        tests[test["name"]] = labels[0][0] if labels else ""
    return tests


def tests_below(path, tests):
    """The tests of a source, a pytest file or a directory below tests/; all variants of a source count."""
    inside = re.sub(r"^tests(/|$)", "", path.rstrip("/"))
    return [name for name in tests if not inside or name == inside or name.startswith((inside + "/", inside + " ("))]


def choose_by_words(words, tests):
    labels = set(tests.values())
    chosen = set()
    for word in words:
        label = re.sub(r"^tests/|/$", "", word)  # a label's tests may have names of their own, as those of tests/c
        found = [name for name in tests if tests[name] == label] if label in labels else tests_below(word, tests)
        if not found:
            near = difflib.get_close_matches(word, [*labels, *("tests/" + name for name in tests)], 1, 0.5)
            raise NothingChosen(f"no test is called '{word}'" + (f"; did you mean {near[0]}?" if near else ""))
        chosen.update(found)
    return chosen


def labels_of_change(path):
    """The labels whose tests cover this file; () where its own path chooses them, or no test can."""
    for prefix, labels in OWNERS:
        if path.startswith(prefix):
            return labels
    if path.startswith("tests/"):
        return ()
    return ("lint",) if path.endswith(PAGES) else EVERYTHING


def tests_of_file_of_tests(path, tests):
    """Of its own name; a helper's: all of its directory; where tests have names of their own, as those of tests/c: of that label."""
    label = pathlib.PurePath(path).parts[1]
    found = tests_below(path, tests) or tests_below(str(pathlib.PurePath(path).parent), tests)
    return found or [name for name in tests if tests[name] == label] or list(tests)


def choose_by_changes(paths, tests):
    chosen = {name for name in tests if tests[name] == "lint"} if paths else set()
    for path in paths:
        labels = labels_of_change(path)
        chosen.update(name for name in tests if tests[name] in labels)
        if not labels:
            chosen.update(tests_of_file_of_tests(path, tests))
    return chosen


def choose_not_drawn(seed, tests):
    variants = {}
    for name in sorted(tests):
        found = MEMORY.fullmatch(name)
        if found and not found["name"].startswith(OF_GPUS):
            variants.setdefault(found["source"], []).append(name)
    drawn = {random.Random(f"{seed} {source}").choice(names) for source, names in variants.items()}
    return {name for names in variants.values() for name in names} - drawn


def changed_since(commit):
    listing = [["diff", "--name-only", commit], ["ls-files", "--others", "--exclude-standard"]]
    texts = [subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout for words in listing]
    return sorted({path for text in texts for path in text.split("\n") if path})


def expression(names):
    """What ctest -R takes for exactly these tests."""
    return "^(" + "|".join(re.sub(r"([.^$*+?()\[\]\\|])", r"\\\1", name) for name in sorted(names)) + ")$"


def main(build, how, *words):
    tests = read_tests(build)
    if how == "not-drawn":
        print(expression(choose_not_drawn(words[0], tests)))
        return 0
    try:
        chosen = choose_by_words(words, tests) if how == "words" else choose_by_changes(changed_since(words[0]), tests)
    except NothingChosen as nothing:
        print(nothing, file=sys.stderr)
        return 2
    print(expression(chosen) if chosen else "")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
