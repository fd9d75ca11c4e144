"""Writes softback/_functions.py: a function for each operation, a class for each object and layer, with
the comments of the headers as docstrings; and its stub, which has the names of all options."""
import keyword
import re
import textwrap

from . import stubs
from .declarations import NUMBERS, form, members, objects_of, plain_type

# Headers whose functions are bound by hand, and single ones.
BY_HAND = ("autograd/", "tensor/tensor.h", "tensor/error.h", "tensor/dtype.h", "ops/context.h", "tensor/communicator.h")
ONE_BY_HAND = {"sb_sample", "sb_vocabulary_encode", "sb_decoded_free", "sb_evaluate", "sb_trainer_new",
               "sb_model_load", "sb_model_build", "sb_model_free", "sb_tape_draw", "sb_mask_text",
               "sb_vocabulary_retain", "sb_loaded_free", "sb_trainer_batch"}  # the last: its source may have freed it
CLASSES = {"seq2seq": "Seq2Seq", "kv_cache": "KVCache", "safetensors": "SafeTensors"}
DEFAULTS = {"epsilon": "None", "base": "None", "keep": "False", "reduction": '"mean"',
            "activation": '"identity"', "temperature": "1.0", "start": "0", "seed": "0", "bias": "True",
            "stream": '"user"', "rotary": "False", "crosses": "False", "cut": '"files"', "kind": '"layer"'}
OPTIONAL = {"mask", "tied", "shared", "memory", "lengths", "weights", "plateau"}
REDUCTIONS = {"sb_sum", "sb_mean", "sb_max", "sb_argmax"}
# Real operands of a function: what is no tensor has the dtype of one of the others. Functions that take whole numbers, too.
OPERANDS = "a", "b", "x", "weight", "bias", "gain", "branch", "target", "q", "k", "v"
LAYER_OPERANDS = "x", "memory", "branch"
ANY = {f"sb_{name}" for name in "reshape permute transpose slice split expand gather cast detach unfold to_ranks from_ranks".split()}
# One parameter of Python for two of C, and results that C writes to a pointer.
TWO = {("int", "const int64_t *"): "*_to.sizes({}, c_int64)", ("int", "const int *"): "*_to.sizes({}, c_int)",
       ("const char *", "size_t"): "(data := _to.text({0}, \"{0}\")), len(data)",
       ("sb_tensor *const[]", "int"): "(array := _to.tensors({})), len(array)",
       ("const int32_t *", "int64_t"): "*_to.sizes({}, c_int32)[::-1]"}
OUT = {"sb_tensor **": ("c_void_p()", "_to.result({}.value)", "Tensor"), "double *": ("c_double()", "{}.value", "float"),
       "sb_tensor *[]": ("(c_void_p * len(lengths))()", "list(map(_to.result, {}))", "list[Tensor]"),
       "char *[]": ("(c_void_p * len({}))()", "list(map(_to.owned_text, {}))", "list[str]"),
       "sb_decoded[]": ("(sb_decoded * len({}))()", "_to.decoded({})", "list[SimpleNamespace]")}
SEQUENCES = {"int": "_Shape", "const char *": "str", "sb_tensor *const[]": "Sequence[TensorLike]", "const int32_t *": "Sequence[int]"}
# What comments say of C, and what it is in Python.
SPELLINGS = {
    r"[.,;]?\s+([Tt]o\s+be\s+freed\s+with\s+\w+|The\s+caller\s+(owns|frees)\s+(it|them)|NULL: 0|NULL without memory|0 for NULL)|^NULL: 0$": "",
    r",? unless (it|`\w+`) is NULL": "", r"`(\w+)`, unless NULL, receives": r"`\1` is", r"(?<=ptions )may be NULL": "may be left out",
    r"(a NULL pointer|\bNULL|\bSB_ALL)\b": "None", r"(\w+) 0 stands": r"\1 None stands", r"\bSB_ZERO\b": "0",
    r"\btrue\b": "True", r"\bfalse\b": "False"}
# What a function returns: an expression and its type.
RESULTS = dict.fromkeys(NUMBERS, ("{}", "int")) | {
    "void": ("{}", "None"), "bool": ("{}", "bool"), "double": ("{}", "float"), "float": ("{}", "float"),
    "const char *": ("{}", "str"), "char *": ("_to.owned_text({})", "str"), "sb_mask *": ("Mask({})", "Mask"),
    "sb_tensor *": ("_to.found({})", "Tensor"), "const sb_batch *": ("_to.batch(Batch, lambda: {}, self)", "Batch")}

