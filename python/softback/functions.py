"""Functions as NumPy and PyTorch have them, composed of the library's; they replace those of _functions.py."""
import string

import numpy as np

from . import _functions as f
from ._declarations import sb_random
from .convert import expect, like, publish, value
from .library import Error, c
from .tensors import Tensor, of_whole, tensor, tensor_of, unpacked, whole_tensor

__all__ = ["arange", "einsum", "randn", "sum", "mean", "max", "min", "variance", "std", "softmax", "log_softmax", "logsumexp",
           "l2_normalize", "reshape", "permute", "expand", "transpose", "squeeze"]

def axes_of(x, axis, who):
    """The numbers of axes, None: all."""
    given = range(x.ndim) if axis is None else axis if hasattr(axis, "__iter__") else (axis,)
    axes = [a + x.ndim if a < 0 else a for a in given]
    if len(set(axes)) < len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise Error(f"{who}: the axes {axis} of {x.shape} are not different ones of {-x.ndim}..{x.ndim - 1}")
    return axes


def reduced(name, function):
    """The same over one axis, several or all."""
    def reduce(x, axis=None, *given, keep=False):
        x = x.cast("f32") if whole_tensor(x := tensor_of(x)) else x
        if axis is not None and not hasattr(axis, "__iter__"):
            return function(x, axis, *given, keep)
        axes = axes_of(x, axis, name)
        left = [a for a in range(x.ndim) if a not in axes]
        rows = f.reshape(f.permute(x, [*left, *axes]), [*(x.shape[a] for a in left), np.prod([x.shape[a] for a in axes], dtype=int)])
        y = function(rows, -1, *given, False)
        return f.reshape(y, [1 if a in axes else n for a, n in enumerate(x.shape)]) if keep else y

    return reduce


def whole_reduced(name, x, axis, keep):
    """NumPy's of whole numbers."""
    if not x.size and name != "sum":
        raise Error(f"{name}: x is {x.shape}, which has no elements")
    return of_whole(getattr(np, name)(x.numpy(), tuple(axes_of(x, axis, name)), keepdims=keep))


def reduction(name, own):
    several = reduced(name, own)

    def reduce(x, axis=None, keep=False):
        if whole_tensor(x := tensor_of(x)):
            return whole_reduced(name, x, axis, keep)
        return several(x, axis, keep=keep) if hasattr(axis, "__iter__") else own(x, axis, keep)

    reduce.__doc__ = f"Over one axis, a tuple of axes, or all.\n\n{own.__doc__}"
    return reduce


def least(x, axis, keep):
    """The least element; backward as max: equal ones share the gradient."""
    return f.negate(f.max(f.negate(x), axis, keep))


sum, mean, max, min = (reduction(name, getattr(f, name, least)) for name in ("sum", "mean", "max", "min"))


def variance(x, axis=None, correction=1, keep=False):
    """sum (x - mean)^2 / (n - correction), over one axis, a tuple of axes, or all. PyTorch's correction is
    1, NumPy's 0."""
    return reduced("variance", f.variance)(x, axis, correction, keep=keep)


def std(x, axis=None, correction=1, keep=False):
    """The square root of the variance."""
    return f.sqrt(variance(x, axis, correction, keep))


def over(name):
    """Along the last axis, or another one."""
    last, other = getattr(f, name), getattr(f, name + "_over")

    def compute(x, axis=-1):
        return last(x) if axis == -1 else other(x, axis)

    compute.__doc__ = last.__doc__
    return compute


softmax, log_softmax, logsumexp, l2_normalize = map(over, ("softmax", "log_softmax", "logsumexp", "l2_normalize"))


def spread(function):
    """The same with sizes or axes as one tuple or one by one."""
    def of_sizes(x, *sizes):
        return function(x, unpacked(sizes))

    of_sizes.__doc__ = function.__doc__
    return of_sizes


reshape, permute, expand = map(spread, (f.reshape, f.permute, f.expand))


def transpose(x, axis_a=None, axis_b=None):
    """Exchanges two axes; without them, reverses all."""
    x = tensor_of(x)
    return f.permute(x, range(x.ndim)[::-1]) if axis_a is None else f.transpose(x, axis_a, axis_b)


def squeeze(x, axis=None):
    """Without axes of size 1: all of them, or those given, which must be."""
    x = tensor_of(x)
    given = [a for a, n in enumerate(x.shape) if n == 1] if axis is None else axes_of(x, axis, "squeeze")
    if any(x.shape[a] != 1 for a in given):
        raise Error(f"squeeze: the axes {axis} of {x.shape} are not all of size 1")
    return f.reshape(x, [n for a, n in enumerate(x.shape) if a not in given])


