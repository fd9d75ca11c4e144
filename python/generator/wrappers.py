"""Writes softback/_operations.py and softback/_objects.py: a Python function for each of C, and a class
for each object and layer, with the comments of the headers as docstrings; and stubs of their types."""
import keyword
import re
import textwrap

# Headers whose functions tensor.py, operation.py and models.py bind by hand.
BY_HAND = ("autograd/", "tensor/tensor.h", "tensor/error.h", "tensor/device.h",
           "tensor/dtype.h", "ops/context.h")
FUNCTIONS_BY_HAND = {"sb_sample", "sb_vocabulary_encode", "sb_decoded_free", "sb_evaluate",
                     "sb_trainer_new", "sb_model_load", "sb_model_free", "sb_tape_draw"}
PREDICATES = {"sb_documents_begins", "sb_documents_ends"}
CLASSES = {"seq2seq": "Seq2Seq", "kv_cache": "KVCache", "safetensors": "SafeTensors"}
DEFAULTS = {"epsilon": "None", "base": "None", "keep": "False", "reduction": '"mean"',
            "activation": '"identity"', "temperature": "1.0", "start": "0", "seed": "0", "bias": "True",
            "rotary": "False", "crosses": "False", "cut": '"files"', "kind": '"layer"'}
OPTIONAL = {"tied", "shared", "memory", "lengths", "weights"}
REDUCTIONS = {"sb_sum", "sb_mean", "sb_max", "sb_argmax"}
NUMBERS = {"int": "int", "int32_t": "int", "uint32_t": "int", "int64_t": "int", "uint64_t": "int",
           "size_t": "int", "double": "float", "float": "float", "_Bool": "bool"}


def class_name(name):
    plain = name.removeprefix("sb_")
    return CLASSES.get(plain) or "".join(word.capitalize() for word in plain.split("_"))


def python_name(name):
    return name + "_" if keyword.iskeyword(name) or name == "self" else name


def plain_type(kind):
    return re.sub(r"\bconst\b|\*", "", kind).strip()


