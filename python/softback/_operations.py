"""The operations of ops.h. Made by python/generate.py; do not edit."""
from ctypes import byref, c_int, c_int64, c_void_p

from . import convert as _to
from ._declarations import *
from .library import c as _c
from .tensors import Mask, Tensor, new, retain

__all__ = ["mask_allow", "mask_block", "mask_from_bias", "mask_causal", "mask_causal_last", "mask_lengths", "mask_window", "mask_blocks", "mask_local", "mask_strided", "mask_global", "mask_and", "add", "subtract", "multiply", "divide", "where", "negate", "scale", "sqrt", "exp", "log", "tanh", "sigmoid", "relu", "gelu", "gelu_tanh", "silu", "detach", "cast", "matmul", "matmul_nt", "matmul_tn", "linear", "linear_activation", "reshape", "permute", "transpose", "concatenate", "stack", "slice", "split", "expand", "sum", "mean", "max", "argmax", "softmax", "masked_softmax", "log_softmax", "logsumexp", "layer_norm", "residual_layer_norm", "rms_norm", "l2_normalize", "softmax_over", "log_softmax_over", "logsumexp_over", "layer_norm_over", "rms_norm_over", "l2_normalize_over", "embedding", "embedding_padded", "gather", "dropout", "residual_dropout", "cross_entropy", "linear_cross_entropy", "mean_squared_error", "sinusoidal", "rotary", "alibi", "relative_bias", "attention", "attention_weights", "to_ranks", "from_ranks"]


def mask_allow(allowed):
    """From booleans broadcastable to (B, H, Lq, Lk): true where a pair may attend."""
    return Mask(_c.sb_mask_allow, _to.tensor(allowed))


def mask_block(blocked):
    """From booleans broadcastable to (B, H, Lq, Lk): true where a pair is blocked."""
    return Mask(_c.sb_mask_block, _to.tensor(blocked))


def mask_from_bias(bias):
    """From numbers that are added to the scores (B, H, Lq, Lk), as other libraries take them: a pair is
    blocked where the number is -inf. Give the same tensor as the bias of attention if its other
    numbers count. A bias of -inf alone makes a fully masked query NaN; with the mask it is 0."""
    return Mask(_c.sb_mask_from_bias, _to.tensor(bias))


def mask_causal():
    """Query i attends to the keys 0..i: the first query is aligned with the first key."""
    return Mask(_c.sb_mask_causal)


def mask_causal_last():
    """Query i attends to the keys 0..i + Lk - Lq: the last query is aligned with the last key. Use it
    when the first Lk - Lq keys come from a cache."""
    return Mask(_c.sb_mask_causal_last)


def mask_lengths(lengths=None):
    """Key padding mask: sequence b has lengths[b] keys, in 0..Lk (i32, (B)); later keys are blocked."""
    return Mask(_c.sb_mask_lengths, _to.tensor(lengths))


def mask_window(before, after):
    """Sliding window: query i attends to the keys i - before .. i + after; both are at least 0."""
    return Mask(_c.sb_mask_window, before, after)


def mask_blocks(kept, size):
    """Block-sparse: query i attends to key j where kept[b, h, i / size, j / size], booleans
    broadcastable to (B, H, blocks of queries, blocks of keys), is true. Tiled attention skips the
    other blocks."""
    return Mask(_c.sb_mask_blocks, _to.tensor(kept), size)


def mask_local(Lq, Lk, size, around):
    """Patterns of blocks for Lq queries and Lk keys; block row r attends to block column c
      local    where |r - c| <= around;
      strided  also where c is the last of `stride` columns: c % stride = stride - 1 (Child, Gray,
               Radford and Sutskever 2019, "fixed");
      global   where |r - c| <= around, or r or c is one of the first `globals` (Beltagy, Peters and
               Cohan 2020; Zaheer et al. 2020)."""
    return Mask(_c.sb_mask_local, Lq, Lk, size, around)


def mask_strided(Lq, Lk, size, around, stride):
    """Patterns of blocks for Lq queries and Lk keys; block row r attends to block column c
      local    where |r - c| <= around;
      strided  also where c is the last of `stride` columns: c % stride = stride - 1 (Child, Gray,
               Radford and Sutskever 2019, "fixed");
      global   where |r - c| <= around, or r or c is one of the first `globals` (Beltagy, Peters and
               Cohan 2020; Zaheer et al. 2020)."""
    return Mask(_c.sb_mask_strided, Lq, Lk, size, around, stride)


def mask_global(Lq, Lk, size, around, globals):
    """Patterns of blocks for Lq queries and Lk keys; block row r attends to block column c
      local    where |r - c| <= around;
      strided  also where c is the last of `stride` columns: c % stride = stride - 1 (Child, Gray,
               Radford and Sutskever 2019, "fixed");
      global   where |r - c| <= around, or r or c is one of the first `globals` (Beltagy, Peters and
               Cohan 2020; Zaheer et al. 2020)."""
    return Mask(_c.sb_mask_global, Lq, Lk, size, around, globals)


def mask_and(a, b):
    """The pairs that both masks allow. At most eight masks can be combined."""
    return Mask(_c.sb_mask_and, _to.mask(a), _to.mask(b))


_sb_add = _c.sb_add
def add(a, b):
    """Elementwise arithmetic of two tensors.

    Shape     a, b broadcastable to each other -> y of the common shape
    Backward  add:      da = dy          db = dy
              subtract: da = dy          db = -dy
              multiply: da = dy b        db = dy a
              divide:   da = dy / b      db = -dy a / b^2
    Fails     the shapes do not broadcast"""
    if a.__class__ is not Tensor:
        a = _to.tensor(a)
    if b.__class__ is not Tensor:
        b = _to.tensor(b)
    c = _sb_add(a._c, b._c)
    if c is None:
        return _to.retry(add, a, b)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_subtract = _c.sb_subtract
def subtract(a, b):
    """Elementwise arithmetic of two tensors.

    Shape     a, b broadcastable to each other -> y of the common shape
    Backward  add:      da = dy          db = dy
              subtract: da = dy          db = -dy
              multiply: da = dy b        db = dy a
              divide:   da = dy / b      db = -dy a / b^2
    Fails     the shapes do not broadcast"""
    if a.__class__ is not Tensor:
        a = _to.tensor(a)
    if b.__class__ is not Tensor:
        b = _to.tensor(b)
    c = _sb_subtract(a._c, b._c)
    if c is None:
        return _to.retry(subtract, a, b)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_multiply = _c.sb_multiply
