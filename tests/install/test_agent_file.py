"""The agent is one small file that needs nothing of the host that it is copied to, and all programs are hardened.

SPDX-License-Identifier: Apache-2.0
"""

import json
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


def asked_of_others(archive):
    """The functions that the objects of this library of ours call in others."""
    words = ["nm", "--undefined-only", "--format=just-symbols", str(BUILD / f"lib/libhv_{archive}.a")]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def setting(name):
    return re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)[1]


@pytest.mark.parametrize("archive", ["base", "output", "agent", "spawn"])
def test_a_write_past_a_buffer_is_noticed(agent, archive):
    """Looked for in our objects: in a program, the compiler's libraries and libsodium may be what calls these functions."""
    asked = asked_of_others(archive)
    assert "__stack_chk_fail" in asked
    if subprocess.run(["getconf", "GNU_LIBC_VERSION"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this C library has no _FORTIFY_SOURCE")
    if setting("CMAKE_BUILD_TYPE") == "Debug":
        pytest.skip("_FORTIFY_SOURCE needs an optimized build")
    assert [name for name in asked if re.fullmatch(r"__\w+_chk", name)], sorted(asked)


@pytest.mark.parametrize("asked,got", [("", "2"), ("-D_FORTIFY_SOURCE=1", "2"), ("-D_FORTIFY_SOURCE=3", "3")])
def test_more_fortification_than_ours_stays(tmp_path, asked, got):
    """Of what each command line says the last word counts; two that differ would be a warning."""
    flags = [f"-DCMAKE_{language}_FLAGS={asked}" for language in ("C", "CXX")]
    configure = ["cmake", "-S", str(SOURCE), "-B", str(tmp_path), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DHVRUN_TESTS=OFF"]
    subprocess.run([*configure, *flags], capture_output=True, check=True)
    commands = [entry["command"].split() for entry in json.loads((tmp_path / "compile_commands.json").read_text())]
    assert len(commands) > 50
    for command in commands:
        value = ""
        for word in command:
            if word == "-U_FORTIFY_SOURCE":
                value = ""
            elif word.startswith("-D_FORTIFY_SOURCE="):
                assert value == "", command
                value = word.partition("=")[2]
        assert value == got, command
