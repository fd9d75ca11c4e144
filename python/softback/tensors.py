"""Tensors, masks and the tape."""
import ctypes
import inspect
import itertools
import numbers
import re
import sys
import threading
import weakref
from contextlib import suppress
from functools import partial
from traceback import walk_stack

import numpy as np

from ._declarations import sb_tape
from .library import Error, c, choice, dtype as short, name_of, real, whole

new, retain = object.__new__, c.sb_tensor_retain
DTYPES = {"f32": "<f4", "f64": "<f8", "i32": "<i4", "bool": "|b1"}


class Open(threading.local):
    """The tapes of this thread that Python opened, the innermost last, and what a function of Python
    raised that C has called; handlers of signals that came outside of such a function, while C ran."""

    def __init__(self):
        self.tapes, self.error, self.inside, self.late = [], None, True, []

    def settle(self):
        while self.inside and self.late:
            self.late.pop(0)()


opened = Open()


def failure():
    """The exception for what failed last."""
    error, opened.error = opened.error, None
    for tape in opened.tapes[-1:]:
        tape.failed = True
    return error or Error(c.sb_error())


def check(done):
    """What C returned, unless that stands for a failure."""
    if not done:
        raise failure()
    return done


def recording():
    """Whether operations are recorded: the innermost tape does, or a function of Python that C called."""
    return bool(opened.tapes) and getattr(opened.tapes[-1], "record", True)


class OpenTape(sb_tape):
    """The tape of C, what Python keeps for its nodes, and the tape of Python, which may be gone."""

    def __init__(self, tape):
        self.record, self.kept, self.failed, self.owner, frame = tape.record, [], False, weakref.ref(tape), sys._getframe(2)
        self.opener = frame.f_code.co_flags & GENERATORS and id(frame)  # which lives as long as this tape is open
        self.under = {id(f) for f, _ in walk_stack(frame)} if opened.tapes else ()  # who called it


GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def takes_turns():
    """Whether a generator goes on that opened a tape, on which another function opened the innermost one while it waited."""
    *outer, inner = opened.tapes or [None]
    here = {id(f) for f, _ in walk_stack(sys._getframe())} if outer and isinstance(inner, OpenTape) else ()
    return any(t.opener in here and t.opener not in inner.under for t in outer if isinstance(t, OpenTape))


TURNS = "tape: the innermost one was opened while this generator waited; generators that each open a tape must not take turns: end one before the next opens its own"


class Tape:
    """Records operations for backward, and owns what they make: `with sb.Tape(): ...`.

    Tensors that outlive it become constants. With record=False it only owns, for evaluation. Dropout
    draws from `random`, an sb.Random; without one it is an error, or with record=False the identity.
    """

    def __init__(self, record=True, random=None):
        self.record, self.random, self.drawing, self.open = record, random, None, None

    def __enter__(self):
        if self.open in opened.tapes:
            raise Error("tape: it is open already; make another one: with sb.Tape(): ...")
        while opened.tapes and getattr(opened.tapes[-1], "owner", bool)() is None:  # Ctrl-C came on its way into `with`, or out of it
            c.sb_tape_end(opened.tapes[-1])
            opened.tapes.pop()
        self.open = OpenTape(self)
        opened.tapes.append(self.open)
        c.sb_tape_begin(self.open, choice("sb_mode", "record" if self.record else "no_record"))
        if self.random is not None:
            c.sb_tape_random(self.open, self.random)
        return self

    def __exit__(self, kind, error, trace):
        above = opened.tapes[opened.tapes.index(self.open):] if self.open in opened.tapes else ()
        if not all(isinstance(tape, OpenTape) for tape in above):
            self.open.owner = type(None)  # as if it were gone: the next tape ends it
            raise Error("tape_end: the library calls this function, and the tape was opened outside of it; end it there")
        turns = kind in (None, GeneratorExit) and takes_turns()
        ended = c.sb_tape_end(self.open)
        del opened.tapes[len(opened.tapes) - len(above):]
        self.open.kept = None  # what nodes of this tape call: Python functions
        if turns or not ended and kind is None and not self.open.failed:
            raise Error(TURNS) if turns else failure()

    def __reduce__(self):
        raise TypeError("a Tape can be neither copied nor pickled: make another one")

    def draw(self, loss, weights=None, format="svg"):
        """Runs backward from the loss, and keeps a drawing of the tape, which a notebook shows."""
        self.drawing = text_of(c.sb_tape_draw(tensor_of(loss), choice("sb_drawing_format", format), weights))
        return self

    def _repr_svg_(self):
        return self.drawing


class Bare:
    """A tensor before it has its pointer: Ctrl-C may come then."""

    __slots__ = ("_c", "__weakref__")


