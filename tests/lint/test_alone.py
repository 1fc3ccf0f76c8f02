"""A source or header that forgot an include is found though batches would hide it. SPDX-License-Identifier: Apache-2.0"""

import json

import alone


def build_with(tmp_path, monkeypatch, sources):
    monkeypatch.setattr(alone, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    for name, text in sources.items():
        (tmp_path / "src" / name).write_text(text)
    compilers = {".cc": "g++ -std=c++20", ".c": "gcc"}
    entries = [{"file": str(tmp_path / "src" / name), "directory": str(tmp_path),
                "command": f"env CCACHE_BASEDIR=/x /usr/bin/ccache {compilers[name[name.index('.'):]]} -I{tmp_path} -o a.o "
                           f"-c {tmp_path}/src/{name}"}
               for name in sources if not name.endswith(".h")]
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    return alone.read_commands(tmp_path)


def complaints(paths, commands):
    units, unknown = alone.units_of(paths, commands)
    return [unit.path for unit in units if alone.check(unit)] + unknown


def test_sources_and_headers_with_their_includes_are_green_and_others_red(tmp_path, monkeypatch):
    commands = build_with(tmp_path, monkeypatch, {
        "good.cc": "#include <string>\n#include \"src/good.h\"\nstd::string f() { return {}; }\n",
        "good.h": "#pragma once\n#include <string>\nstd::string f();\n",
        "bad.cc": "std::string g() { return {}; }\n",
        "bad.h": "#pragma once\nstd::string g();\n",
    })
    paths = ["src/good.cc", "src/good.h", "src/bad.cc", "src/bad.h"]
    assert complaints(paths, commands) == ["src/bad.cc", "src/bad.h"]


def test_a_header_that_no_source_compiles_is_red(tmp_path, monkeypatch):
    commands = build_with(tmp_path, monkeypatch, {"only.h": "#pragma once\n"})
    assert complaints(["src/only.h"], commands) == ["src/only.h"]


def test_a_header_of_c_sources_is_compiled_as_c(tmp_path, monkeypatch):
    commands = build_with(tmp_path, monkeypatch, {
        "main.c": "#include \"src/good.h\"\n",
        "good.h": "#pragma once\nstatic inline int *of(void *memory) { return memory; }\n",
        "bad.h": "#pragma once\nstatic inline size_t of(void) { return 0; }\n",
    })
    assert complaints(["src/main.c", "src/good.h", "src/bad.h"], commands) == ["src/bad.h"]


def test_a_header_that_loses_an_include_has_its_own_source_compiled():
    assert alone.own_sources({"src/site.h", "src/other.cc"}) == {"src/site.cc", "src/site.c"}
