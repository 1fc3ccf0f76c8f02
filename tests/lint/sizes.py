"""Sizes of files and functions. SPDX-License-Identifier: Apache-2.0"""

import collections
import re

import tree

MOST_LINES_OF_A_FILE = 600
MOST_LINES_OF_A_FUNCTION = 60
MOST_FILES_OF_A_DIRECTORY = 40  # a longer list has parts that a reader looks for
MOST_COLUMNS = {".cc": 100, ".h": 100, ".c": 100, ".py": 140}  # clang-format lets comments grow by a few

CONTAINER = re.compile(r'\b(namespace|class|struct|union|enum|extern)\b')


def file_errors(texts, limit=MOST_LINES_OF_A_FILE):
    for path, text in texts.items():
        lines = text.count("\n")
        if lines > limit:
            yield f"{path}: {lines} lines, at most {limit}"


def directory_errors(paths, limit=MOST_FILES_OF_A_DIRECTORY):
    counts = collections.Counter(path.rpartition("/")[0] for path in paths)
    for directory, count in sorted(counts.items()):
        if count > limit:
            yield f"{directory}: {count} files, at most {limit}: give its parts directories"


def column_errors(texts, limits=MOST_COLUMNS):
    for path, text in texts.items():
        limit = next((most for ending, most in limits.items() if path.endswith(ending)), None)
        for number, line in enumerate(text.split("\n"), 1):
            if limit and len(line) > limit:
                yield f"{path}:{number}: {len(line)} columns, at most {limit}"


def functions(text):
    """(first line, last line) of each function body, found by braces.

    A brace opens a function when everything around it is a namespace or a type and the text before it, back to the
    last ';', '{' or '}', has parentheses and names no container. Good enough for code laid out by clang-format.
    """
    code = re.sub(r"^\s*#.*$", "", tree.bare(text), flags=re.MULTILINE)
    stack, start = [], 0
    for match in re.finditer(r"[{};]", code):
        sign = match.group()
        if sign == "{":
            before = code[start:match.start()]
            kind = "container" if CONTAINER.search(before) and "(" not in before else "block"
            if kind == "block" and "(" in before and all(k == "container" for k, _ in stack):
                kind = "function"
            first = start + len(before) - len(before.lstrip())
            stack.append((kind, code.count("\n", 0, first) + 1))
        elif sign == "}" and stack:
            kind, first_line = stack.pop()
            if kind == "function":
                yield first_line, code.count("\n", 0, match.start()) + 1
        start = match.end()


def function_errors(texts, limit=MOST_LINES_OF_A_FUNCTION):
    for path, text in texts.items():
        for first, last in functions(text):
            if last - first + 1 > limit:
                yield f"{path}:{first}: a function of {last - first + 1} lines, at most {limit}"
