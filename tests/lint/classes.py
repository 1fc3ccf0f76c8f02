"""Counts the data members and the methods of each class and struct. SPDX-License-Identifier: Apache-2.0

A class is read as a list of tokens, without comments, literals and lines of the preprocessor (both branches of an #if count). That
is enough for declarations laid out as here; a macro that declares a member is not seen.
"""

import collections
import re

import tree

MOST_MEMBERS = 15
MOST_METHODS = 25
ROOTS = ("launcher/", "src/", "runtime/")
STRICT = ("launcher/supervise/", "launcher/agent/", "launcher/cli/", "launcher/commands/", "launcher/plan/")  # no exceptions
LIST = "tests/lint/large_classes.txt"

# methods: member functions that the class declares, private and static ones too; no constructor, destructor, operator, friend, nor
# what is defaulted or deleted. members: non-static, those of an anonymous union or struct too.
Shape = collections.namedtuple("Shape", "path name members methods")

TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|[^\s\w]")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
ENDS = {"(": ")", "{": "}", "[": "]"}
CLASS_WORDS = ("class", "struct", "union")
NO_NAME = (*CLASS_WORDS, "enum", "const", "constexpr", "consteval", "constinit", "explicit", "extern", "inline", "mutable", "noexcept",
           "static", "thread_local", "typename", "virtual", "volatile")
TYPE_WORDS = ("auto", "bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned", "void")
WITH_PARENTHESES = ("alignas", "decltype", "explicit", "noexcept", "__attribute__")  # before the name of what is declared


def is_name(token):
    return re.match(r"[A-Za-z_]", token) is not None


def tokens_of(text):
    return TOKEN.findall(DIRECTIVE.sub(lambda match: "\n" * match[0].count("\n"), tree.bare(text)))


class Reader:
    """Tokens, with the end of what begins at each. Past the last one every token is ''."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.ends = {}  # of each opening bracket: the index behind its closing one
        opened = []
        for index, token in enumerate(tokens):
            if token in ENDS:
                opened.append(index)
            elif token in ENDS.values() and opened:
                self.ends[opened.pop()] = index + 1

    def at(self, index):
        return self.tokens[index] if 0 <= index < len(self.tokens) else ""

    def behind(self, index):
        """The index behind a token or, if it opens a bracket, behind all of that."""
        return self.ends.get(index, index + 1)

    def behind_angles(self, index):
        """The index behind '<...>'; behind '<' where that is no list of template arguments."""
        depth, i = 0, index
        while self.at(i) not in (";", "}", ""):
            depth += {"<": 1, ">": -1}.get(self.at(i), 0)
            i = self.behind(i)
            if depth == 0:
                return i
        return index + 1

    def behind_all(self, index):
        """As behind, and '<' opens a bracket, too: for all but expressions."""
        return self.behind_angles(index) if self.at(index) == "<" else self.behind(index)

    def class_head(self, index):
        """(name, index of '{') of a class that is defined at index; (None, index) where none is."""
        if self.at(index) not in CLASS_WORDS or self.at(index - 1) in ("enum", "friend"):
            return None, index
        i, name = index + 1, ""
        while self.at(i) == "[" or self.at(i) in WITH_PARENTHESES:
            i = self.behind(i + (self.at(i) != "["))
        while is_name(self.at(i)) and self.at(i) != "final":
            name += self.at(i)
            i += 1
            if self.at(i) == "<":
                i = self.behind_angles(i)
            if self.at(i) == "::":
                name += "::"
                i += 1
            else:
                break
        i += self.at(i) == "final"
        if self.at(i) == ":" and name:
            while self.at(i) not in ("{", ";", ""):
                i = self.behind_all(i)
        return (name, i) if self.at(i) == "{" else (None, index)


def shapes_of_text(path, text):
    """The Shape of each class that is defined in text, nested and local ones on their own."""
    reader = Reader(tokens_of(text))
    return list(shapes_between(reader, path, 0, len(reader.tokens), ""))


def shapes_between(reader, path, begin, end, outer):
    i = begin
    while i < end:
        name, brace = reader.class_head(i)
        if name is None:
            i += 1
            continue
        close = reader.behind(brace) - 1
        inside = outer
        if name:
            inside = outer + name + "::"
            if reader.at(i) != "union":
                yield Shape(path, outer + name, *count(reader, brace + 1, close))
        yield from shapes_between(reader, path, brace + 1, close, inside)
        i = close + 1


def count(reader, begin, end):
    """(data members, methods) of the class whose body is between begin and end."""
    members = methods = 0
    i = begin
    while i < end:
        more_members, more_methods, i = count_declaration(reader, i, end)
        members += more_members
        methods += more_methods
    return members, methods


def count_declaration(reader, i, end):
    """What one declaration of a class's body counts for, and the index behind it."""
    token = reader.at(i)
    if token == ";":
        return 0, 0, i + 1
    if token in ("public", "private", "protected") and reader.at(i + 1) == ":":
        return 0, 0, i + 2
    if token == "template":
        i = reader.behind_angles(i + 1)
        if reader.at(i) == "requires":
            i = behind_requirement(reader, i)
        return count_declaration(reader, i, end)
    if token in ("using", "typedef", "friend", "static_assert"):
        return 0, 0, behind_statement(reader, i, end)
    head, brace = reader.class_head(i)
    if head is not None:
        close = reader.behind(brace) - 1
        if not head and reader.at(close + 1) == ";":  # its members are the outer class's
            return *count(reader, brace + 1, close), close + 2
        return count_declarators(reader, close + 1, end, ["type"])
    if token == "enum":
        brace = i
        while reader.at(brace) not in ("{", ";", "=", ""):
            brace += 1
        if reader.at(brace) == "{":
            return count_declarators(reader, reader.behind(brace), end, ["type"])
    return count_declarators(reader, i, end, [])