HEAD = '''"""Operations, objects and layers. Made by python/generate.py; do not edit."""
from . import convert as _to
from ._declarations import *
from .library import c as _c
from .objects import Object
from .tensors import Mask, Tensor

__all__ = {}'''


def class_name(name):
    plain = name.removeprefix("sb_")
    return CLASSES.get(plain) or "".join(word.capitalize() for word in plain.split("_"))


def python_name(name):
    return name + "_" if keyword.iskeyword(name) or name == "self" else name


def spelled(headers, text):
    """A comment in the words of Python, with the short names of members, and constants as numbers."""
    for said, words in SPELLINGS.items():
        text = re.sub(said, words, text)
    names = members(headers)
    return re.sub(r"\bSB_[A-Z0-9_]+\b", lambda m: names.get(m[0], m[0]), text)


def is_options(p):
    return p.type.startswith("const ") and p.type.endswith(("options *", "attending *"))


class Binding:
    """One C function in Python; `bound` is False where a type has no form there."""

    def __init__(self, headers, objects, function, owner=None, made=None):
        self.headers, self.objects, self.f, self.owner, self.made = headers, objects, function, owner, made
        self.signature, self.arguments, self.before, self.outs = {}, [], [], {}  # outs: {parameter: (expression, type)}
        self.options, self.texts, self.bound, self.types = None, None, True, {}
        parameters = list(function.parameters)
        if owner:
            parameters.pop(0)
            self.arguments.append("self")
        while parameters and self.bound:
            self.take(parameters)
        if "pattern" in self.signature and "NULL: all" in function.doc:  # what it matches comes after the path
            self.signature |= {"pattern": self.signature.pop("pattern") or "None"}
        self.names = ", ".join(self.signature)
        self.result, self.type = self.returned()
        self.bound = self.bound and self.result is not None

    def may_be_null(self, p):
        if "*" not in p.type or "sb_mask" in self.f.returns:
            return False
        said = re.search(rf"\b{p.name}\b(\s*\([^)]*\))?\s*(or|may be|unless|is)\s+NULL", self.f.doc)
        return said or p.name in OPTIONAL or is_options(p) or "communicator" in p.type

    def accept(self, p, expression, default=None, kind=None):
        name = python_name("shape" if p.name == "dim" else p.name)
        self.types[name] = kind or self.annotation(p)
        if default is None:  # no default before a parameter without one
            self.signature = dict.fromkeys(self.signature)
        self.signature[name] = default
        self.arguments.append((f"({name} := {{}})" if expression.startswith("_to.tensor(") else "{}").format(expression.format(name)))

    def out(self, p, maker, shown, kind):
        name = p.name + "_" * (p.name in self.signature)
        self.before.append(f"{name} = " + maker.format(self.texts))
        self.arguments.append(name if p.array else f"byref({name})")
        self.outs[p.name] = shown.format(name), kind

    def form(self, full, kind):
        """How one parameter of Python becomes one of C; None where that is not known."""
        if kind in self.objects and full.removeprefix("const ") == kind + " *":
            return f"_to.instance({class_name(kind)}, {{}})"
        if "communicator" in full:
            return '_to.handle("sb_communicator", {})'
        if full in ("double", "float", "const char *"):
            return f'_to.{"text" if "*" in full else "real"}({{0}}, "{{0}}")'
        if full in NUMBERS and full != "bool":
            return f'_to.whole({NUMBERS[full]}, {{0}}, "{{0}}")'
        found = form(self.headers, full)
        return found and (f"_to.{found[0]}({', '.join(filter(None, [found[1], '{}']))})" if found[0] else "{}")

    def take(self, rest):
        """Consumes the parameters of C that are one parameter of Python."""
        p = rest.pop(0)
        full, kind = p.type + p.array, plain_type(p.type)
        two, form = (full, rest[0].type) if rest else None, self.form(full, kind)
        default = DEFAULTS.get(p.name) if p.type in NUMBERS or p.type in self.headers.enums else None
        if self.may_be_null(p) and all(q.name in DEFAULTS or self.may_be_null(q) for q in rest):
            default = "None"
        if p.name == "axis" and self.f.name in REDUCTIONS:
            self.accept(p, 'ALL if {0} is None else _to.whole(c_int, {0}, "{0}")', "None", "int")
        elif two in TWO:
            after = rest.pop(0)
            self.accept(after if two[0] == "int" else p, TWO[two], None, SEQUENCES[two[0]])
        elif p.name in OPERANDS and full == "sb_tensor *" and self.f.header == "ops/ops.h":
            others = ", ".join(["{0}", *(q.name for q in self.f.parameters if q.name in OPERANDS and q.name != p.name)])
            self.accept(p, f"({{0}} := {{0}} if {{0}}.__class__ is Tensor else _to.{'like' if self.f.name in ANY else 'floating'}({others}))", "None" if default else None)
        elif self.owner and p.name in LAYER_OPERANDS and full == "sb_tensor *" and self.f.header.startswith("nn/"):
            self.accept(p, f"({{0}} := {{0}} if {{0}}.__class__ is Tensor else _to.of_layer({{0}}, self))", "None" if default else None)
        elif kind.endswith(("_weights", "_loaded")) or p.name == "weights" and p.array:
            self.arguments.append("None")  # an array for each layer, and what a file does not have
        elif is_options(p) and sum(map(is_options, self.f.parameters)) == 1:
            self.options = kind
            self.arguments.append("given")
        elif self.texts and p.name in ("n", "count"):
            self.arguments.append(f"len({self.texts})")
        elif full in OUT and (self.texts or "lengths" in self.signature if p.array else
                              f"*{p.name}" in self.f.doc or p.name == "weights"):  # it writes one
            self.out(p, *OUT[full])
        elif form and full not in OUT:
            self.texts = p.name if "texts" in form else self.texts
            self.accept(p, '_to.number({0}, "{0}")' if default == "None" and kind in NUMBERS else form, default)
        elif self.headers.structs.get(kind) and (self.texts if p.array else not rest):
            self.out(p, *(f"({kind} * len({{}}))()", "list({})", f"list[{kind}]") if p.array else (f"{kind}()", "{}", kind))
        else:
            self.bound = False

    def returned(self):
        """The result in Python, an expression and its type; None where that is not known."""
        kind, plain = self.f.returns, plain_type(self.f.returns)
        if kind in RESULTS:
            return RESULTS[kind]
        if plain in self.objects:
            borrowed = self.owner and not re.search(r"freed|caller owns", self.f.doc)
            kept = "self, owned=False" if borrowed else f"[{self.names}]"
            return f"_to.adopt({class_name(plain)}, {{}}, {kept})", class_name(plain)
        if kind in self.headers.enums:
            return f'_to.name_of("{kind}", {{}})', "str"
        if self.headers.structs.get(plain):
            return (f"_to.contents({plain}, {{}})" if "*" in kind else "{}"), plain
        return None, None

    def annotation(self, p):
        full, plain = p.type + p.array, plain_type(p.type)
        if plain in self.objects and "*" in full:
            return class_name(plain)
        if "communicator" in full:
            return "None"
        found = ("text",) if full == "const char *" else form(self.headers, full)
        return stubs.argument(self.headers, found, full if full in self.headers.enums else plain, p.name)

    def kind(self):
        """The type of the result, with what C writes to pointers."""
        own = [self.type] if self.type not in ("None", "bool") or not self.checked() and self.type == "bool" else []
        kinds = own * (self.f.returns != "bool" or not self.outs) + [kind for _, kind in self.outs.values()]
        return "None" if not kinds else kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"

    def text(self, name):
        """The function's source."""
        own = ["self"] if self.owner or self.made else []
        accepted = [n + (f"={default}" if default else "") for n, default in self.signature.items()]
        options = ["**option"] * bool(self.options)
        given = [f'given = _to.options({self.options}, option, "{self.f.name[3:]}")'] if self.options else []
        body = "\n".join([*self.docstring(), *self.before, *given, *self.call(name)])
        return f"def {name}({', '.join(own + accepted + options)}):\n{textwrap.indent(body, '    ')}"

    def asks_weights(self):
        """Whether weights=True asks for a second result."""
        return self.type == "Tensor" and any(v.type == "sb_tensor **" for v in self.headers.structs.get(self.options, []))

    def docstring(self):
        names = ["y"] * (self.type == "Tensor") + [*self.outs]
        doc = re.sub(rf"\*({'|'.join(self.outs)})\b", r"\1", self.f.doc) if self.outs else self.f.doc
        if self.asks_weights():
            doc += "\n\nReturns   y; with weights=True the pair (y, weights)"
        elif len(names) > 1:
            doc += f"\n\nReturns   ({', '.join(names)})"
        if self.options:
            named = (f"  {v.name}={default}: {stubs.about(v)}" for v, _, default in stubs.options(self.headers, self.options))
            doc += "\n\nOptions\n\n" + "\n".join(line.rstrip(": ") for line in named)
        doc = spelled(self.headers, doc).replace("\\", "\\\\")
        return [f'"""{doc}{" " if doc.endswith(chr(34)) else ""}"""'] if doc else []

    def checked(self):
        """Whether the result says that nothing failed."""
        return self.f.returns == "bool" and not self.f.doc.startswith("Whether")

    def call(self, name):
        """The call, and what becomes of its result."""
        kind, outs, call = self.f.returns, [shown for shown, _ in self.outs.values()], f"_c.{self.f.name}({', '.join(self.arguments)})"
        if self.made:
            return [f"_to.check({call})", f"self.kept = [{self.names}]"] if self.owner else [f"self._take({call}, [{self.names}])"]
        tensor = kind == "sb_tensor *" and "without a message" not in self.f.doc
        if tensor or kind == "bool" and self.f.header == "ops/ops.h":
            made = ["_to.results(given, c)" if self.options else f"_to.{'owned' if self.f.name == 'sb_safetensors_tensor' else 'result'}(c)"]
            again = ["self." * bool(self.owner) + name, *self.signature] + ["**option"] * bool(self.options)
            return [f"c = {call}", "if c:", f"    return {', '.join(made * tensor + outs)}", f"return _to.retry({', '.join(again)})"]
        if self.checked():
            return [f"_to.check({call})"] + [f"return {', '.join(outs)}"] * bool(outs)
        if kind == "sb_mask *":  # a recipe: the function and its arguments
            call = call[:-1].replace("(", ", ", 1).removesuffix(", ")
        return ["return " + self.result.format(call)]


