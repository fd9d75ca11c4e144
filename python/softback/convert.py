"""From arguments of Python to those of C, and back, for the generated functions."""
import ctypes
import numbers
from functools import cache, partial, reduce, wraps
from types import SimpleNamespace

import numpy as np

from ._declarations import ALIASES, sb_batch
from .library import Error, c, choice, lock, name_of, nearest, real, text, whole
from .objects import adopt
from .structure import Structure
from .tensors import (DTYPES, Mask, Tape, Tensor, check, device_of as device, failure, found, opened, owned,
                      pointers, result, sizes, tensor as copied, tensor_of, text_of as owned_text, whole_tensor)


def aliased(function):
    """The same function, whose arguments have the names of PyTorch and NumPy, too."""
    def call(*given, **named):
        for alias in ALIASES.keys() & named if named else ():
            if (own := ALIASES[alias]) in named:
                raise Error(f"{function.__name__}: {alias} and {own} are one argument; give it once")
            named[own] = named.pop(alias)
        return function(*given, **named)

    code = getattr(function, "__wrapped__", function).__code__
    return wraps(function)(call) if {*ALIASES.values()}.intersection(code.co_varnames[:code.co_argcount]) else function


def publish(scope, names, methods):
    """Gives functions of a module the names by which errors call them, and these arguments; some are methods of tensors."""
    for name in names:
        scope[name].__name__ = scope[name].__qualname__ = name
        scope[name] = aliased(scope[name])
    for name in methods:
        setattr(Tensor, name, scope[name])


def retry(function, *arguments, **options):
    """After a failure: outside of any tape, computes again on one of its own."""
    if opened.tapes:
        raise failure()
    with Tape(record=False):
        return function(*arguments, **options)


def tensor(x):
    """A tensor or NULL; ctypes keeps it until the call returns."""
    return x if x is None or x.__class__ is Tensor else tensor_of(x)


def of_dtype(x, dtype):
    """A list's or an array's tensor of a real dtype, which shares the memory where that is possible."""
    same = dtype in DTYPES and getattr(x, "dtype", None) == DTYPES[dtype]
    return tensor(x) if same or dtype in ("i32", "bool") or np.asarray(x).dtype.kind not in "biuf" else copied(x, dtype)


def like(x, *others):
    """The same; a number, a list or an array has the dtype of a real tensor beside it."""
    other = next((o for o in others if isinstance(o, Tensor)), None)
    if x is None or isinstance(x, Tensor) or other is None:
        return tensor(x)
    if isinstance(x, numbers.Real) and not (whole_tensor(other) and not float(x).is_integer()):
        return owned(c.sb_tensor_scalar(c.sb_tensor_dtype(other), float(x)))
    return of_dtype(x, "f64" if other.dtype == "dual" else other.dtype)  # dual numbers have constants of f64


def floating(x, *others):
    """The same for functions of real numbers alone: without a tensor, all are f64 if one is, else f32."""
    if x is None or any(isinstance(o, Tensor) for o in (x, *others)):
        return like(x, *others)
    return of_dtype(x, "f64" if any(getattr(o, "dtype", None) == "<f8" for o in (x, *others)) else "f32")


def of_layer(x, layer):
    """The same; a list or an array has the dtype of the layer's weights."""
    weights = next((k for k in getattr(layer, "kept", ()) if hasattr(k, "freeze")), None)
    return tensor(x) if x is None or isinstance(x, Tensor) or weights is None else of_dtype(x, weights.dtype())


def tensors(xs):
    xs = list(xs)
    beside = next((x for x in xs if isinstance(x, Tensor)), None)
    return pointers([like(x, beside) for x in xs])


def expect(right, x, what):
    if not right:
        raise Error(f"{repr(x).splitlines()[0]} was given where {what} is expected")


def mask(x):
    expect(x is None or isinstance(x, Mask), x, "a mask (sb.mask_allow(x), sb.mask_causal(), ...)")
    return None if x is None or not opened.tapes else x.made()  # without a tape, retry makes it on one


def instance(kind, x):
    expect(x is None or isinstance(x, kind), x, kind.__name__)
    return x


def number(x, name="a number"):
    """None stands for the default, as 0 does in C, and 0 for 0 itself (SB_ZERO)."""
    return 0.0 if x is None else real(x, name) or -0.0


def texts(xs):
    expect(not isinstance(xs, str), xs, "a list of texts")
    return (ctypes.c_char_p * len(xs))(*(text(x, f"text {i}") for i, x in enumerate(xs)))


def handle(name, x):
    """An object of this struct of C. A communicator, which Python cannot make, is a c_void_p."""
    expect(x is None or isinstance(x, ctypes.c_void_p) or getattr(x, "c_name", None) == name, x, f"a pointer {name} *")
    return x


