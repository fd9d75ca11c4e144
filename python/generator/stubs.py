"""Writes softback/__init__.pyi and _declarations.pyi: the types of all that the package has. What is made
by hand there, by_hand.pyi here has."""
import re
from pathlib import Path

from .declarations import ALIASES, NUMBERS, field_form, objects_of, plain_type, short_names

# Types of what convert.py makes arguments of.
FORMS = {"tensor": "TensorLike", "mask": "Mask", "model": "_Model", "source": "_Source", "device": "str",
         "text": "str", "texts": "Sequence[str]", "out": "bool", "number": "float", "handle": "Any"}


KINDS = dict.fromkeys(NUMBERS, "int") | {"bool": "bool", "double": "float", "float": "float"}


def argument(headers, form, kind, name=""):
    """The type of what an argument or an option may be, by the function of convert.py that takes it."""
    if form and form[0] == "choice":
        return "_DType" if kind == "sb_dtype" else kind
    if form and form[0] == "value":
        struct = plain_type(kind)
        fields = [v.name for v in headers.structs.get(struct, [])]
        return "None" if not fields else " | ".join([struct, "Mapping[str, Any]", *["str"] * ("kind" in fields), *["float"] * ("value" in fields)])
    if form and form[0]:
        return "_Path" if name.endswith("path") else FORMS[form[0]]
    return KINDS.get(kind, "Any")


def field(headers, struct, v):
    """The type of a field that is read."""
    form = field_form(headers, struct, v)[0]
    if form in ("tensor", "out", "choice", "text"):
        return {"tensor": "Tensor", "out": "Tensor", "choice": v.type, "text": "str"}[form]
    plain = plain_type(v.type)
    kind = KINDS[plain] if plain in KINDS else plain if form == "value" and "*" not in v.type else "Any"
    return "str" if v.array and v.type == "char" else f"list[{kind}]" if v.array else kind


def default(headers, struct, v):
    """What C's zero stands for, as Python writes it; None where that is no single value. Fields that share a comment, such as
    "0: 0.9 and 0.98", have places in it."""
    if members := headers.enums.get(v.type):
        said = re.search(r"default.*\b(SB_\w+)", v.doc)
        return repr([*short_names(members)][[*members].index(said[1]) if said else 0])
    if v.type in ("bool", "sb_tensor **"):
        return "False"
    place = [w.name for w in headers.structs[struct] if w.doc == v.doc].index(v.name)
    if said := re.search(r"\b(0:|default) (-?[\d.]+(?:e-?\d+)?)(?: and ([\d.]+))?(?=[;,]|\.(?!\d)|$| \((?![^)]*:))", v.doc):
        return said[3] if place and said[3] else said[2]
    return "None" if v.type not in NUMBERS or re.search(r"\b0:|\bdefault\b", v.doc) else "0"


def about(v):
    """The comment of an option."""
    return re.sub(r"(\bdefault )?\b0: ", "default: ", re.sub("^receives", "with True the call also returns", v.doc))


def options(headers, struct):
    """The keyword arguments for an option struct, with those of inner structs: each with its type and its default."""
    for v in headers.structs[struct]:
        if v.type not in ("function", "void *"):
            form = field_form(headers, struct, v)
            yield v, argument(headers, form, "float" if form[0] == "number" else v.type), default(headers, struct, v)
        yield from options(headers, v.type) if v.type.endswith(("_options", "_schedule")) else ()


def head(binding, name, first=None, kind=None):
    """The lines of a function's stub; twice where weights=True asks for a second result."""
    given = [first] if first else []
    rest = list(binding.signature.items())[1 if first == "self, /" else 0:]
    for n, default in rest:
        wide = " | None" if default == "None" else ""
        given.append(f"{n}: {binding.types[n]}{wide}" + (f" = {default}" if default else ""))
    if not binding.options:
        return [f"def {name}({', '.join(given)}) -> {kind or binding.kind()}: ..."]
    named = {v.name: f"{t} | None = {of}" for v, t, of in options(binding.headers, binding.options)}
    many, lines = binding.asks_weights(), []
    for asked in (False, True)[:1 + many]:
        if many:
            named["weights"] = f"Literal[{asked}]" + " = False" * (not asked)
        listed, made = (f"{n}: {t}" for n, t in named.items()), "tuple[Tensor, Tensor]" if asked else kind or binding.kind()
        lines += ["@overload"] * many + [f"def {name}({', '.join([*given, '*', *listed])}) -> {made}: ..."]
    return lines


def aliased(found):
    """The lines of a function that has arguments by other names: after those with a default, or instead of one without."""
    space, line = found.groups()
    for alias, own in ALIASES.items():
        argument = re.search(rf"(?<=[(, ]){own}(: [^=]*?)( = [\w-]+)?(?=, |\) ->)", line)
        if argument and argument[2]:
            line = line.replace(") ->", f"{', ' if '*, ' in line else ', *, '}{alias}{argument[1]}{argument[2]}) ->")
        elif argument:
            other = line.replace(argument[0], f"*, {alias}{argument[1]}")
            line = f"@overload\n{space}{line}\n{space}@overload\n{space}{other}"
    return space + line


def declarations(headers):
    lines = ['"""Enums and structs. Made by python/generate.py; do not edit."""', "from typing import Any, Literal, TypeAlias", "",
             "from . import Tensor", ""]
    lines += [f"{name}: TypeAlias = Literal[{', '.join(map(repr, short_names(values)))}]"
              for name, values in headers.enums.items() if name.startswith("sb_")]
    for name, found in headers.structs.items():
        if found:
            lines += ["", f"class {name}:", *(f"    {v.name}: {field(headers, name, v)}" for v in found)]
    return "\n".join([*lines, ""])


def package(functions, classes, methods):
    """functions: {name: binding}; classes: {name: (base, [(decorator, name, first, kind, binding)])}."""
    template, _, more = (Path(__file__).parent / "by_hand.pyi").read_text().partition("# Methods by hand.\n")
    added = dict(re.findall(r"^class (\w+):\n((?:    .*\n)+)", more, re.M))
    by_hand = set(re.findall(r"^def (\w+)", template, re.M))
    own = set(re.findall(r"^    def (\w+)", template.partition("# METHODS")[0], re.M))
    lines = [line for name, b in functions.items() if name not in by_hand for line in head(b, name)]
    inner = [f"    {line}" for name in methods if name not in own for line in head(functions[name], name, "self, /")]
    for name, (base, members) in classes.items():
        lines += ["", f"class {name}({base}):"]
        for static, short, first, kind, binding in members:
            if f"def {short}(" not in added.get(name, ""):
                lines += ["    @staticmethod"] * static + [f"    {line}" for line in head(binding, short, first, kind)]
        lines.append(added.get(name, ""))
    aliases = template.index("Random = ")
    text = template[:aliases].replace("# METHODS", "\n".join(inner)) + "\n".join(lines) + "\n\n" + template[aliases:]
    return re.sub(r"^( *)(def .*)", aliased, text, flags=re.M)
