"""Writes softback/_declarations.py: the constants, structs and functions of the headers for ctypes."""
import re
from os.path import commonprefix

from .headers import Variable

NUMBERS = {"int": "c_int", "bool": "c_bool", "double": "c_double", "float": "c_float",
           "char": "c_char", "size_t": "c_size_t", "int32_t": "c_int32", "uint32_t": "c_uint32",
           "int64_t": "c_int64", "uint64_t": "c_uint64", "void": "None"}


def ctype(headers, variable):
    """The type of a parameter, a field or a result."""
    kind = re.sub(r"\bconst\b", "", variable.type).strip()
    count = variable.array[1:-1]
    if kind == "char *":
        return "c_char_p" if "const" in variable.type else "c_void_p"
    if kind.endswith("*") or kind in ("function", "sb_function") or variable.array == "[]":
        return "c_void_p"
    name = NUMBERS.get(kind) or ("c_int" if kind in headers.enums else kind)
    constants = {k: v for values in headers.enums.values() for k, v in values.items()}
    return f"{name} * {constants.get(count, count)}" if count else name


def short_names(values):
    """The members of an enum without the words that all of them begin with: SB_F32 is "f32"."""
    common = commonprefix(list(values)).rpartition("_")[0] + "_"
    return {name[len(common):].lower(): value for name, value in values.items()}


def write(headers, version):
    lines = ['"""The headers of softback for ctypes. Made by python/generate.py; do not edit."""',
             "from ctypes import (" + ", ".join(sorted(set(NUMBERS.values()) - {"None"})) + ",",
             "                    c_char_p, c_void_p)", "", "from .structure import Structure", "",
             f'VERSION = "{version}"', "", "CONSTANTS = {"]
    enums = {name: values for name, values in headers.enums.items() if name.startswith("sb_")}
    constants = {k[3:].lower(): v for name, values in headers.enums.items()
                 if name not in enums for k, v in values.items()}
    lines += [f'    "{name}": {value},' for name, value in constants.items()] + ["}", "", "ENUMS = {"]
    lines += [f'    "{name}": {short_names(values)},' for name, values in enums.items()] + ["}"]
    for name, fields in headers.structs.items():
        lines += ["", "", f"class {name}(Structure):", "    _fields_ = ["]
        lines += [f'        ("{v.name}", {ctype(headers, v)}),' for v in fields]
        lines += ["    ]", "    kinds = {"]
        lines += [f'        "{v.name}": "{v.type}",' for v in fields] + ["    }"]
    lines += ["", "# The type of the result, then those of the parameters.", "FUNCTIONS = {"]
    for f in headers.functions.values():
        types = [ctype(headers, v) for v in [Variable(f.returns, ""), *f.parameters] if v.type != "..."]
        lines.append(f'    "{f.name}": ({", ".join(types)},),')
    return "\n".join(lines + ["}", ""])
