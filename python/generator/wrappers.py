"""Writes softback/_functions.py: a function for each operation, a class for each object and layer, with
the comments of the headers as docstrings; and the stub with the names of all options."""
import keyword
import re
import textwrap

# Headers whose functions are bound by hand, and single ones.
BY_HAND = ("autograd/", "tensor/tensor.h", "tensor/error.h", "tensor/dtype.h",
           "ops/context.h", "tensor/communicator.h")
ONE_BY_HAND = {"sb_sample", "sb_vocabulary_encode", "sb_decoded_free", "sb_evaluate", "sb_trainer_new",
               "sb_model_load", "sb_model_free", "sb_tape_draw", "sb_mask_text", "sb_vocabulary_retain"}
PREDICATES = {"sb_documents_begins", "sb_documents_ends"}
CLASSES = {"seq2seq": "Seq2Seq", "kv_cache": "KVCache", "safetensors": "SafeTensors"}
DEFAULTS = {"epsilon": "None", "base": "None", "keep": "False", "reduction": '"mean"',
            "activation": '"identity"', "temperature": "1.0", "start": "0", "seed": "0", "bias": "True",
            "rotary": "False", "crosses": "False", "cut": '"files"', "kind": '"layer"'}
OPTIONAL = {"mask", "tied", "shared", "memory", "lengths", "weights", "plateau"}
REDUCTIONS = {"sb_sum", "sb_mean", "sb_max", "sb_argmax"}
NUMBERS = {"int", "int32_t", "uint32_t", "int64_t", "uint64_t", "size_t", "double", "float", "bool"}
# One parameter of Python for one of C, for two of them, and results that C writes to a pointer.
ONE = {"sb_tensor *": "_to.tensor({})", "const sb_tensor *": "_to.tensor({})", "sb_mask *": "_to.mask({})",
       "const char *": "_to.text({})", "const sb_model *": "_to.model({})",
       "const sb_source *": "_to.source({})", "const sb_device *": "_to.device({})"}
TWO = {("int", "const int64_t *"): "*_to.sizes({}, c_int64)", ("int", "const int *"): "*_to.sizes({}, c_int)",
       ("const char *", "size_t"): "*_to.sized({})", ("sb_tensor *const[]", "int"): "*_to.tensors({})", ("const int32_t *", "int64_t"): "*_to.ids({})"}
OUT = {"sb_tensor **": ("c_void_p()", "_to.result({}.value)"), "double *": ("c_double()", "{}.value"),
       "sb_tensor *[]": ("(c_void_p * len(lengths))()", "list(map(_to.result, {}))"),
       "char *[]": ("(c_void_p * len({}))()", "list(map(_to.owned_text, {}))"),
       "sb_decoded[]": ("(sb_decoded * len({}))()", "_to.decoded({})")}


def class_name(name):
    plain = name.removeprefix("sb_")
    return CLASSES.get(plain) or "".join(word.capitalize() for word in plain.split("_"))


def python_name(name):
    return name + "_" if keyword.iskeyword(name) or name == "self" else name


def plain_type(kind):
    return re.sub(r"\bconst\b|\*", "", kind).strip()