def behind_requirement(reader, i):
    """Behind 'requires A<T> && (b)': the next name that follows a name or a bracket begins the declaration."""
    i += 1
    while True:
        if reader.at(i) == "requires":
            i += 1
        i = reader.behind(i)
        while reader.at(i) in ("<", "::", "(", "{"):
            i = reader.behind_all(i) + (reader.at(i) == "::")
        if reader.at(i) not in ("&", "|"):
            return i
        i += 2


def behind_statement(reader, i, end):
    """Behind the ';', or behind the body of a function that is a friend."""
    has_parameters = False
    while i < end and reader.at(i) != ";":
        if reader.at(i) == "{" and has_parameters:
            return reader.behind(i)
        has_parameters = has_parameters or reader.at(i) == "("
        i = reader.behind(i)
    return i + 1


def count_declarators(reader, i, end, names):
    """A declaration from its first specifier on; or from behind the body of its type, which names has then."""
    members = methods = 0
    is_static = False
    names = list(names)  # of the type and what is declared, without qualifiers and arguments of templates
    while i < end:
        token = reader.at(i)
        if token == "[" and not names:
            i = reader.behind(i)  # an attribute
        elif token in WITH_PARENTHESES and reader.at(i + 1) == "(":
            names += ["int"] if token == "decltype" else []
            i = reader.behind(i + 1)
        elif token == "operator":
            i += 3 if reader.at(i + 1) == "(" else 1  # 'operator()' has parentheses in its name
            while i < end and reader.at(i) != "(":
                i += 1
            return members, methods, behind_function(reader, i, end)[0]
        elif token == "<":
            i = reader.behind_angles(i)
        elif token == "(" and is_pointer(reader, i):
            names.append("pointer")
            i = reader.behind(reader.behind(i))
        elif token == "(":
            if reader.at(i + 1) in ("*", "&"):  # '(*f(int))(char)' is a function, too
                names.append("function")
                i = reader.behind(i)
            # No type before the name: a constructor, a destructor or a macro.
            is_method = len(names) > 1 and "~" not in names
            i, is_counted, is_last = behind_function(reader, i, end)
            methods += is_method and is_counted
            if is_last:
                return members, methods, i
            names = names[:1]
        elif token in (",", ";", "=", "{", ":", "["):
            is_unnamed_field = token == ":" and (len(names) < 2 or names[-1] in TYPE_WORDS)
            members += len(names) > 1 and not is_static and not is_unnamed_field
            i = behind_declarator(reader, i, end)
            if reader.at(i) != ",":
                return members, methods, i + 1
            i += 1
            names = names[:1]
        else:
            is_static = is_static or token in ("static", "extern")
            if is_name(token) and token not in NO_NAME or token == "~":
                names.append(token)
            if token == "::" and names and reader.at(i - 1) in (names[-1], ">"):
                names.pop()  # a qualifier
            i += 1
    return members, methods, end


