"""Operators of tensors, and what they have of NumPy's arrays."""
from functools import wraps

import numpy as np

from . import _functions as f
from .arrays import UFUNCS, whole
from .convert import publish
from .tensors import Tensor, of_whole


def operator(ufunc):
    """The function of the library; of whole numbers, which it does not compute with, NumPy's."""
    function = UFUNCS[ufunc]

    def apply(a, *b):
        return of_whole(ufunc(a, *b)) if whole(a) or b and whole(b[0]) else function(a, *b)

    return apply


for symbol, ufunc in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "matmul": np.matmul,
                      "pow": np.power, "neg": np.negative, "abs": np.absolute}.items():
    setattr(Tensor, f"__{symbol}__", operator(ufunc))
    setattr(Tensor, f"__r{symbol}__", lambda b, a, apply=operator(ufunc): apply(a, b))


def as_operator(name, ufunc):
    """The function of this name: of whole numbers as the operator."""
    function, apply = getattr(f, name), operator(ufunc)

    @wraps(function)
    def call(*given, **named):
        return function(*given, **named) if named else apply(*given)

    return call


__all__ = ["add", "subtract", "multiply", "divide", "matmul", "maximum", "minimum", "negate", "abs"]
globals().update({name: as_operator(name, getattr(np, {"negate": "negative", "abs": "absolute"}.get(name, name))) for name in __all__})
publish(globals(), __all__, __all__)


def of_array(name):
    """The same of the array that shares the elements; comparisons give arrays of truth values."""
    def apply(x, *given, **options):
        return getattr(x.numpy(), name)(*(y.numpy() if isinstance(y, Tensor) else y for y in given), **options)

    return apply


for name in ("tolist", "__dlpack_device__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Tensor, name, of_array(name))
Tensor.__hash__ = object.__hash__