class Binding:
    """One C function in Python; `bound` is False where a type has no form there."""

    def __init__(self, headers, objects, function, owner=None, made=None):
        self.headers, self.objects, self.f, self.owner, self.made = headers, objects, function, owner, made
        self.arguments, self.signature, self.before, self.outs = [], [], [], []
        self.options, self.texts, self.bound = None, None, function.name not in ONE_BY_HAND
        parameters = list(function.parameters)
        if owner:
            parameters.pop(0)
            self.arguments.append("self")
        while parameters and self.bound:
            self.take(parameters)
        for i in range(len(self.signature)):  # no default before a parameter without one
            if any("=" not in later for later in self.signature[i:]):
                self.signature[i] = self.signature[i].split("=")[0]
        result = plain_type(function.returns)
        self.bound = self.bound and ("*" not in function.returns or result in objects or function.returns in (
            "sb_tensor *", "sb_mask *", "const char *", "char *") or result in headers.structs)

    @property
    def names(self):
        return [shown.split("=")[0] for shown in self.signature]

    def may_be_null(self, p):
        if "*" not in p.type or "sb_mask" in self.f.returns:
            return False
        said = re.search(rf"\b{p.name}\b(\s*\([^)]*\))?\s*(or|may be|unless|is)\s+NULL", self.f.doc)
        return said or p.name in OPTIONAL or p.type.endswith(("communicator *", "options *", "attending *"))

    def accept(self, p, expression, default=None):
        name = python_name("shape" if p.name == "dim" else p.name)
        self.signature.append(name + (f"={default}" if default else ""))
        self.arguments.append(expression.format(name))

    def out(self, name, maker, shown, passed="byref({})"):
        name += "_" if name in self.names else ""
        self.before.append(f"{name} = " + maker.format(self.texts))
        self.arguments.append(passed.format(name))
        self.outs.append(shown.format(name))

    def take(self, rest):
        """Consumes the parameters of C that are one parameter of Python."""
        p = rest.pop(0)
        full, kind = p.type + p.array, plain_type(p.type)
        two = (full, rest[0].type) if rest else None
        default = None if "*" in p.type else DEFAULTS.get(p.name)
        if self.may_be_null(p) and all(q.name in DEFAULTS or self.may_be_null(q) for q in rest):
            default = "None"
        by_value = "*" not in p.type and not p.array
        if p.name == "axis" and self.f.name in REDUCTIONS:
            self.accept(p, "_to.every({})", "None")
        elif two in TWO:
            after = rest.pop(0)
            self.accept(after if two[0] == "int" else p, TWO[two])
        elif p.name == "weights" and (p.array or kind.endswith("_weights")):
            self.arguments.append("None")  # an array for each layer
        elif full in ONE:
            self.accept(p, ONE[full], default)
        elif full == "const char *const *":
            self.texts = p.name
            self.accept(p, "_to.texts({})")
        elif self.texts and p.name in ("n", "count"):
            self.arguments.append(f"len({self.texts})")
        elif kind in NUMBERS and by_value:
            self.accept(p, "_to.number({})" if default == "None" else "{}", default)
        elif kind in self.headers.enums and by_value:
            self.accept(p, f'_to.choice("{kind}", {{}})', default)
        elif kind in self.objects and full.count("*") == 1 and not p.array:
            self.accept(p, f"_to.instance({{}}, {class_name(kind)})", default)
        elif kind == "sb_communicator":
            self.accept(p, "{}", "None")
        elif full in OUT and (self.texts or "lengths" in self.names if p.array else
                              f"*{p.name}" in self.f.doc or p.name == "weights"):  # it writes one
            self.out(p.name, *OUT[full], "{}" if p.array else "byref({})")
        elif kind in self.headers.structs:
            self.take_struct(p, kind, rest)
        else:
            self.bound = False

    def take_struct(self, p, kind, rest):
        pointers = [v.type for v in self.headers.structs[kind] if "*" in v.type]
        if "*" not in p.type and not p.array:
            self.accept(p, f"_to.value({kind}, {{}})")
        elif kind in ("sb_random", "sb_plateau", "sb_schedule", "sb_trainer_state"):
            self.accept(p, f"_to.reference({kind}, {{}})", "None" if p.name == "plateau" else None)
        elif "const" not in p.type and (self.texts if p.array else not rest):
            many = p.array
            self.out(p.name, f"({kind} * len({{}}))()" if many else f"{kind}()",
                     "list({})" if many else "{}", "{}" if many else "byref({})")
        elif p.type.endswith(("options *", "attending *")) and all(t.startswith(("sb_", "const sb_", "void"))
                                                                   for t in pointers):
            if sum(q.type.endswith(("options *", "attending *")) for q in self.f.parameters) > 1:
                name = python_name(p.name)
                self.accept(p, f'{name} and _to.Options({kind}, {name}, "{name}")', "None")
            else:
                self.options = kind
                self.arguments.append("given")
        else:
            self.bound = False

    def lines(self, name):
        """The function's source, not indented."""
        lines = [f"def {name}({self.head(['**option'])}):", *self.docstring()]
        lines += [f"    {line}" for line in self.before]
        if self.options:
            lines.append(f'    given = _to.Options({self.options}, option, "{self.made or name}")')
        call = f"_c.{self.f.name}({', '.join(self.arguments)})"
        return lines + ["    " + line for line in self.result_lines(name, call)]

    def head(self, options):
        """The parameters."""
        own = ["self"] if self.owner or self.made else []
        return ", ".join(own + self.signature + (options if self.options else []))

    def docstring(self):
        doc = self.f.doc.replace("\\", "\\\\")
        if self.options:
            fields = self.headers.structs[self.options]
            doc += "\n\nOptions\n\n" + "\n".join(f"  {v.name}: {v.doc}".rstrip(": ") for v in fields)
        quoted = textwrap.indent(doc, "    ").strip()
        return [f'    """{quoted}{" " if quoted.endswith(chr(34)) else ""}"""'] if doc else []

    def again(self, name):
        given = [("self." if self.owner else "") + name, *self.names] + ["**option"] * bool(self.options)
        return f"_to.retry({', '.join(given)})"

    def result_lines(self, name, call):
        kind, plain, outs = self.f.returns, plain_type(self.f.returns), ", ".join(self.outs)
        kept = f"[{', '.join(self.names)}]"
        if self.made and self.owner:
            return [f"self.prepare({kept})", f"_to.check({call})"]
        if self.made:
            return [f"self.take({call}, {kept})"]
        one = {"const char *": "_to.string({})", "char *": "_to.owned_text({})"}.get(kind, "{}")
        if kind == "sb_mask *":
            return [f"return Mask({call[:-1].replace('(', ', ', 1).rstrip(', ')})"]
        if kind == "sb_tensor *" and "without a message" not in self.f.doc:
            made = ("given.results(c)" if self.options else
                    "_to.owned(c)" if self.f.name == "sb_safetensors_tensor" else "_to.result(c)")
            return [f"c = {call}", "if c is None:", f"    return {self.again(name)}",
                    f"return {made}{', ' * bool(outs)}{outs}"]
        if kind == "bool" and self.f.header == "ops/ops.h":
            return [f"if not {call}:", f"    return {self.again(name)}", f"return {outs}"]
        if kind == "bool" and self.f.name not in PREDICATES:
            return [f"_to.check({call})"] + [f"return {outs}"] * bool(outs)
        if kind == "const sb_batch *":
            return [f"return _to.batch(Batch, {call}, self)"]
        if plain in self.objects:
            borrowed = self.owner and not re.search(r"freed|caller owns", self.f.doc)
            form = f"borrow({{}}, {{}}, self)" if borrowed else f"adopt({{}}, {{}}, {kept})"
            return ["return _to." + form.format(class_name(plain), call)]
        if kind == "sb_tensor *":
            one = "_to.found({})"
        elif kind in self.headers.enums:
            one = f'_to.name_of("{kind}", {{}})'
        elif kind == f"const {plain} *" and plain in self.headers.structs:
            one = f"_to.contents({plain}, {{}})"
        return [call if kind == "void" else "return " + one.format(call)]

    def stub(self, name):
        kind = plain_type(self.f.returns)
        result = {"sb_tensor": "Tensor", "sb_mask": "Mask", "char": "str"}.get(
            kind, class_name(kind) if kind in self.objects else "Any")
        result = "None" if self.made else "Any" if self.outs or self.options else result
        options = self.options and [f"{n}=..." for n in dict.fromkeys(self.option_names(self.options))]
        return f"def {name}({self.head(['*', *(options or [])])}) -> {result}: ..."

    def option_names(self, struct):
        for v in self.headers.structs[struct]:
            yield v.name
            if v.type in self.headers.structs:
                yield from self.option_names(v.type)


