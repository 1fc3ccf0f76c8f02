"""Direction of includes: reads include_rules.txt, answers what breaks it. SPDX-License-Identifier: Apache-2.0"""

import collections
import re

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
DIRECTIVE = re.compile(r"^\s*#\s*include\w*.*$", re.MULTILINE)
HOUSES = ("src", "launcher", "runtime")
ROOTS = (*HOUSES, "bench", "examples", "tests")
NOT_FROM_THE_ROOT = ("hvrun/hvrun.h", "hvrun_version.h")  # as users write it; made by the build
BUILT_WITHOUT_THE_ROOT = "tests/payload/"  # by a bare cc, too, where nothing has been built yet
PUBLIC = "runtime/include/"


def parse_rules(text):
    """(allowed, wraps): {room: rooms it may include}, {foreign header prefix: folders that may}."""
    allowed, wraps = collections.defaultdict(set), {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        house, chain = (part.strip() for part in line.split(":", 1))
        if house == "wraps":
            prefix, folders = chain.split("=")
            wraps[prefix.strip()] = tuple(folders.split())
            continue
        stages = [[room.strip() for room in stage.split(",")] for stage in chain.split(">")]
        stages = [[room if house == "outside" or room == "src" else f"{house}/{room}" for room in s] for s in stages]
        for index, stage in enumerate(stages):
            to_the_right = {room for later in stages[index + 1:] for room in later}
            for room in stage:
                if room != "src":
                    allowed[room] |= to_the_right
    return dict(allowed), wraps


def room_of(path):
    """'launcher/plan/x.h' lives in launcher/plan; files of bench and examples in those."""
    parts = path.split("/")
    if parts[0] in HOUSES:
        return "/".join(parts[:2]) if len(parts) > 2 else parts[0]
    return parts[0]


def inside(room, folder):
    return room == folder or room.startswith(folder + "/")


def own_includes(text):
    """The path of each include that is ours, from the project's root; hvrun.h goes by its public name."""
    for match in INCLUDE.finditer(text):
        target = match.group(1) or match.group(2)
        if target.startswith("hvrun/"):
            target = "runtime/include/" + target
        if target.split("/")[0] in ROOTS:
            yield target


def direction_errors(sources, allowed):
    """sources: {path: text}. A room without a rule is an error too: a new folder needs a place on a line."""
    for path, text in sources.items():
        room = room_of(path)
        if room == "tests" or room == "runtime/include":
            continue
        if room not in allowed and room != "src/base":
            yield f"{path}: folder {room} has no line in tests/lint/include_rules.txt"
            continue
        for target in own_includes(text):
            to = room_of(target)
            if to == room or (to == "runtime/include" and room.startswith("runtime/")):
                continue
            if not any(inside(to, folder) for folder in allowed.get(room, ())):
                yield f"{path}: includes {target}: {room} may not include {to}"


def mutual_errors(sources):
    """No two rooms include each other, wherever they are."""
    edges = collections.defaultdict(set)
    for path, text in sources.items():
        for target in own_includes(text):
            if room_of(path) != room_of(target):
                edges[room_of(path)].add(room_of(target))
    for room, targets in sorted(edges.items()):
        for target in sorted(targets):
            if room < target and room in edges.get(target, ()):
                yield f"{room} and {target} include each other"


def wrap_errors(sources, wraps):
    """Foreign libraries stay in the folder that wraps them."""
    for path, text in sources.items():
        for match in INCLUDE.finditer(text):
            target = match.group(1) or match.group(2)
            for prefix, folders in wraps.items():
                if target.startswith(prefix) and not path.startswith((*folders, "tests/")):
                    yield f"{path}: includes <{target}>; only {', '.join(folders)} may"


def form_errors(sources):
    """Every include of ours is written from the root, so that the other rules see it; the public header stands alone."""
    for path, text in sources.items():
        for line in DIRECTIVE.findall(tree.without_comments(text)):
            match = INCLUDE.fullmatch(line.rstrip())
            if not match:
                yield f"{path}: {line.strip()}: an include is '#include' with a name in quotes or angles"
                continue
            quoted, target = match.group(1), match.group(1) or match.group(2)
            is_ours = target.split("/")[0] in ROOTS or target in NOT_FROM_THE_ROOT
            if ".." in target.split("/") or quoted and not is_ours and not path.startswith(BUILT_WITHOUT_THE_ROOT):
                yield f"{path}: includes {target}: not written from the project's root"
            if path.startswith(PUBLIC) and (quoted or is_ours or target.startswith("hvrun")):
                yield f"{path}: includes {target}: what users install includes nothing of ours"


def sources(more=()):
    houses = tuple(name + "/" for name in (*HOUSES, "bench", "examples", *more))
    return {path: tree.read(path) for path in tree.files() if path.startswith(houses) and path.endswith(tree.CXX)}
