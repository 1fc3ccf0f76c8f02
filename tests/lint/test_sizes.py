"""No file and no function grows beyond what a reader holds in mind. SPDX-License-Identifier: Apache-2.0"""

import sizes
import tree

PAGES = {path: tree.read(path) for path in tree.files() if path.endswith(".md")}
CODE = {p: tree.read(p) for p in tree.files() if p.endswith((*tree.CXX, ".py", ".cmake", "CMakeLists.txt"))}
CXX = {path: text for path, text in CODE.items() if path.endswith(tree.CXX)}


def test_no_file_is_too_long():
    assert list(sizes.file_errors({**CODE, **PAGES})) == []


def test_no_function_is_too_long():
    assert list(sizes.function_errors(CXX)) == []


def test_no_line_is_too_long():
    assert list(sizes.column_errors(CODE)) == []


def test_a_long_line_is_red_in_each_language():
    for path, most in (("x.cc", 100), ("x.h", 100), ("x.c", 100), ("x.py", 140)):
        assert list(sizes.column_errors({path: "a\n" + "é" * most})) == []
        assert list(sizes.column_errors({path: "a\n" + "b" * (most + 1)})) == [f"{path}:2: {most + 1} columns, at most {most}"]


def test_no_directory_is_too_long():
    assert list(sizes.directory_errors(tree.files())) == []


def test_a_long_directory_is_red():
    paths = [f"launcher/plan/{number}.cc" for number in range(41)]
    assert list(sizes.directory_errors(paths[:40])) == []
    assert list(sizes.directory_errors(paths)) == ["launcher/plan: 41 files, at most 40: give its parts directories"]


def test_a_long_file_is_red():
    assert list(sizes.file_errors({"x.cc": "\n" * 601})) != []
    assert list(sizes.file_errors({"x.cc": "\n" * 600})) == []


def body(lines):
    return "namespace hv {\nstruct A {\n  int f(int a,\n        int b) {\n" + "    g();\n" * lines + "  }\n};\n}\n"


def test_a_long_function_is_red_wherever_it_stands():
    assert list(sizes.function_errors({"x.h": body(57)})) == []
    assert list(sizes.function_errors({"x.h": body(58)})) == ["x.h:3: a function of 61 lines, at most 60"]


def test_braces_in_text_and_tables_are_no_functions():
    text = 'const char* t = "{";  // {\nconst int table[] = {\n' + "1,\n" * 80 + "};\n"
    assert list(sizes.functions(text)) == []


def test_blocks_inside_a_function_count_to_it():
    text = "int f() {\n  if (a) {\n    b();\n  }\n  for (;;) {\n  }\n}\n"
    assert list(sizes.functions(text)) == [(1, 7)]