class Tensor(Bare):
    """A tensor of the library. Make one with sb.tensor, sb.from_numpy, sb.zeros or an operation.

    Operators and indexing are those of NumPy: `x + 1`, `x @ y`, `x[1:3]`, `x[:, None]`; a write into a tensor is `x.assign`.

    numpy() and from_numpy() share memory; a view keeps its data alive, also when backward or the end of
    a tape frees it for everyone else.
    """

    __slots__ = ()
    __array_priority__ = 1000  # NumPy leaves array + tensor to this class

    def __new__(cls, *_, **__):
        raise Error("Tensor: make one with sb.tensor(data), sb.from_numpy(array) or sb.zeros(shape)")

    __del__ = property(partial(partial, c.sb_tensor_release))  # a function of Python would drop the exception of Ctrl-C

    size, ndim = property(c.sb_tensor_size), property(c.sb_tensor_rank)
    shape = property(lambda self: tuple(c.sb_tensor_dim(self, i) for i in range(self.ndim)))
    dtype = property(lambda self: name_of("sb_dtype", c.sb_tensor_dtype(self)))
    title = property(lambda self: f"{self.dtype} {self.shape}")
    device = property(lambda self: c.sb_device_name(c.sb_tensor_device(self)))

    @property
    def grad(self):
        """The gradient, None where there is none."""
        return found(c.sb_tensor_grad(self))

    @grad.deleter
    def grad(self):
        c.sb_tensor_clear_grad(self)

    @property
    def requires_grad(self):
        """Whether backward computes a gradient for it; it can be set to True for a leaf."""
        return c.sb_tensor_needs_grad(self)

    @requires_grad.setter
    def requires_grad(self, wanted):
        if not wanted and self.requires_grad:
            raise Error("requires_grad: x.detach() is a constant of the same values; Parameters.freeze freezes")
        if wanted:
            check(c.sb_tensor_requires_grad(self))

    def requires_grad_(self):
        """Makes backward compute a gradient for this leaf. Returns it."""
        self.requires_grad = True
        return self

    def backward(self, dy=None):
        """Adds the gradient of this number to all leaves; of any y with dy given."""
        if not opened.tapes:
            raise Error("backward: no tape is open; record what it differentiates: with sb.Tape(): ...")
        if takes_turns():
            raise Error(TURNS)
        check(c.sb_backward(self) if dy is None else c.sb_backward_from(self, dy if isinstance(dy, Tensor) else tensor(dy, "f64" if self.dtype == "dual" else self.dtype)))

    def keep(self):
        """Backward keeps the value and the gradient, as retain_grad in PyTorch. Returns it."""
        return check(c.sb_keep(self)) and self

    def to(self, device):
        """A copy on "cpu" or "cuda"."""
        return owned(c.sb_tensor_to(self, device_of(device)))

    def assign(self, values):
        """Writes all elements, which backward notices; what numpy() shares, it does not notice."""
        values = converted(values.doubles() if isinstance(values, Tensor) else values, "i32" if self.dtype == "i32" else "f64")
        values = np.ascontiguousarray(np.broadcast_to(values, self.shape), dtype="f8")
        check(c.sb_tensor_write(self, values.ctypes.data))

    def item(self):
        """The only element, as a number."""
        if self.size != 1:
            raise Error(f"item: {self.shape} has {self.size} elements, not 1")
        if (value := c.sb_tensor_value(self)) != value:
            self.keep()  # fails where backward has freed it
        return {"i32": int, "bool": bool}.get(self.dtype, float)(value)

    def constant(self, taker):
        """The elements for what would take them without their gradient; refused where that matters."""
        if recording() and c.sb_tensor_needs_grad(self):
            raise TypeError(f"{taker} would lose the gradient of this {self.title}: write x.detach() for a "
                            "constant, or use an operation of softback")
        return self.numpy()

    def __array__(self, dtype=None, copy=None):
        array = self.constant("a NumPy array")
        return array.astype(dtype or array.dtype) if copy or dtype and dtype != array.dtype else array

    def __dlpack__(self, **options):
        return self.constant("dlpack").__dlpack__(**options)

    def doubles(self):
        """The elements of any dtype as an array of float64."""
        values = np.empty(self.shape)
        check(c.sb_tensor_read(self, values.ctypes.data))
        return values

    def __reduce__(self):
        """Copies and pickles by value; a leaf that requires a gradient stays one."""
        leaf = owned(c.sb_tensor_to(self, c.sb_tensor_device(self)))
        if not c.sb_tensor_needs_grad(leaf) and recording() and c.sb_tensor_needs_grad(self):
            self.constant("a copy")
        values = self.numpy().copy() if self.dtype in DTYPES else self.doubles()
        return restored, (values, self.dtype, self.device, c.sb_tensor_needs_grad(leaf))

    def numpy(self):
        """The elements as a NumPy array that shares them; of a tensor on a GPU, a copy."""
        if self.dtype == "bf16":
            raise Error("numpy: NumPy has no bf16; cast it first: x.cast(\"f32\").numpy()")
        here = self.keep() if self.device == "cpu" else self.to("cpu")
        with Tape(record=False):
            view = result(check(c.sb_detach(here)))  # holds the data, whatever happens to the tensor
        return view.doubles() if view.dtype == "dual" else elements(view, view)

    def __buffer__(self, flags):
        return memoryview(self.constant("a buffer"))

    def __repr__(self):
        return text_of(c.sb_tensor_text(self))

    def __len__(self):
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    __float__, __bool__, __int__ = (lambda self, kind=kind: kind(self.item()) for kind in (float, bool, int))

    def __index__(self):
        if self.dtype != "i32":
            raise TypeError(f"{self.title} is no whole number")
        return self.item()

    def __format__(self, form):
        return format(self.item() if form else str(self), form)


