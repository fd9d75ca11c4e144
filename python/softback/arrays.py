"""NumPy's functions of tensors: those that the library has compute with it and keep the gradient; others
take the values where no gradient is lost, and are refused elsewhere."""
import numpy as np

from . import _functions as f, functions
from .tensors import Tensor

UFUNCS = {
    np.add: f.add, np.subtract: f.subtract, np.multiply: f.multiply, np.divide: f.divide,
    np.matmul: f.matmul, np.maximum: f.maximum, np.minimum: f.minimum, np.negative: f.negate,
    np.power: lambda a, b: a**b, np.square: lambda x: x * x, np.reciprocal: lambda x: 1 / x,
    np.positive: lambda x: x, np.absolute: f.abs, np.sqrt: f.sqrt, np.exp: f.exp, np.log: f.log,
    np.tanh: f.tanh, np.sin: f.sin, np.cos: f.cos, np.expm1: f.expm1, np.log1p: f.log1p}
# Their derivative is 0, as is that of all whose results are truth values.
STEPS = {np.sign, np.floor, np.ceil, np.rint, np.trunc}


def reduction(function):
    return lambda x, axis=None, keepdims=False: function(x, axis, keepdims)


FUNCTIONS = {
    np.sum: reduction(functions.sum), np.mean: reduction(functions.mean), np.max: reduction(functions.max),
    np.min: reduction(functions.min), np.squeeze: functions.squeeze, np.einsum: functions.einsum,
    np.transpose: lambda x, axes=None: functions.transpose(x) if axes is None else f.permute(x, axes),
    np.var: lambda x, axis=None, ddof=0, keepdims=False: functions.variance(x, axis, ddof, keepdims),
    np.std: lambda x, axis=None, ddof=0, keepdims=False: functions.std(x, axis, ddof, keepdims),
    np.argmax: f.argmax, np.where: f.where, np.clip: f.clamp, np.dot: f.matmul,
    np.concatenate: lambda arrays, axis=0: f.concatenate(arrays, axis),
    np.stack: lambda arrays, axis=0: f.stack(arrays, axis),
    np.reshape: f.reshape, np.swapaxes: f.transpose, np.broadcast_to: f.expand,
    np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size}


def values(x, taker):
    """The same with arrays in place of tensors, also in lists, tuples and dicts."""
    if isinstance(x, (list, tuple)):
        return type(x)([values(item, taker) for item in x])
    if isinstance(x, dict):
        return {name: values(item, taker) for name, item in x.items()}
    return x.constant(taker) if isinstance(x, Tensor) else x


def of_ufunc(x, ufunc, method, *given, **options):
    if method == "__call__" and not options and ufunc in UFUNCS:
        return UFUNCS[ufunc](*given)
    if ufunc in STEPS or all(kind.endswith(("?", "O")) for kind in ufunc.types):
        given = [y.numpy() if isinstance(y, Tensor) else y for y in given]
    taker = f"np.{ufunc.__name__}" + f".{method}" * (method != "__call__")
    return getattr(ufunc, method)(*values(given, taker), **values(options, taker))


def of_function(x, function, types, given, options):
    if function in FUNCTIONS:
        return FUNCTIONS[function](*given, **options)
    taker = f"np.{function.__name__}"
    return function(*values(given, taker), **values(options, taker))


Tensor.__array_ufunc__, Tensor.__array_function__ = of_ufunc, of_function
