# SPDX-License-Identifier: Apache-2.0
"""Where hvrun lies, and the small programs that tests start: built by CMake, or by cc when they are not there."""

import hashlib
import os
import pathlib
import shutil
import subprocess

SOURCE = pathlib.Path(os.environ.get("HVRUN_TEST_SOURCE_DIR") or pathlib.Path(__file__).parents[2]).resolve()
BUILD = SOURCE / "build"
PAYLOAD_SOURCE = SOURCE / "tests" / "payload"
HARNESS_SOURCE = SOURCE / "tests" / "harness"


def _bin_folders():
    if os.environ.get("HVRUN_BIN_DIR"):
        return [pathlib.Path(os.environ["HVRUN_BIN_DIR"])]
    if os.environ.get("HVRUN_TEST_BUILD_DIR"):
        return [pathlib.Path(os.environ["HVRUN_TEST_BUILD_DIR"]) / "bin"]
    return [BUILD / "dev" / "bin", BUILD / "release" / "bin"]


def hvrun_folder():
    """The folder with hvrun in it, absolute; the first that would be looked in when there is none."""
    folders = [folder.absolute() for folder in _bin_folders()]
    return next((folder for folder in folders if (folder / "hvrun").exists()), folders[0])


def hvrun():
    return hvrun_folder() / "hvrun"


def payload(name):
    """The path of a payload program."""
    return str(_program(PAYLOAD_SOURCE / f"{name}.c"))


def relay():
    """The path of the bad links between hosts that bench/relay.c is."""
    return str(_program(SOURCE / "bench" / "relay.c"))


def host_init():
    return str(_program(HARNESS_SOURCE / "host_init.c"))


def _program(source):
    built = hvrun_folder() / "tests" / source.stem
    if built.exists() and built.stat().st_mtime >= source.stat().st_mtime:
        return built
    return _compiled(source)


def _compiled(source):
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    program = BUILD / "payload" / f"{source.stem}-{digest}" / source.stem
    if not program.exists():
        compiler = shutil.which("cc") or shutil.which("gcc")
        assert compiler, f"{source.stem} is not built, and there is no cc to build it"
        program.parent.mkdir(parents=True, exist_ok=True)
        fresh = program.with_name(f"{source.stem}.{os.getpid()}")
        subprocess.run([compiler, "-O2", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-o", fresh, source], check=True)
        fresh.rename(program)
    return program
