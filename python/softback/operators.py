"""Operators of tensors, and what they have of NumPy's arrays."""
import math
import numbers

from . import _functions as f
from .tensors import Tensor

for symbol, function in {"add": f.add, "sub": f.subtract, "mul": f.multiply, "truediv": f.divide,
                         "matmul": f.matmul}.items():
    setattr(Tensor, f"__{symbol}__", function)
    setattr(Tensor, f"__r{symbol}__", lambda b, a, function=function: function(a, b))
Tensor.__neg__, Tensor.__abs__, Tensor.__pow__ = f.negate, f.abs, f.pow


def power_of(x, base):
    """base ** x of a number."""
    if not isinstance(base, numbers.Real) or base <= 0:
        raise TypeError(f"{base!r} ** tensor: the base must be a positive number; write sb.exp(x * sb.log(a))")
    return f.exp(x * math.log(base))


def of_array(name):
    """The same of the array that shares the elements; comparisons give arrays of truth values."""
    def apply(x, *given, **options):
        return getattr(x.numpy(), name)(*(y.numpy() if isinstance(y, Tensor) else y for y in given), **options)

    return apply


for name in ("tolist", "__dlpack_device__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Tensor, name, of_array(name))
Tensor.__rpow__, Tensor.__hash__ = power_of, object.__hash__