class Binding:
    """One C function as a Python function or method; `bound` is False where a type has no form."""

    def __init__(self, headers, objects, function, owner=None):
        self.headers, self.objects, self.f, self.owner = headers, objects, function, owner
        self.arguments, self.signature, self.hints, self.before, self.outs = [], [], [], [], []
        self.options = self.hot = None
        self.bound, self.lists = True, []
        parameters = list(function.parameters)
        if owner:
            parameters.pop(0)
            self.arguments.append("self")
        while parameters and self.bound:
            self.take(parameters)
        for i, shown in enumerate(self.signature):
            if any("=" not in later for later in self.signature[i:]):
                self.signature[i] = shown.split("=")[0]
                self.hints[i] = self.hints[i].removesuffix(" = ...")
        plain = plain_type(function.returns)
        self.bound &= "*" not in function.returns or function.returns in (
            "sb_tensor *", "sb_mask *", "const char *", "char *") or (
            plain in objects or function.returns == f"const {plain} *" and plain in headers.structs)
        self.hot = not owner and not self.options and not self.outs and all(
            p.type == "sb_tensor *" or p.type in NUMBERS or p.type in headers.enums
            for p in function.parameters) and function.returns == "sb_tensor *"

    def optional(self, name):
        pattern = rf"\b{name}\b(\s*\([^)]*\))?\s*(or|may be|unless|is)\s+NULL"
        return name in OPTIONAL or re.search(pattern, self.f.doc) is not None

    def accept(self, name, expression, hint, default=None):
        name = python_name(name)
        self.signature.append(name if default is None else f"{name}={default}")
        self.hints.append(f"{name}: {hint}" + ("" if default is None else " = ..."))
        self.arguments.append(expression.format(name))

    def take(self, parameters):
        """Consumes the parameters of C that are one parameter of Python."""
        p = parameters.pop(0)
        kind, following = plain_type(p.type), parameters[0] if parameters else None
        default = DEFAULTS.get(p.name)
        if p.name == "axis" and self.f.name in REDUCTIONS:
            self.accept("axis", "_to.every({})", "int | None", "None")
        elif p.type == "int" and following and following.type in ("const int64_t *", "const int *"):
            parameters.pop(0)
            name = "shape" if following.name == "dim" else following.name
            size = "int" if following.type == "const int *" else "int64"
            self.accept(name, "*_to.sizes({}, c_%s)" % size, "Sequence[int]")
        elif p.type == "sb_tensor *const" and following and following.type == "int":
            parameters.pop(0)
            self.accept(p.name, "*_to.tensors({})", "Sequence[Array]")
        elif p.array == "[]" and p.name == "parts":
            self.out("parts", "(c_void_p * len(lengths))()", "list(map(_to.result, {}))", "{}")
        elif p.name == "weights" and (p.array or kind.endswith("_weights")):
            self.arguments.append("None")  # an array for each layer
        elif p.type in ("sb_tensor *", "const sb_tensor *") and not p.array:
            none = "None" if self.optional(p.name) and all(map(self.may_follow, parameters)) else None
            self.accept(p.name, "_to.tensor({})", "Array | None" if none else "Array", none)
        elif p.type == "sb_mask *":
            self.accept(p.name, "_to.mask({})", "Mask | None")
        elif p.type == "const char *const *":
            self.lists.append(p.name)
            self.accept(p.name, "_to.texts({})", "Sequence[str]")
        elif p.type == "int64_t" and self.lists and p.name in ("n", "count"):
            self.arguments.append(f"len({self.lists[-1]})")
        elif p.type == "const char *":
            self.accept(p.name, "_to.text({})", "str")
        elif p.type == "const int32_t *" and following and following.type == "int64_t":
            parameters.pop(0)
            self.accept(p.name, "*_to.ids({})", "Sequence[int]")
        elif p.type in ("char *", "sb_decoded") and p.array == "[]" and self.lists:
            maker = "c_void_p" if kind == "char" else kind
            shown = "list(map(_to.owned_text, {}))" if kind == "char" else "_to.decoded({})"
            self.out(p.name, f"({maker} * len({self.lists[-1]}))()", shown, "{}")
        elif kind in NUMBERS and "*" not in p.type and not p.array:
            number = "_to.number({})" if default == "None" else "{}"
            self.accept(p.name, number, NUMBERS[kind], default)
        elif kind in self.headers.enums and "*" not in p.type:
            self.accept(p.name, '_to.choice("%s", {})' % kind, "str", default)
        elif kind in self.objects and p.type.count("*") == 1 and not p.array:
            optional = all(map(self.may_follow, parameters)) and (
                self.optional(p.name) or kind == "sb_communicator")
            self.accept(p.name, "{}", class_name(kind), "None" if optional else None)
        elif kind == "sb_communicator" and p.type.count("*") == 1:
            self.accept(p.name, "{}", "None", "None")
        elif kind in ("sb_model", "sb_source") and p.type.startswith("const"):
            self.accept(p.name, "_to." + kind[3:] + "({})", "Any")
        elif kind in self.headers.structs:
            self.take_struct(p, kind, parameters)
        elif p.type in ("sb_tensor **", "double *") and not p.array:
            maker = "c_void_p()" if kind == "sb_tensor" else "c_double()"
            self.out(p.name, maker, "_to.result({}.value)" if kind == "sb_tensor" else "{}.value")
        else:
            self.bound = False

    def take_struct(self, p, kind, parameters):
        if p.type.count("*") == 0 and not p.array:
            self.accept(p.name, "_to.value(%s, {})" % kind, "Any")
        elif kind == "sb_random" or kind in ("sb_plateau", "sb_schedule", "sb_trainer_state"):
            self.accept(p.name, "_to.reference(%s, {})" % kind, "Any", "None")
        elif not p.type.startswith("const") and not p.array and not parameters:
            self.out(p.name, f"{kind}()", "{}")
        elif p.array == "[]" and not p.type.startswith("const") and self.lists:
            self.out(p.name, f"({kind} * len({self.lists[-1]}))()", "list({})", "{}")
        elif p.type == f"const {kind} *" and all("*" not in v.type or v.type in (
                "sb_tensor *", "sb_mask *", "sb_tensor **", "sb_kv_cache *", "sb_communicator *",
                "const sb_decoding_options *", "void *") for v in self.headers.structs[kind]):
            others = [q for q in self.f.parameters if q.type.endswith(("options *", "attending *"))]
            if len(others) > 1:
                name = python_name(p.name)
                self.accept(p.name, '{0} and _to.options(%s, {0}, "%s")' % (kind, name), "dict", "None")
            else:
                self.options = kind
                self.arguments.append("given")
        else:
            self.bound = False

    def out(self, name, maker, shown, passed="byref({})"):
        name = name if name not in self.signature else name + "_"
        self.before.append(f"{name} = {maker}")
        self.arguments.append(passed.format(name))
        self.outs.append(shown.format(name))

    def may_follow(self, p):
        return p.name in DEFAULTS or "*" in p.type and (self.optional(p.name) or "options" in p.name
                                                        or "sb_attending" in p.type)

    def needs(self):
        return "[" + ", ".join(s.split("=")[0] for s in self.signature) + "]"

    def lines(self, name):
        """The function's source, not indented."""
        signature = (["self"] if self.owner else []) + self.signature
        signature += ["**option"] if self.options else []
        body = [f"def {name}({', '.join(signature)}):", *self.docstring()]
        if self.hot:
            return body + self.hot_lines(name)
        body += [f"    {line}" for line in self.before]
        if self.options:
            body.append(f'    given = _to.options({self.options}, option, "{name}")')
        call = f"_c.{self.f.name}({', '.join(self.arguments)})"
        return body + ["    " + line for line in self.result_lines(name, call)]

    def docstring(self):
        doc = self.f.doc.replace("\\", "\\\\")
        if self.options:
            doc += "\n\nOptions\n\n" + "\n".join(
                textwrap.indent(f"{v.name}: {v.doc}".rstrip(": "), "  ")
                for v in self.headers.structs[self.options])
        indented = textwrap.indent(doc, "    ").strip()
        return [f'    """{indented}{" " if indented.endswith(chr(34)) else ""}"""'] if doc else []

    def hot_lines(self, name):
        """Without any call but those of C: where the cost of a call counts."""
        given, lines = [], []
        for p, shown in zip(self.f.parameters, self.signature):
            python = shown.split("=")[0]
            if p.type == "sb_tensor *":
                none = f"{python} is not None and " if "=None" in shown else ""
                lines += [f"    if {none}{python}.__class__ is not Tensor:",
                          f"        {python} = _to.tensor({python})"]
                given.append(f"{python} if {python} is None else {python}._c" if none
                             else f"{python}._c")
            else:
                given.append(self.arguments[len(given)])
        return lines + [f"    c = _{self.f.name}({', '.join(given)})", "    if c is None:",
                        f"        return _to.retry({', '.join([name] + [s.split('=')[0] for s in self.signature])})",
                        "    y = new(Tensor)", "    y._c = retain(c)", "    return y"]

    def again(self, name):
        given = [s.split("=")[0] for s in self.signature] + (["**option"] if self.options else [])
        return f"_to.retry({', '.join([('self.' if self.owner else '') + name] + given)})"

    def result_lines(self, name, call):
        kind, doc = self.f.returns, self.f.doc
        plain = plain_type(kind)
        if kind == "sb_tensor *" and "without a message" in doc:
            return [f"return _to.found({call})"]
        if kind == "sb_tensor *":
            make = "given.results(c)" if self.options else "_to.result(c)"
            if self.f.name == "sb_safetensors_tensor":
                make = "_to.owned(c)"
            shown = ", ".join([make] + self.outs)
            return [f"c = {call}", "if c is None:", f"    return {self.again(name)}", f"return {shown}"]
        if kind == "_Bool" and self.f.header == "ops/ops.h":
            return [f"if not {call}:", f"    return {self.again(name)}", f"return {', '.join(self.outs)}"]
        if kind == "_Bool" and self.f.name not in PREDICATES:
            return [f"_to.check({call})"] + ([f"return {', '.join(self.outs)}"] if self.outs else [])
        if kind == "const char *":
            return [f"return _to.string({call})"]
        if kind == "char *":
            return [f"return _to.owned_text({call})"]
        if plain in self.objects and "*" in kind:
            if self.owner and not re.search(r"freed|caller owns", doc):
                return [f"return _to.borrow({class_name(plain)}, {call}, self)"]
            return [f"return _to.adopt({class_name(plain)}, {call}, {self.needs()})"]
        if kind == "void":
            return [call]
        if kind in self.headers.enums:
            return [f'return _to.name_of("{kind}", {call})']
        if kind.endswith("*"):
            return [f"return _to.contents({plain}, {call})"]
        return [f"return {call}"]

    def returned(self):
        """The hint of the result."""
        kind = plain_type(self.f.returns)
        one = ("Tensor" if kind == "sb_tensor" else class_name(kind) if kind in self.objects else
               "str" if kind == "char" else NUMBERS.get(kind, "Any" if kind != "void" else "None"))
        if self.f.returns == "_Bool" and self.f.name not in PREDICATES:
            return "Any" if self.outs else "None"
        return "Any" if self.outs or self.options else one

    def stub(self, name):
        hints = (["self"] if self.owner else []) + self.hints
        if self.options:
            hints += ["*", *dict.fromkeys(self.option_hints(self.options))]
        return f"def {name}({', '.join(hints)}) -> {self.returned()}: ..."

    def option_hints(self, struct):
        for v in self.headers.structs[struct]:
            kind = plain_type(v.type)
            if kind in self.headers.structs and "*" not in v.type:
                yield f"{v.name}: Any = ..."
                yield from self.option_hints(kind)
            elif kind != "function" and v.type != "void *":
                hint = ("bool" if v.type == "sb_tensor **" else "Array" if kind == "sb_tensor" else
                        "Mask" if kind == "sb_mask" else "str" if kind in self.headers.enums else
                        NUMBERS.get(kind, "Any"))
                yield f"{v.name}: {hint} = ..."


