"""What a header begins with, how large an interface is, and who may open a namespace. SPDX-License-Identifier: Apache-2.0"""

import re

import tree

HOUSES = ("src/", "launcher/", "runtime/")
GUARDED = "runtime/include/"  # what users include has a guard: '#pragma once' is no C
MOST_VIRTUAL_FUNCTIONS = 8
FEWEST_WORDS = 3

SPDX = re.compile(r"SPDX-License-Identifier: \S+")
CLASS = re.compile(r"\b(?:class|struct)\s+(\w+)[^;{}()]*\{")
VIRTUAL = re.compile(r"\bvirtual\b(?!\s*~)")
USING_NAMESPACE = re.compile(r"\busing\s+namespace\b")


def headers(texts):
    return {path: text for path, text in texts.items() if path.endswith(".h")}


def pragma_errors(texts):
    for path, text in headers(texts).items():
        if path.startswith(GUARDED):
            guard = re.search(r"^#ifndef (\w+)\n#define (\w+)$", text, re.MULTILINE)
            if not guard or guard[1] != guard[2]:
                yield f"{path}: no guard (#ifndef X, #define X)"
        elif not re.search(r"^#pragma once$", tree.bare(text), re.MULTILINE):
            yield f"{path}: no '#pragma once'"


def first_line_errors(texts):
    """A stranger learns from a header's first line what lives there."""
    for path, text in headers(texts).items():
        first = text.partition("\n")[0]
        words = SPDX.sub("", first.strip("/* ")).split()
        if not first.startswith(("//", "/*")) or len(words) < FEWEST_WORDS:
            yield f"{path}:1: the first line does not say what the file is for"


def own_part(body):
    """A class's body without the bodies that stand in it."""
    depth, kept = 0, []
    for sign in body:
        depth -= sign == "}"
        if depth == 0:
            kept.append(sign)
        depth += sign == "{"
    return "".join(kept)


def classes(text):
    """(name, what stands between its braces) of each class and struct."""
    code = tree.bare(text)
    for match in CLASS.finditer(code):
        depth, end = 1, match.end()
        while depth and end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        yield match.group(1), code[match.end():end - 1]


def interface_errors(texts):
    for path, text in texts.items():
        for name, body in classes(text):
            count = len(VIRTUAL.findall(own_part(body)))
            if count > MOST_VIRTUAL_FUNCTIONS:
                yield f"{path}: {name} has {count} virtual functions, at most {MOST_VIRTUAL_FUNCTIONS}"


def namespace_errors(texts):
    """Tests may open a namespace in a .cc of their own; a header opens it for everybody."""
    for path, text in texts.items():
        if path.startswith(HOUSES) or path.endswith(".h"):
            for number, line in enumerate(tree.bare(text).split("\n"), 1):
                if USING_NAMESPACE.search(line):
                    yield f"{path}:{number}: using namespace: name what is used, or open the namespace"
