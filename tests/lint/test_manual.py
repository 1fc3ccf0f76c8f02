"""hvrun(3) describes all of hvrun.h, each thing where one looks for it. SPDX-License-Identifier: Apache-2.0"""

import re

import pytest

import manual
import tree

HEADER = """
#define HVRUN_API x
#define HVRUN_MADE_INIT 1 /* HVRUN_NOT_ME */
typedef enum hvrun_status { HVRUN_OK = 0, HVRUN_ERROR_BAD = 1 } hvrun_status;
enum { HVRUN_FLAG = 1 };
typedef struct hvrun_context hvrun_context;
typedef struct hvrun_result {
  size_t struct_size;
  const int64_t* shape; /* of it */
} hvrun_result;
HVRUN_API hvrun_status hvrun_go(hvrun_context* context,
                                hvrun_result* result);
"""
PAGE = """.Sh NAME
.Nm hvrun_go ,
.Sh SYNOPSIS
.Bd -literal
typedef struct hvrun_result {
  size_t struct_size;
  const int64_t* shape;
} hvrun_result;
.Ed
.Ft hvrun_status
.Fn hvrun_go "hvrun_context *context" "hvrun_result *result"
.Sh DESCRIPTION
.Ss Operations
.Fn hvrun_go
.Dv HVRUN_FLAG , HVRUN_MADE_INIT
.It Fa other , shape
.Sh RETURN VALUES
.It Dv HVRUN_OK
.It Dv HVRUN_ERROR_BAD
.Sh ENVIRONMENT
.It Ev HVRUN_KNOB
"""


def differences(header=HEADER, page=PAGE, knobs=("HVRUN_KNOB",)):
    return list(manual.differences(manual.Header(header), page, set(knobs)))


def test_the_manual_describes_the_header():
    header = manual.Header(tree.read("runtime/include/hvrun/hvrun.h"))
    assert len(header.functions) > 20 and len(header.constants) > 45 and len(header.fields) == 6
    constants = dict(re.findall(r'constexpr char (k\w+)\[\] = "(HVRUN_\w+)"', tree.read("src/contract/contract.h")))
    names = re.findall(r'^ +\{"?(\w+)"?, KnobType', tree.read("src/contract/runtime_knobs.cc"), re.MULTILINE)
    knobs = {constants.get(name, name) for name in names}
    assert len(knobs) > 15
    assert differences(tree.read("runtime/include/hvrun/hvrun.h"), tree.read("man/hvrun.3"), knobs) == []


def test_a_whole_page_has_no_differences():
    assert differences() == []


@pytest.mark.parametrize("gone, told", [
    (".Nm hvrun_go ,\n", "function hvrun_go: not in NAME"),
    (".Ss Operations\n.Fn hvrun_go\n", "function hvrun_go: not in DESCRIPTION"),
    (".It Dv HVRUN_ERROR_BAD\n", "status HVRUN_ERROR_BAD: not in RETURN VALUES"),
    (".Dv HVRUN_FLAG , HVRUN_MADE_INIT\n", "constant HVRUN_FLAG: not in DESCRIPTION"),
    (" , shape", "field shape of hvrun_result: not in Operations"),
    ("  const int64_t* shape;\n", "field 'const int64_t* shape' of hvrun_result: not alike in SYNOPSIS and hvrun.h"),
    ("const int64_t*", "field 'const int64_t* shape' of hvrun_result: not alike in SYNOPSIS and hvrun.h"),
    (".It Ev HVRUN_KNOB\n", "knob HVRUN_KNOB: not in ENVIRONMENT"),
    (".Ft hvrun_status\n", "type hvrun_status: nowhere"),
])
def test_what_the_page_lacks_is_told(gone, told):
    assert gone in PAGE
    assert told in differences(page=PAGE.replace(gone, ""))


def test_what_the_header_lacks_is_told():
    assert differences(page=PAGE + ".Sh SEE ALSO\n.Fn hvrun_gone\n") == ["hvrun_gone: in the page, unknown to hvrun.h"]
    assert differences(knobs=()) == ["knob HVRUN_KNOB: in ENVIRONMENT, and there is none"]