def is_by_hand(f):
    return f.header.startswith(BY_HAND) or f.name in FUNCTIONS_BY_HAND


def is_operation(f):
    return f.header == "ops/ops.h" or f.header == "ops/mask.h"


def write_operations(headers, objects):
    """The text of _operations.py, its stub, and the functions that have no Python form."""
    code, stubs, names, left = [], [], [], []
    for f in filter(is_operation, headers.functions.values()):
        name = f.name.removeprefix("sb_")
        binding = Binding(headers, objects, f)
        if f.name == "sb_mask_text":
            continue
        if not binding.bound:
            left.append(f.name)
            continue
        names.append(name)
        if f.returns == "sb_mask *":
            arguments = ", ".join([f"_c.{f.name}", *binding.arguments])
            code += ["", "", f"def {name}({', '.join(binding.signature)}):", *binding.docstring(),
                     f"    return Mask({arguments})"]
            stubs.append(binding.stub(name).replace("-> Any", "-> Mask"))
            continue
        if binding.hot:
            code += ["", "", f"_{f.name} = _c.{f.name}"]
        code += ["", "", *binding.lines(name)] if not binding.hot else binding.lines(name)
        stubs.append(binding.stub(name))
    methods = [n for n in names if headers.functions["sb_" + n].parameters
               and headers.functions["sb_" + n].parameters[0].type == "sb_tensor *"
               and not n.startswith("mask_")]
    head = ['"""The operations of ops.h. Made by python/generate.py; do not edit."""',
            "from ctypes import byref, c_int, c_int64, c_void_p", "",
            "from . import convert as _to", "from ._declarations import *",
            "from .library import c as _c", "from .tensors import Mask, Tensor, new, retain", "",
            "__all__ = [" + ", ".join(f'"{n}"' for n in names) + "]"]
    tail = ["", "", f"for _name in {methods}:", "    setattr(Tensor, _name, globals()[_name])", ""]
    return "\n".join(head + code + tail), stub_text(stubs), left


