"""Operators of tensors, and what they have of NumPy's arrays."""
from . import _functions as f
from .tensors import Tensor

for symbol, function in {"add": f.add, "sub": f.subtract, "mul": f.multiply, "truediv": f.divide,
                         "matmul": f.matmul}.items():
    setattr(Tensor, f"__{symbol}__", function)
    setattr(Tensor, f"__r{symbol}__", lambda b, a, function=function: function(a, b))
Tensor.__neg__, Tensor.__abs__, Tensor.__pow__ = f.negate, f.abs, f.pow


def of_array(name):
    """The same of the array that shares the elements; comparisons give arrays of truth values."""
    def apply(x, *given, **options):
        given = (y.numpy() if isinstance(y, Tensor) else y for y in given)
        return getattr(x.numpy(), name)(*given, **options)

    return apply


for name in ("tolist", "__array__", "__dlpack__", "__dlpack_device__",
             "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Tensor, name, of_array(name))
Tensor.__hash__ = object.__hash__
