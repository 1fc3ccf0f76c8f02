"""Compiles sources and headers alone, as batches and precompiled headers would hide an include that is missing.

SPDX-License-Identifier: Apache-2.0

    alone.py BUILD all           every source and header
    alone.py BUILD since COMMIT  those that changed since COMMIT, uncommitted changes included, and the source of each such header
BUILD is a configured build of the preset "alone": its compile_commands.json names each source's options. A header takes the
options of a source next to it, or of one that includes it. Only the syntax is checked, so nothing is written.
"""

import concurrent.futures
import dataclasses
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIRECTORIES = ("src", "launcher", "runtime", "tests", "bench", "examples")
LAUNCHER = re.compile(r"(^|/)(env|ccache)$|^CCACHE_")
LANGUAGES = {".cc": "c++", ".c": "c"}  # by a source's ending, in the order in which a header's options are looked up
# Headers that CUDA's compiler alone reads, and those for which whoever includes them defines something first.
LEFT_OUT = re.compile(r"^runtime/device/cuda/kernels/|^runtime/device/kernel_(loops|operations)\.h$|/kernels_body\.h$|"
                      r"^examples/standalone/")


@dataclasses.dataclass(frozen=True)
class Unit:
    """A file and the command that checks its syntax. A header is read from standard input, through an #include."""

    path: str
    command: tuple
    directory: str
    stdin: str = ""


def syntax_command(command):
    """The compiler and options of a compile command, without ccache, outputs and the source."""
    words = [word for word in shlex.split(command)]
    while LAUNCHER.search(words[0]):
        words.pop(0)
    kept, skips = [], False
    for word in words:
        if skips or word in ("-c", "-o"):
            skips = word == "-o"
            continue
        kept.append(word)
    return tuple(kept[:-1]) + ("-fsyntax-only",)  # the source comes last


def read_commands(build):
    """{path from the root: (command, directory)} of all sources of ours."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.relpath(entry["file"], ROOT)
        if path.startswith(DIRECTORIES):
            commands.setdefault(path, (syntax_command(entry["command"]), entry["directory"]))
    return commands


def command_for_header(header, commands, includers):
    """(command, directory, language) of its own source, of one that includes it, or of one in its directory, rather in C++ than in C;
    None: nothing compiles it."""
    directory = os.path.dirname(header) + "/"
    near = [path for path in commands if path.startswith(directory) and "/" not in path[len(directory):]]
    own = [re.sub(r"\.h$", ending, header) for ending in LANGUAGES]
    for paths in ([*own, *sorted(includers)], sorted(near)):
        for ending, language in LANGUAGES.items():
            for path in paths:
                if path in commands and path.endswith(ending):
                    return *commands[path], language
    return None


@functools.lru_cache(maxsize=None)
def text_of(file):
    return file.read_text(errors="replace")


def find_includers(header, sources):
    """Those that name it from the root, or stand beside it and name the file alone."""
    directory, name = os.path.split(header)
    return [path for path in sources
            if f'#include "{header}"' in text_of(ROOT / path)
            or os.path.dirname(path) == directory and f'#include "{name}"' in text_of(ROOT / path)]


def own_sources(paths):
    """The sources of the headers among them, which may use an include of theirs."""
    return {re.sub(r"\.h$", ending, path) for path in paths if path.endswith(".h") for ending in LANGUAGES}


def units_of(paths, commands):
    """What is to be compiled for these paths, and the headers for which no options are known."""
    units, unknown = [], []
    for path in paths:
        if path in commands:
            command, directory = commands[path]
            units.append(Unit(path, command + (str(ROOT / path),), directory))
        elif path.endswith(".h"):
            found = command_for_header(path, commands, find_includers(path, commands))
            if found is None:
                unknown.append(path)
            else:
                command, directory, language = found
                units.append(Unit(path, command + ("-x", language, "-"), directory, f'#include "{ROOT / path}"\n'))
    return units, unknown


def tracked(*arguments):
    listing = subprocess.run(["git", *arguments, "--", *DIRECTORIES], cwd=ROOT, check=True, capture_output=True, text=True)
    return {path for path in listing.stdout.split("\n")
            if path.endswith((".c", ".cc", ".h")) and not LEFT_OUT.search(path) and (ROOT / path).exists()}


def check(unit):
    """The compiler's complaint about a unit; None: there is none."""
    result = subprocess.run(unit.command, cwd=unit.directory, input=unit.stdin, capture_output=True, text=True)
    return None if result.returncode == 0 else f"{unit.path} does not compile alone:\n{result.stderr}"


def main(build, selection, base=None):
    everything = tracked("ls-files", "--cached", "--others", "--exclude-standard")
    changed = everything if selection == "all" else everything & (
        tracked("diff", "--name-only", base) | tracked("ls-files", "--others", "--exclude-standard"))
    changed |= own_sources(changed) & everything
    commands = read_commands(pathlib.Path(build))
    units, unknown = units_of(sorted(changed), commands)
    complaints = [f"{path}: no source next to it or including it is compiled" for path in unknown]
    for complaint in complaints:
        print(complaint, flush=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, complaint in enumerate(pool.map(check, units), 1):
            if complaint:
                complaints.append(complaint)
                print(complaint, flush=True)
            if done % 100 == 0:
                print(f"[{done}/{len(units)}] compiled alone", flush=True)
    print(f"{len(units)} files compiled alone, {len(complaints)} failed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
