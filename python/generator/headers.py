"""Reads the installed headers: their functions, structs and enums, each with its comment."""
import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple


class Variable(NamedTuple):
    """A parameter, a field, or what a function returns: `const char *text`, `int64_t dim[]`."""

    type: str
    name: str
    array: str = ""  # "[8]"; "[]" for a parameter that is an array
    doc: str = ""


class Function(NamedTuple):
    name: str
    returns: str
    parameters: list
    doc: str
    header: str


class Headers(NamedTuple):
    functions: dict
    structs: dict  # name -> fields
    enums: dict  # name -> {member: value}; of enums without a name, name is the first member
    opaque: dict  # names of structs without fields, in order


ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
VARIABLE = re.compile(r"(.*?)([A-Za-z_]\w*)((?:\[[^\]]*\])*)$", re.S)


def prose(comment):
    """The text of a C comment, without its stars."""
    lines = comment[2:-2].split("\n")
    lines = [re.sub(r"^\s*\* ?", "", line) if i else line for i, line in enumerate(lines)]
    indent = min((len(s) - len(s.lstrip()) for s in lines[1:] if s.strip()), default=0)
    return "\n".join([lines[0].strip()] + [s[indent:].rstrip() for s in lines[1:]]).strip()


def split(text, separator):
    """The parts between separators outside all brackets and comments."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
            continue
        depth += (text[at] in "({[") - (text[at] in ")}]")
        if text[at] == separator and depth == 0:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return parts + [text[start:]]


def variable(text, doc=""):
    text = " ".join(COMMENT.sub("", text).split())
    if text == "...":
        return Variable("...", "more")
    if "(*" in text:
        return Variable("function", re.search(r"\(\*(\w+)\)", text)[1], "", doc)
    kind, name, array = VARIABLE.match(text).groups()
    return Variable(kind.strip().replace("* ", "*"), name, array, doc)


def fields(body):
    """The fields of a struct; the comment of each stands before it or behind it."""
    result, last = [], 0  # last: where the fields of the last statement begin
    for piece in split(body, ";")[:-1]:
        before = COMMENT.match(piece.lstrip())
        if result and before and "\n" not in piece[: len(piece) - len(piece.lstrip())]:
            result[last:] = [v._replace(doc=prose(before[0])) for v in result[last:]]
            before = COMMENT.match(piece.lstrip()[before.end():].lstrip())
        doc = prose(before[0]) if before else ""
        first, *others = split(COMMENT.sub("", piece), ",")
        made = [variable(first, doc)]
        made += [variable(made[0].type.rstrip("*") + " " + other, doc) for other in others]
        last = len(result)
        result += made
    tail = COMMENT.match(split(body, ";")[-1].lstrip())
    if tail:
        result[last:] = [v._replace(doc=prose(tail[0])) for v in result[last:]]
    return result


def members(body):
    """The values of an enum by their names."""
    values, following = {}, 0
    for piece in split(COMMENT.sub("", body), ","):
        name, _, value = piece.partition("=")
        if name.strip():
            following = eval(value.replace("/", "//"), {}, values) if value else following
            values[name.strip()] = following
            following += 1
    return values


def preprocessed(include, header):
    """(header, text) for each run of lines that comes from the headers below `include`."""
    source = f"#include <{header}>\n"
    command = ["cc", "-std=c17", "-E", "-C", "-I", str(include), "-x", "c", "-"]
    output = subprocess.run(command, input=source, text=True, check=True, capture_output=True)
    runs, here = [], None
    for line in output.stdout.split("\n"):
        marker = re.match(r'# \d+ "(.*?)"', line)
        if marker:
            path = Path(marker[1])
            inside = path.is_absolute() and path.is_relative_to(include)
            here = os.path.normpath(path.relative_to(include)) if inside else None
        elif here:
            if not runs or runs[-1][0] != here:
                runs.append((here, []))
            runs[-1][1].append(line)
    return [(name, "\n".join(lines)) for name, lines in runs]


def statements(text):
    """(comment, statement) for each declaration: up to its semicolon, or to an inline body's end. The
    comment stands above a group without empty lines, or behind one of it."""
    comment, shared, at = "", "", 0
    while True:
        space = text[at : at + len(text[at:]) - len(text[at:].lstrip())]
        shared = "" if "\n\n" in space else shared
        at += len(space)
        if at >= len(text):
            return
        if text.startswith("/*", at):
            end = text.index("*/", at) + 2
            comment = shared = text[at:end]
            at = end
            continue
        end, depth = at, 0
        while end < len(text):
            if text.startswith("/*", end):
                end = text.index("*/", end) + 2
                continue
            depth += (text[end] == "{") - (text[end] == "}")
            if depth == 0 and text[end] == ";":
                break
            if depth == 0 and text[end] == "}" and "static" in text[at : at + 10]:
                break
            end += 1
        behind = re.compile(r" */\*.*?\*/", re.S).match(text, end + 1)
        yield behind[0].strip() if behind else comment or shared, text[at:end].strip()
        comment, at = "", behind.end() if behind else end + 1


def read(include, header="softback.h"):
    found = Headers({}, {}, {}, {})
    for where, text in preprocessed(Path(include).resolve(), header):
        for comment, statement in statements(text):
            statement = ATTRIBUTE.sub("", statement).strip()
            read_statement(found, where, prose(comment) if comment else "", statement)
    return found


def read_statement(found, header, doc, statement):
    struct = re.match(r"(typedef )?(struct|enum)\s*(\w*)\s*{(.*)}\s*(\w*)$", statement, re.S)
    if struct:
        _, kind, tag, body, name = struct.groups()
        if kind == "struct":
            found.structs[name or tag] = fields(body)
            found.opaque.pop(name or tag, None)
        else:
            values = members(body)
            found.enums[name or tag or next(iter(values))] = values
    elif statement.startswith("typedef struct"):
        name = statement.split()[-1]
        if name not in found.structs:
            found.opaque[name] = True
    elif re.match(r"typedef \w+ \w+(, \w+)*$", statement):
        _, base, *aliases = statement.replace(",", "").split()
        found.structs.update(dict.fromkeys(aliases, found.structs[base]))
    elif statement.endswith(")") and not statement.startswith(("typedef", "static")):
        head, arguments = COMMENT.sub("", statement)[:-1].split("(", 1)
        result = variable(head)
        given = [variable(p) for p in split(arguments, ",") if p.strip() != "void"]
        found.functions[result.name] = Function(result.name, result.type, given, doc, header)
