"""The build's name follows the agent's sources, and nothing else. SPDX-License-Identifier: Apache-2.0"""

import pathlib
import re
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "cmake/WriteVersionHeader.cmake"


@pytest.fixture
def sources(tmp_path):
    for path, text in {"src/base/a.cc": "int a;", "src/base/a.h": "extern int a;", "launcher/agent/m.cc": "int m;",
                       "launcher/cli/c.cc": "int c;"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def build_id(folder, flavour="x86_64 Release", version="0.1.0"):
    header = folder / "version.h"
    subprocess.run(["cmake", f"-DOUTPUT={header}", f"-DVERSION={version}", f"-DFLAVOUR={flavour}", f"-DSOURCE_DIR={folder}",
                    "-DFOLDERS=src;launcher/agent", "-P", SCRIPT], check=True)
    return re.search(r'HVRUN_BUILD_ID "([^"]+)"', header.read_text()).group(1)


def test_the_same_sources_have_the_same_name(sources):
    assert build_id(sources) == build_id(sources)
    assert build_id(sources).startswith("0.1.0-")


def test_what_is_no_part_of_the_agent_changes_nothing(sources):
    before = build_id(sources)
    (sources / "launcher/cli/c.cc").write_text("int d;")
    assert build_id(sources) == before


@pytest.mark.parametrize("path", ["src/base/a.cc", "src/base/a.h", "launcher/agent/m.cc", "src/base/new.cc"])
def test_a_changed_or_new_source_changes_the_name(sources, path):
    before = build_id(sources)
    (sources / path).write_text("int b;")
    assert build_id(sources) != before


def test_a_renamed_source_changes_the_name(sources):
    before = build_id(sources)
    (sources / "src/base/a.cc").rename(sources / "src/base/b.cc")
    assert build_id(sources) != before


def test_compiler_build_type_and_version_change_the_name(sources):
    names = {build_id(sources), build_id(sources, flavour="x86_64 Debug"), build_id(sources, version="0.2.0")}
    assert len(names) == 3