def multiply(a, b):
    """Elementwise arithmetic of two tensors.

    Shape     a, b broadcastable to each other -> y of the common shape
    Backward  add:      da = dy          db = dy
              subtract: da = dy          db = -dy
              multiply: da = dy b        db = dy a
              divide:   da = dy / b      db = -dy a / b^2
    Fails     the shapes do not broadcast"""
    if a.__class__ is not Tensor:
        a = _to.tensor(a)
    if b.__class__ is not Tensor:
        b = _to.tensor(b)
    c = _sb_multiply(a._c, b._c)
    if c is None:
        return _to.retry(multiply, a, b)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_divide = _c.sb_divide
def divide(a, b):
    """Elementwise arithmetic of two tensors.

    Shape     a, b broadcastable to each other -> y of the common shape
    Backward  add:      da = dy          db = dy
              subtract: da = dy          db = -dy
              multiply: da = dy b        db = dy a
              divide:   da = dy / b      db = -dy a / b^2
    Fails     the shapes do not broadcast"""
    if a.__class__ is not Tensor:
        a = _to.tensor(a)
    if b.__class__ is not Tensor:
        b = _to.tensor(b)
    c = _sb_divide(a._c, b._c)
    if c is None:
        return _to.retry(divide, a, b)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_where = _c.sb_where
def where(condition, a, b):
    """y = a where the condition is true, else b.

    Shape     condition (bool), a, b broadcastable to each other -> y of the common shape
    Backward  da = condition ? dy : 0     db = condition ? 0 : dy
    Fails     the shapes do not broadcast; condition is not bool"""
    if condition.__class__ is not Tensor:
        condition = _to.tensor(condition)
    if a.__class__ is not Tensor:
        a = _to.tensor(a)
    if b.__class__ is not Tensor:
        b = _to.tensor(b)
    c = _sb_where(condition._c, a._c, b._c)
    if c is None:
        return _to.retry(where, condition, a, b)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_negate = _c.sb_negate
def negate(x):
    """negate:  y = -x                          dx = -dy
    scale:   y = factor x                    dx = factor dy
    sqrt:    y = sqrt x                      dx = dy / (2 y)
    exp:     y = e^x                         dx = dy y
             fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
    log:     y = ln x                        dx = dy / x
    tanh:    y = tanh x                      dx = dy (1 - y^2)
    sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
    relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
    gelu:    y = x Phi(x), Phi the normal distribution function, by erf
                                             dx = dy (Phi(x) + x phi(x)), phi its density
    gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
                                             dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
    silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)

    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_negate(x._c)
    if c is None:
        return _to.retry(negate, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_scale = _c.sb_scale
def scale(x, factor):
    """negate:  y = -x                          dx = -dy
    scale:   y = factor x                    dx = factor dy
    sqrt:    y = sqrt x                      dx = dy / (2 y)
    exp:     y = e^x                         dx = dy y
             fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
    log:     y = ln x                        dx = dy / x
    tanh:    y = tanh x                      dx = dy (1 - y^2)
    sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
    relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
    gelu:    y = x Phi(x), Phi the normal distribution function, by erf
                                             dx = dy (Phi(x) + x phi(x)), phi its density
    gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
                                             dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
    silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)

    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_scale(x._c, factor)
    if c is None:
        return _to.retry(scale, x, factor)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_sqrt = _c.sb_sqrt
