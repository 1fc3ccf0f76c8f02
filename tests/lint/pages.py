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


def options_of_horovodrun(text):
    """Those that hvrun(1) says are taken under horovodrun's own names; not those that it says are errors."""
    section = text.partition(".Ss Options of horovodrun\n")[2].partition("\n.S")[0].partition("\nErrors, ")[0]
    words = re.findall(r"^\.Fl (.*)$", section, re.MULTILINE)
    return {"-" + name for line in words for name in re.findall(r"-[\w-]+", line)} | set(re.findall(r"\bCm (--[\w-]+)", section))


def options_in_tables(text):
    """Every option of hvrun's that a page's tables name: in the column 'hvrun', and before it where that says 'as it is'."""
    found, inside = set(), False
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) < 4:
            inside = False
        elif cells[2] == "hvrun":
            inside = True
        elif inside:
            words = re.findall(r"`([^`]*)`", cells[1] if cells[2] == "as it is" else cells[2])
            found |= {option for word in words for option in re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", word)}
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
