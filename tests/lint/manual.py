"""What hvrun.h declares against what hvrun(3) describes, and where. SPDX-License-Identifier: Apache-2.0"""

import re

import tree

# Not for users to write: the guard, and what stands behind the other macros.
INTERNAL = {"HVRUN_HVRUN_H_", "HVRUN_API", "HVRUN_SIZED"}
RESERVED_FIELDS = {"struct_size", "reserved"}
STATUSES = "RETURN VALUES"
FIELDS_STAND_IN = {  # a struct, and the subsections of which one describes its fields
    "hvrun_request": ("Operations",),
    "hvrun_result": ("Operations",),
    "hvrun_options": ("Joining and leaving", "Process sets"),
    "hvrun_rank_list": ("Process sets",),
    "hvrun_counters": ("What one sees of it",),
    "hvrun_step_times": ("What one sees of it",),
}


class Header:
    """functions, constants, macros and types as sets; fields: {struct: [name, ...]}; statuses: those of hvrun_status."""

    def __init__(self, text):
        text = tree.without_comments(text)
        self.functions = set(re.findall(r"HVRUN_API[^;]*?(hvrun_\w+)\(", text))
        self.macros = set(re.findall(r"^#define (HVRUN_\w+)", text, re.MULTILINE)) - INTERNAL
        enums = re.findall(r"enum\s*\w*\s*\{(.*?)\}\s*(\w*)\s*;", text, re.DOTALL)
        self.constants = {name for body, _ in enums for name in re.findall(r"\bHVRUN_\w+", body)}
        self.statuses = {name for body, enum in enums if enum == "hvrun_status" for name in re.findall(r"\bHVRUN_\w+", body)}
        structs = re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, re.DOTALL)
        self.fields = {name: re.findall(r"(\w+);", body) for body, name in structs}
        self.declarations = {name: {" ".join(field.split()) for field in body.split(";")} - {""} for body, name in structs}
        self.types = set(re.findall(r"typedef [^;{]*?(\w+);", text)) | set(self.fields) | {enum for _, enum in enums if enum}


def sections(page):
    """{heading: text} of an mdoc page: its sections and, by their own names, its subsections."""
    found, names = {}, []
    for line in page.splitlines():
        if line.startswith((".Sh ", ".Ss ")):
            names = [line[4:]] if line.startswith(".Sh ") else [names[0], line[4:]]
        for name in names:
            found[name] = found.get(name, "") + line + "\n"
    return found


def words_after(macro, text):
    """Everything that stands in lines '.Dv A , B', or '.It Dv A', of that macro."""
    found = set()
    for line in re.findall(rf"^\.(?:\w\w )*{macro} (.*)$", text, re.MULTILINE):
        found |= set(re.findall(r"\w+", line))
    return found


def differences(header, page, knobs):
    parts = sections(page)
    of = lambda name: parts.get(name, "")
    functions = r"F[no]"
    for name in sorted(header.functions):
        for section, macro in (("NAME", "Nm"), ("SYNOPSIS", functions), ("DESCRIPTION", functions)):
            if name not in words_after(macro, of(section)):
                yield f"function {name}: not in {section}"
    for name in sorted(header.statuses):
        if f".It Dv {name}\n" not in of(STATUSES):
            yield f"status {name}: not in {STATUSES}"
    for name in sorted((header.constants | header.macros) - header.statuses):
        if name not in words_after("Dv", of("DESCRIPTION")):
            yield f"constant {name}: not in DESCRIPTION"
    for name in sorted(header.types):
        if name not in words_after("Vt", page) | words_after("Ft", page) | set(re.findall(r"\w+", of("SYNOPSIS"))):
            yield f"type {name}: nowhere"
    shown = Header(of("SYNOPSIS")).declarations
    for struct, fields in header.declarations.items():
        for field in sorted(fields ^ shown.get(struct, set())):
            yield f"field '{field}' of {struct}: not alike in SYNOPSIS and hvrun.h"
    for struct, fields in header.fields.items():
        described = set().union(*(words_after("Fa", of(part)) for part in FIELDS_STAND_IN.get(struct, ())))
        for field in fields:
            if field not in described | RESERVED_FIELDS:
                yield f"field {field} of {struct}: not in {' or '.join(FIELDS_STAND_IN.get(struct, ['any section']))}"
    for knob in sorted(knobs - words_after("Ev", of("ENVIRONMENT"))):
        yield f"knob {knob}: not in ENVIRONMENT"
    for knob in sorted(words_after("Ev", of("ENVIRONMENT")) - knobs):
        yield f"knob {knob}: in ENVIRONMENT, and there is none"
    known = header.functions | header.constants | header.macros | header.types
    for name in sorted(set(re.findall(r"\b(?:hvrun|HVRUN)_\w+", re.sub(r"^\.(?:\w\w )*Ev .*$", "", page, flags=re.MULTILINE)))):
        if name not in known:
            yield f"{name}: in the page, unknown to hvrun.h"
