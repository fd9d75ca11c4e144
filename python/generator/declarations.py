"""Writes softback/_declarations.py: the constants, structs and functions of the headers for ctypes."""
import re
from os.path import commonprefix

from .headers import Variable

NUMBERS = {"int": "c_int", "bool": "c_bool", "double": "c_double", "float": "c_float", "size_t": "c_size_t",
           "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64", "uint64_t": "c_uint64"}
NO_OBJECTS = {"sb_tensor", "sb_model", "sb_communicator", "sb_loaded"}
CTYPES = NUMBERS | {"char": "c_char", "void": "None"}
# The functions of convert.py that make these types of C.
FORMS = {"sb_tensor *": "tensor", "sb_mask *": "mask", "sb_model *": "model", "sb_source *": "source",
         "sb_device *": "device", "char *": "text", "char *const *": "texts", "sb_tensor **": "out"}
# Names of arguments in PyTorch and NumPy, which functions with ours take, too.
ALIASES = {"dim": "axis", "keepdim": "keep", "keepdims": "keep", "dim0": "axis_a", "dim1": "axis_b"}

HEAD = '''"""The headers of softback for ctypes. Made by python/generate.py; do not edit."""
from ctypes import *

from .structure import Handle, Structure

VERSION = "{}"
ALL = {}
ALIASES = {}
'''


def plain_type(kind):
    return re.sub(r"\bconst\b|\*", "", kind).strip()


def constant(headers, name):
    return next((values[name] for values in headers.enums.values() if name in values), name)


def ctype(headers, variable):
    """The type of a parameter, a field or a result."""
    kind, is_open = variable.type.removeprefix("const "), variable.array.startswith("[]")
    if variable.type == "const char *":
        name = "c_char_p"
    elif "*" in kind or kind not in {*CTYPES, *headers.structs, *headers.enums} or is_open:  # a function's type, too
        name = "c_void_p"
    else:
        name = CTYPES.get(kind) or ("c_int" if kind in headers.enums else kind)
    return f"{name} * {constant(headers, variable.array[1:-1])}" if variable.array and not is_open else name


def objects_of(headers):
    """The structs that Python has as classes of objects, which C makes and frees."""
    freed = {f.rpartition("_")[0] for f in headers.functions if re.search("_(free|release|close|init)$", f)}
    return {name for name in headers.structs if name in freed - NO_OBJECTS}


def argument_type(headers, p):
    """The type of a parameter: pointers to objects and structs are checked, those to tensors by convert.py."""
    plain, one = plain_type(p.type), p.type.count("*") == 1 and not p.array
    if one and plain in objects_of(headers) and f"{plain}_init" not in headers.functions:
        return f'Handle("{plain}"{", changes=False" * p.type.startswith("const ")})'
    return f"POINTER({plain})" if one and headers.structs.get(plain) else ctype(headers, p)


def form(headers, kind):
    """How a value of Python becomes one of this type: a function of convert.py, and its first argument.
    ("", "") is as it is, None is unknown."""
    plain, borrowed = plain_type(kind), kind.removeprefix("const ")
    if borrowed in FORMS and kind != "char *":
        return FORMS[borrowed], ""
    if kind in headers.enums:
        return "choice", f'"{kind}"'
    if headers.structs.get(plain) and kind in (plain, f"const {plain} *", "sb_random *", "sb_plateau *"):
        return "value", plain
    return ("", "") if kind in NUMBERS else None


def field_form(headers, struct, field):
    """The same of a field; numbers of options stand for themselves or, where they are 0, for a default."""
    if field.type == "double" and struct.endswith(("_options", "_schedule", "_group")):
        return "number", ""
    if field.type.count("*") == 1 and plain_type(field.type) in {"sb_communicator"} | objects_of(headers):
        return "handle", f'"{plain_type(field.type)}"'
    return form(headers, field.type + field.array) or ("", "")


def short_names(values):
    """The members of an enum without the words that all of them begin with: SB_F32 is "f32"."""
    common = commonprefix(list(values)).rpartition("_")[0] + "_"
    return {name[len(common):].lower(): value for name, value in values.items()}


def members(headers):
    """The members of enums in Python: short names as texts, and constants as numbers."""
    return {member: f'"{short}"' if enum.startswith("sb_") else str(value) for enum, values in headers.enums.items()
            for (member, value), short in zip(values.items(), short_names(values))}


def block(head, lines, tail):
    return ["", head, *(f"    {line}," for line in lines), tail]


def write(headers, version):
    enums = {name: values for name, values in headers.enums.items() if name.startswith("sb_")}
    lines = [HEAD.format(version, constant(headers, "SB_ALL"), ALIASES)]
    lines += block("MEMBERS = {", (f'"{name}": {shown!r}' for name, shown in members(headers).items()), "}")
    lines += block("ENUMS = {", (f'"{name}": {short_names(values)}' for name, values in enums.items()), "}")
    for name, fields in headers.structs.items():
        if fields:
            forms = [(v.name, *field_form(headers, name, v)) for v in fields]
            lines += ["", *block(f"class {name}(Structure):\n    _fields_ = [", (f'    ("{v.name}", {ctype(headers, v)})' for v in fields), "    ]")]
            lines += block("    forms = {", (f'    "{n}": ("{f}", {x})' for n, f, x in forms if f), "    }")[1:]
    lines += block("# The type of the result, then those of the parameters.\nFUNCTIONS = {", (
        f'"{f.name}": ({", ".join([ctype(headers, Variable(f.returns, "")), *(argument_type(headers, p) for p in f.parameters)])},)'
        for f in headers.functions.values()), "}")
    return "\n".join([*lines, ""])
