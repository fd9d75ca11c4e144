"""Functions of Python in the library: operations of one's own, gradient checks, exact derivatives."""
import ctypes
import inspect
import itertools
import os
import signal
import sys
import threading
import weakref
from functools import partial, update_wrapper

import numpy as np

from ._declarations import sb_gradcheck_options, sb_gradcheck_result, sb_operation, sb_random
from .convert import expect, options as given_options, retry, tensor as given
from .library import Error, alone, c, whole
from .tensors import (DTYPES, Tensor, check, converted, dtype_of, elements, failure, found, opened, owned, pointers, result, sizes, tensor, tensor_of)

OUTPUTS = 8  # the most that an operation may have
calls, next_call = weakref.WeakValueDictionary(), itertools.count(1)


class Frame:
    """Stands for the tape that C opened around a function of Python, and keeps what that makes."""

    def __init__(self):
        self.kept, self.failed = [], False

    def run(self, body, *arguments):
        """The body's result; None after an exception, which is raised when C has returned."""
        opened.tapes.append(self)
        try:
            try:
                opened.inside = True
                opened.settle()
                return body(*arguments)
            finally:
                opened.inside = False
        except BaseException as error:
            opened.error = opened.error or error
            c.sb_fail(f"{type(error).__name__}: {error}".replace("%", "%%").encode())
        finally:
            opened.tapes.remove(self)

    def value(self, f, *arguments):
        """The C tensor of what a function returns."""
        def body():
            self.kept.append(tensor_of(f(*arguments)))
            return self.kept[-1]._c

        return self.run(body)


def later(handler, *caught):
    opened.late.append(partial(handler, *caught))
    opened.settle()


def interruptible(function, when=(True,)):
    """A function of C that calls Python. The handler of a signal that comes between the two waits for either: ctypes would drop its
    exception there, and return anything to C."""
    def call(*arguments):
        main = when and threading.current_thread() is threading.main_thread()
        old, before = {s: h for s in SIGNALS if callable(h := signal.getsignal(s))} if main else {}, opened.inside
        try:
            opened.inside = False
            try:
                for number, handler in old.items():
                    signal.signal(number, partial(later, handler))
                return function(*arguments)
            finally:
                for number, handler in old.items():
                    signal.signal(number, handler)
        finally:
            opened.inside = before
            opened.settle()

    return call


SIGNALS = signal.SIGTERM, signal.SIGALRM, signal.SIGINT
for _name in ("sb_backward", "sb_backward_from"):
    setattr(c, _name, alone(interruptible(getattr(c, _name).__wrapped__, calls)))
for _name in ("sb_backward_in_shares", "sb_gradcheck", "sb_jvp", "sb_hvp"):
    setattr(c, _name, interruptible(getattr(c, _name)))


@ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)
def backward(node):
    return bool(Frame().run(add_gradients, node))


def add_gradients(node):
    gradient, dys = calls[ctypes.c_int64.from_address(c.sb_node_options(node)).value], []
    while (y := found(c.sb_node_result(node, len(dys)))) is not None:
        dy = found(c.sb_node_dy(node, len(dys)))
        dys.append(dy.numpy() if dy is not None else np.zeros(y.shape, DTYPES[y.dtype]))
    for i, part in enumerate(gradient(*dys)):
        dx = found(c.sb_node_dx(node, i))
        if dx is not None and part is not None:
            write(dx, part, add=True)
    return True


def write(x, array, add=False):
    """Writes the elements of a tensor that the library has just made, or adds to them."""
    there = elements(x, x) if x.device == "cpu" else x.numpy()
    there[...] = there + array if add else array
    if x.device != "cpu":
        x.assign(there)


class Operation:
    """An operation of one's own: a function of NumPy arrays that returns y, or (y, backward).

        @sb.operation
        def softplus(x):
            return np.logaddexp(0, x), lambda dy: dy / (1 + np.exp(-x))

    y is an array or a list of arrays; backward(dy, ...) returns the gradient of the input, or a tuple
    of one for each, None where there is none.
    """

    def __init__(self, function):
        self.function = function
        update_wrapper(self, function)
        names = " ".join(inspect.signature(function).parameters)
        self.struct = sb_operation(name=function.__name__.encode(), inputs=names.encode(), backward=ctypes.cast(backward, ctypes.c_void_p))

    def __call__(self, *inputs):
        x, key = [tensor_of(i) for i in inputs], next(next_call)
        node = c.sb_node_new(ctypes.byref(self.struct), len(x), pointers(x), OUTPUTS, ctypes.byref(ctypes.c_int64(key)), 8)
        if not node:
            return retry(self, *x)
        made = self.function(*[t.numpy() for t in x])
        values, gradient = made if isinstance(made, tuple) else (made, None)
        shapes = [t.shape for t in x]
        calls[key] = gradient = partial(self.gradients, gradient or self.missing, shapes)
        opened.tapes[-1].kept += [gradient, self]
        real = next((t.dtype for t in x if t.dtype in ("f32", "f64")), None)
        outputs = [self.output(node, v, real) for v in (values if isinstance(values, list) else [values])]
        return outputs if isinstance(values, list) else outputs[0]

    def gradients(self, gradient, shapes, *dy):
        """What backward returned: an array of the input's shape, or None, for each input."""
        parts = gradient(*dy)
        parts = parts if isinstance(parts, tuple) else (parts,)
        if len(parts) != len(shapes):
            raise Error(f"{self.__name__}: backward returned {len(parts)} gradients, but there are "
                        f"{len(shapes)} inputs; return a tuple with one of each, None where there is none")
        for i, (part, shape) in enumerate(zip(parts, shapes)):
            if part is not None and np.shape(part) != shape:
                raise Error(f"{self.__name__}: backward returned a gradient of shape {np.shape(part)} for "
                            f"input {i} of shape {shape}; both must be the same")
        return [part.numpy() if isinstance(part, Tensor) else None if part is None else converted(part) for part in parts]

    def __reduce__(self):
        return self.__qualname__  # copied and pickled by its name, as functions are

    def output(self, node, value, dtype):
        array = converted(value, dtype if np.asarray(value).dtype.kind == "f" else None)
        y = result(check(c.sb_node_output(node, dtype_of(array), *sizes(array.shape))))
        write(y, array)
        return y

    def missing(self, *dy):
        raise NotImplementedError(f"{self.__name__} has no backward: return (y, backward) to give it one")


