"""Words and names that do not belong in this project. SPDX-License-Identifier: Apache-2.0"""

import re

import tree

SPDX = "SPDX-License-Identifier: Apache-2.0"
HEADED = (*tree.CXX, ".py", ".sh", ".cmake", "CMakeLists.txt", ".list")
LINES_TO_SPDX = 4

ENVIRONMENT = re.compile(r"\b(getenv|secure_getenv|setenv|unsetenv|putenv|environ)\b")
READS_THE_ENVIRONMENT = "src/base/environment."

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
VAGUE_NAMES = {"common", "misc", "util", "utils", "helper", "helpers", "stuff"}
NAMED_BY_OTHERS = "python/horovod-compat/horovod/"  # Horovod's own names
VAGUE_ENDS = ("Manager", "Helper", "Util", "Utils", "Impl", "Data")
VAGUE_TYPES = re.compile(rf"\b(?:class|struct|union|enum)\s+(\w*(?:{'|'.join(VAGUE_ENDS)}))\b\s*(?:final\s*)?[{{:]")
VAGUE_FILES = re.compile(rf"(?:.*_)?(?:{'|'.join(VAGUE_ENDS)})", re.IGNORECASE)

STDOUT = re.compile(r"\bstd::cout\b|\bstd::print(?:ln)?\b|\b(?:printf|vprintf|puts|putchar)\s*\(|\bstdout\b|\bSTDOUT_FILENO\b"
                    r"|\b(?:write|writev|write_all|dprintf|vdprintf|fdopen)\s*\(\s*1\b")
WRITES_TO_STDOUT = "launcher/output/"

SLEEP = re.compile(r"\b(time\.sleep|usleep|nanosleep|clock_nanosleep|sleep_for|sleep_until|asyncio\.sleep)\s*\(|(?<![\w.])sleep\s*\(")
SLEEP_ALLOWED = re.compile(r"sleep-ok: \S+")


def spdx_errors(texts):
    for path, text in texts.items():
        if not text.strip():
            continue
        if (path.endswith(HEADED) or text.startswith("#!")) and SPDX not in "\n".join(text.split("\n")[:LINES_TO_SPDX]):
            yield f"{path}: no '{SPDX}' in its first {LINES_TO_SPDX} lines"


def environment_errors(texts):
    """Only one place reads the environment; everything else is handed an Environment."""
    for path, text in texts.items():
        if not path.endswith(tree.CXX) or path.startswith((READS_THE_ENVIRONMENT, "tests/")):
            continue
        for number, line in enumerate(tree.bare(text).split("\n"), 1):
            if not line.lstrip().startswith("#") and (match := ENVIRONMENT.search(line)):
                yield f"{path}:{number}: {match.group()} outside src/base/environment"


TEST_NAME = re.compile(r'TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')


def test_name_errors(texts):
    """ctest would run its halves, which are no tests, and call them passed."""
    for path, text in texts.items():
        if not path.endswith(tree.CXX):
            continue
        for match in TEST_NAME.finditer(text):
            if ";" in match.group(1):
                yield f"{path}: a test's name with ';': {match.group(1).strip()}"


def unfinished_errors(texts):
    for path, text in texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            if match := UNFINISHED.search(line):
                yield f"{path}:{number}: {match.group()}: do it, or open an issue and say nothing here"


def name_errors(texts):
    for path, text in texts.items():
        for part in [] if path.startswith(NAMED_BY_OTHERS) else path.split("/"):
            if part.split(".")[0].lower() in VAGUE_NAMES:
                yield f"{path}: '{part}' says nothing; name it after what it does"
        if path.endswith(tree.CXX):
            for match in VAGUE_TYPES.finditer(tree.bare(text)):
                yield f"{path}: type {match.group(1)} says nothing; name it after what it is"
            if VAGUE_FILES.fullmatch(path.split("/")[-1].split(".")[0]):
                yield f"{path}: the file's name says nothing; name it after what it holds"


def excepted(text):
    """{path: reason} of a list of exceptions."""
    lines = (line.partition(": ") for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {path.strip(): reason.strip() for path, _, reason in lines}


def stdout_errors(texts, exceptions):
    """Ranks' output alone goes there: one writer labels it, and nothing else comes between its lines."""
    writers = {}
    for path, text in texts.items():
        if not path.endswith(tree.CXX) or not path.startswith(("src/", "launcher/", "runtime/")):
            continue
        for number, line in enumerate(tree.bare(text).split("\n"), 1):
            if not path.startswith(WRITES_TO_STDOUT) and (match := STDOUT.search(line)):
                writers.setdefault(path, f"{path}:{number}: {match.group().strip('(')} outside {WRITES_TO_STDOUT}")
    for path, reason in exceptions.items():
        if not writers.pop(path, None) or not reason:
            yield f"{path}: a listed exception writes nothing to stdout, or has no reason"
    yield from writers.values()


def sleep_errors(texts):
    """Tests wait for something, not for a time; where a time is the point, a 'sleep-ok: reason' stands beside it."""
    for path, text in texts.items():
        if not path.startswith("tests/") or not path.endswith((*tree.CXX, ".py")):
            continue
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            if SLEEP.search(line) and not SLEEP_ALLOWED.search("\n".join(lines[max(0, number - 2):number + 1])):
                yield f"{path}:{number}: a sleep; wait for the thing itself, or say 'sleep-ok: reason'"


# The counts of moved bytes and the hook are the process's own.
FLAG_ACCESS = re.compile(r"(?<!\bshared_memory)(?<!\bflag_access_hook)\.(?:load|store|fetch_\w+|exchange|compare_exchange_\w+)\(")
SHARES_FLAGS = "runtime/transport/shm/"


def flag_access_errors(texts):
    """Tests yield at accesses to flags in shared memory: one without the hook is an order of ranks that they never try."""
    for path, text in texts.items():
        if not path.startswith(SHARES_FLAGS) or not path.endswith(tree.CXX):
            continue
        lines = tree.bare(text).split("\n")
        for number, line in enumerate(lines, 1):
            accesses = len(FLAG_ACCESS.findall(line))
            if accesses and lines[max(0, number - 2)].strip() != "at_flag_access();":
                yield f"{path}:{number}: a flag is accessed without at_flag_access() in the line before"
            elif accesses > 1:
                yield f"{path}:{number}: several flags are accessed behind one at_flag_access()"