Tensor._as_parameter_ = Tensor._c  # what ctypes passes


def elements(x, kept):
    """An array of x's elements, which keeps an object alive."""
    memory = (ctypes.c_char * (x.size * np.dtype(DTYPES[x.dtype]).itemsize)).from_address(check(c.sb_tensor_data(x)))
    memory.kept = kept
    return np.ndarray(x.shape, DTYPES[x.dtype], memory)


class Mask:
    """Which query may attend to which key: a recipe, of which each tape makes its own mask.

    `a & b` allows the pairs that both allow. show(Lq, Lk) draws it.
    """

    def __init__(self, function, *arguments):
        if not getattr(function, "__name__", "").startswith("sb_mask_"):
            raise Error("Mask: make one with sb.mask_causal(), sb.mask_allow(allowed) or another function of this kind")
        self.function, self.arguments, self.shown = function, arguments, (8, 8)

    def made(self):
        """The mask on the open tape; None where none is open, and then the operation fails, too."""
        given = [a.made() if isinstance(a, Mask) else getattr(a, "_c", a) for a in self.arguments]
        pointer = self.function(*given)
        if not pointer and opened.tapes:
            raise failure()
        return pointer

    def __reduce__(self):
        return mask_named, (self.function.__name__, *self.arguments)

    def __and__(self, other):
        return Mask(c.sb_mask_and, self, other)

    def show(self, queries, keys=None):
        """The mask, which a notebook then draws for so many queries and keys."""
        self.shown = (queries, keys or queries)
        return self

    def __repr__(self):
        with Tape(record=False):
            return text_of(c.sb_mask_text(self.made(), 0, 0, *self.shown))


def mask_named(function, *arguments):
    return Mask(getattr(c, function), *arguments)


def text_of(pointer):
    """The library's string, which is freed."""
    text = ctypes.string_at(check(pointer)).decode()
    c.sb_free(pointer)
    return text


def owned(pointer):
    """A Tensor that takes the caller's reference."""
    check(pointer)
    y = new(Bare)
    y._c, y.__class__ = pointer, Tensor
    return y


def result(pointer):
    """A Tensor of which something else, such as the tape, has a reference, too."""
    y = new(Bare)
    y._c = retain(pointer)
    y.__class__ = Tensor
    return y


def found(pointer):
    return result(pointer) if pointer else None


def pointers(tensors):
    """An array for C, which keeps the tensors."""
    array = (ctypes.c_void_p * len(tensors))(*[None if t is None else t._c for t in tensors])
    array.kept = tensors
    return array


def sizes(shape, kind=ctypes.c_int64):
    """A rank and an array."""
    dims = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    return len(dims), (kind * len(dims))(*(whole(kind, n, "a size") for n in dims))


def dtype_of(array):
    """The number of an array's dtype; None where softback has none."""
    return next((choice("sb_dtype", n) for n, kind in DTYPES.items() if array.dtype.str == kind), None)


def address(array):
    return array.__array_interface__["data"][0] or 64  # an array without elements may have none


def device_of(name):
    named = re.fullmatch("cpu|cuda(:([0-9]+))?", name if isinstance(name, str) else "")
    if not named:
        raise Error(f"device: {name!r} is none of cpu, cuda, cuda:0, cuda:1, ...")
    if named[2]:
        check(c.sb_choose_cuda(whole(ctypes.c_int, int(named[2]), "device")))
    return check(c.sb_device_cpu() if name == "cpu" else c.sb_device_cuda())


# Arrays whose memory tensors share, until the library releases it.
lent, next_loan = {}, itertools.count(1)
give_back = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lent.__delitem__)