operation = Operation
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))


def called(f, x):
    """What C needs to call f: a function, its context, and the inputs x."""
    frame = Frame()
    return FUNCTION(lambda _, inputs: frame.value(lambda: f(*[result(inputs[i]) for i in range(len(x))]))), None, pointers(x)


SHARE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def backward_in_shares(parameters, items, shares, loss, random=None):
    """Adds the gradients of a batch, whose shares threads compute at the same time; returns the sum of
    their losses. loss(first, count) is the summed loss of items first .. first + count - 1. `random` is
    the stream of dropout (sb.Random), None: no dropout. The functions of the library run in parallel,
    those of Python in turns."""
    frames, raised, total, process = [], [], ctypes.c_double(), os.getpid()

    def share(_, first, count):
        frame = Frame()
        frames.append(frame)
        y = frame.value(loss, first, count)
        if os.getpid() != process:  # C would wait for threads that stayed in the parent
            print(f"backward_in_shares: process {os.getpid()} was forked inside a loss; it must end there, with os._exit", file=sys.stderr, flush=True)
            os._exit(1)
        if opened.error:  # of this thread
            raised.append(opened.error)
            opened.error = None
        return y

    expect(random is None or isinstance(random, sb_random), random, "a random stream (sb.Random)")
    ok = c.sb_backward_in_shares(parameters, whole(ctypes.c_int64, items, "items"),
                                 whole(ctypes.c_int, shares, "shares"), random, SHARE(share), None, ctypes.byref(total))
    if raised:
        raise raised[0]
    check(ok)
    return total.value


def leaves(inputs):
    """Tensors stay; real numbers become f64 leaves, ids and masks constants."""
    for x in inputs:
        real = x is not None and not isinstance(x, Tensor) and converted(x).dtype.kind == "f"
        yield tensor(np.asarray(x, "f8"), requires_grad=True) if real else given(x)


class Gradcheck(sb_gradcheck_result):
    """The result of a gradient check: true if it passes."""

    def __bool__(self):
        return self.ok

    def __repr__(self):
        return f"ok ({self.method}): error {self.error:.2g}" if self.ok else self.message


def gradcheck(f, *inputs, **options):
    """Compares backward through f(*inputs) with exact derivatives, or with differences of float64.

    f is any function of tensors. It is exact where all operations compute dual numbers, as all of the
    library do; operations of one's own are checked by central differences. Options: step, tolerance,
    method ("automatic", "exact", "differences"), directions, second_order.
    """
    x, given = list(leaves(inputs)), given_options(sb_gradcheck_options, options, "gradcheck")
    result = Gradcheck()
    c.sb_gradcheck(*called(f, x), len(x), given, result)
    if opened.error:
        raise failure()
    result.message = c.sb_error()
    return result


def jvp(f, x, v):
    """f(x) and J v, exactly, for arrays or lists of arrays x and v: a pair of tensors, through which no gradients flow."""
    x, v = (list(leaves(a if isinstance(a, (list, tuple)) else [a])) for a in (x, v))
    y, dy = ctypes.c_void_p(), ctypes.c_void_p()
    check(c.sb_jvp(*called(f, x), pointers(v), len(x), ctypes.byref(y), ctypes.byref(dy)))
    return owned(y.value), owned(dy.value)


def hvp(f, x, v):
    """H v of an f of one number, exactly: a tensor, or a list of them where x is a list; no gradients flow through it."""
    many = isinstance(x, (list, tuple))
    x, v = (list(leaves(a if many else [a])) for a in (x, v))
    made = (ctypes.c_void_p * len(x))()
    check(c.sb_hvp(*called(f, x), pointers(v), len(x), made))
    products = [p and owned(p) for p in made]
    return products if many else products[0]
