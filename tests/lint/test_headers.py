"""Headers begin with what they are for, interfaces stay small. SPDX-License-Identifier: Apache-2.0"""

import pytest

import headers
import tree

CXX = {path: tree.read(path) for path in tree.files() if path.endswith(tree.CXX)}
RULES = [headers.pragma_errors, headers.first_line_errors, headers.interface_errors, headers.namespace_errors]


@pytest.mark.parametrize("rule", RULES)
def test_every_file_keeps(rule):
    assert list(rule(CXX)) == []


def interface(count):
    more = "struct Inner { virtual void g() = 0; };\n  void h() { virtual_looking(); }\n"
    return "class A {\n  virtual ~A() = default;\n" + "  virtual void f() = 0;\n" * count + more + "};\n"


BAD = [
    (headers.pragma_errors, "src/x.h", "// What it is for.\nint a;\n"),
    (headers.pragma_errors, "src/x.h", "// What it is for.\n// #pragma once\n"),
    (headers.pragma_errors, "runtime/include/hvrun/x.h", "#pragma once\n"),
    (headers.pragma_errors, "runtime/include/hvrun/x.h", "#ifndef A_H_\n#define B_H_\n"),
    (headers.first_line_errors, "src/x.h", "// SPDX-License-Identifier: Apache-2.0\n// What it is for.\n"),
    (headers.first_line_errors, "src/x.h", "/* SPDX-License-Identifier: Apache-2.0 */\n"),
    (headers.first_line_errors, "src/x.h", "// x.h\n"),
    (headers.first_line_errors, "src/x.h", "#pragma once\n// What it is for.\n"),
    (headers.interface_errors, "src/x.h", interface(9)),
    (headers.interface_errors, "src/x.h", "struct B { " + interface(9) + "};"),
    (headers.namespace_errors, "src/base/x.cc", "namespace hv {\nusing namespace std;\n}\n"),
    (headers.namespace_errors, "launcher/cli/x.h", "using  namespace hv;\n"),
    (headers.namespace_errors, "tests/unit/x.h", "using namespace hv;\n"),
]


@pytest.mark.parametrize("rule, path, text", BAD)
def test_a_bad_sample_is_red(rule, path, text):
    assert list(rule({path: text})) != []


GOOD = [
    (headers.pragma_errors, "src/x.h", "// What it is for.\n#pragma once\n"),
    (headers.pragma_errors, "runtime/include/hvrun/x.h", "/* What. */\n#ifndef X_H_\n#define X_H_\n"),
    (headers.first_line_errors, "src/x.h", "// Status: the outcome of one thing.\n// SPDX-License-Identifier: Apache-2.0\n"),
    (headers.first_line_errors, "src/x.cc", "// SPDX-License-Identifier: Apache-2.0\n"),
    (headers.interface_errors, "src/x.h", interface(8)),
    (headers.interface_errors, "src/x.h", interface(5) + interface(5)),
    (headers.namespace_errors, "tests/unit/x_test.cc", "using namespace hv;\n"),
    (headers.namespace_errors, "src/x.cc", "// no using namespace here\n"),
]


@pytest.mark.parametrize("rule, path, text", GOOD)
def test_a_good_sample_is_green(rule, path, text):
    assert list(rule({path: text})) == []