def value(struct, x):
    """A struct, or a pointer to it: of a dict, of its kind alone, or of a value that stays as it is."""
    if x is None or isinstance(x, struct):
        return x
    if isinstance(x, str) and hasattr(struct, "kind"):
        x = {"kind": x}
    elif not isinstance(x, dict) and hasattr(struct, "value"):
        x = {"kind": "constant", "value": x}
    return options(struct, x, struct.__name__[3:])


def struct_of(x, method, expected):
    """The struct of a model or a source, which the method of this name makes."""
    expect(hasattr(x, method), x, expected)
    return getattr(x, method)()


model = partial(struct_of, method="as_model", expected="a model")
source = partial(struct_of, method="as_source", expected="data")


@cache
def paths(struct):
    """Each field's name, with the way to its struct, this one or one that it has, and its type."""
    inner = [(name, form[1]) for name, form in struct.forms.items() if form[0] == "value"]
    deeper = {last: ([name, *way], kind) for name, s in inner for last, (way, kind) in paths(s).items()}
    return deeper | {name: ([], kind) for name, kind in struct._fields_}


# Names of options in other libraries and in the program.
ELSEWHERE = {"lr": "learning_rate", "betas": "beta1", "eps": "epsilon", "d_model": "width", "nhead": "heads",
             "num_heads": "heads", "dim_feedforward": "feed_forward", "attn_mask": "mask", "num_beams": "beam_width", "beam": "beam_width", "norm": "norm_place"}


def options(struct, given, who):
    """An option struct from keyword arguments, which keeps what it points to."""
    expect(isinstance(given, dict), given, f"a dict of options for {who}")
    made, places = struct(), paths(struct)
    made.kept = []
    for name, x in given.items():
        if name not in places:
            known = ELSEWHERE.get(name)
            hint = f'did you mean "{known}"?' if known in places else nearest(name, list(places))
            raise Error(f'{who}: there is no option "{name}"; {hint}')
        if x is not None:
            way, kind = places[name]
            made.kept.append(place(reduce(getattr, way, made), name, kind, x, who))
    return made


def place(struct, name, kind, x, who):
    """Sets a field. Returns what must live as long as the struct."""
    form, *first = struct.forms.get(name, [None])
    what = f"{who}: {name}"
    if form in ("number", "text"):
        x = FORMS[form](x, what)
    elif form:
        x = FORMS[form](*first, x)
    elif kind in NUMBERS:
        x = NUMBERS[kind](x, what)
    elif kind is ctypes.c_void_p and not isinstance(x, kind):
        raise Error(f"{what} is {x!r}, which is no pointer of C (c_void_p)")
    try:
        setattr(struct, name, getattr(x, "_c", x) if kind is ctypes.c_void_p else x)
    except (TypeError, RuntimeError, ValueError):
        raise Error(f"{what} is {x!r}, which is not of C's type {kind.__name__[2:]}") from None
    return x


NUMBERS = dict.fromkeys((ctypes.c_double, ctypes.c_float), real) | {kind: partial(whole, kind) for kind in (
    ctypes.c_int, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_size_t)}


class Out(ctypes.c_void_p):
    """Where C writes a tensor that an option asks for."""

    _c = property(ctypes.addressof)


def out(wanted):
    return Out() if wanted else None


FORMS = {f.__name__: f for f in (tensor, mask, text, choice, number, value, out, handle)}
READERS = {"tensor": found, "choice": name_of}


def reading(field, form=None, *first):
    """A field of a struct that reads as text, a list, the name of an enum's member or a tensor."""
    def read(struct):
        value = field.__get__(struct)
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, ctypes.Array):
            return [x.decode() if isinstance(x, bytes) else x for x in value]
        return READERS[form](*first, value) if form in READERS else value

    return property(read, field.__set__)


for struct in Structure.__subclasses__():
    for name, _ in struct._fields_:
        setattr(struct, name, reading(getattr(struct, name), *struct.forms.get(name, [])))


def results(options, pointer):
    """What the call made: a tensor, and those that options asked for."""
    made = [result(p) for p in (pointer, *(x.value for x in options.kept if isinstance(x, Out)))]
    return made[0] if len(made) == 1 else tuple(made)


def contents(struct, pointer):
    return struct.from_buffer_copy(struct.from_address(check(pointer)))


def decoded(outputs):
    """Outputs of a decoder, each with its symbols as a list."""
    made = [dict((field, getattr(o, field)) for field, _ in o._fields_) | {
        "ids": ctypes.cast(o.ids, ctypes.POINTER(ctypes.c_int32))[: o.length]} for o in outputs]
    c.sb_decoded_free(len(outputs), outputs)
    return [SimpleNamespace(**one) for one in made]


def batch(kind, following, source):
    """A copy of a batch, of which C keeps only the last one; it shares the tensors."""
    with lock:
        struct = contents(sb_batch, following())
        parts = [part.t for part in struct.part[: struct.parts]]
    return adopt(kind, struct._c, [struct, parts, source], owned=False)
