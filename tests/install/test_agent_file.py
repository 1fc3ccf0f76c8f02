"""The agent is one small file that needs nothing of the host that it is copied to, and all programs are hardened.

SPDX-License-Identifier: Apache-2.0
"""

import os
import pathlib
import re
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HVRUN_TEST_BUILD_DIR", SOURCE / "build/dev"))
MOST_BYTES = 4 << 20  # copied to every host


@pytest.fixture(scope="module")
def agent():
    sanitizer = re.search(r"^HVRUN_SANITIZE:\w+=(\w+)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)
    if sanitizer:
        pytest.skip(f"this build has the {sanitizer[1]} sanitizer, which cannot be linked statically")
    return BUILD / "bin/hvrun-agent"


def readelf(option, path):
    return subprocess.run(["readelf", option, "--wide", str(path)], capture_output=True, text=True, check=True).stdout


def test_it_asks_for_no_loader_and_no_library(agent):
    segments = readelf("--program-headers", agent)
    assert " LOAD " in segments and "INTERP" not in segments
    assert "NEEDED" not in readelf("--dynamic", agent)


def test_it_is_small_and_stripped(agent):
    assert agent.stat().st_size <= MOST_BYTES
    assert ".symtab" not in readelf("--sections", agent)


@pytest.mark.parametrize("name", ["hvrun", "hvrun-inventory", "hvrun-pmix"])
def test_the_other_programs_ask_for_the_system_alone(agent, name):
    """They open libssh, NVML, hwloc and PMIx when they use them, and run where the compiler's libraries are older."""
    needed = re.findall(r"NEEDED.*\[(.*)\]", readelf("--dynamic", agent.with_name(name)))
    assert needed and not [name for name in needed if not name.startswith(("libc.so", "libm.so", "ld-linux"))]


def programs_and_libraries():
    files = [BUILD / "bin" / name for name in ("hvrun", "hvrun-agent", "hvrun-inventory", "hvrun-pmix")]
    return files + sorted(file for file in (BUILD / "lib").glob("lib*.so*") if not file.is_symlink())


@pytest.mark.parametrize("path", programs_and_libraries(), ids=lambda path: path.name)
def test_addresses_are_random_and_nothing_is_both_written_and_run(agent, path):
    assert re.search(r"Type: +DYN ", readelf("--file-header", path)), "it is not position-independent"
    dynamic, segments = readelf("--dynamic", path), readelf("--program-headers", path)
    assert re.search(r"FLAGS_1.*\bNOW\b|BIND_NOW", dynamic) and "GNU_RELRO" in segments
    (stack,) = re.findall(r"GNU_STACK .*", segments)
    assert "RWE" not in stack and not re.search(r"LOAD .*RWE", segments) and "TEXTREL" not in dynamic


@pytest.mark.parametrize("name", ["hvrun", "hvrun-agent", "hvrun-inventory", "hvrun-pmix"])
def test_a_write_past_a_buffer_is_noticed(agent, name):
    """The words with which glibc ends such a program are in a static file; a dynamic one names the functions that check."""
    path = agent.with_name(name)
    if name == "hvrun-agent":
        assert b"stack smashing detected" in path.read_bytes() and b"buffer overflow detected" in path.read_bytes()
    else:
        symbols = readelf("--dyn-syms", path)
        assert "__stack_chk_fail" in symbols and re.search(r"__\w+_chk@", symbols)
