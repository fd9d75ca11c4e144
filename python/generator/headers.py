"""Reads the headers: their functions, structs and enums, each with its comment."""
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


COMMENT = re.compile(r"/\*.*?\*/", re.S)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
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


def preprocessed(include, header):
    """(header, text) of each run of lines that comes from a header below `include`."""
    command = ["cc", "-std=c17", "-E", "-C", "-I", str(include), "-x", "c", "-"]
    output = subprocess.run(command, input=f"#include <{header}>\n", text=True, check=True,
                            capture_output=True).stdout
    runs, number = [], 0
    for line in output.split("\n"):
        marker = re.match(r'# (\d+) "(.*?)"', line)
        if marker:
            path = Path(marker[2])
            inside = path.is_absolute() and path.is_relative_to(include)
            here = os.path.normpath(path.relative_to(include)) if inside else None
            runs += [[here, ""]] if not runs or runs[-1][0] != here else []
            if int(marker[1]) < number:  # a macro of a system header broke the line
                runs[-1][1] = runs[-1][1].removesuffix("\n")
            number = int(marker[1])
        elif runs:
            runs[-1][1] += line + "\n"
            number += 1
    return [run for run in runs if run[0]]


def read(include, header="softback.h"):
    found = Headers({}, {}, {}, {})
    for where, text in preprocessed(Path(include).resolve(), header):
        for doc, declaration in declarations(ATTRIBUTE.sub("", INLINE.sub(";", text))):
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