def arange(start, stop=None, step=1, dtype=None):
    """The numbers of numpy.arange, of i32 or f32."""
    made = np.arange(start) if stop is None else np.arange(start, stop, step)
    return tensor(made, dtype or ("f32" if made.dtype.kind == "f" else "i32"))


normals = sb_random(seed=0)  # what randn draws from unless told otherwise


def randn(*shape, dtype="f32", random=None, requires_grad=False):
    """Standard normal numbers, from a stream sb.Random(seed) or that of the module."""
    stream = normals if random is None else value(sb_random, random)
    made = f.Parameters.of(dtype, c.sb_random_bits(stream)).add("x", unpacked(shape), {"kind": "normal", "value": 1})
    return tensor(made.detach(), dtype, requires_grad)


def einsum(equation, *operands):
    """Sums of products by letters, as numpy.einsum: einsum("bij,bjk->bik", a, b). Its products are those of
    matmul, from the left to the right."""
    expect(isinstance(equation, str), equation, 'a text such as "ij,jk->ik"')
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms, xs = inputs.split(","), [like(x, *operands) for x in operands]
    if len(terms) != len(xs):
        raise Error(f"einsum: {equation!r} has {len(terms)} operands, but {len(xs)} were given")
    terms, output = lettered(equation, terms, output if arrow else None, xs)
    x, term = diagonal(xs[0], terms[0])
    for i in range(1, len(xs)):
        kept = set(output).union(*terms[i + 1:])
        x, term = product(x, term, *diagonal(xs[i], terms[i]), kept)
    gone = [a for a, letter in enumerate(term) if letter not in output]
    x, term = (sum(x, gone), [t for t in term if t in output]) if gone else (x, list(term))
    return f.permute(x, [term.index(letter) for letter in output]) if output != "".join(term) else x


def lettered(equation, terms, output, xs):
    """The terms with letters in place of "...", the output's term, and sizes that agree."""
    free = [letter for letter in string.ascii_letters if letter not in equation]
    wide = [x.ndim - len(t.replace("...", "")) for t, x in zip(terms, xs)]
    dots = "".join(free[:np.max([n for t, n in zip(terms, wide) if "..." in t] or [0])])
    terms = [t.replace("...", dots[len(dots) - n:] if n > 0 else "") for t, n in zip(terms, wide)]
    letters = "".join(terms)
    output = output.replace("...", dots) if output is not None else dots + "".join(
        sorted(t for t in set(letters) if letters.count(t) == 1 and t not in dots))
    sizes = {}
    for t, x in zip(terms, xs):
        if len(t) != x.ndim or not all(letter.isalpha() for letter in t):
            raise Error(f"einsum: {equation!r} names {len(t)} axes of {x.shape}; one letter for each")
        for letter, n in zip(t, x.shape):
            if sizes.setdefault(letter, n) != n:
                raise Error(f"einsum: {equation!r}: {letter} is {sizes[letter]} and {n}")
    if not set(output) <= set(sizes) or len(set(output)) < len(output):
        raise Error(f"einsum: {equation!r}: the output must have different letters of the operands")
    return terms, output


def diagonal(x, term):
    """The same with each letter once."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            a, b = term.index(letter), term.rindex(letter)
            order = [a, b, *(i for i in range(x.ndim) if i not in (a, b))]
            x = f.permute(x, order)[(np.arange(x.shape[a]),) * 2]
            term = letter + "".join(term[i] for i in order[2:])
    return x, term


def product(x, a, y, b, kept):
    """The product of two terms, summed over the letters that are not kept."""
    both = [t for t in a if t in b]
    batch, inner = [t for t in both if t in kept], [t for t in both if t not in kept]
    parts = []
    for z, term in ((x, a), (y, b)):
        gone = [i for i, t in enumerate(term) if t not in both and t not in kept]
        z, term = (sum(z, gone), [t for t in term if t in both or t in kept]) if gone else (z, list(term))
        outer = [t for t in term if t not in both]
        size = dict(zip(term, z.shape))
        order = batch + (outer + inner if not parts else inner + outer)
        z = f.permute(z, [term.index(t) for t in order])
        counts = [int(np.prod([size[t] for t in group], dtype=int)) for group in ((outer, inner) if not parts else (inner, outer))]
        parts.append((f.reshape(z, [size[t] for t in batch] + counts), outer, size))
    (x, left, sizes), (y, right, more) = parts
    term = batch + left + right
    return f.reshape(f.matmul(x, y), [(sizes | more)[t] for t in term]), "".join(term)


publish(globals(), __all__, __all__[3:])
Tensor.T = property(transpose, doc="All axes reversed.")