def stub_text(stubs):
    return "\n".join(["# Made by python/generate.py; do not edit.", "from typing import Any, Sequence",
                      "", "from numpy.typing import ArrayLike", "",
                      "from .objects import Object", "from .tensors import Mask, Tensor", "", "Array = Tensor | ArrayLike", "",
                      *stubs, ""])


def write_objects(headers, objects):
    """The same for _objects.py: a class for each object and layer, and the remaining functions."""
    owners, functions, left = {name: [] for name in objects}, [], []
    for f in headers.functions.values():
        if is_by_hand(f) or is_operation(f):
            continue
        first = plain_type(f.parameters[0].type) if f.parameters else ""
        made = plain_type(f.returns)
        if f.name in (made + "_new", "sb_trainer_for") and made in owners:
            owners[made].append((f, None))
        elif first in owners and "*" in f.parameters[0].type and (
                f.name.startswith(first + "_") or made not in owners):
            owners[first].append((f, first))
        elif made in owners and "*" in f.returns:
            owners[made].append((f, None))
        else:
            functions.append(f)
    code, stubs, names = [], [], []
    for name, members in owners.items():
        if members:
            names.append(class_name(name))
            write_class(headers, objects, name, members, code, stubs, left)
    for f in functions:
        binding, name = Binding(headers, objects, f), f.name.removeprefix("sb_")
        if binding.bound and "..." not in [p.type for p in f.parameters]:
            names.append(name)
            code += ["", "", *binding.lines(name)]
            stubs.append(binding.stub(name))
        else:
            left.append(f.name)
    head = ['"""Objects, layers and models. Made by python/generate.py; do not edit."""', 
            "from ctypes import byref, c_double, c_int, c_int32, c_int64, c_void_p", "",
            "from . import convert as _to", "from ._declarations import *",
            "from .library import c as _c", "from .objects import Layer, Object", "",
            "__all__ = [" + ", ".join(f'"{n}"' for n in names) + "]"]
    return "\n".join(head + code + [""]), stub_text(stubs), left