def owner_of(f, objects):
    """The object whose class has this function; None: a function of the module."""
    first, made = plain_type(f.parameters[0].type) if f.parameters else "", plain_type(f.returns)
    if made in objects and (f.name == made + "_new" or first not in objects
                            or not f.name.startswith(first + "_") and "*" in f.returns):
        return made
    method = first in objects and f.parameters[0].type.count("*") == 1 and f.header != "ops/ops.h"
    return first if method else None


def write(headers):
    """The texts of _functions.py and of its stub."""
    objects, members = objects_of(headers), {}
    for f in headers.functions.values():
        if not f.header.startswith(BY_HAND) and f.name not in ONE_BY_HAND:
            members.setdefault(owner_of(f, objects), []).append(f)
    bindings = {f.name[3:]: b for f in members.pop(None) if (b := Binding(headers, objects, f)).bound}
    functions = {name: binding.text(name) for name, binding in bindings.items()}
    made = {class_name(name): class_text(headers, objects, name, members[name]) for name in members}
    classes, typed = ({name: parts[i] for name, parts in made.items()} for i in (0, 1))
    methods = [name for name in functions if bindings[name].f.header == "ops/ops.h"
               and [p.type + p.array for p in bindings[name].f.parameters[:1]] == ["sb_tensor *"]]
    parts = [HEAD.format([*functions, *classes]), *functions.values(), *classes.values(), f"_to.publish(globals(), {[*functions]}, {methods})\n"]
    return "\n\n\n".join(parts), stubs.package(bindings, typed, methods)


def class_text(headers, objects, name, members):
    base, parts, typed = (name, [], []) if f"{name}_init" in headers.functions else ("Object", [f'c_name = "{name}"'], [])
    for f in members:
        short = f.name.removeprefix(name + "_").removeprefix("sb_").removesuffix("_new")
        owner = name if f.parameters and plain_type(f.parameters[0].type) == name else None
        make = short in ("new", "open", "init") or f.name in (name + "_new", "sb_trainer_for")
        binding = Binding(headers, objects, f, owner, class_name(name) if make else None)
        if short in ("free", "release", "close"):
            parts.append(f"_free = _c.{f.name}")
        elif binding.bound:
            short = "__init__" if make else "__call__" if short == "forward" else python_name(short)
            static = not owner and not make
            parts.append("@staticmethod\n" * static + binding.text(short))
            typed.append((static, short, None if static else "self", "None" if make else None, binding))
    parts.insert(0, f'"""{spelled(headers, headers.comments[members[0].header])}"""')
    return f"class {class_name(name)}({base}):\n" + textwrap.indent("\n\n".join(parts), "    "), (base, typed)