def share(array, who):
    """A tensor of the array's memory."""
    dtype, loan = dtype_of(array), next(next_loan)
    if dtype is None or not array.flags.c_contiguous:
        wrong = f"of {array.dtype}" if dtype is None else f"with the strides {array.strides}"
        raise Error(f"{who}: an array {wrong} cannot be shared; it must be contiguous and of float32, float64, int32 or bool; "
                    "sb.tensor(array) copies it")
    pointer = c.sb_tensor_wrap(dtype, *sizes(array.shape), address(array), give_back, loan)
    lent[loan] = pointer and array
    return owned(pointer)


def from_numpy(array):
    """A tensor that shares the array's memory; what is written to one is read from the other."""
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        raise Error(f"from_numpy: this {type(array).__name__} is not a writable array; sb.tensor copies it")
    return share(array, "from_numpy")


def is_versioned(other):
    """Whether what it gives to DLPack says if it is read-only; older producers cannot, whose arrays NumPy calls so."""
    with suppress(TypeError):
        return "versioned" in repr(other.__dlpack__(max_version=(1, 0)))


def from_dlpack(other):
    """A tensor that shares the memory of a PyTorch, JAX or NumPy array on the CPU."""
    try:
        array, wrong = np.from_dlpack(other), "is read-only"
    except (AttributeError, BufferError, RuntimeError) as error:
        array, wrong = None, f"has no memory for DLPack ({error})"
    if array is None or not array.flags.writeable and is_versioned(other):
        raise Error(f"from_dlpack: this {type(other).__name__} {wrong}; sb.tensor copies it")
    return share(array, "from_dlpack")


def converted(data, dtype=None):
    """A contiguous array of one of our dtypes: numbers of Python become f32, whole ones i32."""
    array = np.asarray(data)
    if dtype is None:
        wide = array.itemsize > 4 and isinstance(data, (np.ndarray, np.generic, Tensor))
        dtype = {"b": "bool", "i": "i32", "u": "i32", "f": "f64" if wide else "f32"}.get(array.dtype.kind)
    if dtype not in DTYPES:
        raise Error(f"tensor: an array of {array.dtype} has no dtype of softback")
    made = np.ascontiguousarray(array, dtype=DTYPES[dtype]).reshape(array.shape)
    if array.dtype.kind in "iuf" and dtype == "i32" and (made != np.trunc(array)).any():
        raise Error(f"tensor: {array.dtype} numbers up to {array.max()} do not fit into i32")
    return made


def tensor(data, dtype=None, requires_grad=False):
    """A new tensor with a copy of the data: numbers, nested lists, an array or a tensor."""
    dtype = None if dtype is None else short(dtype)
    array = converted(data, kind := dtype if dtype in DTYPES else None)
    made = owned(c.sb_tensor_from(dtype_of(array), *sizes(array.shape), address(array)))
    made = made if dtype in (None, kind) else made.cast(dtype)
    return made.requires_grad_() if requires_grad else made


def restored(values, dtype, device, requires_grad):
    """The tensor of a copy or a pickle."""
    return tensor(values, dtype, requires_grad).to(device)


WHOLE = {choice("sb_dtype", name) for name in ("i32", "bool")}


def whole_tensor(x, dtype=c.sb_tensor_dtype):
    return x.__class__ is Tensor and dtype(x) in WHOLE


def of_whole(made):
    """What NumPy computes of whole numbers as a tensor: its real numbers, which are f64, become f32."""
    return made if isinstance(made, Tensor) else tensor(made, "f32" if np.asarray(made).dtype.kind == "f" else None)


def tensor_of(x):
    """x as a tensor that shares its memory where that is possible."""
    if isinstance(x, Tensor):
        return x
    sharable = isinstance(x, np.ndarray) and x.flags.carray and dtype_of(x) is not None
    return share(x, "tensor") if sharable else tensor(x)


def full(shape, value, dtype="f32", requires_grad=False):
    """A tensor whose elements all are this value."""
    made = owned(c.sb_tensor_full(choice("sb_dtype", dtype), *sizes(shape), real(value, "value")))
    return made.requires_grad_() if requires_grad else made


def unpacked(sizes):
    """Sizes or axes that were given as one tuple or one by one."""
    if len(sizes) > 1 and any(hasattr(n, "__iter__") for n in sizes):
        raise Error(f"{', '.join(map(repr, sizes))} was given where whole numbers or one tuple of them are expected; what follows has names, such as dtype=")
    return sizes[0] if len(sizes) == 1 and hasattr(sizes[0], "__iter__") else sizes


def zeros(*shape, dtype="f32", requires_grad=False):
    """A tensor of zeros: zeros(2, 3) or zeros((2, 3))."""
    return full(unpacked(shape), 0, dtype, requires_grad)


def ones(*shape, dtype="f32", requires_grad=False):
    """A tensor of ones: ones(2, 3) or ones((2, 3))."""
    return full(unpacked(shape), 1, dtype, requires_grad)