def write_class(headers, objects, name, members, code, stubs, left):
    layer = name in headers.structs and f"{name}_init" in headers.functions
    lines, hints, free = [], [], None
    for f, owner in members:
        short = f.name.removeprefix(name + "_").removeprefix("sb_")
        short = "new" if f.name == "sb_trainer_for" else short
        if short in ("free", "release", "close") and len(f.parameters) == 1:
            free = f.name
            continue
        binding = Binding(headers, objects, f, owner)
        if not binding.bound or short == "retain":
            left.append(f.name)
            continue
        if short in ("new", "open") and not owner or short == "init":
            lines += constructor(binding, name, layer)
            hints.append(binding.stub("__init__").replace("(", "(self, " if not owner else "(", 1)
                         .rsplit(" ->", 1)[0].replace("(self, self", "(self") + " -> None: ...")
        elif not owner:
            short = python_name(short.removesuffix("_new"))
            lines += ["", "@staticmethod", *binding.lines(short)]
            hints += ["@staticmethod", binding.stub(short)]
        else:
            short = "__call__" if short == "forward" else python_name(short)
            lines += ["", *binding.lines(short)]
            hints.append(binding.stub(short))
    base = "Layer" if layer else "Object"
    code += ["", "", f"class {class_name(name)}({base}):"]
    if layer:
        code.append(f"    struct = {name}")
    if free:
        code.append(f"    free = _c.{free}")
    code += textwrap.indent("\n".join(lines), "    ").split("\n") if lines else []
    stubs += [f"class {class_name(name)}(Object):"] + [f"    {h}" for h in hints or ["..."]]


def constructor(binding, name, layer):
    signature = ["self"] + binding.signature + (["**option"] if binding.options else [])
    lines = ["", f"def __init__({', '.join(signature)}):", *binding.docstring()]
    if binding.options:
        lines.append(f'    given = _to.options({binding.options}, option, "{class_name(name)}")')
    call = f"_c.{binding.f.name}({', '.join(binding.arguments)})"
    if layer:
        return lines + [f"    self.prepare({binding.needs()})", f"    _to.check({call})"]
    return lines + [f"    self.take({call}, {binding.needs()})"]
