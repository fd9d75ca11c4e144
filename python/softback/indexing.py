"""x[index] as in NumPy, with gradients: numbers, slices, None, ..., lists, arrays and truth values."""
import numbers

import numpy as np

from . import _functions as f
from .arrays import whole
from .tensors import Tensor, tensor


def getitem(x, index):
    """A part, as in NumPy. Numbers and slices of step 1 of the first axis share the data; others copy."""
    items = [array_of(i) for i in (index if isinstance(index, tuple) else (index,))]
    if any(getattr(i, "dtype", None) == bool for i in items):
        np.broadcast_to(False, x.shape)[tuple(items)]  # refuses truth values of other sizes
    items = whole_index(x, [part for i in items for part in (i.nonzero() if getattr(i, "dtype", None) == bool else [i])])
    if whole(x) and any(isinstance(i, np.ndarray) or getattr(i, "step", None) not in (None, 1) for i in items):
        return tensor(x.numpy()[tuple(items)])
    many, axis, arrays, shape = any(isinstance(i, np.ndarray) for i in items), 0, {}, []
    for i in items:
        if i is None:
            shape.append(1)
            continue
        n = x.shape[axis]
        if isinstance(i, slice):
            x = sliced(x, axis, range(n)[i])
            shape.append(x.shape[axis])
        elif many:
            arrays[axis] = checked(np.asarray(i), n, axis, x.shape)
            shape.append(None)
        else:
            x = f.slice(x, axis, int(checked(np.asarray(i), n, axis, x.shape)), 1)
        axis += 1
    return picked(x, arrays, shape) if many else f.reshape(x, shape) if tuple(shape) != x.shape else x


def array_of(i):
    """Lists, arrays and tensors as arrays of whole numbers or truth values."""
    if isinstance(i, (slice, type(None), type(...))) or isinstance(i, numbers.Integral) and not isinstance(i, bool):
        return i
    array = i.numpy() if isinstance(i, Tensor) else np.asarray(i)
    array = array.astype(int) if array.size == 0 and array.dtype.kind == "f" else array
    if (one := array.dtype.kind == "b" and array.ndim == 0) or array.dtype.kind not in "iub":
        raise IndexError(f"index: {i!r} is one truth value, which picks no elements; x[None] adds an axis, and an array of truth values picks elements"
                         if one else f"index: {i!r} is no whole number, slice, None, ... or array of whole numbers or truth values")
    return array


def whole_index(x, items):
    """The same with a slice for each axis that is not named."""
    named = sum(i is not None and i is not ... for i in items)
    if named > x.ndim or sum(i is ... for i in items) > 1:
        raise IndexError(f"index: {named} axes are named, and ... at most once, but {x.shape} has {x.ndim} axes")
    at = next((k for k, i in enumerate(items) if i is ...), len(items))
    return [*items[:at], *[slice(None)] * (x.ndim - named), *items[at + 1:]]


def checked(places, n, axis, shape):
    wrong = places[(places < -n) | (places >= n)] if places.size else places
    if wrong.size:
        raise IndexError(f"index: {wrong.flat[0]} is not in {-n}..{n - 1}, on axis {axis} of {shape}")
    return np.where(places < 0, places + n, places)


def sliced(x, axis, places):
    if places.step == 1 or len(places) < 2:
        return f.slice(x, axis, places.start if len(places) else 0, len(places))
    return picked(x, {axis: np.asarray(places)}, [n if i != axis else None for i, n in enumerate(x.shape)])


def picked(x, arrays, shape):
    """The entries at arrays of places, {axis: array}; `shape` has None where these axes are, and the
    result's sizes elsewhere. The arrays' axes come where they were if together, else first."""
    places = np.broadcast_arrays(*arrays.values())
    order, sizes = [*arrays, *(a for a in range(x.ndim) if a not in arrays)], [x.shape[a] for a in arrays]
    flat = np.ravel_multi_index(places, sizes) if places[0].size else places[0]
    rows = f.reshape(f.permute(x, order), (np.prod(sizes, dtype=int), np.prod([x.shape[a] for a in order[len(sizes):]], dtype=int)))
    y = f.embedding(rows, flat.ravel().astype("i4"))
    at = [i for i, n in enumerate(shape) if n is None]
    first = at[0] if at == list(range(at[0], at[-1] + 1)) else 0
    rest, own, k = [n for n in shape if n is not None], list(flat.shape), flat.ndim
    y = f.reshape(y, own + rest)  # the k own axes stand behind the first ones of the rest
    return f.permute(y, [*range(k, k + first), *range(k), *range(k + first, y.ndim)]) if first and own else y


def setitem(x, index, value):
    raise TypeError("tensors are not written in part: make another one with sb.where, or write all with x.assign(values)")


Tensor.__getitem__, Tensor.__setitem__ = getitem, setitem
Tensor.__iter__ = lambda x: (x[i] for i in range(len(x)))
