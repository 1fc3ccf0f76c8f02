"""What a label, a path or a change chooses. SPDX-License-Identifier: Apache-2.0"""

import re

import pytest
import selection

TESTS = {"unit/wire/frame_test.cc": "unit", "unit/wired/x_test.cc": "unit", "cli/test_dev.py": "cli", "lint/test_docs.py": "lint",
         "ranks/engine/sets_test.cc (host)": "ranks", "ranks/engine/sets_test.cc (nccl)": "ranks", "c: handles": "c"}


@pytest.mark.parametrize("words, chosen", [
    (["cli"], {"cli/test_dev.py"}),
    (["tests/unit/wire"], {"unit/wire/frame_test.cc"}),
    (["unit/wire/"], {"unit/wire/frame_test.cc"}),
    (["tests/ranks/engine/sets_test.cc"], {"ranks/engine/sets_test.cc (host)", "ranks/engine/sets_test.cc (nccl)"}),
    (["tests/c/"], {"c: handles"}),
    (["c", "lint"], {"c: handles", "lint/test_docs.py"}),
])
def test_labels_and_paths_choose_their_tests(words, chosen):
    assert selection.choose_by_words(words, TESTS) == chosen


def test_a_word_that_chooses_nothing_is_refused_with_the_nearest_name():
    with pytest.raises(selection.NothingChosen, match="'tests/cli/test_dve.py'; did you mean tests/cli/test_dev.py"):
        selection.choose_by_words(["tests/cli/test_dve.py"], TESTS)


def test_the_expression_matches_the_chosen_names_only():
    chosen = {"ranks/engine/sets_test.cc (nccl)", "cli/test_dev.py"}
    assert {name for name in TESTS if re.search(selection.expression(chosen), name)} == chosen


@pytest.mark.parametrize("path, chosen", [
    ("docs/ssh.md", {"lint/test_docs.py"}),
    ("launcher/output/console_format.h", {"lint/test_docs.py", "unit/wire/frame_test.cc", "unit/wired/x_test.cc", "cli/test_dev.py"}),
    ("tests/unit/wire/frame_test.cc", {"lint/test_docs.py", "unit/wire/frame_test.cc"}),
    ("tests/cli/launching.py", {"lint/test_docs.py", "cli/test_dev.py"}),
    ("tests/c/handles_test.c", {"lint/test_docs.py", "c: handles"}),
    ("tests/nobody/x.py", set(TESTS)),
    ("CMakeLists.txt", set(TESTS)),
])
def test_a_change_chooses_the_tests_that_own_it_and_lint(path, chosen):
    assert selection.choose_by_changes([path], TESTS) == chosen


def test_of_a_source_in_several_memories_the_seed_draws_one_and_gpus_own_stay():
    variants = {f"ranks/engine/{source}_test.cc ({memory})": "ranks"
                for source in ("sets", "gpu_order") for memory in ("host", "staged", "nccl")}
    left_out = [selection.choose_not_drawn(seed, variants | TESTS) for seed in ("a1", "a1", "b7", "c3", "d9")]
    assert left_out[0] == left_out[1]
    assert all(len(each) == 2 and all("sets" in name for name in each) for each in left_out)
    assert len({frozenset(each) for each in left_out}) > 1


def test_no_change_chooses_nothing():
    assert selection.choose_by_changes([], TESTS) == set()


def test_the_page_on_testing_has_the_labels_of_every_owner():
    page = (selection.ROOT / "docs" / "testing.md").read_text()
    for prefix, labels in selection.OWNERS:
        words = "everything" if labels == selection.EVERYTHING else ", ".join(labels)
        rows = [row for row in page.split("\n") if row.startswith("| ") and f"`{prefix.rstrip('/')}" in row]
        assert any(words in row for row in rows), (prefix, words)
