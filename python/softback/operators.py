"""Operators of tensors, and what they have of NumPy's arrays."""
import numpy as np

from .arrays import UFUNCS, whole
from .tensors import Tensor, tensor_of


def operator(ufunc):
    """The function of the library; of whole numbers, which it does not compute with, NumPy's."""
    function = UFUNCS[ufunc]

    def apply(a, *b):
        return tensor_of(ufunc(a, *b)) if whole(a) or b and whole(b[0]) else function(a, *b)

    return apply


for symbol, ufunc in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "matmul": np.matmul,
                      "pow": np.power, "neg": np.negative, "abs": np.absolute}.items():
    setattr(Tensor, f"__{symbol}__", operator(ufunc))
    setattr(Tensor, f"__r{symbol}__", lambda b, a, apply=operator(ufunc): apply(a, b))


def of_array(name):
    """The same of the array that shares the elements; comparisons give arrays of truth values."""
    def apply(x, *given, **options):
        return getattr(x.numpy(), name)(*(y.numpy() if isinstance(y, Tensor) else y for y in given), **options)

    return apply


for name in ("tolist", "__dlpack_device__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Tensor, name, of_array(name))
Tensor.__hash__ = object.__hash__
