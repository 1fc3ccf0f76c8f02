"""What the manual pages name against what the program names. SPDX-License-Identifier: Apache-2.0"""

import re


def options_in_help(text):
    """Every option that the help defines: a line's first word, '-n,--np', and spellings told by 'also -np'."""
    found = set()
    for line in text.splitlines():
        if match := re.match(r"\s+(-[\w,-]+)", line):
            found |= {*match.group(1).split(","), *re.findall(r"\balso (-[\w-]+)", line)}
    return found


def options_in_page(text):
    """Every option that an mdoc page defines: '.It Fl n , Fl -np Ar N'."""
    found = set()
    for line in text.splitlines():
        if line.startswith(".It Fl "):
            found |= {"-" + word for word in re.findall(r"\bFl (-?[\w-]+)", line)}
    return found


def names_in_page(text, section):
    """Every variable that an mdoc page defines in sections of this beginning: '.It Ev HVRUN_X , HVRUN_Y'."""
    found, inside = set(), False
    for line in text.splitlines():
        if line.startswith(".Sh "):
            inside = line.startswith(".Sh " + section)
        elif inside and line.startswith(".It Ev "):
            found |= set(re.findall(r"[A-Z_]{2,}", line))
    return found


def names_in_env(text):
    """Every knob that 'hvrun env' prints: a row begins with its name; what is said below them does not count."""
    return set(re.findall(r"^(HVRUN_\w+)  ", text, re.MULTILINE))


def names_in_environment(text):
    """Every variable that env(1) prints, one a line."""
    return set(re.findall(r"^(\w+)=", text, re.MULTILINE))


def difference(what, in_program, in_page):
    for name in sorted(in_program - in_page):
        yield f"{what} {name}: not in the manual page"
    for name in sorted(in_page - in_program):
        yield f"{what} {name}: in the manual page, unknown to the program"