def sqrt(x):
    """negate:  y = -x                          dx = -dy
    scale:   y = factor x                    dx = factor dy
    sqrt:    y = sqrt x                      dx = dy / (2 y)
    exp:     y = e^x                         dx = dy y
             fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
    log:     y = ln x                        dx = dy / x
    tanh:    y = tanh x                      dx = dy (1 - y^2)
    sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
    relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
    gelu:    y = x Phi(x), Phi the normal distribution function, by erf
                                             dx = dy (Phi(x) + x phi(x)), phi its density
    gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
                                             dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
    silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)

    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_sqrt(x._c)
    if c is None:
        return _to.retry(sqrt, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_exp = _c.sb_exp
def exp(x):
    """negate:  y = -x                          dx = -dy
    scale:   y = factor x                    dx = factor dy
    sqrt:    y = sqrt x                      dx = dy / (2 y)
    exp:     y = e^x                         dx = dy y
             fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
    log:     y = ln x                        dx = dy / x
    tanh:    y = tanh x                      dx = dy (1 - y^2)
    sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
    relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
    gelu:    y = x Phi(x), Phi the normal distribution function, by erf
                                             dx = dy (Phi(x) + x phi(x)), phi its density
    gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
                                             dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
    silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)

    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_exp(x._c)
    if c is None:
        return _to.retry(exp, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_log = _c.sb_log
def log(x):
    """negate:  y = -x                          dx = -dy
    scale:   y = factor x                    dx = factor dy
    sqrt:    y = sqrt x                      dx = dy / (2 y)
    exp:     y = e^x                         dx = dy y
             fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
    log:     y = ln x                        dx = dy / x
    tanh:    y = tanh x                      dx = dy (1 - y^2)
    sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
    relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
    gelu:    y = x Phi(x), Phi the normal distribution function, by erf
                                             dx = dy (Phi(x) + x phi(x)), phi its density
    gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
                                             dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
    silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)

    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_log(x._c)
    if c is None:
        return _to.retry(log, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_tanh = _c.sb_tanh
def tanh(x):
    """negate:  y = -x                          dx = -dy
    scale:   y = factor x                    dx = factor dy
    sqrt:    y = sqrt x                      dx = dy / (2 y)
    exp:     y = e^x                         dx = dy y
             fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
    log:     y = ln x                        dx = dy / x
    tanh:    y = tanh x                      dx = dy (1 - y^2)
    sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
    relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
    gelu:    y = x Phi(x), Phi the normal distribution function, by erf
                                             dx = dy (Phi(x) + x phi(x)), phi its density
    gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
                                             dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
    silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)

    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_tanh(x._c)
    if c is None:
        return _to.retry(tanh, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_sigmoid = _c.sb_sigmoid
def sigmoid(x):
    """negate:  y = -x                          dx = -dy
    scale:   y = factor x                    dx = factor dy
    sqrt:    y = sqrt x                      dx = dy / (2 y)
    exp:     y = e^x                         dx = dy y
             fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
    log:     y = ln x                        dx = dy / x
    tanh:    y = tanh x                      dx = dy (1 - y^2)
    sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
    relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
    gelu:    y = x Phi(x), Phi the normal distribution function, by erf
                                             dx = dy (Phi(x) + x phi(x)), phi its density
    gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
                                             dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
    silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)

    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_sigmoid(x._c)
    if c is None:
        return _to.retry(sigmoid, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_relu = _c.sb_relu
def relu(x):
    """negate:  y = -x                          dx = -dy
    scale:   y = factor x                    dx = factor dy
    sqrt:    y = sqrt x                      dx = dy / (2 y)
    exp:     y = e^x                         dx = dy y
             fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
    log:     y = ln x                        dx = dy / x
    tanh:    y = tanh x                      dx = dy (1 - y^2)
    sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
    relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
    gelu:    y = x Phi(x), Phi the normal distribution function, by erf
                                             dx = dy (Phi(x) + x phi(x)), phi its density
    gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
                                             dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
    silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)

    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_relu(x._c)
    if c is None:
        return _to.retry(relu, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_gelu = _c.sb_gelu
def gelu(x):
    """negate:  y = -x                          dx = -dy
    scale:   y = factor x                    dx = factor dy
    sqrt:    y = sqrt x                      dx = dy / (2 y)
    exp:     y = e^x                         dx = dy y
             fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
    log:     y = ln x                        dx = dy / x
    tanh:    y = tanh x                      dx = dy (1 - y^2)
    sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
    relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
    gelu:    y = x Phi(x), Phi the normal distribution function, by erf
                                             dx = dy (Phi(x) + x phi(x)), phi its density
    gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
                                             dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
    silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)

    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_gelu(x._c)
    if c is None:
        return _to.retry(gelu, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_gelu_tanh = _c.sb_gelu_tanh
def gelu_tanh(x):
    """negate:  y = -x                          dx = -dy
    scale:   y = factor x                    dx = factor dy
    sqrt:    y = sqrt x                      dx = dy / (2 y)
    exp:     y = e^x                         dx = dy y
             fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
    log:     y = ln x                        dx = dy / x
    tanh:    y = tanh x                      dx = dy (1 - y^2)
    sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
    relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
    gelu:    y = x Phi(x), Phi the normal distribution function, by erf
                                             dx = dy (Phi(x) + x phi(x)), phi its density
    gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
                                             dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
    silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)

    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_gelu_tanh(x._c)
    if c is None:
        return _to.retry(gelu_tanh, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_silu = _c.sb_silu
def silu(x):
    """negate:  y = -x                          dx = -dy
    scale:   y = factor x                    dx = factor dy
    sqrt:    y = sqrt x                      dx = dy / (2 y)
    exp:     y = e^x                         dx = dy y
             fast f32 kernels of the CPU: 0 for x < -86.9, where e^x < 1.9e-38
    log:     y = ln x                        dx = dy / x
    tanh:    y = tanh x                      dx = dy (1 - y^2)
    sigmoid: y = 1 / (1 + e^-x)              dx = dy y (1 - y)
    relu:    y = max(x, 0)                   dx = x > 0 ? dy : 0, which is 0 at 0; NaN stays NaN
    gelu:    y = x Phi(x), Phi the normal distribution function, by erf
                                             dx = dy (Phi(x) + x phi(x)), phi its density
    gelu_tanh: y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
                                             dx = dy ((1 + t)/2 + x/2 (1 - t^2) u'), t = tanh u
    silu:    y = x sigmoid(x)                dx = dy s (1 + x (1 - s)), s = sigmoid(x)

    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_silu(x._c)
    if c is None:
        return _to.retry(silu, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_detach = _c.sb_detach
def detach(x):
    """y = x without a gradient; shares x's data."""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_detach(x._c)
    if c is None:
        return _to.retry(detach, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_cast = _c.sb_cast
def cast(x, dtype):
    """y = x in another dtype. Between real dtypes the gradient is cast back; casts to and from integers
    and booleans have no gradient. A real number outside the range of i32 becomes the nearest i32,
    and NaN becomes 0."""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_cast(x._c, _to.choice("sb_dtype", dtype))
    if c is None:
        return _to.retry(cast, x, dtype)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_matmul = _c.sb_matmul
def matmul(a, b):
    """Matrix product. Leading axes are batch axes and broadcast. matmul_nt reads b transposed and
    matmul_tn reads a transposed, without a copy.

    Shape     matmul:    a (..., M, K), b (..., K, N) -> y (..., M, N)
              matmul_nt: a (..., M, K), b (..., N, K) -> y (..., M, N)     y = a b'
              matmul_tn: a (..., K, M), b (..., K, N) -> y (..., M, N)     y = a' b
    Backward  matmul:    da = dy b'       db = a' dy
              matmul_nt: da = dy b        db = dy' a
              matmul_tn: da = b dy'       db = a dy
    Fails     a rank is below 2; inner sizes differ; batch axes do not broadcast"""
    if a.__class__ is not Tensor:
        a = _to.tensor(a)
    if b.__class__ is not Tensor:
        b = _to.tensor(b)
    c = _sb_matmul(a._c, b._c)
    if c is None:
        return _to.retry(matmul, a, b)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_matmul_nt = _c.sb_matmul_nt
def matmul_nt(a, b):
    """Matrix product. Leading axes are batch axes and broadcast. matmul_nt reads b transposed and
    matmul_tn reads a transposed, without a copy.

    Shape     matmul:    a (..., M, K), b (..., K, N) -> y (..., M, N)
              matmul_nt: a (..., M, K), b (..., N, K) -> y (..., M, N)     y = a b'
              matmul_tn: a (..., K, M), b (..., K, N) -> y (..., M, N)     y = a' b
    Backward  matmul:    da = dy b'       db = a' dy
              matmul_nt: da = dy b        db = dy' a
              matmul_tn: da = b dy'       db = a dy
    Fails     a rank is below 2; inner sizes differ; batch axes do not broadcast"""
    if a.__class__ is not Tensor:
        a = _to.tensor(a)
    if b.__class__ is not Tensor:
        b = _to.tensor(b)
    c = _sb_matmul_nt(a._c, b._c)
    if c is None:
        return _to.retry(matmul_nt, a, b)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_matmul_tn = _c.sb_matmul_tn
def matmul_tn(a, b):
    """Matrix product. Leading axes are batch axes and broadcast. matmul_nt reads b transposed and
    matmul_tn reads a transposed, without a copy.

    Shape     matmul:    a (..., M, K), b (..., K, N) -> y (..., M, N)
              matmul_nt: a (..., M, K), b (..., N, K) -> y (..., M, N)     y = a b'
              matmul_tn: a (..., K, M), b (..., K, N) -> y (..., M, N)     y = a' b
    Backward  matmul:    da = dy b'       db = a' dy
              matmul_nt: da = dy b        db = dy' a
              matmul_tn: da = b dy'       db = a dy
    Fails     a rank is below 2; inner sizes differ; batch axes do not broadcast"""
    if a.__class__ is not Tensor:
        a = _to.tensor(a)
    if b.__class__ is not Tensor:
        b = _to.tensor(b)
    c = _sb_matmul_tn(a._c, b._c)
    if c is None:
        return _to.retry(matmul_tn, a, b)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_linear = _c.sb_linear
def linear(x, weight, bias=None):
    """A fully connected layer: y = activation(x W' + b), in one kernel. linear has no activation.

    Shape     x (..., in), weight (out, in), bias (out) or NULL -> y (..., out)
    Backward  dz = dy activation'(z), z = x W' + b;  dx = dz W   dW = dz' x   db = sum of dz's rows
    Fails     x is a scalar; sizes differ; the activation is unknown"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    if weight.__class__ is not Tensor:
        weight = _to.tensor(weight)
    if bias is not None and bias.__class__ is not Tensor:
        bias = _to.tensor(bias)
    c = _sb_linear(x._c, weight._c, bias if bias is None else bias._c)
    if c is None:
        return _to.retry(linear, x, weight, bias)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_linear_activation = _c.sb_linear_activation
def linear_activation(x, weight, bias=None, activation="identity"):
    """A fully connected layer: y = activation(x W' + b), in one kernel. linear has no activation.

    Shape     x (..., in), weight (out, in), bias (out) or NULL -> y (..., out)
    Backward  dz = dy activation'(z), z = x W' + b;  dx = dz W   dW = dz' x   db = sum of dz's rows
    Fails     x is a scalar; sizes differ; the activation is unknown"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    if weight.__class__ is not Tensor:
        weight = _to.tensor(weight)
    if bias is not None and bias.__class__ is not Tensor:
        bias = _to.tensor(bias)
    c = _sb_linear_activation(x._c, weight._c, bias if bias is None else bias._c, _to.choice("sb_activation", activation))
    if c is None:
        return _to.retry(linear_activation, x, weight, bias, activation)
    y = new(Tensor)
    y._c = retain(c)
    return y


def reshape(x, shape):
    """The same elements in another shape; shares x's data. One dimension may be -1: it is inferred.

    Backward  dx = dy in x's shape
    Fails     the number of elements differs; two dimensions are -1"""
    c = _c.sb_reshape(_to.tensor(x), *_to.sizes(shape, c_int64))
    if c is None:
        return _to.retry(reshape, x, shape)
    return _to.result(c)


def permute(x, order):
    """Reorders axes: axis i of y is axis order[i] of x. transpose swaps two axes.

    Backward  dx = dy with its axes in x's order
    Fails     rank, the length of order, is not x's; order does not name each axis once"""
    c = _c.sb_permute(_to.tensor(x), *_to.sizes(order, c_int))
    if c is None:
        return _to.retry(permute, x, order)
    return _to.result(c)


_sb_transpose = _c.sb_transpose
def transpose(x, axis_a, axis_b):
    """Reorders axes: axis i of y is axis order[i] of x. transpose swaps two axes.

    Backward  dx = dy with its axes in x's order
    Fails     rank, the length of order, is not x's; order does not name each axis once"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_transpose(x._c, axis_a, axis_b)
    if c is None:
        return _to.retry(transpose, x, axis_a, axis_b)
    y = new(Tensor)
    y._c = retain(c)
    return y


def concatenate(x, axis):
    """Joins tensors along an existing axis (concatenate) or along a new axis (stack). Any dtype.

    Shape     concatenate: x_i of one shape except in `axis` -> y, whose size there is their sum
              stack: x_i of one shape -> y with a new axis of size n before x's `axis`
    Backward  dx_i = the part of dy that x_i became
    Fails     n < 1; shapes differ in another axis"""
    c = _c.sb_concatenate(*_to.tensors(x), axis)
    if c is None:
        return _to.retry(concatenate, x, axis)
    return _to.result(c)


def stack(x, axis):
    """Joins tensors along an existing axis (concatenate) or along a new axis (stack). Any dtype.

    Shape     concatenate: x_i of one shape except in `axis` -> y, whose size there is their sum
              stack: x_i of one shape -> y with a new axis of size n before x's `axis`
    Backward  dx_i = the part of dy that x_i became
    Fails     n < 1; shapes differ in another axis"""
    c = _c.sb_stack(*_to.tensors(x), axis)
    if c is None:
        return _to.retry(stack, x, axis)
    return _to.result(c)


_sb_slice = _c.sb_slice
def slice(x, axis, start, length):
    """Parts of a tensor along an axis: slice returns `length` elements from `start` on; split returns
    n parts of the given lengths. Any dtype. A slice along the first axis shares x's data.

    Backward  dx = dy in the range of the slice, 0 elsewhere
    Fails     the range exceeds the axis; the lengths do not add up to the axis"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_slice(x._c, axis, start, length)
    if c is None:
        return _to.retry(slice, x, axis, start, length)
    y = new(Tensor)
    y._c = retain(c)
    return y


def split(x, axis, lengths):
    """Parts of a tensor along an axis: slice returns `length` elements from `start` on; split returns
    n parts of the given lengths. Any dtype. A slice along the first axis shares x's data.

    Backward  dx = dy in the range of the slice, 0 elsewhere
    Fails     the range exceeds the axis; the lengths do not add up to the axis"""
    parts = (c_void_p * len(lengths))()
    if not _c.sb_split(_to.tensor(x), axis, *_to.sizes(lengths, c_int64), parts):
        return _to.retry(split, x, axis, lengths)
    return list(map(_to.result, parts))


def expand(x, shape):
    """Broadcasts x to a shape: repeats axes of size 1, and adds leading axes.

    Backward  dx = dy summed over the broadcast axes
    Fails     x does not broadcast to the shape"""
    c = _c.sb_expand(_to.tensor(x), *_to.sizes(shape, c_int64))
    if c is None:
        return _to.retry(expand, x, shape)
    return _to.result(c)


_sb_sum = _c.sb_sum
def sum(x, axis=None, keep=False):
    """sum:  y = sum_i x_i                dx_i = dy
    mean: y = sum_i x_i / n            dx_i = dy / n
    max:  y = max_i x_i                dx_i = dy / m for the m elements equal to the maximum, else 0
          NaN counts as the maximum
    argmax: the index (i32) of the first maximum; not differentiable

    Fails     the axis does not exist; mean, max or argmax of no elements"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_sum(x._c, _to.every(axis), keep)
    if c is None:
        return _to.retry(sum, x, axis, keep)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_mean = _c.sb_mean
def mean(x, axis=None, keep=False):
    """sum:  y = sum_i x_i                dx_i = dy
    mean: y = sum_i x_i / n            dx_i = dy / n
    max:  y = max_i x_i                dx_i = dy / m for the m elements equal to the maximum, else 0
          NaN counts as the maximum
    argmax: the index (i32) of the first maximum; not differentiable

    Fails     the axis does not exist; mean, max or argmax of no elements"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_mean(x._c, _to.every(axis), keep)
    if c is None:
        return _to.retry(mean, x, axis, keep)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_max = _c.sb_max
def max(x, axis=None, keep=False):
    """sum:  y = sum_i x_i                dx_i = dy
    mean: y = sum_i x_i / n            dx_i = dy / n
    max:  y = max_i x_i                dx_i = dy / m for the m elements equal to the maximum, else 0
          NaN counts as the maximum
    argmax: the index (i32) of the first maximum; not differentiable

    Fails     the axis does not exist; mean, max or argmax of no elements"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_max(x._c, _to.every(axis), keep)
    if c is None:
        return _to.retry(max, x, axis, keep)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_argmax = _c.sb_argmax
def argmax(x, axis=None):
    """sum:  y = sum_i x_i                dx_i = dy
    mean: y = sum_i x_i / n            dx_i = dy / n
    max:  y = max_i x_i                dx_i = dy / m for the m elements equal to the maximum, else 0
          NaN counts as the maximum
    argmax: the index (i32) of the first maximum; not differentiable

    Fails     the axis does not exist; mean, max or argmax of no elements"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_argmax(x._c, _to.every(axis))
    if c is None:
        return _to.retry(argmax, x, axis)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_softmax = _c.sb_softmax
def softmax(x):
    """Softmax over the last axis: y_i = exp(x_i - max x) / sum_j exp(x_j - max x).

    Shape     x (..., C) -> y (..., C)
    Backward  dx_i = y_i (dy_i - sum_j dy_j y_j)            saves y, not x
    Fails     x is a scalar
    Source    Bridle 1990; the shift by max x leaves the value and the gradient unchanged"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_softmax(x._c)
    if c is None:
        return _to.retry(softmax, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


def masked_softmax(x, mask, temperature=1.0):
    """Softmax over the entries that the mask allows, after division by the temperature:
    y_i = exp(x_i / T - max) / sum over the allowed j; blocked entries are exactly 0. A fully masked
    row has y = 0 and dx = 0. The mask alone decides, never the values: NaN in a blocked entry has no
    effect, NaN in an allowed entry makes its row NaN.

    Shape     x (..., Lq, Lk), aligned from the right with the mask's (B, H, Lq, Lk) -> y as x
    Backward  dx_i = y_i (dy_i - sum_j dy_j y_j) / T, which is 0 where blocked
    Fails     x has fewer than 2 or more than 4 axes; the mask does not fit; mask is NULL; T is not
              a positive number"""
    c = _c.sb_masked_softmax(_to.tensor(x), _to.mask(mask), temperature)
    if c is None:
        return _to.retry(masked_softmax, x, mask, temperature)
    return _to.result(c)


_sb_log_softmax = _c.sb_log_softmax
def log_softmax(x):
    """log_softmax: y_i = x_i - logsumexp(x), over the last axis.

    Backward  dx_i = dy_i - exp(y_i) sum_j dy_j
    Fails     x is a scalar"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_log_softmax(x._c)
    if c is None:
        return _to.retry(log_softmax, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_logsumexp = _c.sb_logsumexp
def logsumexp(x):
    """logsumexp: y = max x + ln sum_j exp(x_j - max x), over the last axis.

    Shape     x (..., C) -> y (...)
    Backward  dx_i = dy exp(x_i - y)
    Fails     x is a scalar"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_logsumexp(x._c)
    if c is None:
        return _to.retry(logsumexp, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_layer_norm = _c.sb_layer_norm
def layer_norm(x, gain, bias=None, epsilon=None):
    """y = gain (x - m) / sqrt(v + epsilon) + bias, with m and v the mean and the (biased) variance of
    a row of x. epsilon 0 stands for 1e-5. With SB_ZERO it is 0, and a row without variance NaN.

    Shape     x (..., C), gain (C), bias (C) or NULL -> y (..., C)
    Backward  with h = (x - m) / s, s = sqrt(v + epsilon), u = gain dy:
              dx = (u - mean u - h mean(u h)) / s   dgain = sum of dy h   dbias = sum of dy
    Fails     x is a scalar; sizes differ; epsilon is negative or not finite
    Source    Ba, Kiros and Hinton 2016"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    if gain.__class__ is not Tensor:
        gain = _to.tensor(gain)
    if bias is not None and bias.__class__ is not Tensor:
        bias = _to.tensor(bias)
    c = _sb_layer_norm(x._c, gain._c, bias if bias is None else bias._c, _to.number(epsilon))
    if c is None:
        return _to.retry(layer_norm, x, gain, bias, epsilon)
    y = new(Tensor)
    y._c = retain(c)
    return y


def residual_layer_norm(x, branch, p, gain, bias, epsilon=None):
    """A residual connection and its layer norm in one pass: *sum = x + dropout(branch, p), which the
    next residual connection reads, and y = layer_norm(*sum).

    Shape     x, branch (..., C) -> y, *sum (..., C)
    Backward  with g = layer_norm's dx + the gradient of *sum:
              dx = g   dbranch = dropped ? 0 : g / (1 - p)
              dgain and dbias as layer_norm's
    Fails     p is not in [0, 1); otherwise as layer_norm"""
    sum = c_void_p()
    c = _c.sb_residual_layer_norm(_to.tensor(x), _to.tensor(branch), p, _to.tensor(gain), _to.tensor(bias), _to.number(epsilon), byref(sum))
    if c is None:
        return _to.retry(residual_layer_norm, x, branch, p, gain, bias, epsilon)
    return _to.result(c), _to.result(sum.value)


_sb_rms_norm = _c.sb_rms_norm
def rms_norm(x, gain, epsilon=None):
    """Root mean square norm: y = gain x / sqrt(mean(x^2) + epsilon). epsilon 0 stands for 1e-6,
    and SB_ZERO for 0, with which a row of zeros is NaN.

    Shape     x (..., C), gain (C) -> y (..., C)
    Backward  with s = sqrt(mean(x^2) + epsilon), h = x / s, u = gain dy:
              dx = (u - h mean(u h)) / s   dgain = sum of dy h
    Source    Zhang and Sennrich 2019"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    if gain.__class__ is not Tensor:
        gain = _to.tensor(gain)
    c = _sb_rms_norm(x._c, gain._c, _to.number(epsilon))
    if c is None:
        return _to.retry(rms_norm, x, gain, epsilon)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_l2_normalize = _c.sb_l2_normalize
def l2_normalize(x):
    """y = x / max(|x|, 1e-12), where |x| is the L2 norm of a row.

    Backward  dx = (dy - y (y . dy)) / |x|; at x = 0: dx = 0"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_l2_normalize(x._c)
    if c is None:
        return _to.retry(l2_normalize, x)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_softmax_over = _c.sb_softmax_over
def softmax_over(x, axis):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_softmax_over(x._c, axis)
    if c is None:
        return _to.retry(softmax_over, x, axis)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_log_softmax_over = _c.sb_log_softmax_over
def log_softmax_over(x, axis):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_log_softmax_over(x._c, axis)
    if c is None:
        return _to.retry(log_softmax_over, x, axis)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_logsumexp_over = _c.sb_logsumexp_over
def logsumexp_over(x, axis):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_logsumexp_over(x._c, axis)
    if c is None:
        return _to.retry(logsumexp_over, x, axis)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_layer_norm_over = _c.sb_layer_norm_over
def layer_norm_over(x, axis, gain, bias=None, epsilon=None):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    if gain.__class__ is not Tensor:
        gain = _to.tensor(gain)
    if bias is not None and bias.__class__ is not Tensor:
        bias = _to.tensor(bias)
    c = _sb_layer_norm_over(x._c, axis, gain._c, bias if bias is None else bias._c, _to.number(epsilon))
    if c is None:
        return _to.retry(layer_norm_over, x, axis, gain, bias, epsilon)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_rms_norm_over = _c.sb_rms_norm_over
def rms_norm_over(x, axis, gain, epsilon=None):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    if gain.__class__ is not Tensor:
        gain = _to.tensor(gain)
    c = _sb_rms_norm_over(x._c, axis, gain._c, _to.number(epsilon))
    if c is None:
        return _to.retry(rms_norm_over, x, axis, gain, epsilon)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_l2_normalize_over = _c.sb_l2_normalize_over
def l2_normalize_over(x, axis):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_l2_normalize_over(x._c, axis)
    if c is None:
        return _to.retry(l2_normalize_over, x, axis)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_embedding = _c.sb_embedding
def embedding(table, ids):
    """Rows of a table: y[i] = table[ids[i]].

    Shape     table (V, C), ids (...) of i32 -> y (..., C)
    Backward  dtable[v] = sum of dy[i] over the i with ids[i] = v, in the order of i
    Fails     an id is not in 0..V-1 (the message names its index and value)"""
    if table.__class__ is not Tensor:
        table = _to.tensor(table)
    if ids.__class__ is not Tensor:
        ids = _to.tensor(ids)
    c = _sb_embedding(table._c, ids._c)
    if c is None:
        return _to.retry(embedding, table, ids)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_embedding_padded = _c.sb_embedding_padded
def embedding_padded(table, ids, padding_id):
    """The same where one id stands for padding: its row of the table gets no gradient, so that it
    stays what it was made, usually zeros.

    Shape     as embedding
    Backward  dtable[v] = sum of dy[i] over the i with ids[i] = v; dtable[padding_id] = 0
    Fails     padding_id is not in 0..V-1; otherwise as embedding"""
    if table.__class__ is not Tensor:
        table = _to.tensor(table)
    if ids.__class__ is not Tensor:
        ids = _to.tensor(ids)
    c = _sb_embedding_padded(table._c, ids._c, padding_id)
    if c is None:
        return _to.retry(embedding_padded, table, ids, padding_id)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_gather = _c.sb_gather
def gather(x, ids):
    """One entry of each row: y[i] = x[i, ids[i]].

    Shape     x (..., C), ids (...) of i32 -> y (...)
    Backward  dx[i, ids[i]] = dy[i]
    Fails     an id is not in 0..C-1; shapes differ"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    if ids.__class__ is not Tensor:
        ids = _to.tensor(ids)
    c = _sb_gather(x._c, ids._c)
    if c is None:
        return _to.retry(gather, x, ids)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_dropout = _c.sb_dropout
def dropout(x, p):
    """Each element is 0 with probability p, else x / (1 - p). Random bits come from the open tape's
    stream (sb_tape_random); without a stream, or with p = 0, y = x. Element i of a call at stream
    position P is dropped when 16 bits of Philox4x32-10 at counter (i / 8, P), word (i % 8) / 2, low
    half first, are below p 2^16. Backward recomputes the mask, which is never stored. Where x is
    part of a batch (sb_partition), i is the index in the unsharded tensor.

    Backward  dx = dropped ? 0 : dy / (1 - p)
    Fails     p is not in [0, 1)
    Source    Srivastava et al. 2014"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_dropout(x._c, p)
    if c is None:
        return _to.retry(dropout, x, p)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_residual_dropout = _c.sb_residual_dropout
def residual_dropout(x, branch, p):
    """x + dropout(branch, p), in one pass.

    Shape     x, branch of one shape -> y
    Backward  dx = dy   dbranch = dropped ? 0 : dy / (1 - p)"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    if branch.__class__ is not Tensor:
        branch = _to.tensor(branch)
    c = _sb_residual_dropout(x._c, branch._c, p)
    if c is None:
        return _to.retry(residual_dropout, x, branch, p)
    y = new(Tensor)
    y._c = retain(c)
    return y


def cross_entropy(x, targets, **option):
    """-sum_v t_v log softmax(x)_v for each row, where t is the one-hot target or a distribution.

    Shape     x (..., V); targets (...) of i32, where a negative id is ignored, or real (..., V):
              probabilities -> a scalar, or (...) with SB_REDUCE_NONE
    Backward  dx_v = dy (w softmax(x)_v - w_v t_v), with the smoothed t and w = sum_v w_v t_v,
              divided by the divisor of the mean; targets have no gradient
    Fails     an id is >= V; shapes differ; a class weight is negative or not finite; label_smoothing
              is not in [0, 1); with SB_REDUCE_MEAN, all targets are ignored or have weight 0 (the
              mean would be 0/0 = NaN)
    Source    label smoothing: Szegedy et al. 2015

    Options

      label_smoothing: e: targets become (1 - e) target + e / V; in [0, 1)
      class_weight: (V), constant: the weight of each class; NULL: all 1
      reduction: MEAN divides by the sum of the class weights of the targets that
      are not ignored; with probabilities, by the number of rows"""
    given = _to.options(sb_cross_entropy_options, option, "cross_entropy")
    c = _c.sb_cross_entropy(_to.tensor(x), _to.tensor(targets), given)
    if c is None:
        return _to.retry(cross_entropy, x, targets, **option)
    return given.results(c)


def linear_cross_entropy(x, weight, bias, targets, **option):
    """cross_entropy(x W' + b, targets) without the full tensor of logits: rows are processed in
    chunks, and backward recomputes the softmax of each chunk.

    Shape     x (..., C), weight (V, C), bias (V) or NULL, targets (...) of i32 -> as cross_entropy

    Options

      label_smoothing: e: targets become (1 - e) target + e / V; in [0, 1)
      class_weight: (V), constant: the weight of each class; NULL: all 1
      reduction: MEAN divides by the sum of the class weights of the targets that
      are not ignored; with probabilities, by the number of rows"""
    given = _to.options(sb_cross_entropy_options, option, "linear_cross_entropy")
    c = _c.sb_linear_cross_entropy(_to.tensor(x), _to.tensor(weight), _to.tensor(bias), _to.tensor(targets), given)
    if c is None:
        return _to.retry(linear_cross_entropy, x, weight, bias, targets, **option)
    return given.results(c)


_sb_mean_squared_error = _c.sb_mean_squared_error
def mean_squared_error(x, target, reduction="mean"):
    """Mean squared error: (x - target)^2, reduced.

    Shape     x, target of one shape -> a scalar, or that shape with SB_REDUCE_NONE
    Backward  dx = 2 (x - target) dy / n, dtarget = -dx   (n = 1 for SUM and NONE)"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    if target.__class__ is not Tensor:
        target = _to.tensor(target)
    c = _sb_mean_squared_error(x._c, target._c, _to.choice("sb_reduction", reduction))
    if c is None:
        return _to.retry(mean_squared_error, x, target, reduction)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_sinusoidal = _c.sb_sinusoidal
def sinusoidal(dtype, start, length, C):
    """Sinusoidal encoding, a constant: y[t, 2i] = sin(t / 10000^(2i/C)), y[t, 2i+1] = cos of the same,
    for t = start .. start + length - 1.

    Shape     -> (length, C)
    Fails     C is odd or below 2; length or start is negative; dtype is not f32 or f64
    Source    Vaswani et al. 2017, section 3.5"""
    c = _sb_sinusoidal(_to.choice("sb_dtype", dtype), start, length, C)
    if c is None:
        return _to.retry(sinusoidal, dtype, start, length, C)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_rotary = _c.sb_rotary
def rotary(x, start=0, base=None):
    """Rotary position embedding (RoPE): rotates each pair (x_i, x_{i + D/2}) of a head by the angle
    t base^(-2i/D), where t = start + the index along the length axis. base 0 stands for 10000.

    Shape     x (B, L, H, D) -> y as x
    Backward  dx = dy rotated by the opposite angle
    Fails     x is not of rank 4; D is odd; start is negative
    Source    Su et al. 2021"""
    if x.__class__ is not Tensor:
        x = _to.tensor(x)
    c = _sb_rotary(x._c, start, _to.number(base))
    if c is None:
        return _to.retry(rotary, x, start, base)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_alibi = _c.sb_alibi
def alibi(dtype, H, Lq, Lk):
    """ALiBi, a constant attention bias: -m_h |j - (i + Lk - Lq)| with slopes m_h = 2^(-8 (h+1) / H).

    Shape     -> (1, H, Lq, Lk)
    Fails     H is below 1; a length is negative; dtype is not f32 or f64
    Source    Press, Smith and Lewis 2021 (for H a power of two; the same formula for all others)"""
    c = _sb_alibi(_to.choice("sb_dtype", dtype), H, Lq, Lk)
    if c is None:
        return _to.retry(alibi, dtype, H, Lq, Lk)
    y = new(Tensor)
    y._c = retain(c)
    return y


_sb_relative_bias = _c.sb_relative_bias
def relative_bias(table, Lq, Lk):
    """Relative position bias, learned: y[0, h, i, j] = table[h, clip(j - (i + Lk - Lq), -R, R) + R].
    Distances beyond R share one bias.

    Shape     table (H, 2 R + 1) -> (1, H, Lq, Lk)
    Backward  dtable[h, r] = sum of dy over the pairs at distance r - R
    Fails     the table's second size is even
    Source    Shaw, Uszkoreit and Vaswani 2018; Raffel et al. 2020 (as a bias)"""
    if table.__class__ is not Tensor:
        table = _to.tensor(table)
    c = _sb_relative_bias(table._c, Lq, Lk)
    if c is None:
        return _to.retry(relative_bias, table, Lq, Lk)
    y = new(Tensor)
    y._c = retain(c)
    return y


def attention(q, k, v, **option):
    """Scaled dot-product attention, for each head: softmax(q k' scale / T + bias, masked) v.

    Shape     q (B, Lq, H, D), k (B, Lk, G, D), v (B, Lk, G, Dv) -> y (B, Lq, H, Dv). With G < H it
              is grouped-query attention: H / G query heads share a key/value head. Operands and
              result of shape (L, D) or (B, L, D) have one head.
    Backward  with s the scores, a = softmax(s), o = a v, g = do v':
              dv = a' do    ds = a (g - rowsum(a g))    dbias = ds
              dq = ds k scale / T    dk = ds' q scale / T    (dropout multiplies a and g alike)
              d ln T = -sum of ds s', where s' are the scores without the bias.
              With softcap c, s = c tanh(s' / c) + bias, and ds' = ds (1 - tanh(s' / c)^2).
              A fully masked query has y = 0 and zero gradients, whatever the values are.
    Tiled     the same function without a (Lq, Lk) tensor. Forward processes tiles of 256 keys and
              updates the largest score m and the sum l (online softmax):
                  m' = max(m, rowmax s)    l = l exp(m - m') + rowsum exp(s - m')
                  y = y exp(m - m') + exp(s - m') v      and at the end y / l
              It saves m and l of each query, and not log-sum-exp = m + log l, which would round the
              scores of a float. Backward recomputes each tile:
                  a = exp(s - m) / l    delta = rowsum(do y), which is rowsum(a g)
                  dv += a' do    ds = a (do v' - delta)    dq += ds k scale / T    ...
              Fully masked tiles are skipped.
    Ranks     Sequence parallelism (ring attention; the trainer's sequence_ranks): q, k and v are
              this rank's zig-zag pieces (sb_piece_zigzag); blocks of k and v, and in backward of dk
              and dv, circulate among the ranks. Lengths, windows and blocks of the mask refer to the
              unsharded sequence; a bias and the tensor of sb_mask_allow have the rows of this rank's
              queries and the columns of all keys. CPU only, always tiled, without weights.
    Fails     ranks, sizes, heads or batches do not match; the mask or bias does not broadcast to the
              scores; a number is out of range; both temperature and log_temperature are given;
              weights or softcap are requested with SB_ATTENTION_TILED
    Source    Vaswani et al. 2017; grouped-query: Ainslie et al. 2023; cosine: Henry et al. 2020;
              online softmax: Milakov and Gimelshein 2018; memory O(n): Rabe and Staats 2021; tiles
              and their backward: Dao et al. 2022; ranks: Liu, Zaharia and Abbeel 2023; softcap:
              Gemma Team 2024

    Options

      layout
      mask: NULL: every query attends to every key
      bias: added to the scores; broadcastable to (B, H, Lq, Lk)
      score
      scale: 0: 1/sqrt D, or 1 with SB_SCORE_COSINE
      temperature: T, an extra divisor of the scores without the bias; 0: 1
      log_temperature: a learned T, stored as ln T: a scalar, or (H) one for each head
      softcap: c: scores without the bias become c tanh(s / c); 0: none. Stores the
      scores: neither tiled, cached nor with sequence parallelism. A NaN in a
      blocked key spoils the gradient of q
      dropout: of the attention weights, by the tape's random stream
      weights: receives the attention weights (B, H, Lq, Lk): the softmax output,
      before dropout. sb_keep() keeps them and their gradient
      algorithm
      queries: the sequences of q and of k, on a tape with a partition
      keys: the sequences of q and of k, on a tape with a partition
      heads: which heads this rank holds; zero: all"""
    given = _to.options(sb_attention_options, option, "attention")
    c = _c.sb_attention(_to.tensor(q), _to.tensor(k), _to.tensor(v), given)
    if c is None:
        return _to.retry(attention, q, k, v, **option)
    return given.results(c)


_sb_attention_weights = _c.sb_attention_weights
def attention_weights(y, first, count):
    """Recomputes the attention weights of tiled attention for the queries first .. first + count - 1 of
    every head. sb_keep() keeps them and their gradient d loss / d weights. No gradient flows through
    them.

    Shape     y, the result of sb_attention -> (B, H, count, Lk)
    Fails     y is not the result of tiled attention on the open tape, or backward ran; the queries
              are out of range; more than three calls for one y"""
    if y.__class__ is not Tensor:
        y = _to.tensor(y)
    c = _sb_attention_weights(y._c, first, count)
    if c is None:
        return _to.retry(attention_weights, y, first, count)
    y = new(Tensor)
    y._c = retain(c)
    return y


def to_ranks(x, ranks=None):
    """Before and after a layer whose heads or hidden units are distributed over ranks: to_ranks where x
    is the same on all ranks, from_ranks (an all-reduce) where each rank holds one term of a sum.
    Sums are formed in the order of ranks, so all ranks get the same bits. Every rank makes these
    calls in the same order. `ranks` is NULL for a single rank.

    Shape     x -> y as x; to_ranks shares x's data
    Value     to_ranks: y = x            from_ranks: y = sum of x over ranks
    Backward  dx = sum of dy over ranks  dx = dy
    Source    Shoeybi et al. 2019, section 3, where they are f and g"""
    c = _c.sb_to_ranks(_to.tensor(x), ranks)
    if c is None:
        return _to.retry(to_ranks, x, ranks)
    return _to.result(c)


def from_ranks(x, ranks=None):
    """Before and after a layer whose heads or hidden units are distributed over ranks: to_ranks where x
    is the same on all ranks, from_ranks (an all-reduce) where each rank holds one term of a sum.
    Sums are formed in the order of ranks, so all ranks get the same bits. Every rank makes these
    calls in the same order. `ranks` is NULL for a single rank.

    Shape     x -> y as x; to_ranks shares x's data
    Value     to_ranks: y = x            from_ranks: y = sum of x over ranks
    Backward  dx = sum of dy over ranks  dx = dy
    Source    Shoeybi et al. 2019, section 3, where they are f and g"""
    c = _c.sb_from_ranks(_to.tensor(x), ranks)
    if c is None:
        return _to.retry(from_ranks, x, ranks)
    return _to.result(c)


for _name in ['add', 'subtract', 'multiply', 'divide', 'where', 'negate', 'scale', 'sqrt', 'exp', 'log', 'tanh', 'sigmoid', 'relu', 'gelu', 'gelu_tanh', 'silu', 'detach', 'cast', 'matmul', 'matmul_nt', 'matmul_tn', 'linear', 'linear_activation', 'reshape', 'permute', 'transpose', 'slice', 'split', 'expand', 'sum', 'mean', 'max', 'argmax', 'softmax', 'masked_softmax', 'log_softmax', 'logsumexp', 'layer_norm', 'residual_layer_norm', 'rms_norm', 'l2_normalize', 'softmax_over', 'log_softmax_over', 'logsumexp_over', 'layer_norm_over', 'rms_norm_over', 'l2_normalize_over', 'embedding', 'embedding_padded', 'gather', 'dropout', 'residual_dropout', 'cross_entropy', 'linear_cross_entropy', 'mean_squared_error', 'rotary', 'relative_bias', 'attention', 'attention_weights', 'to_ranks', 'from_ranks']:
    setattr(Tensor, _name, globals()[_name])
