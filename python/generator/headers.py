"""Reads the headers: their functions, structs and enums, each with its comment."""
import os
import re
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


COMMENT = re.compile(r"/\*.*?\*/", re.S)
MACRO = re.compile(r"^#(?:.*\\\n)*.*$|\bSB_API\b|\bSB_PRINTF\([^)]*\)", re.M)
INLINE = re.compile(r"static inline [^;{]*\{.*?\n\}", re.S)
STRUCT = re.compile(r"(?:typedef )?(struct|enum)\s*(\w*)\s*{(.*)}\s*(\w*)$", re.S)


def prose(comment):
    """The text of a C comment, without its stars."""
    first, *lines = [re.sub(r"^\s*\* ?", "", line) for line in comment[2:-2].split("\n")]
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join([first.strip(), *(line[indent:].rstrip() for line in lines)]).strip()


def split(text, separator):
    """The parts between separators outside all brackets and comments."""
    parts, depth, start = [], 0, 0
    for token in re.finditer(r"/\*.*?\*/|[(){}\[\]]|" + separator, text, re.S):
        depth += (token[0] in "({[") - (token[0] in ")}]")
        if token[0] == separator and depth == 0:
            parts.append(text[start : token.start()])
            start = token.end()
    return parts + [text[start:]]


def declarations(text):
    """[comment, declaration] of a header or a struct. The comment stands above, for a group without
    empty lines, or behind."""
    result, shared = [], ""
    for piece in split(text, ";"):
        behind = re.match(r" *(/\*.*?\*/)", piece, re.S)
        if behind and result:
            result[-1][0] = prose(behind[1])
            piece = piece[behind.end():]
        shared = "" if re.match(r"\s*\n\s*\n", piece) else shared
        while above := re.match(r"\s*(/\*.*?\*/)", piece, re.S):
            shared, piece = prose(above[1]), piece[above.end():]
        result.append([shared, piece.strip()])
    return result[:-1]


def variable(text, doc=""):
    text = " ".join(COMMENT.sub("", text).split())
    if "(*" in text or text == "...":
        found = re.search(r"\(\*(\w+)\)", text)
        return Variable("function" if found else text, found[1] if found else "more", "", doc)
    kind, name, array = re.match(r"(.*?)([A-Za-z_]\w*)((?:\[[^\]]*\])*)$", text).groups()
    return Variable(kind.strip().replace("* ", "*"), name, array, doc)


def fields(body):
    for doc, declaration in declarations(body):
        first, *others = split(COMMENT.sub("", declaration), ",")
        made = variable(first, doc)
        yield made
        yield from (variable(made.type.rstrip("*") + " " + other, doc) for other in others)


def members(body):
    """The values of an enum by their names."""
    values, following = {}, 0
    for piece in split(COMMENT.sub("", body), ","):
        name, _, value = piece.partition("=")
        if name.strip():
            values[name.strip()] = following = eval(value.replace("/", "//"), {}, values) if value else following
            following += 1
    return values


def texts(include, header, seen):
    """(header, text) of each header that this one includes, and of itself, without preprocessor lines."""
    if header not in seen:
        seen.add(header)
        text = (Path(include) / header).read_text()
        for inner in re.findall(r'^#include "(.*)"', text, re.M):
            beside = os.path.normpath(os.path.join(os.path.dirname(header), inner))
            yield from texts(include, beside if (Path(include) / beside).exists() else inner, seen)
        yield header, MACRO.sub("", text)


def read(include, header="softback.h"):
    found = Headers({}, {}, {}, {})
    for where, text in texts(include, header, set()):
        for doc, declaration in declarations(INLINE.sub(";", text)):
            read_declaration(found, where, doc, declaration)
    return found


def read_declaration(found, header, doc, text):
    struct = STRUCT.match(text)
    if struct:
        kind, tag, body, name = struct.groups()
        if kind == "struct":
            found.structs[name or tag] = list(fields(body))
            found.opaque.pop(name or tag, None)
        else:
            values = members(body)
            found.enums[name or tag or next(iter(values))] = values
    elif text.startswith("typedef struct"):
        if text.split()[-1] not in found.structs:
            found.opaque[text.split()[-1]] = True
    elif re.match(r"typedef \w+ \w+(, \w+)*$", text):
        _, base, *aliases = text.replace(",", "").split()
        found.structs.update(dict.fromkeys(aliases, found.structs[base]))
    elif text.endswith(")") and not text.startswith("typedef"):
        head, arguments = COMMENT.sub("", text)[:-1].split("(", 1)
        result = variable(head)
        given = [variable(p) for p in split(arguments, ",") if p.strip() != "void"]
        found.functions[result.name] = Function(result.name, result.type, given, doc, header)