def is_pointer(reader, i):
    """'(*p)(int)' or '(A::*p)(int)'; '(*f(int))(char)' is a function that returns a pointer."""
    close, star = reader.behind(i) - 1, i + 1
    while is_name(reader.at(star)) or reader.at(star) == "::":
        star += 1
    return (reader.at(star) in ("*", "&") and reader.at(star - 1) in ("(", "::")
            and not any(reader.at(at) == "(" for at in range(star, close)))


def behind_function(reader, i, end):
    """From the parameters on: (the index behind it, whether it is declared without '= default' or '= delete', whether it is the
    last of its declaration)."""
    is_counted = True
    i = reader.behind(i)
    while i < end:
        token = reader.at(i)
        if token == ";":
            return i + 1, is_counted, True
        if token == "{":
            return reader.behind(i), is_counted, True
        if token == ",":
            return i + 1, is_counted, False
        if token == ":":  # initialisers of a constructor
            return behind_initialisers(reader, i + 1), is_counted, True
        if token == "=":
            is_counted = is_counted and reader.at(i + 1) not in ("default", "delete")
        i = reader.behind_all(i)
    return end, is_counted, True


def behind_initialisers(reader, i):
    while True:
        while reader.at(i) not in ("(", "{", ""):
            i = reader.behind_all(i)
        i = reader.behind(i)
        while reader.at(i) == ".":
            i += 1
        if reader.at(i) != ",":
            return reader.behind(i)
        i += 1


def behind_declarator(reader, i, end):
    """The index of the ',' or ';' that ends a declarator, from its '[', '{', '=' or ':' on."""
    while i < end and reader.at(i) not in (",", ";"):
        if reader.at(i) == "<" and is_name(reader.at(i - 1)) and is_template_in_expression(reader, i):
            i = reader.behind_angles(i)
        else:
            i = reader.behind(i)
    return i


def is_template_in_expression(reader, i):
    """'f<a, b>(c)' and no comparison."""
    close = reader.behind_angles(i)
    return reader.at(close - 1) == ">" and reader.at(close) in ("(", "{", "::", ";", ",", ">") and all(
        is_name(reader.at(at)) or reader.at(at) in ("<", ">", "::", ",", "*", "&", "(", ")", "[", "]", ".") or reader.at(at)[0].isdigit()
        for at in range(i, close))


def shapes(texts):
    """Of all classes of the product."""
    return [shape for path, text in texts.items() if path.startswith(ROOTS) and path.endswith((".h", ".cc"))
            for shape in shapes_of_text(path, text)]


def is_large(members, methods):
    return members > MOST_MEMBERS or methods > MOST_METHODS


def listed(text):
    """{(path, class): (members, methods)} of the list of exceptions."""
    lines = (line.split() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {(path, name): (int(members), int(methods)) for path, name, members, methods in lines}


def errors(found, exceptions):
    """found: Shapes; of two classes of a file that have one name, the larger counts."""
    counts = {}
    for path, name, members, methods in found:
        before = counts.get((path, name), (0, 0))
        counts[path, name] = (max(before[0], members), max(before[1], methods))
    limits = f"at most {MOST_MEMBERS} and {MOST_METHODS}"
    for (path, name), (members, methods) in sorted(counts.items()):
        if is_large(members, methods) and (path, name) not in exceptions:
            yield (f"{path}: {name} has {members} data members and {methods} methods, {limits}: "
                   "give what belongs together a class of its own")
    for (path, name), (members, methods) in sorted(exceptions.items()):
        line = f"{LIST}: {path} {name} {members} {methods}"
        now = counts.get((path, name))
        if path.startswith(STRICT):
            yield f"{line}: no exceptions in {path.rpartition('/')[0]}: split the class, and remove this line"
        elif now is None:
            yield f"{line}: there is no such class: remove this line"
        elif not is_large(*now):
            yield f"{line}: it is no longer large: remove this line"
        elif now[0] > members or now[1] > methods:
            yield f"{line}: it has grown to {now[0]} {now[1]}: take out what is new"
        elif now != (members, methods):
            yield f"{line}: it has shrunk: write {now[0]} {now[1]}"
