"""The counting of tests: what passes for a pass, a failure and a skip. SPDX-License-Identifier: Apache-2.0"""

import json

import summary

LISTING = json.dumps({"tests": [
    {"name": "plan: places", "command": ["unit_plan"], "properties": [{"name": "LABELS", "value": ["unit"]}]},
    {"name": "cli.test_end", "command": ["python3", "--junitxml=/b/end.xml"],
     "properties": [{"name": "LABELS", "value": ["cli"]}]},
    {"name": "gpu.sum", "command": ["gpu_sum"], "properties": [{"name": "LABELS", "value": ["gpu"]}]},
]})

PYTEST_MIXED = """<testsuites><testsuite><testcase name="a"/><testcase name="b"><failure message="no">trace</failure></testcase>
<testcase name="c"><skipped message="needs root"/></testcase></testsuite></testsuites>"""


def ctest_junit(*cases):
    return "<testsuite>" + "".join(cases) + "</testsuite>"


def ran(name, output=""):
    return f'<testcase name="{name}" status="run"><system-out>{output}</system-out></testcase>'


def failed(name, output="boom"):
    return f'<testcase name="{name}" status="fail"><failure message=""/><system-out>{output}</system-out></testcase>'


def not_run(name, message, output=""):
    return (f'<testcase name="{name}" status="notrun"><skipped message="{message}"/>'
            f"<system-out>{output}</system-out></testcase>")


def merged(*cases, pytest_text=None):
    return summary.merge("dev", ctest_junit(*cases), LISTING, lambda path: pytest_text)


def outcomes(cases):
    return [(case.label, case.outcome) for case in cases]


def test_a_plain_ctest_test_counts_once_under_its_label():
    assert outcomes(merged(ran("plan: places"))) == [("unit", "passed")]


def test_a_failing_test_keeps_its_output():
    (case,) = merged(failed("plan: places", "expected 3"))
    assert case.outcome == "failed" and case.reason == "expected 3"


def test_a_pytest_file_counts_as_its_single_tests():
    cases = merged(failed("cli.test_end"), pytest_text=PYTEST_MIXED)
    assert outcomes(cases) == [("cli", "passed"), ("cli", "failed"), ("cli", "skipped")]
    assert cases[2].reason == "needs root"


def test_a_pytest_file_that_left_no_results_is_a_failure():
    assert outcomes(merged(ran("cli.test_end"))) == [("cli", "failed")]


def test_a_pytest_file_that_died_after_its_passing_tests_is_a_failure():
    text = '<testsuite><testcase name="a"/></testsuite>'
    assert outcomes(merged(failed("cli.test_end", "Timeout"), pytest_text=text)) == [("cli", "passed"), ("cli", "failed")]


def test_a_pytest_file_without_tests_is_a_failure():
    assert outcomes(merged(failed("cli.test_end"), pytest_text="<testsuite/>")) == [("cli", "failed")]


def test_a_pytest_file_of_which_nothing_is_drawn_counts_for_nothing():
    said = ran("cli.test_end", "none of its tests is drawn\n1 deselected in 0.1s\n")
    assert outcomes(merged(said, ran("plan: places"), pytest_text="<testsuite/>")) == [("unit", "passed")]
    assert outcomes(merged(ran("cli.test_end", "\nno tests ran\n"), pytest_text="<testsuite/>")) == [("cli", "failed")]


def test_a_missing_executable_is_a_failure_and_no_skip():
    assert outcomes(merged(not_run("plan: places", "Unable to find executable"))) == [("unit", "failed")]


def test_a_skip_by_exit_code_gives_the_last_line_as_its_reason():
    (case,) = merged(not_run("gpu.sum", "SKIP_RETURN_CODE=77", "looking\nno GPU here"))
    assert (case.outcome, case.reason) == ("skipped", "no GPU here")


def test_only_the_allowed_label_may_skip():
    skip = "SKIP_RETURN_CODE=77"
    cases = summary.judge_skips(merged(not_run("gpu.sum", skip), not_run("plan: places", skip)), ["gpu"])
    assert outcomes(cases) == [("gpu", "skipped"), ("unit", "failed")]


def test_a_run_without_any_test_is_a_failure():
    assert outcomes(merged()) == [("unlabelled", "failed")]


def test_the_last_line_names_skips_only_when_there_are_some():
    assert summary.last_line(merged(ran("plan: places"))) == "1 passed, 0 failed"
    cases = merged(ran("plan: places"), failed("plan: places"), not_run("gpu.sum", "SKIP_RETURN_CODE=77"))
    assert summary.last_line(cases) == "1 passed, 1 failed, 1 skipped"


def test_the_table_counts_per_preset_and_label():
    lines = list(summary.count_lines(merged(ran("plan: places"), failed("cli.test_end"), pytest_text=PYTEST_MIXED)))
    assert lines[1].split() == ["dev", "cli", "3", "1", "1", "1"]
    assert lines[2].split() == ["dev", "unit", "1", "1", "0", "0"]


def test_failures_are_explained_with_their_last_lines():
    long_output = "\n".join(f"line {i}" for i in range(100))
    lines = list(summary.explanation_lines(merged(failed("plan: places", long_output))))
    assert lines[0] == "FAILED dev unit plan: places"
    assert lines[-1] == "    line 99" and len(lines) == 1 + summary.LINES_OF_A_FAILURE


DOCTEST = """[doctest] run with "--help" for options
0.010000 s: a sum is right
===============================================================================
../../tests/unit/plan/x_test.cc:5:
TEST CASE:  a quotient is right

../../tests/unit/plan/x_test.cc:9: ERROR: CHECK( 1 == 2 ) is NOT correct!

0.250000 s: a quotient is right
[doctest] test cases: 2 | 1 passed | 1 failed | 0 skipped
"""


def test_a_source_of_a_doctest_program_counts_as_its_cases():
    cases = merged(failed("plan: places", DOCTEST))
    assert [(case.name, case.outcome, case.seconds) for case in cases] == [
        ("plan: places::a sum is right", "passed", 0.01), ("plan: places::a quotient is right", "failed", 0.25)]
    assert "CHECK( 1 == 2 )" in cases[1].reason and "a sum" not in cases[1].reason


def test_a_doctest_program_that_crashed_fails_in_the_case_that_ran():
    crash = "0.1 s: first\n" + "=" * 79 + "\nx.cc:5:\nTEST CASE:  second\n\nx.cc:5: FATAL ERROR: test case CRASHED: SIGSEGV\n"
    cases = merged(failed("plan: places", crash))
    assert [(case.name, case.outcome) for case in cases] == [
        ("plan: places::first", "passed"), ("plan: places::second", "failed")]


def test_a_doctest_program_that_ended_between_its_cases_is_a_failure():
    cases = merged(failed("plan: places", "0.1 s: first\n"))
    assert [case.outcome for case in cases] == ["passed", "failed"]


def test_times_name_the_slowest_label_file_and_test():
    cases = merged(failed("plan: places", DOCTEST))
    lines = list(summary.time_lines(cases))
    assert [line.split() for line in lines if line.startswith(" ")][:3] == [
        ["seconds", "label"], ["0.3", "dev", "unit"], ["seconds", "file"]]
    assert lines[-2].endswith("plan: places::a quotient is right")
