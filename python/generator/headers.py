"""Reads the headers: their functions, structs and enums, each with its comment."""
import re
from collections import namedtuple

# A parameter, a field, or what a function returns: `const char *text`, `int64_t dim[]` with the array "[]".
Variable = namedtuple("Variable", "type name array doc", defaults=["", ""])
Function = namedtuple("Function", "name returns parameters doc header")
# Functions by their names; the comments that headers begin with; structs as lists of fields, none if opaque; enums as {member: value}, where an
# enum without a name has that of its first member.
Headers = namedtuple("Headers", "functions structs enums comments")

COMMENT = re.compile(r"/\*.*?\*/", re.S)
MACRO = re.compile(r"^#(?:.*\\\n)*.*$|\s+SB_PRINTF\([^)]*\)", re.M)
COMMA = re.compile(r",(?![^(]*\))")  # not one of a function pointer's parameters
# Every declaration of the headers has one of these forms.
DECLARATION = r"""SB_API (?P<function>[^;]*);
    |(?:typedef )?(?P<kind>struct|enum) ?(?P<tag>\w*)\s*\{(?P<body>.*?)\} ?(?P<name>\w*);
    |typedef struct \w+ (?P<opaque>\w+);
    |typedef (?P<base>sb_\w+) (?P<aliases>[\w, ]+);"""


def prose(comment):
    """The text of a C comment, without its stars."""
    first, *lines = [re.sub(r"^\s*\* ?", "", line) for line in comment[2:-2].split("\n")]
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join([first.strip(), *(line[indent:].rstrip() for line in lines)]).strip()


def documented(declaration, text):
    """Each declaration with its comment, which stands behind it, or above, for a group without empty
    lines."""
    above = ""
    item = rf"(?P<above>/\*.*?\*/)|(?P<gap>\n\s*\n)|(?:{declaration})(?: *(?P<behind>/\*.*?\*/))?"
    for found in re.finditer(re.sub(r"\n +", "", item), text, re.S):
        if found["above"] or found["gap"]:
            above = prose(found["above"] or "/**/")
        else:
            yield prose(found["behind"] or "/**/") or above, found


def variable(text, doc=""):
    text = " ".join(COMMENT.sub("", text).split())
    if pointed := re.search(r"\(\*(\w+)\)", text):
        return Variable("function", pointed[1], "", doc)
    kind, name, array = re.match(r"(.*?)([A-Za-z_]\w*)((?:\[[^\]]*\])*)$", text).groups()
    return Variable(kind.strip().replace("* ", "*"), name, array, doc)


def fields(body):
    for doc, found in documented(r"(?P<field>[^\s/;][^;]*);", body):
        first, *others = COMMA.split(found["field"])
        made = variable(first, doc)
        yield made
        yield from (variable(made.type.rstrip("*") + " " + other, doc) for other in others)


def members(body):
    """The values of an enum by their names."""
    values, following = {}, 0
    for name, value in re.findall(r"(\w+)(?: = ([^,\n]+))?", COMMENT.sub("", body)):
        values[name] = eval(value.replace("/", "//"), {}, values) if value else following
        following = values[name] + 1
    return values


def texts(header, seen):
    """The path and the text of each header that this one includes, and of itself, without macros."""
    if header not in seen:
        seen.add(header)
        text = header.read_text()
        for inner in re.findall(r'^#include "(.*)"', text, re.M):
            yield from texts((header.parent / inner).resolve(), seen)
        yield header, MACRO.sub("", text)


def read(include):
    found = Headers({}, {}, {}, {})
    for header, text in texts(include / "softback.h", set()):
        found.comments[header.relative_to(include).as_posix()] = prose(COMMENT.match(text)[0])
        for doc, declaration in documented(DECLARATION, text):
            read_declaration(found, header.relative_to(include).as_posix(), doc, declaration)
    return found


def read_declaration(found, header, doc, declared):
    if declared["function"]:
        head, arguments = COMMENT.sub("", declared["function"])[:-1].split("(", 1)
        result = variable(head)
        given = [variable(p) for p in COMMA.split(arguments) if p.strip() not in ("void", "...")]
        found.functions[result.name] = Function(result.name, result.type, given, doc, header)
    elif declared["kind"] == "struct":
        name = declared["name"] or declared["tag"]
        found.structs.pop(name, None)  # behind those that it has
        found.structs[name] = list(fields(declared["body"]))
    elif declared["kind"]:
        values = members(declared["body"])
        found.enums[declared["name"] or declared["tag"] or next(iter(values))] = values
    elif declared["opaque"]:
        found.structs.setdefault(declared["opaque"], [])
    else:
        found.structs.update(dict.fromkeys(declared["aliases"].split(", "), found.structs[declared["base"]]))
