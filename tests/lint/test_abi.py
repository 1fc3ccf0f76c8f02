# SPDX-License-Identifier: Apache-2.0
"""python/hvrun/_abi.py says of hvrun.h what hvrun.h says: every number, every field in its place, every function."""

import importlib.util
import re

from harness.programs import SOURCE

HEADER = (SOURCE / "runtime/include/hvrun/hvrun.h").read_text()
STRUCTS = {"hvrun_rank_list": "RankList", "hvrun_options": "Options", "hvrun_request": "Request", "hvrun_result": "Result",
           "hvrun_counters": "Counters", "hvrun_step_times": "StepTimes"}
# Not called from Python: enqueue and wait do what they do.
UNUSED = {"hvrun_allreduce", "hvrun_broadcast", "hvrun_join"}
BYTES = {"size_t": 8, "int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8, "double": 8}


def abi():
    spec = importlib.util.spec_from_file_location("_abi", SOURCE / "python/hvrun/_abi.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def numbers():
    """name without HVRUN_: number, of every enum."""
    return {name: int(number) for name, number in re.findall(r"\bHVRUN_([A-Z0-9_]+) = (\d+)", without_comments(HEADER))}


def fields(struct):
    """[(name, bytes)]"""
    (body,) = re.findall(rf"typedef struct {struct} {{(.*?)}} {struct};", without_comments(HEADER), flags=re.S)
    return [(name, 8 if "*" in kind else BYTES.get(kind.split()[-1], 4)) for kind, name in re.findall(r"([\w ]+?[ *]+)(\w+);", body)]


def wrong(module):
    """What differs, in words."""
    known = numbers()
    found = [f"{name} is {value}, in the header {known.get(name)}" for name, value in vars(module).items()
             if name.isupper() and isinstance(value, int) and known.get(name) != value]
    for struct, name in STRUCTS.items():
        own = [(field, getattr(getattr(module, name), field).size) for field, _ in getattr(module, name)._fields_]
        if own != fields(struct):
            found.append(f"{name} is {own}, in the header {fields(struct)}")
    called = {*module.PROMPT, *module.BLOCKING} | UNUSED
    declared = set(re.findall(r"HVRUN_API [^;(]*?\b(hvrun_\w+)\(", without_comments(HEADER)))
    return found + [f"{name} is only on one side" for name in called ^ declared]


def test_it_is_the_header():
    assert wrong(abi()) == []


def test_a_number_a_field_and_a_function_that_differ_are_told():
    module = abi()
    module.SUM = 2
    del module.PROMPT["hvrun_poll"]
    module.Options = type("Options", (module.c.Structure,), {"_fields_": [("struct_size", module.c.c_int32)]})
    told = "\n".join(wrong(module))
    assert "SUM is 2" in told and "Options is" in told and "hvrun_poll" in told
