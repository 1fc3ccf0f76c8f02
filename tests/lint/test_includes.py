"""Includes go one way only. SPDX-License-Identifier: Apache-2.0"""

import pytest

import includes
import tree

ALLOWED, WRAPS = includes.parse_rules(tree.read("tests/lint/include_rules.txt"))


def direction(path, *targets):
    text = "".join(f'#include "{target}"\n' for target in targets)
    return list(includes.direction_errors({path: text}, ALLOWED))


def test_every_include_of_this_project_goes_to_the_right():
    assert list(includes.direction_errors(includes.sources(), ALLOWED)) == []


def test_no_two_folders_include_each_other():
    assert list(includes.mutual_errors(includes.sources())) == []


def test_foreign_headers_stay_where_they_are_wrapped():
    assert list(includes.wrap_errors(includes.sources(), WRAPS)) == []


def test_every_include_is_written_from_the_root():
    assert list(includes.form_errors(includes.sources(more=["tests"]))) == []


def test_the_rules_allow_what_the_design_draws():
    assert direction("launcher/commands/main.cc", "launcher/supervise/supervisor.h", "launcher/cli/knobs.h", "src/base/text.h") == []
    assert direction("src/rendezvous/x.cc", "src/net/socket.h", "src/wire/frame.h") == []
    assert direction("runtime/api/api.cc", "runtime/device/kernels.h", "hvrun/hvrun.h") == []


def test_an_include_to_the_left_is_red():
    assert direction("launcher/plan/x.cc", "launcher/cli/command_line.h") != []
    assert direction("src/base/x.cc", "src/net/socket.h") != []


def test_the_same_stage_and_the_other_house_are_red():
    assert direction("launcher/spawn/x.cc", "launcher/output/sink.h") != []
    assert direction("runtime/engine/x.cc", "launcher/plan/launch_plan.h") != []
    assert direction("launcher/agent/x.cc", "launcher/plan/launch_plan.h") != []


def test_examples_see_nothing_but_the_public_header():
    assert direction("examples/x.cc", "hvrun/hvrun.h") == []
    assert direction("examples/x.cc", "runtime/engine/engine.h") != []


def test_a_folder_without_a_rule_is_red():
    assert direction("launcher/magic/x.cc") != []


def test_mutual_includes_are_red():
    pair = {"a/x.h": '#include "src/base/y.h"\n', "src/base/y.h": '#include "bench/x.h"\n', "bench/x.h": '#include "src/base/y.h"\n'}
    assert list(includes.mutual_errors(pair)) == ["bench and src/base include each other"]


def test_a_stray_foreign_header_is_red():
    assert list(includes.wrap_errors({"launcher/cli/x.cc": "#include <libssh/libssh.h>\n"}, WRAPS)) != []


@pytest.mark.parametrize("line", [
    '#include "../engine/engine.h"', '#include "engine.h"', '#include "runtime/../launcher/plan/launch_plan.h"',
    '#  include_next "runtime/engine/engine.h"', "#include_next <errno.h>", "#include ENGINE", "#include <../engine.h>",
])
def test_an_include_that_the_rules_would_not_see_is_red(line):
    assert list(includes.form_errors({"runtime/engine/x.cc": f"int a;\n {line}  // because\n"})) != []


@pytest.mark.parametrize("target", ['"src/base/text.h"', "<src/base/text.h>", '"hvrun_version.h"', "<hvrun/more.h>", '"more.h"'])
def test_a_public_header_that_needs_ours_is_red(target):
    assert list(includes.form_errors({"runtime/include/hvrun/hvrun.h": f"#include {target}\n"})) != []


@pytest.mark.parametrize("path, line", [
    ("runtime/include/hvrun/hvrun.h", "#include <stdint.h>"), ("launcher/cli/x.cc", '#include "hvrun_version.h"'),
    ("examples/x.c", '#include "hvrun/hvrun.h"'), ("tests/c/x.c", "#include <hvrun/hvrun.h>"),
    ("src/base/x.cc", '#include "src/base/text.h"  // why'), ("src/base/x.cc", '// #include "x.h"'),
    ("tests/payload/x.c", '#include "roll_call.h"'),
])
def test_an_include_from_the_root_is_green(path, line):
    assert list(includes.form_errors({path: line + "\n"})) == []