def write(headers, objects):
    """The text of _functions.py, its stub, and the functions that have no Python form."""
    owners, single, left = {name: [] for name in objects}, [], []
    for f in headers.functions.values():
        first, made = plain_type(f.parameters[0].type) if f.parameters else "", plain_type(f.returns)
        if f.header.startswith(BY_HAND):
            continue
        if made in owners and (f.name in (made + "_new", "sb_trainer_for") or first not in owners
                               or not f.name.startswith(first + "_") and "*" in f.returns):
            owners[made].append((f, None))
        elif first in owners and f.parameters[0].type.count("*") == 1 and f.header != "ops/ops.h":
            owners[first].append((f, first))
        else:
            single.append(f)
    code, stubs, names = [], [], []
    for f in single:
        binding, name = Binding(headers, objects, f), f.name.removeprefix("sb_")
        if binding.bound:
            names.append(name)
            code += ["", "", *binding.lines(name)]
            stubs.append(binding.stub(name))
        elif f.name not in ONE_BY_HAND:
            left.append(f.name)
    for name, members in owners.items():
        if members:
            names.append(class_name(name))
            write_class(headers, objects, name, members, code, stubs, left)
    methods = [n for n in names if "sb_" + n in headers.functions and
               headers.functions["sb_" + n].header == "ops/ops.h" and
               [p.type + p.array for p in headers.functions["sb_" + n].parameters][:1] == ["sb_tensor *"]]
    head = ['"""Operations, objects and layers. Made by python/generate.py; do not edit."""',
            "from ctypes import byref, c_double, c_int, c_int64, c_void_p", "",
            "from . import convert as _to", "from ._declarations import *", "from .library import c as _c",
            "from .objects import Layer, Object", "from .tensors import Mask, Tensor", "",
            f"__all__ = {names}".replace("'", '"')]
    tail = ["", "", f"for _name in {methods}:", "    setattr(Tensor, _name, globals()[_name])", ""]
    stub_head = ["# Made by python/generate.py; do not edit.", "from typing import Any", "",
                 "from .objects import Object", "from .tensors import Mask, Tensor", ""]
    return "\n".join(head + code + tail), "\n".join(stub_head + stubs + [""]), left


def write_class(headers, objects, name, members, code, stubs, left):
    layer = f"{name}_init" in headers.functions
    lines = [f"struct = {name}"] if layer else []
    stubs.append(f"class {class_name(name)}(Object):")
    for f, owner in members:
        short = f.name.removeprefix(name + "_").removeprefix("sb_")
        if short in ("free", "release", "close"):
            lines.append(f"free = _c.{f.name}")
            continue
        make = short in ("new", "open", "init") or f.name == "sb_trainer_for"
        binding = Binding(headers, objects, f, owner, class_name(name) if make else None)
        if not binding.bound:
            left += [f.name] * (f.name not in ONE_BY_HAND)
            continue
        short = "__init__" if make else "__call__" if short == "forward" else python_name(
            short.removesuffix("_new"))
        static = [] if owner or make else ["@staticmethod"]
        lines += ["", *static, *binding.lines(short)]
        stubs += [f"    {line}" for line in [*static, binding.stub(short)]]
    stubs += ["    ..."] * stubs[-1].endswith(":")
    body = textwrap.indent("\n".join(lines), "    ").split("\n")
    code += ["", "", f"class {class_name(name)}({'Layer' if layer else 'Object'}):", *body]
