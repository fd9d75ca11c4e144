"""NumPy's functions of tensors: those that the library has compute with it and keep the gradient; others
take the values where no gradient is lost, and are refused elsewhere."""
import numbers

import numpy as np

from . import _functions as f, functions
from .tensors import Tensor, whole_tensor as whole


def power(a, b):
    if not isinstance(a, (Tensor, numbers.Real)) or a.__class__ is not Tensor and a <= 0:
        raise TypeError(f"{a!r} ** tensor: the base must be a positive number; write sb.exp(x * sb.log(a))")
    return f.pow(a, b) if isinstance(a, Tensor) else f.exp(b * float(np.log(a)))


UFUNCS = {getattr(np, name): getattr(f, name) for name in (
    "add", "subtract", "multiply", "divide", "matmul", "maximum", "minimum", "sqrt", "exp", "log", "tanh", "sin", "cos",
    "expm1", "log1p")} | {np.negative: f.negate, np.absolute: f.abs, np.power: power, np.square: lambda x: x * x,
                          np.reciprocal: lambda x: 1 / x, np.positive: lambda x: x}
# Their derivative is 0, as is that of all whose results are truth values.
STEPS = {np.sign, np.floor, np.ceil, np.rint, np.trunc}


FUNCTIONS = {getattr(np, name): lambda x, axis=None, *, keepdims=False, own=getattr(functions, name): own(x, axis, keepdims)
             for name in ("sum", "mean", "max", "min")} | {
    np.squeeze: functions.squeeze, np.einsum: functions.einsum, np.argmax: f.argmax, np.where: f.where, np.clip: f.clamp,
    np.dot: lambda a, b: functions.einsum("...i,ij->...j", a, b), np.reshape: f.reshape, np.swapaxes: f.transpose,
    np.broadcast_to: f.expand, np.transpose: lambda x, axes=None: functions.transpose(x) if axes is None else f.permute(x, axes),
    np.var: lambda x, axis=None, *, ddof=0, keepdims=False: functions.variance(x, axis, ddof, keepdims),
    np.std: lambda x, axis=None, *, ddof=0, keepdims=False: functions.std(x, axis, ddof, keepdims),
    np.concatenate: lambda arrays, axis=0: f.concatenate(arrays, axis), np.stack: lambda arrays, axis=0: f.stack(arrays, axis),
    np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size}
for function, own in FUNCTIONS.items():  # as errors call it
    own.__qualname__ = own.__qualname__.replace("<dictcomp>.", "").replace("<lambda>", f"np.{function.__name__}")


def values(x, taker, which=lambda x: isinstance(x, Tensor)):
    """The same with arrays in place of tensors, also in lists, tuples and dicts."""
    if isinstance(x, (list, tuple)):
        return type(x)([values(item, taker, which) for item in x])
    if isinstance(x, dict):
        return {name: values(item, taker, which) for name, item in x.items()}
    return x.constant(taker) if which(x) else x


def of_ufunc(x, ufunc, method, *given, **options):
    if any(map(whole, given)):  # NumPy asks again where others are real
        return getattr(ufunc, method)(*values(given, ufunc, whole), **options)
    if method == "__call__" and not options and ufunc in UFUNCS:
        return UFUNCS[ufunc](*given)
    if ufunc in STEPS or all(kind.endswith(("?", "O")) for kind in ufunc.types):
        given = [y.numpy() if isinstance(y, Tensor) else y for y in given]
    taker = f"np.{ufunc.__name__}" + f".{method}" * (method != "__call__")
    return getattr(ufunc, method)(*values(given, taker), **values(options, taker))


def of_function(x, function, types, given, options):
    if whole(x):
        return function(*values(given, function, whole), **values(options, function, whole))
    if function in FUNCTIONS:
        return FUNCTIONS[function](*given, **options)
    taker = f"np.{function.__name__}"
    return function(*values(given, taker), **values(options, taker))


Tensor.__array_ufunc__, Tensor.__array_function__ = of_ufunc, of_function
