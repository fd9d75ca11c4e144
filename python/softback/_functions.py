"""Operations, objects and layers. Made by python/generate.py; do not edit."""
from . import convert as _to
from ._declarations import *
from .library import c as _c
from .objects import Object
from .tensors import Mask, Tensor

__all__ = ['random_new', 'random_bits', 'random_uniform', 'random_below', 'random_normal', 'device_name', 'choose_cuda', 'device_description', 'use_device', 'device_synchronize', 'device_memory', 'device_reset_peak', 'device_trim', 'set_threads', 'threads', 'mask_allow', 'mask_block', 'mask_from_bias', 'mask_causal', 'mask_causal_last', 'mask_lengths', 'mask_window', 'mask_blocks', 'mask_local', 'mask_strided', 'mask_global', 'mask_and', 'add', 'subtract', 'multiply', 'divide', 'maximum', 'minimum', 'where', 'negate', 'scale', 'sqrt', 'exp', 'log', 'tanh', 'sigmoid', 'relu', 'gelu', 'gelu_tanh', 'silu', 'abs', 'sin', 'cos', 'expm1', 'log1p', 'erf', 'pow', 'clamp', 'detach', 'cast', 'matmul', 'matmul_nt', 'matmul_tn', 'linear', 'linear_activation', 'reshape', 'permute', 'transpose', 'concatenate', 'stack', 'slice', 'split', 'expand', 'sum', 'mean', 'max', 'argmax', 'variance', 'topk', 'softmax', 'masked_softmax', 'log_softmax', 'logsumexp', 'layer_norm', 'residual_layer_norm', 'rms_norm', 'l2_normalize', 'softmax_over', 'log_softmax_over', 'logsumexp_over', 'layer_norm_over', 'rms_norm_over', 'l2_normalize_over', 'embedding', 'embedding_padded', 'gather', 'dropout', 'residual_dropout', 'cross_entropy', 'linear_cross_entropy', 'mean_squared_error', 'sinusoidal', 'rotary', 'rotary_scaled', 'alibi', 'relative_bias', 'attention', 'attention_weights', 'to_ranks', 'from_ranks', 'attention_cached', 'version', 'transformer_complete', 'units_name', 'units_description', 'task_name', 'task_description', 'task_make', 'task_part', 'model_kind_find', 'model_decode', 'tensor_draw', 'edit_distance', 'perplexity', 'score_texts', 'bleu_corpus', 'bleu_signature', 'schedule_check', 'schedule_rate', 'plateau_observe', 'model_save', 'KVCache', 'SafeTensors', 'Parameters', 'LinearLayer', 'NormLayer', 'MultiHeadAttention', 'FeedForward', 'TransformerLayer', 'EncoderLayer', 'DecoderLayer', 'Encoder', 'Labels', 'Pairs', 'Vocabulary', 'Batch', 'Data', 'Labelled', 'Description', 'Classifier', 'Documents', 'Windows', 'Decoder', 'DecoderState', 'LanguageModel', 'Seq2Seq', 'Average', 'Optimiser', 'Trainer', 'EmbeddingLayer', 'AdditiveAttention', 'MultiplicativeAttention', 'CosineAttention', 'OutputHead', 'PositionBias']


def random_new(seed=0, stream="user"):
    return _c.sb_random_new(_to.whole(c_uint64, seed, "seed"), _to.choice("sb_stream", stream))


def random_bits(random):
    """The next draw's 32 random bits, and a number in [0, 1) with 53 random bits. Each takes one
    position of the stream."""
    return _c.sb_random_bits(_to.value(sb_random, random))


def random_uniform(random):
    """The next draw's 32 random bits, and a number in [0, 1) with 53 random bits. Each takes one
    position of the stream."""
    return _c.sb_random_uniform(_to.value(sb_random, random))


def random_below(random, limit):
    """An integer in 0..limit-1, without bias. Fails and returns 0 when the limit is 0."""
    return _c.sb_random_below(_to.value(sb_random, random), _to.whole(c_uint32, limit, "limit"))


def random_normal(random):
    """A standard normal variate (Box and Muller 1958)."""
    return _c.sb_random_normal(_to.value(sb_random, random))


def device_name(device):
    """The processor and its memory."""
    return _c.sb_device_name(_to.device(device))


def choose_cuda(number):
    """Makes sb_device_cuda the GPU of this number, as the driver lists them from 0 on. A process uses
    one GPU: fails after the first sb_device_cuda with another number, and for a negative number; a
    GPU that does not exist is reported by sb_device_cuda."""
    _to.check(_c.sb_choose_cuda(_to.whole(c_int, number, "number")))


def device_description(device):
    """A short description of a device, such as its model."""
    return _c.sb_device_description(_to.device(device))


def use_device(device):
    """Sets the device on which constructors make tensors, parameters and batches from now on, in all
    threads; NULL stands for the CPU, the default."""
    return _c.sb_use_device(_to.device(device))


def device_synchronize(device):
    """Waits for all work queued on a device; false, with a message, when some of it failed."""
    _to.check(_c.sb_device_synchronize(_to.device(device)))


def device_memory(device):
    return _c.sb_device_memory(_to.device(device))


def device_reset_peak(device):
    return _c.sb_device_reset_peak(_to.device(device))


def device_trim(device):
    """returns cached memory to the system"""
    return _c.sb_device_trim(_to.device(device))


def set_threads(threads):
    """Sets the number of threads that kernels use (default: one for each core). Results do not depend
    on it. Fails below 1, and when so many threads cannot be made; then it stays what it was. Without
    this call, kernels use one thread where more cannot be made. A build without OpenMP always uses
    one thread."""
    _to.check(_c.sb_set_threads(_to.whole(c_int, threads, "threads")))


def threads():
    """Sets the number of threads that kernels use (default: one for each core). Results do not depend
    on it. Fails below 1, and when so many threads cannot be made; then it stays what it was. Without
    this call, kernels use one thread where more cannot be made. A build without OpenMP always uses
    one thread."""
    return _c.sb_threads()


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


def mask_lengths(lengths):
    """Key padding mask: sequence b has lengths[b] keys, in 0..Lk (i32, (B)); later keys are blocked."""
    return Mask(_c.sb_mask_lengths, _to.tensor(lengths))


def mask_window(before, after):
    """Sliding window: query i attends to the keys i - before .. i + after; both are at least 0."""
    return Mask(_c.sb_mask_window, _to.whole(c_int64, before, "before"), _to.whole(c_int64, after, "after"))


def mask_blocks(kept, size):
    """Block-sparse: query i attends to key j where kept[b, h, i / size, j / size], booleans
    broadcastable to (B, H, blocks of queries, blocks of keys), is true. Tiled attention skips the
    other blocks."""
    return Mask(_c.sb_mask_blocks, _to.tensor(kept), _to.whole(c_int64, size, "size"))


def mask_local(Lq, Lk, size, around):
    """Patterns of blocks for Lq queries and Lk keys; block row r attends to block column c
      local    where |r - c| <= around;
      strided  also where c is the last of `stride` columns: c % stride = stride - 1 (Child, Gray,
               Radford and Sutskever 2019, "fixed");
      global   where |r - c| <= around, or r or c is one of the first `globals` (Beltagy, Peters and
               Cohan 2020; Zaheer et al. 2020)."""
    return Mask(_c.sb_mask_local, _to.whole(c_int64, Lq, "Lq"), _to.whole(c_int64, Lk, "Lk"), _to.whole(c_int64, size, "size"), _to.whole(c_int64, around, "around"))


def mask_strided(Lq, Lk, size, around, stride):
    """Patterns of blocks for Lq queries and Lk keys; block row r attends to block column c
      local    where |r - c| <= around;
      strided  also where c is the last of `stride` columns: c % stride = stride - 1 (Child, Gray,
               Radford and Sutskever 2019, "fixed");
      global   where |r - c| <= around, or r or c is one of the first `globals` (Beltagy, Peters and
               Cohan 2020; Zaheer et al. 2020)."""
    return Mask(_c.sb_mask_strided, _to.whole(c_int64, Lq, "Lq"), _to.whole(c_int64, Lk, "Lk"), _to.whole(c_int64, size, "size"), _to.whole(c_int64, around, "around"), _to.whole(c_int64, stride, "stride"))


def mask_global(Lq, Lk, size, around, globals):
    """Patterns of blocks for Lq queries and Lk keys; block row r attends to block column c
      local    where |r - c| <= around;
      strided  also where c is the last of `stride` columns: c % stride = stride - 1 (Child, Gray,
               Radford and Sutskever 2019, "fixed");
      global   where |r - c| <= around, or r or c is one of the first `globals` (Beltagy, Peters and
               Cohan 2020; Zaheer et al. 2020)."""
    return Mask(_c.sb_mask_global, _to.whole(c_int64, Lq, "Lq"), _to.whole(c_int64, Lk, "Lk"), _to.whole(c_int64, size, "size"), _to.whole(c_int64, around, "around"), _to.whole(c_int64, globals, "globals"))


def mask_and(a, b):
    """The pairs that both masks allow. At most eight masks can be combined."""
    return Mask(_c.sb_mask_and, _to.mask(a), _to.mask(b))


def add(a, b):
    """Elementwise arithmetic of two tensors.

    Shape     a, b broadcastable to each other -> y of the common shape
    Backward  add:      da = dy          db = dy
              subtract: da = dy          db = -dy
              multiply: da = dy b        db = dy a
              divide:   da = dy / b      db = -dy a / b^2
              maximum:  the larger one gets dy; where both are equal, each gets dy / 2
              minimum:  the smaller one gets dy; where both are equal, each gets dy / 2
    NaN       maximum and minimum of NaN and a number are NaN, without a gradient
    Fails     the shapes do not broadcast"""
    c = _c.sb_add(a if a.__class__ is Tensor else _to.like(a, b), b if b.__class__ is Tensor else _to.like(b, a))
    if c:
        return _to.result(c)
    return _to.retry(add, a, b)


def subtract(a, b):
    """Elementwise arithmetic of two tensors.

    Shape     a, b broadcastable to each other -> y of the common shape
    Backward  add:      da = dy          db = dy
              subtract: da = dy          db = -dy
              multiply: da = dy b        db = dy a
              divide:   da = dy / b      db = -dy a / b^2
              maximum:  the larger one gets dy; where both are equal, each gets dy / 2
              minimum:  the smaller one gets dy; where both are equal, each gets dy / 2
    NaN       maximum and minimum of NaN and a number are NaN, without a gradient
    Fails     the shapes do not broadcast"""
    c = _c.sb_subtract(a if a.__class__ is Tensor else _to.like(a, b), b if b.__class__ is Tensor else _to.like(b, a))
    if c:
        return _to.result(c)
    return _to.retry(subtract, a, b)


def multiply(a, b):
    """Elementwise arithmetic of two tensors.

    Shape     a, b broadcastable to each other -> y of the common shape
    Backward  add:      da = dy          db = dy
              subtract: da = dy          db = -dy
              multiply: da = dy b        db = dy a
              divide:   da = dy / b      db = -dy a / b^2
              maximum:  the larger one gets dy; where both are equal, each gets dy / 2
              minimum:  the smaller one gets dy; where both are equal, each gets dy / 2
    NaN       maximum and minimum of NaN and a number are NaN, without a gradient
    Fails     the shapes do not broadcast"""
    c = _c.sb_multiply(a if a.__class__ is Tensor else _to.like(a, b), b if b.__class__ is Tensor else _to.like(b, a))
    if c:
        return _to.result(c)
    return _to.retry(multiply, a, b)


def divide(a, b):
    """Elementwise arithmetic of two tensors.

    Shape     a, b broadcastable to each other -> y of the common shape
    Backward  add:      da = dy          db = dy
              subtract: da = dy          db = -dy
              multiply: da = dy b        db = dy a
              divide:   da = dy / b      db = -dy a / b^2
              maximum:  the larger one gets dy; where both are equal, each gets dy / 2
              minimum:  the smaller one gets dy; where both are equal, each gets dy / 2
    NaN       maximum and minimum of NaN and a number are NaN, without a gradient
    Fails     the shapes do not broadcast"""
    c = _c.sb_divide(a if a.__class__ is Tensor else _to.like(a, b), b if b.__class__ is Tensor else _to.like(b, a))
    if c:
        return _to.result(c)
    return _to.retry(divide, a, b)


def maximum(a, b):
    """Elementwise arithmetic of two tensors.

    Shape     a, b broadcastable to each other -> y of the common shape
    Backward  add:      da = dy          db = dy
              subtract: da = dy          db = -dy
              multiply: da = dy b        db = dy a
              divide:   da = dy / b      db = -dy a / b^2
              maximum:  the larger one gets dy; where both are equal, each gets dy / 2
              minimum:  the smaller one gets dy; where both are equal, each gets dy / 2
    NaN       maximum and minimum of NaN and a number are NaN, without a gradient
    Fails     the shapes do not broadcast"""
    c = _c.sb_maximum(a if a.__class__ is Tensor else _to.like(a, b), b if b.__class__ is Tensor else _to.like(b, a))
    if c:
        return _to.result(c)
    return _to.retry(maximum, a, b)


def minimum(a, b):
    """Elementwise arithmetic of two tensors.

    Shape     a, b broadcastable to each other -> y of the common shape
    Backward  add:      da = dy          db = dy
              subtract: da = dy          db = -dy
              multiply: da = dy b        db = dy a
              divide:   da = dy / b      db = -dy a / b^2
              maximum:  the larger one gets dy; where both are equal, each gets dy / 2
              minimum:  the smaller one gets dy; where both are equal, each gets dy / 2
    NaN       maximum and minimum of NaN and a number are NaN, without a gradient
    Fails     the shapes do not broadcast"""
    c = _c.sb_minimum(a if a.__class__ is Tensor else _to.like(a, b), b if b.__class__ is Tensor else _to.like(b, a))
    if c:
        return _to.result(c)
    return _to.retry(minimum, a, b)


def where(condition, a, b):
    """y = a where the condition is true, else b.

    Shape     condition (bool), a, b broadcastable to each other -> y of the common shape
    Backward  da = condition ? dy : 0     db = condition ? 0 : dy
    Fails     the shapes do not broadcast; condition is not bool"""
    c = _c.sb_where(_to.tensor(condition), a if a.__class__ is Tensor else _to.like(a, b), b if b.__class__ is Tensor else _to.like(b, a))
    if c:
        return _to.result(c)
    return _to.retry(where, condition, a, b)


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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_negate(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(negate, x)


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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_scale(_to.tensor(x), _to.real(factor, "factor"))
    if c:
        return _to.result(c)
    return _to.retry(scale, x, factor)


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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_sqrt(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(sqrt, x)


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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_exp(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(exp, x)


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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_log(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(log, x)


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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_tanh(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(tanh, x)


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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_sigmoid(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(sigmoid, x)


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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_relu(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(relu, x)


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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_gelu(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(gelu, x)


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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_gelu_tanh(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(gelu_tanh, x)


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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_silu(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(silu, x)


def abs(x):
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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_abs(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(abs, x)


def sin(x):
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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_sin(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(sin, x)


def cos(x):
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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_cos(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(cos, x)


def expm1(x):
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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_expm1(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(expm1, x)


def log1p(x):
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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_log1p(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(log1p, x)


def erf(x):
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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_erf(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(erf, x)


def pow(x, exponent):
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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_pow(_to.tensor(x), _to.real(exponent, "exponent"))
    if c:
        return _to.result(c)
    return _to.retry(pow, x, exponent)


def clamp(x, low, high):
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
    abs:     y = |x|                         dx = dy sign x, which is 0 at 0
    sin:     y = sin x                       dx = dy cos x
    cos:     y = cos x                       dx = -dy sin x
    expm1:   y = e^x - 1, accurate near 0    dx = dy (y + 1)
    log1p:   y = ln(1 + x), accurate near 0  dx = dy / (1 + x)
    erf:     y = 2 / sqrt(pi) int_0^x e^-t^2 dt
                                             dx = dy 2 / sqrt(pi) e^-x^2
    pow:     y = x^exponent                  dx = dy exponent x^(exponent - 1); 0 for exponent 0
    clamp:   y = low where x < low, high where x > high, else x; NaN stays NaN
                                             dx = dy where low <= x <= high, else 0

    Fails     clamp: low is above high, or one of them is NaN
    Source    gelu: Hendrycks and Gimpel 2016; silu: Elfwing, Uchibe and Doya 2017"""
    c = _c.sb_clamp(_to.tensor(x), _to.real(low, "low"), _to.real(high, "high"))
    if c:
        return _to.result(c)
    return _to.retry(clamp, x, low, high)


def detach(x):
    """y = x without a gradient; shares x's data."""
    c = _c.sb_detach(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(detach, x)


def cast(x, dtype):
    """y = x in another dtype. Between real dtypes the gradient is cast back; casts to and from integers
    and booleans have no gradient. A real number outside the range of i32 becomes the nearest i32,
    and NaN becomes 0."""
    c = _c.sb_cast(_to.tensor(x), _to.choice("sb_dtype", dtype))
    if c:
        return _to.result(c)
    return _to.retry(cast, x, dtype)


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
    c = _c.sb_matmul(a if a.__class__ is Tensor else _to.like(a, b), b if b.__class__ is Tensor else _to.like(b, a))
    if c:
        return _to.result(c)
    return _to.retry(matmul, a, b)


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
    c = _c.sb_matmul_nt(a if a.__class__ is Tensor else _to.like(a, b), b if b.__class__ is Tensor else _to.like(b, a))
    if c:
        return _to.result(c)
    return _to.retry(matmul_nt, a, b)


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
    c = _c.sb_matmul_tn(a if a.__class__ is Tensor else _to.like(a, b), b if b.__class__ is Tensor else _to.like(b, a))
    if c:
        return _to.result(c)
    return _to.retry(matmul_tn, a, b)


def linear(x, weight, bias=None):
    """A fully connected layer: y = activation(x W' + b), in one kernel. linear has no activation.

    Shape     x (..., in), weight (out, in), bias (out) or NULL -> y (..., out)
    Backward  dz = dy activation'(z), z = x W' + b;  dx = dz W   dW = dz' x   db = sum of dz's rows
    Fails     x is a scalar; sizes differ; the activation is unknown"""
    c = _c.sb_linear(_to.tensor(x), _to.tensor(weight), _to.tensor(bias))
    if c:
        return _to.result(c)
    return _to.retry(linear, x, weight, bias)


def linear_activation(x, weight, bias=None, activation="identity"):
    """A fully connected layer: y = activation(x W' + b), in one kernel. linear has no activation.

    Shape     x (..., in), weight (out, in), bias (out) or NULL -> y (..., out)
    Backward  dz = dy activation'(z), z = x W' + b;  dx = dz W   dW = dz' x   db = sum of dz's rows
    Fails     x is a scalar; sizes differ; the activation is unknown"""
    c = _c.sb_linear_activation(_to.tensor(x), _to.tensor(weight), _to.tensor(bias), _to.choice("sb_activation", activation))
    if c:
        return _to.result(c)
    return _to.retry(linear_activation, x, weight, bias, activation)


def reshape(x, shape):
    """The same elements in another shape; shares x's data. One dimension may be -1: it is inferred.

    Backward  dx = dy in x's shape
    Fails     the number of elements differs; two dimensions are -1"""
    c = _c.sb_reshape(_to.tensor(x), *_to.sizes(shape, c_int64))
    if c:
        return _to.result(c)
    return _to.retry(reshape, x, shape)


def permute(x, order):
    """Reorders axes: axis i of y is axis order[i] of x. transpose swaps two axes.

    Backward  dx = dy with its axes in x's order
    Fails     rank, the length of order, is not x's; order does not name each axis once"""
    c = _c.sb_permute(_to.tensor(x), *_to.sizes(order, c_int))
    if c:
        return _to.result(c)
    return _to.retry(permute, x, order)


def transpose(x, axis_a, axis_b):
    """Reorders axes: axis i of y is axis order[i] of x. transpose swaps two axes.

    Backward  dx = dy with its axes in x's order
    Fails     rank, the length of order, is not x's; order does not name each axis once"""
    c = _c.sb_transpose(_to.tensor(x), _to.whole(c_int, axis_a, "axis_a"), _to.whole(c_int, axis_b, "axis_b"))
    if c:
        return _to.result(c)
    return _to.retry(transpose, x, axis_a, axis_b)


def concatenate(x, axis):
    """Joins tensors along an existing axis (concatenate) or along a new axis (stack). Any dtype.

    Shape     concatenate: x_i of one shape except in `axis` -> y, whose size there is their sum
              stack: x_i of one shape -> y with a new axis of size n before x's `axis`
    Backward  dx_i = the part of dy that x_i became
    Fails     n < 1; shapes differ in another axis"""
    c = _c.sb_concatenate((array := _to.tensors(x)), len(array), _to.whole(c_int, axis, "axis"))
    if c:
        return _to.result(c)
    return _to.retry(concatenate, x, axis)


def stack(x, axis):
    """Joins tensors along an existing axis (concatenate) or along a new axis (stack). Any dtype.

    Shape     concatenate: x_i of one shape except in `axis` -> y, whose size there is their sum
              stack: x_i of one shape -> y with a new axis of size n before x's `axis`
    Backward  dx_i = the part of dy that x_i became
    Fails     n < 1; shapes differ in another axis"""
    c = _c.sb_stack((array := _to.tensors(x)), len(array), _to.whole(c_int, axis, "axis"))
    if c:
        return _to.result(c)
    return _to.retry(stack, x, axis)


def slice(x, axis, start, length):
    """Parts of a tensor along an axis: slice returns `length` elements from `start` on; split returns
    n parts of the given lengths. Any dtype. A slice along the first axis shares x's data.

    Backward  dx = dy in the range of the slice, 0 elsewhere
    Fails     the range exceeds the axis; the lengths do not add up to the axis"""
    c = _c.sb_slice(_to.tensor(x), _to.whole(c_int, axis, "axis"), _to.whole(c_int64, start, "start"), _to.whole(c_int64, length, "length"))
    if c:
        return _to.result(c)
    return _to.retry(slice, x, axis, start, length)


def split(x, axis, lengths):
    """Parts of a tensor along an axis: slice returns `length` elements from `start` on; split returns
    n parts of the given lengths. Any dtype. A slice along the first axis shares x's data.

    Backward  dx = dy in the range of the slice, 0 elsewhere
    Fails     the range exceeds the axis; the lengths do not add up to the axis"""
    parts = (c_void_p * len(lengths))()
    c = _c.sb_split(_to.tensor(x), _to.whole(c_int, axis, "axis"), *_to.sizes(lengths, c_int64), parts)
    if c:
        return list(map(_to.result, parts))
    return _to.retry(split, x, axis, lengths)


def expand(x, shape):
    """Broadcasts x to a shape: repeats axes of size 1, and adds leading axes.

    Backward  dx = dy summed over the broadcast axes
    Fails     x does not broadcast to the shape"""
    c = _c.sb_expand(_to.tensor(x), *_to.sizes(shape, c_int64))
    if c:
        return _to.result(c)
    return _to.retry(expand, x, shape)


def sum(x, axis=None, keep=False):
    """sum:  y = sum_i x_i                dx_i = dy
    mean: y = sum_i x_i / n            dx_i = dy / n
    max:  y = max_i x_i                dx_i = dy / m for the m elements equal to the maximum, else 0
          NaN counts as the maximum
    argmax: the index (i32) of the first maximum; not differentiable

    Fails     the axis does not exist; mean, max or argmax of no elements"""
    c = _c.sb_sum(_to.tensor(x), ALL if axis is None else _to.whole(c_int, axis, "axis"), keep)
    if c:
        return _to.result(c)
    return _to.retry(sum, x, axis, keep)


def mean(x, axis=None, keep=False):
    """sum:  y = sum_i x_i                dx_i = dy
    mean: y = sum_i x_i / n            dx_i = dy / n
    max:  y = max_i x_i                dx_i = dy / m for the m elements equal to the maximum, else 0
          NaN counts as the maximum
    argmax: the index (i32) of the first maximum; not differentiable

    Fails     the axis does not exist; mean, max or argmax of no elements"""
    c = _c.sb_mean(_to.tensor(x), ALL if axis is None else _to.whole(c_int, axis, "axis"), keep)
    if c:
        return _to.result(c)
    return _to.retry(mean, x, axis, keep)


def max(x, axis=None, keep=False):
    """sum:  y = sum_i x_i                dx_i = dy
    mean: y = sum_i x_i / n            dx_i = dy / n
    max:  y = max_i x_i                dx_i = dy / m for the m elements equal to the maximum, else 0
          NaN counts as the maximum
    argmax: the index (i32) of the first maximum; not differentiable

    Fails     the axis does not exist; mean, max or argmax of no elements"""
    c = _c.sb_max(_to.tensor(x), ALL if axis is None else _to.whole(c_int, axis, "axis"), keep)
    if c:
        return _to.result(c)
    return _to.retry(max, x, axis, keep)


def argmax(x, axis=None):
    """sum:  y = sum_i x_i                dx_i = dy
    mean: y = sum_i x_i / n            dx_i = dy / n
    max:  y = max_i x_i                dx_i = dy / m for the m elements equal to the maximum, else 0
          NaN counts as the maximum
    argmax: the index (i32) of the first maximum; not differentiable

    Fails     the axis does not exist; mean, max or argmax of no elements"""
    c = _c.sb_argmax(_to.tensor(x), ALL if axis is None else _to.whole(c_int, axis, "axis"))
    if c:
        return _to.result(c)
    return _to.retry(argmax, x, axis)


def variance(x, axis, correction, keep=False):
    """The variance over an axis or SB_ALL: y = sum_i (x_i - m)^2 / (n - correction), m the mean. A
    correction of 1 gives the unbiased estimate (Bessel), 0 that of the elements themselves, as norms
    have it.

    Backward  dx_i = 2 dy (x_i - m) / (n - correction)
    Fails     the axis does not exist; correction is negative or not below n"""
    c = _c.sb_variance(_to.tensor(x), _to.whole(c_int, axis, "axis"), _to.real(correction, "correction"), keep)
    if c:
        return _to.result(c)
    return _to.retry(variance, x, axis, correction, keep)


def topk(x, k):
    """The k largest elements of each row, the largest first, and their places in it. Equal elements
    come in the order of their places; NaN counts as the largest.

    Shape     x (..., C) -> y (..., k), *indices (..., k) of i32 unless `indices` is NULL
    Backward  dx_i = dy_j for the i that is in place j of the indices, else 0
    Fails     x is a scalar; k is not in 1..C"""
    indices = c_void_p()
    c = _c.sb_topk(_to.tensor(x), _to.whole(c_int64, k, "k"), byref(indices))
    if c:
        return _to.result(c), _to.result(indices.value)
    return _to.retry(topk, x, k)


def softmax(x):
    """Softmax over the last axis: y_i = exp(x_i - max x) / sum_j exp(x_j - max x).

    Shape     x (..., C) -> y (..., C)
    Backward  dx_i = y_i (dy_i - sum_j dy_j y_j)            saves y, not x
    Fails     x is a scalar
    Source    Bridle 1990; the shift by max x leaves the value and the gradient unchanged"""
    c = _c.sb_softmax(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(softmax, x)


def masked_softmax(x, mask=None, temperature=1.0):
    """Softmax over the entries that the mask allows, after division by the temperature:
    y_i = exp(x_i / T - max) / sum over the allowed j; blocked entries are exactly 0. A fully masked
    row has y = 0 and dx = 0. The mask alone decides, never the values: NaN in a blocked entry has no
    effect, NaN in an allowed entry makes its row NaN.

    Shape     x (..., Lq, Lk), aligned from the right with the mask's (B, H, Lq, Lk) -> y as x
    Backward  dx_i = y_i (dy_i - sum_j dy_j y_j) / T, which is 0 where blocked
    Fails     x has fewer than 2 or more than 4 axes; the mask does not fit; mask is NULL; T is not
              a positive number"""
    c = _c.sb_masked_softmax(_to.tensor(x), _to.mask(mask), _to.real(temperature, "temperature"))
    if c:
        return _to.result(c)
    return _to.retry(masked_softmax, x, mask, temperature)


def log_softmax(x):
    """log_softmax: y_i = x_i - logsumexp(x), over the last axis.

    Backward  dx_i = dy_i - exp(y_i) sum_j dy_j
    Fails     x is a scalar"""
    c = _c.sb_log_softmax(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(log_softmax, x)


def logsumexp(x):
    """logsumexp: y = max x + ln sum_j exp(x_j - max x), over the last axis.

    Shape     x (..., C) -> y (...)
    Backward  dx_i = dy exp(x_i - y)
    Fails     x is a scalar"""
    c = _c.sb_logsumexp(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(logsumexp, x)


def layer_norm(x, gain, bias=None, epsilon=None):
    """y = gain (x - m) / sqrt(v + epsilon) + bias, with m and v the mean and the (biased) variance of
    a row of x. epsilon 0 stands for 1e-5. With SB_ZERO it is 0, and a row without variance NaN.

    Shape     x (..., C), gain (C), bias (C) or NULL -> y (..., C)
    Backward  with h = (x - m) / s, s = sqrt(v + epsilon), u = gain dy:
              dx = (u - mean u - h mean(u h)) / s   dgain = sum of dy h   dbias = sum of dy
    Fails     x is a scalar; sizes differ; epsilon is negative or not finite
    Source    Ba, Kiros and Hinton 2016"""
    c = _c.sb_layer_norm(_to.tensor(x), _to.tensor(gain), _to.tensor(bias), _to.number(epsilon, "epsilon"))
    if c:
        return _to.result(c)
    return _to.retry(layer_norm, x, gain, bias, epsilon)


def residual_layer_norm(x, branch, p, gain, bias, epsilon=None):
    """A residual connection and its layer norm in one pass: *sum = x + dropout(branch, p), which the
    next residual connection reads, and y = layer_norm(*sum).

    Shape     x, branch (..., C) -> y, *sum (..., C)
    Backward  with g = layer_norm's dx + the gradient of *sum:
              dx = g   dbranch = dropped ? 0 : g / (1 - p)
              dgain and dbias as layer_norm's
    Fails     p is not in [0, 1); otherwise as layer_norm"""
    sum = c_void_p()
    c = _c.sb_residual_layer_norm(_to.tensor(x), _to.tensor(branch), _to.real(p, "p"), _to.tensor(gain), _to.tensor(bias), _to.number(epsilon, "epsilon"), byref(sum))
    if c:
        return _to.result(c), _to.result(sum.value)
    return _to.retry(residual_layer_norm, x, branch, p, gain, bias, epsilon)


def rms_norm(x, gain, epsilon=None):
    """Root mean square norm: y = gain x / sqrt(mean(x^2) + epsilon). epsilon 0 stands for 1e-6,
    and SB_ZERO for 0, with which a row of zeros is NaN.

    Shape     x (..., C), gain (C) -> y (..., C)
    Backward  with s = sqrt(mean(x^2) + epsilon), h = x / s, u = gain dy:
              dx = (u - h mean(u h)) / s   dgain = sum of dy h
    Source    Zhang and Sennrich 2019"""
    c = _c.sb_rms_norm(_to.tensor(x), _to.tensor(gain), _to.number(epsilon, "epsilon"))
    if c:
        return _to.result(c)
    return _to.retry(rms_norm, x, gain, epsilon)


def l2_normalize(x):
    """y = x / max(|x|, 1e-12), where |x| is the L2 norm of a row.

    Backward  dx = (dy - y (y . dy)) / |x|; at x = 0: dx = 0"""
    c = _c.sb_l2_normalize(_to.tensor(x))
    if c:
        return _to.result(c)
    return _to.retry(l2_normalize, x)


def softmax_over(x, axis):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    c = _c.sb_softmax_over(_to.tensor(x), _to.whole(c_int, axis, "axis"))
    if c:
        return _to.result(c)
    return _to.retry(softmax_over, x, axis)


def log_softmax_over(x, axis):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    c = _c.sb_log_softmax_over(_to.tensor(x), _to.whole(c_int, axis, "axis"))
    if c:
        return _to.result(c)
    return _to.retry(log_softmax_over, x, axis)


def logsumexp_over(x, axis):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    c = _c.sb_logsumexp_over(_to.tensor(x), _to.whole(c_int, axis, "axis"))
    if c:
        return _to.result(c)
    return _to.retry(logsumexp_over, x, axis)


def layer_norm_over(x, axis, gain, bias=None, epsilon=None):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    c = _c.sb_layer_norm_over(_to.tensor(x), _to.whole(c_int, axis, "axis"), _to.tensor(gain), _to.tensor(bias), _to.number(epsilon, "epsilon"))
    if c:
        return _to.result(c)
    return _to.retry(layer_norm_over, x, axis, gain, bias, epsilon)


def rms_norm_over(x, axis, gain, epsilon=None):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    c = _c.sb_rms_norm_over(_to.tensor(x), _to.whole(c_int, axis, "axis"), _to.tensor(gain), _to.number(epsilon, "epsilon"))
    if c:
        return _to.result(c)
    return _to.retry(rms_norm_over, x, axis, gain, epsilon)


def l2_normalize_over(x, axis):
    """The operations above over any one axis, which is -1 for the last. For the last axis they are
    those operations, to the bit; for another one x is permuted before, and y after.

    Shape     softmax_over, log_softmax_over, l2_normalize_over: x -> y as x
              logsumexp_over: x -> y without the axis
              layer_norm_over, rms_norm_over: x, gain (C), bias (C) or NULL -> y as x, with C the
              size of the axis: the channels of images (B, C, height, width) are axis 1
    Backward  as of the operation over the last axis, for each row along the axis
    Fails     x has no such axis; otherwise as the operation"""
    c = _c.sb_l2_normalize_over(_to.tensor(x), _to.whole(c_int, axis, "axis"))
    if c:
        return _to.result(c)
    return _to.retry(l2_normalize_over, x, axis)


def embedding(table, ids):
    """Rows of a table: y[i] = table[ids[i]].

    Shape     table (V, C), ids (...) of i32 -> y (..., C)
    Backward  dtable[v] = sum of dy[i] over the i with ids[i] = v, in the order of i
    Fails     an id is not in 0..V-1 (the message names its index and value)"""
    c = _c.sb_embedding(_to.tensor(table), _to.tensor(ids))
    if c:
        return _to.result(c)
    return _to.retry(embedding, table, ids)


def embedding_padded(table, ids, padding_id):
    """The same where one id stands for padding: its row of the table gets no gradient, so that it
    stays what it was made, usually zeros.

    Shape     as embedding
    Backward  dtable[v] = sum of dy[i] over the i with ids[i] = v; dtable[padding_id] = 0
    Fails     padding_id is not in 0..V-1; otherwise as embedding"""
    c = _c.sb_embedding_padded(_to.tensor(table), _to.tensor(ids), _to.whole(c_int64, padding_id, "padding_id"))
    if c:
        return _to.result(c)
    return _to.retry(embedding_padded, table, ids, padding_id)


def gather(x, ids):
    """One entry of each row: y[i] = x[i, ids[i]].

    Shape     x (..., C), ids (...) of i32 -> y (...)
    Backward  dx[i, ids[i]] = dy[i]
    Fails     an id is not in 0..C-1; shapes differ"""
    c = _c.sb_gather(_to.tensor(x), _to.tensor(ids))
    if c:
        return _to.result(c)
    return _to.retry(gather, x, ids)


def dropout(x, p):
    """Each element is 0 with probability p, else x / (1 - p). Random bits come from the open tape's
    stream (sb_tape_random); with p = 0, a NULL stream, or on a tape that does not record and
    has none, y = x. Element i of a call at stream
    position P is dropped when 16 bits of Philox4x32-10 at counter (i / 8, P), word (i % 8) / 2, low
    half first, are below p 2^16. Backward recomputes the mask, which is never stored. Where x is
    part of a batch (sb_partition), i is the index in the unsharded tensor.

    Backward  dx = dropped ? 0 : dy / (1 - p)
    Fails     p is not in [0, 1); p > 0, and the tape records and was given no stream
    Source    Srivastava et al. 2014"""
    c = _c.sb_dropout(_to.tensor(x), _to.real(p, "p"))
    if c:
        return _to.result(c)
    return _to.retry(dropout, x, p)


def residual_dropout(x, branch, p):
    """x + dropout(branch, p), in one pass.

    Shape     x, branch of one shape -> y
    Backward  dx = dy   dbranch = dropped ? 0 : dy / (1 - p)"""
    c = _c.sb_residual_dropout(_to.tensor(x), _to.tensor(branch), _to.real(p, "p"))
    if c:
        return _to.result(c)
    return _to.retry(residual_dropout, x, branch, p)


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
    if c:
        return _to.results(given, c)
    return _to.retry(cross_entropy, x, targets, **option)


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
    if c:
        return _to.results(given, c)
    return _to.retry(linear_cross_entropy, x, weight, bias, targets, **option)


def mean_squared_error(x, target, reduction="mean"):
    """Mean squared error: (x - target)^2, reduced.

    Shape     x, target of one shape -> a scalar, or that shape with SB_REDUCE_NONE
    Backward  dx = 2 (x - target) dy / n, dtarget = -dx   (n = 1 for SUM and NONE)"""
    c = _c.sb_mean_squared_error(_to.tensor(x), _to.tensor(target), _to.choice("sb_reduction", reduction))
    if c:
        return _to.result(c)
    return _to.retry(mean_squared_error, x, target, reduction)


def sinusoidal(dtype, start, length, C):
    """Sinusoidal encoding, a constant: y[t, 2i] = sin(t / 10000^(2i/C)), y[t, 2i+1] = cos of the same,
    for t = start .. start + length - 1.

    Shape     -> (length, C)
    Fails     C is odd or below 2; length or start is negative; dtype is not f32 or f64
    Source    Vaswani et al. 2017, section 3.5"""
    c = _c.sb_sinusoidal(_to.choice("sb_dtype", dtype), _to.whole(c_int64, start, "start"), _to.whole(c_int64, length, "length"), _to.whole(c_int64, C, "C"))
    if c:
        return _to.result(c)
    return _to.retry(sinusoidal, dtype, start, length, C)


def rotary(x, start=0, base=None):
    """Rotary position embedding (RoPE): rotates each pair (x_i, x_{i + D/2}) of a head by the angle
    t base^(-2i/D), where t = start + the index along the length axis. base 0 stands for 10000.

    Shape     x (B, L, H, D) -> y as x
    Backward  dx = dy rotated by the opposite angle
    Fails     x is not of rank 4; D is odd; start is negative
    Source    Su et al. 2021"""
    c = _c.sb_rotary(_to.tensor(x), _to.whole(c_int64, start, "start"), _to.number(base, "base"))
    if c:
        return _to.result(c)
    return _to.retry(rotary, x, start, base)


def rotary_scaled(x, start, base, scaling):
    """The same with t divided by a factor (position interpolation), for more positions than a model was
    trained on. scaling 0 stands for 1.

    Fails     as sb_rotary; the scaling is not positive
    Source    Chen et al. 2023"""
    c = _c.sb_rotary_scaled(_to.tensor(x), _to.whole(c_int64, start, "start"), _to.number(base, "base"), _to.real(scaling, "scaling"))
    if c:
        return _to.result(c)
    return _to.retry(rotary_scaled, x, start, base, scaling)


def alibi(dtype, H, Lq, Lk):
    """ALiBi, a constant attention bias: -m_h |j - (i + Lk - Lq)| with slopes m_h = 2^(-8 (h+1) / H).

    Shape     -> (1, H, Lq, Lk)
    Fails     H is below 1; a length is negative; dtype is not f32 or f64
    Source    Press, Smith and Lewis 2021 (for H a power of two; the same formula for all others)"""
    c = _c.sb_alibi(_to.choice("sb_dtype", dtype), _to.whole(c_int64, H, "H"), _to.whole(c_int64, Lq, "Lq"), _to.whole(c_int64, Lk, "Lk"))
    if c:
        return _to.result(c)
    return _to.retry(alibi, dtype, H, Lq, Lk)


def relative_bias(table, Lq, Lk):
    """Relative position bias, learned: y[0, h, i, j] = table[h, clip(j - (i + Lk - Lq), -R, R) + R].
    Distances beyond R share one bias.

    Shape     table (H, 2 R + 1) -> (1, H, Lq, Lk)
    Backward  dtable[h, r] = sum of dy over the pairs at distance r - R
    Fails     the table's second size is even
    Source    Shaw, Uszkoreit and Vaswani 2018; Raffel et al. 2020 (as a bias)"""
    c = _c.sb_relative_bias(_to.tensor(table), _to.whole(c_int64, Lq, "Lq"), _to.whole(c_int64, Lk, "Lk"))
    if c:
        return _to.result(c)
    return _to.retry(relative_bias, table, Lq, Lk)


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
    TF32x3    With this option, tiles of f32 are multiplied on a GPU's tensor cores. Each number is
              the sum of two of tf32, which have 11 significant bits, and of four products the
              smallest is omitted. A product then has a relative error of at most 2^-21 (in f32
              2^-24), and a sum of n products adds at most 17 n 2^-26 of the sum of their absolute
              values (in f32 n 2^-24). Without weights, attention on a GPU is always tiled then. The
              CPU, keys in a cache, a bias, heads above 128 and GPUs with too little shared memory
              use f32.
    Ranks     Sequence parallelism (ring attention; the trainer's sequence_ranks): q, k and v are
              this rank's zig-zag pieces (sb_piece_zigzag); blocks of k and v, and in backward of dk
              and dv, circulate among the ranks. Lengths, windows and blocks of the mask refer to the
              unsharded sequence; a bias and the tensor of sb_mask_allow have the rows of this rank's
              queries and the columns of all keys. Always tiled, without weights. Blocks of a device
              travel through host memory.
    Fails     ranks, sizes, heads or batches do not match; the mask or bias does not broadcast to the
              scores; a number is out of range; both temperature and log_temperature are given;
              weights or softcap are requested with SB_ATTENTION_TILED
    Source    Vaswani et al. 2017; grouped-query: Ainslie et al. 2023; cosine: Henry et al. 2020;
              online softmax: Milakov and Gimelshein 2018; memory O(n): Rabe and Staats 2021; tiles
              and their backward: Dao et al. 2022; ranks: Liu, Zaharia and Abbeel 2023; softcap:
              Gemma Team 2024; TF32x3: Ootomo and Yokota 2022

    Options

      layout
      mask: NULL: every query attends to every key
      bias: added to the scores; broadcastable to (B, H, Lq, Lk)
      score
      scale: 0: 1/sqrt D, or 1 with SB_SCORE_COSINE; SB_ZERO: the bias alone counts
      temperature: T, an extra divisor of the scores without the bias; 0: 1
      log_temperature: a learned T, stored as ln T: a scalar, or (H) one for each head
      softcap: c: scores without the bias become c tanh(s / c); 0: none. Stores the
    scores: neither tiled, cached nor with sequence parallelism. A NaN in a
    blocked key spoils the gradient of q
      dropout: of the attention weights, by the tape's random stream
      weights: receives the attention weights (B, H, Lq, Lk): the softmax output,
    before dropout. sb_keep() keeps them and their gradient
      algorithm
      tf32x3: f32 on a GPU: products on tensor cores, as said below
      queries: the sequences of q and of k, on a tape with a partition
      keys: the sequences of q and of k, on a tape with a partition
      heads: which heads this rank holds; zero: all"""
    given = _to.options(sb_attention_options, option, "attention")
    c = _c.sb_attention(_to.tensor(q), _to.tensor(k), _to.tensor(v), given)
    if c:
        return _to.results(given, c)
    return _to.retry(attention, q, k, v, **option)


def attention_weights(y, first, count):
    """Recomputes the attention weights of tiled attention for the queries first .. first + count - 1 of
    every head. sb_keep() keeps them and their gradient d loss / d weights. No gradient flows through
    them.

    Shape     y, the result of sb_attention -> (B, H, count, Lk)
    Fails     y is not the result of tiled attention on the open tape, or backward ran; the queries
              are out of range; more than three calls for one y"""
    c = _c.sb_attention_weights(_to.tensor(y), _to.whole(c_int64, first, "first"), _to.whole(c_int64, count, "count"))
    if c:
        return _to.result(c)
    return _to.retry(attention_weights, y, first, count)


def to_ranks(x, ranks=None):
    """Before and after a layer whose heads or hidden units are distributed over ranks: to_ranks where x
    is the same on all ranks, from_ranks (an all-reduce) where each rank holds one term of a sum.
    Sums are formed in the order of ranks, so all ranks get the same bits. Every rank makes these
    calls in the same order. `ranks` is NULL for a single rank.

    Shape     x -> y as x; to_ranks shares x's data
    Value     to_ranks: y = x            from_ranks: y = sum of x over ranks
    Backward  dx = sum of dy over ranks  dx = dy
    Source    Shoeybi et al. 2019, section 3, where they are f and g"""
    c = _c.sb_to_ranks(_to.tensor(x), _to.handle("sb_communicator", ranks))
    if c:
        return _to.result(c)
    return _to.retry(to_ranks, x, ranks)


def from_ranks(x, ranks=None):
    """Before and after a layer whose heads or hidden units are distributed over ranks: to_ranks where x
    is the same on all ranks, from_ranks (an all-reduce) where each rank holds one term of a sum.
    Sums are formed in the order of ranks, so all ranks get the same bits. Every rank makes these
    calls in the same order. `ranks` is NULL for a single rank.

    Shape     x -> y as x; to_ranks shares x's data
    Value     to_ranks: y = x            from_ranks: y = sum of x over ranks
    Backward  dx = sum of dy over ranks  dx = dy
    Source    Shoeybi et al. 2019, section 3, where they are f and g"""
    c = _c.sb_from_ranks(_to.tensor(x), _to.handle("sb_communicator", ranks))
    if c:
        return _to.result(c)
    return _to.retry(from_ranks, x, ranks)


def attention_cached(q, cache, **option):
    """sb_attention with the cached keys and values, which are read in place. `layout` applies to q and
    the result only. The result of a row depends neither on the rest of the batch nor on the
    capacity: alone and in a batch, its bits are the same. Not differentiable.

    Shape     q (B, Lq, H, D), the cache's k (B, Lk, G, D), v (B, Lk, G, Dv) -> y (B, Lq, H, Dv)
    Fails     as sb_attention; the open tape records; the cache is empty

    Options

      layout
      mask: NULL: every query attends to every key
      bias: added to the scores; broadcastable to (B, H, Lq, Lk)
      score
      scale: 0: 1/sqrt D, or 1 with SB_SCORE_COSINE; SB_ZERO: the bias alone counts
      temperature: T, an extra divisor of the scores without the bias; 0: 1
      log_temperature: a learned T, stored as ln T: a scalar, or (H) one for each head
      softcap: c: scores without the bias become c tanh(s / c); 0: none. Stores the
    scores: neither tiled, cached nor with sequence parallelism. A NaN in a
    blocked key spoils the gradient of q
      dropout: of the attention weights, by the tape's random stream
      weights: receives the attention weights (B, H, Lq, Lk): the softmax output,
    before dropout. sb_keep() keeps them and their gradient
      algorithm
      tf32x3: f32 on a GPU: products on tensor cores, as said below
      queries: the sequences of q and of k, on a tape with a partition
      keys: the sequences of q and of k, on a tape with a partition
      heads: which heads this rank holds; zero: all"""
    given = _to.options(sb_attention_options, option, "attention_cached")
    c = _c.sb_attention_cached(_to.tensor(q), _to.instance(KVCache, cache), given)
    if c:
        return _to.results(given, c)
    return _to.retry(attention_cached, q, cache, **option)


def version():
    """The version of the library, as in "0.2.0"."""
    return _c.sb_version()


def transformer_complete(**option):
    """Fills in all defaults and checks the result; fails when sizes do not match.

    Options

      width: C: of embeddings and layers; default 128
      heads: H: attention heads; default 4
      head_size: D: of queries, keys and values; default C / H, which must be whole
      key_heads: heads of keys and values, a divisor of H; default H
      key_width: attention: the width of the memory that keys are projected from, in a
    decoder of cross-attention; default C
      value_width: the same of values; default key_width
      feed_forward: hidden width of the feed-forward network; default 4 C
      encoder_layers: default 3
      decoder_layers: default 3
      dropout: of embeddings, branches and attention weights; in [0, 1)
      attention_dropout: of attention weights; default dropout; SB_ZERO: none
      feed_forward_dropout: of the hidden units of feed-forward, in [0, 1)
      norm_place
      norm_kind
      norm_epsilon: of all norms; default that of the operation
      biases
      no_output_bias: of a model's logits; they have none either unless biases is ALL
      activation: default (SB_ACTIVATION_IDENTITY): SB_ACTIVATION_RELU
      gated: gated feed-forward: (activation(x G') * (x U')) W'
      score: of all attention layers
      score_scale: the factor of their scores; default 1 / sqrt D, or 1 with
    SB_SCORE_COSINE
      temperature: extra divisor of attention scores; default 1
      attention: except where attention weights are requested
      embedding_scale: the factor of symbols' embeddings; default sqrt C
      position_scale: and of learned positions; default sqrt C
      embedding_norm: a norm after embeddings and positions, before dropout
      positions
      position_offset: learned: rows of the table before that of the first position
      rotary_base: default 10000
      rotary_scaling: divides the positions that rotary ones turn by; default 1
      position_buckets: of SB_POSITIONS_BUCKETS, an even number; default 32
      position_distance: from which on all share the last bucket; default 128
      precision
      recompute: activation checkpointing of each layer, except where attention weights are
    requested
      along: the sequence of x in a partition; decoders always use the target
      longest: number of positions with SB_POSITIONS_LEARNED; default 512
      padded: embeddings: the symbol padding_id stands for padding; its row of the table
    starts at 0 and gets no gradient, also from logits that are
    tied to it
      padding_id
      ranks: tensor parallelism: each rank holds an equal part of the heads and
    hidden units; must outlive the model. NULL: none"""
    complete = sb_transformer_options()
    given = _to.options(sb_transformer_options, option, "transformer_complete")
    _to.check(_c.sb_transformer_complete(given, byref(complete)))
    return complete


def units_name(units):
    """"words" """
    return _c.sb_units_name(_to.choice("sb_units", units))


def units_description(units):
    """"words (single-space tokens)" """
    return _c.sb_units_description(_to.choice("sb_units", units))


def task_name(task):
    """"reverse" """
    return _c.sb_task_name(_to.choice("sb_task", task))


def task_description(task):
    """"reverse the digits: 4 7 1 -> 1 7 4" """
    return _c.sb_task_description(_to.choice("sb_task", task))


def task_make(task, seed, part, index, **option):
    """Writes pair `index` (below 2^48) of a part; options may be NULL. Fails on lengths out of order or
    range.

    Options

      min_length
      max_length"""
    pair = sb_task_pair()
    given = _to.options(sb_task_options, option, "task_make")
    _to.check(_c.sb_task_make(_to.choice("sb_task", task), given, _to.whole(c_uint64, seed, "seed"), _to.choice("sb_part", part), _to.whole(c_uint64, index, "index"), byref(pair)))
    return pair


def task_part(task, source, target):
    """The part to which the pair of this source and target belongs."""
    return _to.name_of("sb_part", _c.sb_task_part(_to.choice("sb_task", task), _to.text(source, "source"), _to.text(target, "target")))


def model_kind_find(name):
    """A kind of the library by its name; fails, listing the names, when there is none."""
    return _to.contents(sb_model_kind, _c.sb_model_kind_find(_to.text(name, "name")))


def model_decode(model, texts, **option):
    """The model's outputs for n texts, sources or prompts, as symbols with their scores, to be freed
    with sb_decoded_free. Options may be NULL: greedy. Fails when the kind has no generator.

    Options

      beam_width: hypotheses kept at each step; 0 and 1: greedy
      length_penalty: the alpha of the score, at least 0; default 1 for a beam over words or
    byte pairs, else none; SB_ZERO: none
      longest: the most symbols of an output; 0: 2 n + 50 for a source of n
      sample: draw symbols; needs beam_width 0 or 1
      temperature: of sampling: probabilities become p^(1/T), normalised; 0: 1
      top_k: sampling among the k most probable symbols; 0: all
      top_p: and among the fewest that together have this probability, in (0, 1];
    0: all (Holtzman et al. 2020)
      seed: of sampling; the i-th text of a call has its own random stream
      batch_pairs: the most texts that are decoded together; 0: 64
      weights: SB_WEIGHTS_INT8, on the CPU: fewer bytes and integer products, and
    outputs that may differ a little from those of the model's own
      no_cache: recomputes all earlier positions for each symbol: slow, for tests
      listen: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
    failure. Not with a beam. NULL: nobody listens.
      listener: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
    failure. Not with a beam. NULL: nobody listens."""
    outputs = (sb_decoded * len(texts))()
    given = _to.options(sb_decoding_options, option, "model_decode")
    _to.check(_c.sb_model_decode(_to.model(model), _to.texts(texts), len(texts), given, outputs))
    return _to.decoded(outputs)


def tensor_draw(t):
    """The numbers of a tensor as SVG: a square for each, as opaque as the number is large, red where it
    is negative, with the number as a tooltip. The last two axes are rows and columns; all others
    count maps, such as the heads of attention weights.

    Returns a text to be freed with sb_free. Fails above 4,096 numbers, and when backward has freed
    the data."""
    return _to.owned_text(_c.sb_tensor_draw(_to.tensor(t)))


def edit_distance(a, b):
    """The edit distance of Levenshtein (1966): the least number of insertions, deletions and
    substitutions that turn a into b. -1, with a message, without memory."""
    return _c.sb_edit_distance(*_to.sizes(a, c_int32)[::-1], *_to.sizes(b, c_int32)[::-1])


def perplexity(log_likelihood, count):
    """exp(-log_likelihood / count): of `count` units whose natural log-probabilities add up to
    log_likelihood. NaN, with a message, when the count is below 1."""
    return _c.sb_perplexity(_to.real(log_likelihood, "log_likelihood"), _to.whole(c_int64, count, "count"))


def score_texts(sources, references, outputs, units):
    """Scores `count` outputs; lines with the same source give it several references. Its output is that
    of its first line. Distances and accuracy count units: characters, bytes or words (bpe is taken
    as words). Fails on other units, on a count below 1, when a text is NULL or not UTF-8, and
    without memory."""
    score = sb_text_score()
    _to.check(_c.sb_score_texts(_to.texts(sources), _to.texts(references), _to.texts(outputs), len(outputs), _to.choice("sb_units", units), byref(score)))
    return score


def bleu_corpus(outputs, references):
    """Computes what sacreBLEU (Post 2018) computes by default, with one reference for each output:
    tokens as mteval-v13a cuts them, n-grams of up to four tokens, case-sensitive, exponential
    smoothing of orders without any match (Chen and Cherry 2014, method 3). Fails on a count below 1,
    when a text is NULL or not UTF-8, and without memory."""
    bleu = sb_bleu()
    _to.check(_c.sb_bleu_corpus(_to.texts(outputs), _to.texts(references), len(references), byref(bleu)))
    return bleu


def bleu_signature():
    """How the score is computed: a signature in sacreBLEU's form, to be printed with it."""
    return _c.sb_bleu_signature()


def schedule_check(schedule):
    """Fails when a number is out of range."""
    _to.check(_c.sb_schedule_check(_to.value(sb_schedule, schedule)))


def schedule_rate(schedule, step, plateau=None):
    """The learning rate of a step >= 1; `plateau` may be NULL."""
    return _c.sb_schedule_rate(_to.value(sb_schedule, schedule), _to.whole(c_int64, step, "step"), _to.value(sb_plateau, plateau))


def plateau_observe(plateau, schedule, loss):
    """Reports the loss of an evaluation to a plateau schedule."""
    return _c.sb_plateau_observe(_to.value(sb_plateau, plateau), _to.value(sb_schedule, schedule), _to.real(loss, "loss"))


def model_save(model, path):
    """Writes the model. An existing file is replaced atomically. All ranks that hold parts of a model
    save it together."""
    _to.check(_c.sb_model_save(_to.model(model), _to.text(path, "path")))


class KVCache(Object):
    """The key/value cache of incremental decoding: each step appends its keys and values, and attention
    reads them in place. Step t costs a + b t: the projections are constant, attention reads t
    positions.

    A cache works on tapes that do not record; it saves nothing for backward. Self-attention appends
    one or a few positions in each step; cross-attention appends all positions once."""

    c_name = "sb_kv_cache"

    def __init__(self):
        """An empty cache; the first append determines its sizes. The caller frees it."""
        self._take(_c.sb_kv_cache_new(), [])

    _free = _c.sb_kv_cache_free

    def length(self):
        """The number of positions and of sequences in the cache; 0 for NULL."""
        return _c.sb_kv_cache_length(self)

    def batch(self):
        """The number of positions and of sequences in the cache; 0 for NULL."""
        return _c.sb_kv_cache_batch(self)

    def append(self, k, v):
        """Appends the next L positions: k (B, L, G, D), v (B, L, G, Dv). A full cache doubles its capacity,
        so an append takes amortised constant time. Fails, and leaves the cache unchanged, when the open
        tape records, when sizes, dtype or device differ from the cache's, and when memory runs out."""
        _to.check(_c.sb_kv_cache_append(self, _to.tensor(k), _to.tensor(v)))

    def truncate(self, length):
        """Removes all positions from `length` on; 0 empties the cache. The capacity stays."""
        _to.check(_c.sb_kv_cache_truncate(self, _to.whole(c_int64, length, "length")))


class SafeTensors(Object):
    """safetensors: named tensors in one file, the format of huggingface.co/docs/safetensors.

        8 bytes     N, the length of the header, little-endian
        N bytes     JSON: {"__metadata__": {"key": "text", ...},
                           "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
        the rest    the elements, row-major, little-endian; offsets count from here

    Files are untrusted. Opening one checks everything except the elements: the header (at most
    16 MB) is strict JSON with unique names, no shape overflows, the bytes of each tensor match its
    shape and dtype, and together they cover the data without overlap or gap. Opening reads only the
    header and needs about ten times its size in memory; elements are read on request."""

    c_name = "sb_safetensors"

    def __init__(self, path):
        """Opens a file. Several threads may read it."""
        self._take(_c.sb_safetensors_open(_to.text(path, "path")), [path])

    _free = _c.sb_safetensors_close

    def count(self):
        """Tensors are numbered from 0 in the byte order of their names. Strings and shapes are valid until
        the file is closed."""
        return _c.sb_safetensors_count(self)

    def find(self, name):
        """-1 if there is none"""
        return _c.sb_safetensors_find(self, _to.text(name, "name"))

    def name(self, i):
        """Tensors are numbered from 0 in the byte order of their names. Strings and shapes are valid until
        the file is closed."""
        return _c.sb_safetensors_name(self, _to.whole(c_int, i, "i"))

    def dtype(self, i):
        """as in the file: "BF16" """
        return _c.sb_safetensors_dtype(self, _to.whole(c_int, i, "i"))

    def rank(self, i):
        """-1 on failure"""
        return _c.sb_safetensors_rank(self, _to.whole(c_int, i, "i"))

    def tensor(self, name):
        """Reads a tensor into a new tensor on the CPU, which the caller owns. F32, F64, I32 and BOOL keep
        their dtype; F16 and BF16 become f32; other integers become i32.

        Fails when no tensor has the name, when its elements are 8-bit floats, when an integer does not
        fit i32, when a BOOL is neither 0 nor 1, and when the file was truncated."""
        c = _c.sb_safetensors_tensor(self, _to.text(name, "name"))
        if c:
            return _to.owned(c)
        return _to.retry(self.tensor, name)

    def read(self, name, into):
        """Reads into an existing tensor of that dtype and shape, on any device. On failure its contents are
        undefined."""
        _to.check(_c.sb_safetensors_read(self, _to.text(name, "name"), _to.tensor(into)))

    def metadata(self, key):
        """Metadata: the value of a key, or NULL without a message if there is none; and pair number i in
        the byte order of keys: returns the key, and its value in *text."""
        return _c.sb_safetensors_metadata(self, _to.text(key, "key"))

    def metadata_count(self):
        """Metadata: the value of a key, or NULL without a message if there is none; and pair number i in
        the byte order of keys: returns the key, and its value in *text."""
        return _c.sb_safetensors_metadata_count(self)


class Parameters(Object):
    """Parameters: a set of the named weights of a model, which owns them.

    Names are dotted paths, "encoder.layers.0.self_attention.query.weight". One flat buffer has all
    values and another all gradients, in the order in which the parameters were added, so that an
    optimiser step, clipping and averaging are one pass each."""

    c_name = "sb_parameters"

    def __init__(self, seed=0):
        """An empty set of f32 parameters (sb_parameters_of: of any real dtype). The seed determines the
        initial weights, which are drawn in the order of sb_parameters_add."""
        self._take(_c.sb_parameters_new(_to.whole(c_uint64, seed, "seed")), [seed])

    @staticmethod
    def of(dtype, seed=0):
        """An empty set of f32 parameters (sb_parameters_of: of any real dtype). The seed determines the
        initial weights, which are drawn in the order of sb_parameters_add."""
        return _to.adopt(Parameters, _c.sb_parameters_of(_to.choice("sb_dtype", dtype), _to.whole(c_uint64, seed, "seed")), [dtype, seed])

    _free = _c.sb_parameters_free

    def add(self, name, shape, initial):
        """Adds a parameter, a leaf that requires a gradient. The set owns it; the pointer is valid as long
        as the set. For SB_INITIAL_XAVIER a matrix is (out, in). Fails when the name is taken, empty, or
        longer than 200 bytes."""
        c = _c.sb_parameters_add(self, _to.text(name, "name"), *_to.sizes(shape, c_int64), _to.value(sb_initial, initial))
        if c:
            return _to.result(c)
        return _to.retry(self.add, name, shape, initial)

    def add_cut(self, name, shape, initial, cut):
        """The same for a distributed parameter: this rank's part of a parameter of shape (dim), with the
        same initial values as without ranks. All distributed parameters of a set use the same ranks.
        Fails also when the axis cannot be split into equal parts."""
        c = _c.sb_parameters_add_cut(self, _to.text(name, "name"), *_to.sizes(shape, c_int64), _to.value(sb_initial, initial), _to.value(sb_cut, cut))
        if c:
            return _to.result(c)
        return _to.retry(self.add_cut, name, shape, initial, cut)

    def dtype(self):
        return _to.name_of("sb_dtype", _c.sb_parameters_dtype(self))

    def count(self):
        """the number of tensors"""
        return _c.sb_parameters_count(self)

    def size(self):
        """the number of values on this rank"""
        return _c.sb_parameters_size(self)

    def name(self, i):
        return _c.sb_parameters_name(self, _to.whole(c_int64, i, "i"))

    def get(self, i):
        c = _c.sb_parameters_get(self, _to.whole(c_int64, i, "i"))
        if c:
            return _to.result(c)
        return _to.retry(self.get, i)

    def find(self, name):
        """The parameter of that name; NULL, without a message, when there is none."""
        return _to.found(_c.sb_parameters_find(self, _to.text(name, "name")))

    def clear(self):
        """Clears all gradients, as zero_grad does in PyTorch."""
        return _c.sb_parameters_clear(self)

    def clip(self, limit):
        """Clips the gradient by its global norm: with n the norm of all gradients together,
        g *= min(1, limit / (n + 1e-6)), as clip_grad_norm_ in PyTorch. Stores n, that before clipping,
        in *norm unless it is NULL. For a training loop that looks at gradients between backward and the
        step; the option clip of an optimiser does the same within its step.

        Fails, and leaves the gradients unchanged, when the limit is not a positive number, when no
        parameter has a gradient, and when the norm is not finite: the message names the first such
        parameter. With tensor parallelism all ranks call it. Source: Pascanu, Mikolov and Bengio 2013."""
        norm = c_double()
        _to.check(_c.sb_parameters_clip(self, _to.real(limit, "limit"), byref(norm)))
        return norm.value

    def fingerprint(self):
        """A 64-bit hash (FNV-1a) of all values on this rank, for comparing them to the bit."""
        return _c.sb_parameters_fingerprint(self)

    def group(self, pattern, group):
        """Fails, and changes nothing, when no parameter matches, or when a number is negative."""
        _to.check(_c.sb_parameters_group(self, _to.text(pattern, "pattern"), _to.value(sb_group, group)))

    def freeze(self, pattern, frozen):
        """Freezes parameters, or thaws them again. A frozen parameter keeps its bits: backward computes no
        gradient for it, and no step moves or decays it. It has no memory for a gradient, for moments
        or for a moving average; once thawed, moments begin at 0. Fails when no parameter matches."""
        _to.check(_c.sb_parameters_freeze(self, _to.text(pattern, "pattern"), frozen))

    def trainable(self):
        """The number of values on this rank that are not frozen."""
        return _c.sb_parameters_trainable(self)

    def lora(self, **option):
        """Gives adapters to the linear layers that are made with this set from now on and whose names
        match; layers that were made before keep theirs, and their alpha / rank. Fails when a number is
        out of range.

        Options

          rank: of the adapters; at least 1
          alpha: 0: rank
          on: a pattern (nn/groups.h) of names of layers; NULL: "*.query,*.value" """
        given = _to.options(sb_lora_options, option, "parameters_lora")
        _to.check(_c.sb_parameters_lora(self, given))

    def lora_freeze(self):
        """Freezes all parameters but the adapters. Fails when there are none: no layer matched."""
        _to.check(_c.sb_lora_freeze(self))

    def lora_merge(self):
        """Adds the adapters to the weights, W += alpha / rank B A, and begins them again with B = 0. Fails
        when there are none; after a lack of memory some are added and the others are not."""
        _to.check(_c.sb_lora_merge(self))

    def vector(self, random):
        """A new vector over a set: +-1 drawn from the stream, or zeros where it is NULL. To be freed with
        sb_parameters_free."""
        return _to.adopt(Parameters, _c.sb_parameters_vector(self, _to.value(sb_random, random)), [random])

    def save(self, path, pattern=None):
        """Writes the parameters whose names match (nn/groups.h; NULL: all) under their names. An existing
        file is replaced atomically. Fails when no parameter matches, when ranks hold parts of the set,
        and when the file cannot be written."""
        _to.check(_c.sb_parameters_save(self, _to.text(pattern, "pattern"), _to.text(path, "path")))

    def load(self, path, pattern=None):
        """Reads the parameters whose names match (NULL: all). Reals of any dtype are converted to that of
        the set. Fails, and changes nothing, when a shape differs, a tensor is not of reals, or an
        adapter (nn/lora.h) has another scale, and without `loaded` also when anything is missing or left
        over: the message names the first. Fails as well when nothing was read, and when ranks hold parts
        of the set."""
        _to.check(_c.sb_parameters_load(self, _to.text(pattern, "pattern"), _to.text(path, "path"), None))


class LinearLayer(sb_linear_layer):
    """A fully connected layer: y = activation(x W' + b)."""

    def __init__(self, set, name, in_, out, bias=True):
        """Adds "<name>.weight" and, with bias, "<name>.bias" to the set, and the adapters that
        sb_parameters_lora asked for. Fails when an argument is NULL, a
        size is below 1, or a name is taken; then the layer is zero and the set is unchanged."""
        self.kept = [set, name, in_, out, bias]
        _to.check(_c.sb_linear_layer_init(self, _to.instance(Parameters, set), _to.text(name, "name"), _to.whole(c_int64, in_, "in_"), _to.whole(c_int64, out, "out"), bias))

    def init_cut(self, set, name, in_, out, bias, cut):
        """The same for tensor parallelism, where each rank holds an equal part of the weight: of its
        outputs with axis 0 (column parallel), of its inputs with axis 1 (row parallel, with all of the
        bias)."""
        _to.check(_c.sb_linear_layer_init_cut(self, _to.instance(Parameters, set), _to.text(name, "name"), _to.whole(c_int64, in_, "in_"), _to.whole(c_int64, out, "out"), bias, _to.value(sb_cut, cut)))

    def __call__(self, x, activation="identity"):
        """x (..., in) -> y (..., out)"""
        c = _c.sb_linear_layer_forward(self, _to.tensor(x), _to.choice("sb_activation", activation))
        if c:
            return _to.result(c)
        return _to.retry(self.__call__, x, activation)

    def join(self, x, ranks=None):
        """The same for a row-parallel layer: x (..., in / P) -> y (..., out), the sum over ranks plus the
        bias. `ranks` is NULL for a single rank."""
        c = _c.sb_linear_layer_join(self, _to.tensor(x), _to.handle("sb_communicator", ranks))
        if c:
            return _to.result(c)
        return _to.retry(self.join, x, ranks)


class NormLayer(sb_norm_layer):
    """Layer norm or RMS norm over the last axis, with a learned gain (and bias)."""

    def __init__(self, set, name, C, kind="layer"):
        """Adds "<name>.weight" (the gain) and, for a layer norm, "<name>.bias". Fails as
        sb_linear_layer_init does."""
        self.kept = [set, name, C, kind]
        _to.check(_c.sb_norm_layer_init(self, _to.instance(Parameters, set), _to.text(name, "name"), _to.whole(c_int64, C, "C"), _to.choice("sb_norm_kind", kind)))

    def init_with(self, set, name, C, **option):
        """Adds "<name>.weight" (the gain) and, for a layer norm, "<name>.bias". Fails as
        sb_linear_layer_init does.

        Options

          kind
          no_bias
          epsilon: 0: the default of the operation"""
        given = _to.options(sb_norm_options, option, "norm_layer_init_with")
        _to.check(_c.sb_norm_layer_init_with(self, _to.instance(Parameters, set), _to.text(name, "name"), _to.whole(c_int64, C, "C"), given))

    def __call__(self, x):
        """x (..., C) -> y (..., C)"""
        c = _c.sb_norm_layer_forward(self, _to.tensor(x))
        if c:
            return _to.result(c)
        return _to.retry(self.__call__, x)

    def residual(self, x, branch, p, along):
        """The norm of x + dropout(branch, p), and the sum itself in *sum. `along` is the sequence of x, for
        dropout with a partition."""
        sum = c_void_p()
        c = _c.sb_norm_layer_residual(self, _to.tensor(x), _to.tensor(branch), _to.real(p, "p"), _to.choice("sb_sequence", along), byref(sum))
        if c:
            return _to.result(c), _to.result(sum.value)
        return _to.retry(self.residual, x, branch, p, along)


class MultiHeadAttention(sb_multi_head_attention):
    """Multi-head attention: queries from x, keys and values from a memory (x itself in self-attention;
    values may have a source of their own), attention in each head, and an output projection of the
    concatenated heads. With tensor parallelism each rank holds some heads (Shoeybi et al. 2019)."""

    def __init__(self, set, name, rotary=False, **option):
        """Adds "<name>.query", ".key", ".value" and ".output", each with weight and, as the options say,
        bias. `rotary` applies
        rotary positions to queries and keys; then x and the memory must be one sequence. The options
        key_width and value_width are the widths of the memory and of the source of the values (kdim and
        vdim in PyTorch).

        Options

          width: C: of embeddings and layers; default 128
          heads: H: attention heads; default 4
          head_size: D: of queries, keys and values; default C / H, which must be whole
          key_heads: heads of keys and values, a divisor of H; default H
          key_width: attention: the width of the memory that keys are projected from, in a
        decoder of cross-attention; default C
          value_width: the same of values; default key_width
          feed_forward: hidden width of the feed-forward network; default 4 C
          encoder_layers: default 3
          decoder_layers: default 3
          dropout: of embeddings, branches and attention weights; in [0, 1)
          attention_dropout: of attention weights; default dropout; SB_ZERO: none
          feed_forward_dropout: of the hidden units of feed-forward, in [0, 1)
          norm_place
          norm_kind
          norm_epsilon: of all norms; default that of the operation
          biases
          no_output_bias: of a model's logits; they have none either unless biases is ALL
          activation: default (SB_ACTIVATION_IDENTITY): SB_ACTIVATION_RELU
          gated: gated feed-forward: (activation(x G') * (x U')) W'
          score: of all attention layers
          score_scale: the factor of their scores; default 1 / sqrt D, or 1 with
        SB_SCORE_COSINE
          temperature: extra divisor of attention scores; default 1
          attention: except where attention weights are requested
          embedding_scale: the factor of symbols' embeddings; default sqrt C
          position_scale: and of learned positions; default sqrt C
          embedding_norm: a norm after embeddings and positions, before dropout
          positions
          position_offset: learned: rows of the table before that of the first position
          rotary_base: default 10000
          rotary_scaling: divides the positions that rotary ones turn by; default 1
          position_buckets: of SB_POSITIONS_BUCKETS, an even number; default 32
          position_distance: from which on all share the last bucket; default 128
          precision
          recompute: activation checkpointing of each layer, except where attention weights are
        requested
          along: the sequence of x in a partition; decoders always use the target
          longest: number of positions with SB_POSITIONS_LEARNED; default 512
          padded: embeddings: the symbol padding_id stands for padding; its row of the table
        starts at 0 and gets no gradient, also from logits that are
        tied to it
          padding_id
          ranks: tensor parallelism: each rank holds an equal part of the heads and
        hidden units; must outlive the model. NULL: none"""
        given = _to.options(sb_transformer_options, option, "multi_head_attention_init")
        self.kept = [set, name, rotary]
        _to.check(_c.sb_multi_head_attention_init(self, _to.instance(Parameters, set), _to.text(name, "name"), given, rotary))

    def __call__(self, x, memory=None, **option):
        """x (B, Lq, C), memory (B, Lk, key_width) -> y (B, Lq, C). Fails when a tensor does not have three
        axes, when sizes, batches or lengths differ, and as sb_attention. Source: Vaswani et al. 2017,
        section 3.2. On a CUDA device one product computes the projections that have the same input.

        Options

          mask
          values: (B, Lk, value_width): the source of the values; NULL: the memory
          bias: added to the scores, broadcastable to (B, H, Lq, Lk)
          start: position of the first row of x, for rotary positions
          cache: keys and values of earlier positions, to which those of the memory are
        appended; only on tapes that do not record
          cached: the cache holds all keys and values: nothing is appended, and the memory may be
        NULL
          weights: receives the attention weights (B, H, Lq, Lk) of this rank's heads"""
        given = _to.options(sb_attending, option, "multi_head_attention_forward")
        c = _c.sb_multi_head_attention_forward(self, _to.tensor(x), _to.tensor(memory), given)
        if c:
            return _to.results(given, c)
        return _to.retry(self.__call__, x, memory, **option)


class FeedForward(sb_feed_forward):
    """The feed-forward network of a layer: y = activation(x U' + a) W' + b, or gated, where the gate
    gets the activation: y = (activation(x G' + g) * (x U' + a)) W' + b. With tensor parallelism each
    rank holds some hidden units (Shoeybi et al. 2019)."""

    def __init__(self, set, name, **option):
        """Adds, if gated, "<name>.gate", and "<name>.up" and "<name>.down".

        Options

          width: C: of embeddings and layers; default 128
          heads: H: attention heads; default 4
          head_size: D: of queries, keys and values; default C / H, which must be whole
          key_heads: heads of keys and values, a divisor of H; default H
          key_width: attention: the width of the memory that keys are projected from, in a
        decoder of cross-attention; default C
          value_width: the same of values; default key_width
          feed_forward: hidden width of the feed-forward network; default 4 C
          encoder_layers: default 3
          decoder_layers: default 3
          dropout: of embeddings, branches and attention weights; in [0, 1)
          attention_dropout: of attention weights; default dropout; SB_ZERO: none
          feed_forward_dropout: of the hidden units of feed-forward, in [0, 1)
          norm_place
          norm_kind
          norm_epsilon: of all norms; default that of the operation
          biases
          no_output_bias: of a model's logits; they have none either unless biases is ALL
          activation: default (SB_ACTIVATION_IDENTITY): SB_ACTIVATION_RELU
          gated: gated feed-forward: (activation(x G') * (x U')) W'
          score: of all attention layers
          score_scale: the factor of their scores; default 1 / sqrt D, or 1 with
        SB_SCORE_COSINE
          temperature: extra divisor of attention scores; default 1
          attention: except where attention weights are requested
          embedding_scale: the factor of symbols' embeddings; default sqrt C
          position_scale: and of learned positions; default sqrt C
          embedding_norm: a norm after embeddings and positions, before dropout
          positions
          position_offset: learned: rows of the table before that of the first position
          rotary_base: default 10000
          rotary_scaling: divides the positions that rotary ones turn by; default 1
          position_buckets: of SB_POSITIONS_BUCKETS, an even number; default 32
          position_distance: from which on all share the last bucket; default 128
          precision
          recompute: activation checkpointing of each layer, except where attention weights are
        requested
          along: the sequence of x in a partition; decoders always use the target
          longest: number of positions with SB_POSITIONS_LEARNED; default 512
          padded: embeddings: the symbol padding_id stands for padding; its row of the table
        starts at 0 and gets no gradient, also from logits that are
        tied to it
          padding_id
          ranks: tensor parallelism: each rank holds an equal part of the heads and
        hidden units; must outlive the model. NULL: none"""
        given = _to.options(sb_transformer_options, option, "feed_forward_init")
        self.kept = [set, name]
        _to.check(_c.sb_feed_forward_init(self, _to.instance(Parameters, set), _to.text(name, "name"), given))

    def __call__(self, x):
        """x (..., C) -> y (..., C). Source: Vaswani et al. 2017; gated: Shazeer 2020."""
        c = _c.sb_feed_forward_forward(self, _to.tensor(x))
        if c:
            return _to.result(c)
        return _to.retry(self.__call__, x)


class TransformerLayer(sb_transformer_layer):
    """One layer of a transformer: self-attention, cross-attention to a memory if it has one, and
    feed-forward, each with a residual connection. Without cross-attention it is an encoder's layer;
    with a causal mask, a language model's. Source: Vaswani et al. 2017, section 3.1; where the norms
    stand: Xiong et al. 2020."""

    def __init__(self, set, name, crosses=False, **option):
        """Adds "<name>.self_attention", ".feed_forward", ".self_norm", ".feed_norm", and for
        cross-attention ".cross_attention" and ".cross_norm".

        Options

          width: C: of embeddings and layers; default 128
          heads: H: attention heads; default 4
          head_size: D: of queries, keys and values; default C / H, which must be whole
          key_heads: heads of keys and values, a divisor of H; default H
          key_width: attention: the width of the memory that keys are projected from, in a
        decoder of cross-attention; default C
          value_width: the same of values; default key_width
          feed_forward: hidden width of the feed-forward network; default 4 C
          encoder_layers: default 3
          decoder_layers: default 3
          dropout: of embeddings, branches and attention weights; in [0, 1)
          attention_dropout: of attention weights; default dropout; SB_ZERO: none
          feed_forward_dropout: of the hidden units of feed-forward, in [0, 1)
          norm_place
          norm_kind
          norm_epsilon: of all norms; default that of the operation
          biases
          no_output_bias: of a model's logits; they have none either unless biases is ALL
          activation: default (SB_ACTIVATION_IDENTITY): SB_ACTIVATION_RELU
          gated: gated feed-forward: (activation(x G') * (x U')) W'
          score: of all attention layers
          score_scale: the factor of their scores; default 1 / sqrt D, or 1 with
        SB_SCORE_COSINE
          temperature: extra divisor of attention scores; default 1
          attention: except where attention weights are requested
          embedding_scale: the factor of symbols' embeddings; default sqrt C
          position_scale: and of learned positions; default sqrt C
          embedding_norm: a norm after embeddings and positions, before dropout
          positions
          position_offset: learned: rows of the table before that of the first position
          rotary_base: default 10000
          rotary_scaling: divides the positions that rotary ones turn by; default 1
          position_buckets: of SB_POSITIONS_BUCKETS, an even number; default 32
          position_distance: from which on all share the last bucket; default 128
          precision
          recompute: activation checkpointing of each layer, except where attention weights are
        requested
          along: the sequence of x in a partition; decoders always use the target
          longest: number of positions with SB_POSITIONS_LEARNED; default 512
          padded: embeddings: the symbol padding_id stands for padding; its row of the table
        starts at 0 and gets no gradient, also from logits that are
        tied to it
          padding_id
          ranks: tensor parallelism: each rank holds an equal part of the heads and
        hidden units; must outlive the model. NULL: none"""
        given = _to.options(sb_transformer_options, option, "transformer_layer_init")
        self.kept = [set, name, crosses]
        _to.check(_c.sb_transformer_layer_init(self, _to.instance(Parameters, set), _to.text(name, "name"), given, crosses))

    def __call__(self, x, memory=None, self_=None, cross=None):
        """x (B, L, C), memory (B, Lm, C) or NULL without cross-attention -> y (B, L, C), with dropout on
        each branch.

        Pre-norm   a = x + self(norm x)    b = a + cross(norm a, memory)    y = b + feed(norm b)
        Post-norm  a = norm(x + self(x))   b = norm(a + cross(a, memory))   y = norm(b + feed(b))"""
        c = _c.sb_transformer_layer_forward(self, _to.tensor(x), _to.tensor(memory), _to.value(sb_attending, self_), _to.value(sb_attending, cross))
        if c:
            return _to.result(c)
        return _to.retry(self.__call__, x, memory, self_, cross)


class EncoderLayer(sb_encoder_layer):
    """One layer of a transformer: self-attention, cross-attention to a memory if it has one, and
    feed-forward, each with a residual connection. Without cross-attention it is an encoder's layer;
    with a causal mask, a language model's. Source: Vaswani et al. 2017, section 3.1; where the norms
    stand: Xiong et al. 2020."""

    def __init__(self, set, name, **option):
        """The same for an encoder, whose layers have no cross-attention.

        Options

          width: C: of embeddings and layers; default 128
          heads: H: attention heads; default 4
          head_size: D: of queries, keys and values; default C / H, which must be whole
          key_heads: heads of keys and values, a divisor of H; default H
          key_width: attention: the width of the memory that keys are projected from, in a
        decoder of cross-attention; default C
          value_width: the same of values; default key_width
          feed_forward: hidden width of the feed-forward network; default 4 C
          encoder_layers: default 3
          decoder_layers: default 3
          dropout: of embeddings, branches and attention weights; in [0, 1)
          attention_dropout: of attention weights; default dropout; SB_ZERO: none
          feed_forward_dropout: of the hidden units of feed-forward, in [0, 1)
          norm_place
          norm_kind
          norm_epsilon: of all norms; default that of the operation
          biases
          no_output_bias: of a model's logits; they have none either unless biases is ALL
          activation: default (SB_ACTIVATION_IDENTITY): SB_ACTIVATION_RELU
          gated: gated feed-forward: (activation(x G') * (x U')) W'
          score: of all attention layers
          score_scale: the factor of their scores; default 1 / sqrt D, or 1 with
        SB_SCORE_COSINE
          temperature: extra divisor of attention scores; default 1
          attention: except where attention weights are requested
          embedding_scale: the factor of symbols' embeddings; default sqrt C
          position_scale: and of learned positions; default sqrt C
          embedding_norm: a norm after embeddings and positions, before dropout
          positions
          position_offset: learned: rows of the table before that of the first position
          rotary_base: default 10000
          rotary_scaling: divides the positions that rotary ones turn by; default 1
          position_buckets: of SB_POSITIONS_BUCKETS, an even number; default 32
          position_distance: from which on all share the last bucket; default 128
          precision
          recompute: activation checkpointing of each layer, except where attention weights are
        requested
          along: the sequence of x in a partition; decoders always use the target
          longest: number of positions with SB_POSITIONS_LEARNED; default 512
          padded: embeddings: the symbol padding_id stands for padding; its row of the table
        starts at 0 and gets no gradient, also from logits that are
        tied to it
          padding_id
          ranks: tensor parallelism: each rank holds an equal part of the heads and
        hidden units; must outlive the model. NULL: none"""
        given = _to.options(sb_transformer_options, option, "encoder_layer_init")
        self.kept = [set, name]
        _to.check(_c.sb_encoder_layer_init(self, _to.instance(Parameters, set), _to.text(name, "name"), given))

    def __call__(self, x, **option):
        """The same for an encoder, whose layers have no cross-attention.

        Options

          mask
          values: (B, Lk, value_width): the source of the values; NULL: the memory
          bias: added to the scores, broadcastable to (B, H, Lq, Lk)
          start: position of the first row of x, for rotary positions
          cache: keys and values of earlier positions, to which those of the memory are
        appended; only on tapes that do not record
          cached: the cache holds all keys and values: nothing is appended, and the memory may be
        NULL
          weights: receives the attention weights (B, H, Lq, Lk) of this rank's heads"""
        given = _to.options(sb_attending, option, "encoder_layer_forward")
        c = _c.sb_encoder_layer_forward(self, _to.tensor(x), given)
        if c:
            return _to.results(given, c)
        return _to.retry(self.__call__, x, **option)


class DecoderLayer(sb_decoder_layer):
    """One layer of a transformer: self-attention, cross-attention to a memory if it has one, and
    feed-forward, each with a residual connection. Without cross-attention it is an encoder's layer;
    with a causal mask, a language model's. Source: Vaswani et al. 2017, section 3.1; where the norms
    stand: Xiong et al. 2020."""

    def __init__(self, set, name, crosses=False, **option):
        """The same for a decoder, whose positions belong to the target sequence.

        Options

          width: C: of embeddings and layers; default 128
          heads: H: attention heads; default 4
          head_size: D: of queries, keys and values; default C / H, which must be whole
          key_heads: heads of keys and values, a divisor of H; default H
          key_width: attention: the width of the memory that keys are projected from, in a
        decoder of cross-attention; default C
          value_width: the same of values; default key_width
          feed_forward: hidden width of the feed-forward network; default 4 C
          encoder_layers: default 3
          decoder_layers: default 3
          dropout: of embeddings, branches and attention weights; in [0, 1)
          attention_dropout: of attention weights; default dropout; SB_ZERO: none
          feed_forward_dropout: of the hidden units of feed-forward, in [0, 1)
          norm_place
          norm_kind
          norm_epsilon: of all norms; default that of the operation
          biases
          no_output_bias: of a model's logits; they have none either unless biases is ALL
          activation: default (SB_ACTIVATION_IDENTITY): SB_ACTIVATION_RELU
          gated: gated feed-forward: (activation(x G') * (x U')) W'
          score: of all attention layers
          score_scale: the factor of their scores; default 1 / sqrt D, or 1 with
        SB_SCORE_COSINE
          temperature: extra divisor of attention scores; default 1
          attention: except where attention weights are requested
          embedding_scale: the factor of symbols' embeddings; default sqrt C
          position_scale: and of learned positions; default sqrt C
          embedding_norm: a norm after embeddings and positions, before dropout
          positions
          position_offset: learned: rows of the table before that of the first position
          rotary_base: default 10000
          rotary_scaling: divides the positions that rotary ones turn by; default 1
          position_buckets: of SB_POSITIONS_BUCKETS, an even number; default 32
          position_distance: from which on all share the last bucket; default 128
          precision
          recompute: activation checkpointing of each layer, except where attention weights are
        requested
          along: the sequence of x in a partition; decoders always use the target
          longest: number of positions with SB_POSITIONS_LEARNED; default 512
          padded: embeddings: the symbol padding_id stands for padding; its row of the table
        starts at 0 and gets no gradient, also from logits that are
        tied to it
          padding_id
          ranks: tensor parallelism: each rank holds an equal part of the heads and
        hidden units; must outlive the model. NULL: none"""
        given = _to.options(sb_transformer_options, option, "decoder_layer_init")
        self.kept = [set, name, crosses]
        _to.check(_c.sb_decoder_layer_init(self, _to.instance(Parameters, set), _to.text(name, "name"), given, crosses))

    def __call__(self, x, memory=None, self_=None, cross=None):
        """The same for a decoder, whose positions belong to the target sequence."""
        c = _c.sb_decoder_layer_forward(self, _to.tensor(x), _to.tensor(memory), _to.value(sb_attending, self_), _to.value(sb_attending, cross))
        if c:
            return _to.result(c)
        return _to.retry(self.__call__, x, memory, self_, cross)


class Encoder(Object):
    """The encoder: layers of self-attention and feed-forward over a source sequence."""

    c_name = "sb_encoder"

    def __init__(self, set, name, V, **option):
        """An encoder for a vocabulary of V symbols: an embedding ("<name>.embedding"), layers
        ("<name>.layers.0", ...) and, with pre-norm, a final norm ("<name>.norm"). The set owns the
        weights.

        Options

          width: C: of embeddings and layers; default 128
          heads: H: attention heads; default 4
          head_size: D: of queries, keys and values; default C / H, which must be whole
          key_heads: heads of keys and values, a divisor of H; default H
          key_width: attention: the width of the memory that keys are projected from, in a
        decoder of cross-attention; default C
          value_width: the same of values; default key_width
          feed_forward: hidden width of the feed-forward network; default 4 C
          encoder_layers: default 3
          decoder_layers: default 3
          dropout: of embeddings, branches and attention weights; in [0, 1)
          attention_dropout: of attention weights; default dropout; SB_ZERO: none
          feed_forward_dropout: of the hidden units of feed-forward, in [0, 1)
          norm_place
          norm_kind
          norm_epsilon: of all norms; default that of the operation
          biases
          no_output_bias: of a model's logits; they have none either unless biases is ALL
          activation: default (SB_ACTIVATION_IDENTITY): SB_ACTIVATION_RELU
          gated: gated feed-forward: (activation(x G') * (x U')) W'
          score: of all attention layers
          score_scale: the factor of their scores; default 1 / sqrt D, or 1 with
        SB_SCORE_COSINE
          temperature: extra divisor of attention scores; default 1
          attention: except where attention weights are requested
          embedding_scale: the factor of symbols' embeddings; default sqrt C
          position_scale: and of learned positions; default sqrt C
          embedding_norm: a norm after embeddings and positions, before dropout
          positions
          position_offset: learned: rows of the table before that of the first position
          rotary_base: default 10000
          rotary_scaling: divides the positions that rotary ones turn by; default 1
          position_buckets: of SB_POSITIONS_BUCKETS, an even number; default 32
          position_distance: from which on all share the last bucket; default 128
          precision
          recompute: activation checkpointing of each layer, except where attention weights are
        requested
          along: the sequence of x in a partition; decoders always use the target
          longest: number of positions with SB_POSITIONS_LEARNED; default 512
          padded: embeddings: the symbol padding_id stands for padding; its row of the table
        starts at 0 and gets no gradient, also from logits that are
        tied to it
          padding_id
          ranks: tensor parallelism: each rank holds an equal part of the heads and
        hidden units; must outlive the model. NULL: none"""
        given = _to.options(sb_transformer_options, option, "encoder_new")
        self._take(_c.sb_encoder_new(_to.instance(Parameters, set), _to.text(name, "name"), _to.whole(c_int64, V, "V"), given), [set, name, V])

    _free = _c.sb_encoder_free

    def __call__(self, ids, lengths=None):
        """ids (B, L) of i32, lengths (B) of i32 -> the memory (B, L, C). `weights`, unless NULL, receives
        one tensor (B, H, L, L) for each layer."""
        c = _c.sb_encoder_forward(self, _to.tensor(ids), _to.tensor(lengths), None)
        if c:
            return _to.result(c)
        return _to.retry(self.__call__, ids, lengths)

    def table(self):
        """The embedding table (V, C), for weight sharing."""
        c = _c.sb_encoder_table(self)
        if c:
            return _to.result(c)
        return _to.retry(self.table)

    def layers(self):
        """The embedding table (V, C), for weight sharing."""
        return _c.sb_encoder_layers(self)


class Labels(Object):
    """Labels: the names of classes, each with a number."""

    c_name = "sb_labels"

    def __init__(self, texts):
        """The different texts among `count`, in the order of their bytes. Fails when one is NULL, empty or
        not UTF-8, when there are fewer than two, and without memory."""
        self._take(_c.sb_labels_new(_to.texts(texts), len(texts)), [texts])

    _free = _c.sb_labels_free

    def count(self):
        """NULL: 0"""
        return _c.sb_labels_count(self)

    def text(self, i):
        """The i-th label; NULL, without a message, past the last."""
        return _c.sb_labels_text(self, _to.whole(c_int64, i, "i"))

    def find(self, text):
        """The number of a label; -1, without a message, where there is none."""
        return _c.sb_labels_find(self, _to.text(text, "text"))


class Pairs(Object):
    """Pairs of a source and a target text, from memory or from files.

    Files are TSV, a line `source<TAB>target` for each pair, or two files whose lines belong
    together. They are UTF-8; LF and CRLF end a line, the last line may lack its end, and a
    byte-order mark is skipped. These lines are malformed:

      train.tsv:17: no tab between source and target
      train.tsv:18: 2 tabs, expected one between source and target
      train.tsv:19: the source is empty          (or the target; or the line)
      train.tsv:20: byte 5 (0xff) is not UTF-8   (bytes of a line are counted from 1)
      train.tsv:21: byte 5 is NUL
      train.tsv:22: 70,000 bytes, expected at most 65,536

    By default they are skipped and counted, and the first messages are kept; reading fails when
    no pair is left or more than one line in ten is malformed. With `strict` the first one fails."""

    c_name = "sb_pairs"

    def __init__(self):
        """without any pair; NULL without memory"""
        self._take(_c.sb_pairs_new(), [])

    _free = _c.sb_pairs_free

    def add(self, source, target):
        """Adds a pair of copies. Fails when a text is not UTF-8 or there is no memory."""
        _to.check(_c.sb_pairs_add(self, _to.text(source, "source"), _to.text(target, "target")))

    def count(self):
        """NULL: 0"""
        return _c.sb_pairs_count(self)

    def source(self, index):
        """The texts of pair `index`, owned by the pairs; fails when there is no such pair."""
        return _c.sb_pairs_source(self, _to.whole(c_int64, index, "index"))

    def target(self, index):
        """The texts of pair `index`, owned by the pairs; fails when there is no such pair."""
        return _c.sb_pairs_target(self, _to.whole(c_int64, index, "index"))

    def skipped(self):
        """The number of malformed lines that were skipped, and the messages of the first SB_PAIRS_PROBLEMS
        of them; NULL, without a message, after the last."""
        return _c.sb_pairs_skipped(self)

    def problem(self, index):
        """The number of malformed lines that were skipped, and the messages of the first SB_PAIRS_PROBLEMS
        of them; NULL, without a message, after the last."""
        return _c.sb_pairs_problem(self, _to.whole(c_int64, index, "index"))

    @staticmethod
    def read(path, **option):
        """Reads TSV from a file; "-" is the standard input. Options may be NULL.

        Options

          strict: fail on the first malformed line
          length: the longest line in bytes; 0: SB_PAIRS_LINE"""
        given = _to.options(sb_pairs_options, option, "pairs_read")
        return _to.adopt(Pairs, _c.sb_pairs_read(_to.text(path, "path"), given), [path])

    @staticmethod
    def read_two(source_path, target_path, **option):
        """Reads two files with as many lines each.

        Options

          strict: fail on the first malformed line
          length: the longest line in bytes; 0: SB_PAIRS_LINE"""
        given = _to.options(sb_pairs_options, option, "pairs_read_two")
        return _to.adopt(Pairs, _c.sb_pairs_read_two(_to.text(source_path, "source_path"), _to.text(target_path, "target_path"), given), [source_path, target_path])

    @staticmethod
    def parse(name, text, **option):
        """Reads TSV from memory; `name` stands for the file in messages.

        Options

          strict: fail on the first malformed line
          length: the longest line in bytes; 0: SB_PAIRS_LINE"""
        given = _to.options(sb_pairs_options, option, "pairs_parse")
        return _to.adopt(Pairs, _c.sb_pairs_parse(_to.text(name, "name"), (data := _to.text(text, "text")), len(data), given), [name, text])

    def shared(self, b):
        """How many pairs of b have a source that is also a's: data leakage, if one is a test of the other.
        -1 without memory."""
        return _c.sb_pairs_shared(self, _to.instance(Pairs, b))


class Vocabulary(Object):
    """Vocabularies: texts to ids and back.

    A text is UTF-8. It is cut into units (units.h), and each unit's symbol has an id. Four special
    symbols come first; encoding never returns the first three, which are added when a batch is
    made.

    Decoding is the exact inverse of encoding for every text whose symbols are known. The vocabulary
    depends on the training texts but not on their order."""

    c_name = "sb_vocabulary"

    def __init__(self, texts, **option):
        """Learns a vocabulary from `count` texts; options may be NULL.

        characters, words   the symbols that occur, in code-point order. Where `size` leaves too little
                            room, the most frequent are kept (of equally frequent ones the first).
        bytes               all 256, whatever the texts; ids are byte + 4.
        bpe                 the characters as above, then merges in the order in which they are learned
                            (Sennrich, Haddow and Birch 2016): repeatedly the most frequent pair of
                            neighbours becomes a symbol, until `size` is reached or no pair occurs twice.
                            Of equally frequent pairs the one with the smaller ids is taken. The paper
                            marks the end of each word; here each word carries the space before it (the
                            first word gets one too), so that the concatenated symbols are the text. A
                            line feed is a word of its own.

        The caller owns it. Fails when there are no texts, when one is NULL or not UTF-8, when no symbol
        occurs, when the size is negative or below 5 (bytes: below 260), or without memory.

        Options

          units: 0: chosen from the texts
          size: the most ids, special ones included; 0: no limit, for bpe 8,000"""
        given = _to.options(sb_vocabulary_options, option, "vocabulary_new")
        self._take(_c.sb_vocabulary_new(_to.texts(texts), len(texts), given), [texts])

    _free = _c.sb_vocabulary_release

    def size(self):
        """ids are below it; NULL: 0"""
        return _c.sb_vocabulary_size(self)

    def units(self):
        return _to.name_of("sb_units", _c.sb_vocabulary_units(self))

    def symbol(self, id):
        """A symbol as a printable text, owned by the vocabulary: "<padding>", "<begin>", "<end>",
        "<unknown>", or its text; a byte outside printable ASCII is "<0xC3>". A bpe symbol begins with a
        space where a word begins. Fails when there is no such id."""
        return _c.sb_vocabulary_symbol(self, _to.whole(c_int32, id, "id"))

    def id(self, symbol):
        """The id of a symbol by its text as above, but never a special one; -1, without a message, when the
        vocabulary has none."""
        return _c.sb_vocabulary_id(self, _to.text(symbol, "symbol"))

    def decode(self, ids):
        """The text of ids, to be freed with sb_free. SB_SYMBOL_END ends it; padding and begin have no text,
        and unknown is U+FFFD. It is always UTF-8: bytes that are not part of a character become
        U+FFFD. Fails on an id that the vocabulary does not have, and without memory."""
        return _to.owned_text(_c.sb_vocabulary_decode(self, *_to.sizes(ids, c_int32)[::-1]))


class Batch(Object):
    """A batch: the items of one forward and backward pass, as named tensors."""

    c_name = "sb_batch"

    def get(self, name):
        """The part of this name; fails when there is none, and when `parts` is not in 0..SB_BATCH_PARTS."""
        c = _c.sb_batch_get(self, _to.text(name, "name"))
        if c:
            return _to.result(c)
        return _to.retry(self.get, name)

    _free = _c.sb_batch_free


class Data(Object):
    """Training data: encoded pairs that come in batches, in an order fixed by a seed.

    A built-in task generates its pairs on demand and never ends. Pairs from a file come in
    epochs: each is shuffled by seed and epoch, sorted by length within stretches of some hundred
    batches, cut into batches bounded by their number of symbols, and these are shuffled again. So
    the position (epoch, batch) determines the next batch, and a resumed run continues with the batch
    that an uninterrupted one would have reached."""

    c_name = "sb_data"

    @staticmethod
    def task(task, seed=0):
        """The endless pairs of a built-in task ("copy", "reverse", "sort", "addition", "dates"), training
        part, with its vocabularies; 64 pairs a batch."""
        return _to.adopt(Data, _c.sb_data_task(_to.text(task, "task"), _to.whole(c_uint64, seed, "seed")), [task, seed])

    @staticmethod
    def task_with(task, task_options=None, options=None):
        """The endless pairs of a built-in task ("copy", "reverse", "sort", "addition", "dates"), training
        part, with its vocabularies; 64 pairs a batch."""
        return _to.adopt(Data, _c.sb_data_task_with(_to.choice("sb_task", task), _to.value(sb_task_options, task_options), _to.value(sb_data_options, options)), [task, task_options, options])

    def __init__(self, pairs, source, target, **option):
        """Pairs of texts, encoded by two vocabularies (which may be one); both are retained, the pairs may
        be freed afterwards. Fails when no pair is short enough.

        Options

          seed
          batch_pairs: the most pairs of a batch; default 64
          batch_symbols: the most symbols of a batch with padding, source or target, whichever
        is more; default 4096 (a single longer pair makes a batch alone)
          longest: pairs with a longer source or target are left out; default 512"""
        given = _to.options(sb_data_options, option, "data_new")
        self._take(_c.sb_data_new(_to.instance(Pairs, pairs), _to.instance(Vocabulary, source), _to.instance(Vocabulary, target), given), [pairs, source, target])

    _free = _c.sb_data_free

    def source(self):
        return _to.adopt(Vocabulary, _c.sb_data_source(self), self, owned=False)

    def target(self):
        return _to.adopt(Vocabulary, _c.sb_data_target(self), self, owned=False)

    def pairs(self):
        """in an epoch; 0: endless"""
        return _c.sb_data_pairs(self)

    def left_out(self):
        """pairs that were too long"""
        return _c.sb_data_left_out(self)

    def longest_source(self):
        """The most symbols of a source and of a target; 0: endless."""
        return _c.sb_data_longest_source(self)

    def longest_target(self):
        """The most symbols of a source and of a target; 0: endless."""
        return _c.sb_data_longest_target(self)

    def batches(self):
        """in this epoch, once begun; 0: endless"""
        return _c.sb_data_batches(self)

    def next(self):
        """The next batch; it belongs to the data and lives until the next call."""
        return _to.batch(Batch, _c.sb_data_next(self), self)

    def tell(self):
        return _c.sb_data_tell(self)

    def seek(self, position):
        _to.check(_c.sb_data_seek(self, _to.value(sb_data_position, position)))

    def hash(self):
        """A hash of the pairs, their symbols, and how they are cut into batches."""
        return _c.sb_data_hash(self)

    def as_source(self):
        """The data as a source of batches, which the data must outlive."""
        return _c.sb_data_as_source(self)


class Labelled(Object):
    """Labelled texts: what a classifier learns from, as batches.

    Texts come in epochs, shuffled and batched as pairs are (data.h): the position (epoch, batch)
    alone says what comes next. Parts of a batch:

      text     (B, L) i32  begin, the text's symbols, then padding
      lengths  (B) i32     symbols and begin
      pooling  (B, L) f32  1 / length where there are symbols, else 0: the weights of their mean
      label    (B) i32     the numbers of the labels; -1 where a text has none"""

    c_name = "sb_labelled"

    def __init__(self, pairs, vocabulary, labels, **option):
        """Pairs of text and label, of which the vocabulary is retained and the others may be freed
        afterwards. Options may be NULL; texts longer than `longest` are left out. Fails where a label is
        none of `labels` and when no text is short enough.

        Options

          seed
          batch_pairs: the most pairs of a batch; default 64
          batch_symbols: the most symbols of a batch with padding, source or target, whichever
        is more; default 4096 (a single longer pair makes a batch alone)
          longest: pairs with a longer source or target are left out; default 512"""
        given = _to.options(sb_data_options, option, "labelled_new")
        self._take(_c.sb_labelled_new(_to.instance(Pairs, pairs), _to.instance(Vocabulary, vocabulary), _to.instance(Labels, labels), given), [pairs, vocabulary, labels])

    _free = _c.sb_labelled_free

    def count(self):
        """texts of an epoch"""
        return _c.sb_labelled_count(self)

    def left_out(self):
        """texts that were too long"""
        return _c.sb_labelled_left_out(self)

    def next(self):
        """The next batch; it belongs to the object and lives until the next call."""
        return _to.batch(Batch, _c.sb_labelled_next(self), self)

    def tell(self):
        """The next batch; it belongs to the object and lives until the next call."""
        return _c.sb_labelled_tell(self)

    def seek(self, position):
        """The next batch; it belongs to the object and lives until the next call."""
        _to.check(_c.sb_labelled_seek(self, _to.value(sb_data_position, position)))

    def as_source(self):
        """As a source of batches; the object must outlive it."""
        return _c.sb_labelled_as_source(self)


class Description(Object):
    """A description: all of a model but its weights. It has values by name, all of them texts,
    vocabularies by name, and the labels of classes. A model is built from a description and can
    write one; files contain it (models/training/checkpoint.h)."""

    c_name = "sb_description"

    def __init__(self, kind):
        """Of a model of this kind, a name that is copied."""
        self._take(_c.sb_description_new(_to.text(kind, "kind")), [kind])

    _free = _c.sb_description_free

    def kind(self):
        """Of a model of this kind, a name that is copied."""
        return _c.sb_description_kind(self)

    def set(self, name, value):
        """Sets a value, or changes it. Values keep the order in which they were set first."""
        _to.check(_c.sb_description_set(self, _to.text(name, "name"), _to.text(value, "value")))

    def set_number(self, name, value):
        """The same with a number, in the fewest digits that restore its bits."""
        _to.check(_c.sb_description_set_number(self, _to.text(name, "name"), _to.real(value, "value")))

    def get(self, name):
        """The value of this name; NULL, without a message, where there is none."""
        return _c.sb_description_get(self, _to.text(name, "name"))

    def name(self, i):
        """The i-th value, in their order; NULL past the last."""
        return _c.sb_description_name(self, _to.whole(c_int64, i, "i"))

    def value(self, i):
        """The i-th value, in their order; NULL past the last."""
        return _c.sb_description_value(self, _to.whole(c_int64, i, "i"))

    def add_vocabulary(self, name, vocabulary):
        """Adds a vocabulary, which is retained; one may have several names."""
        _to.check(_c.sb_description_add_vocabulary(self, _to.text(name, "name"), _to.instance(Vocabulary, vocabulary)))

    def vocabulary(self, name):
        """The vocabulary of this name, which the description owns; fails when there is none."""
        return _to.adopt(Vocabulary, _c.sb_description_vocabulary(self, _to.text(name, "name")), self, owned=False)

    def add_label(self, label):
        """Adds the label of the next class, and the i-th one; NULL past the last."""
        _to.check(_c.sb_description_add_label(self, _to.text(label, "label")))

    def label(self, i):
        """Adds the label of the next class, and the i-th one; NULL past the last."""
        return _c.sb_description_label(self, _to.whole(c_int64, i, "i"))

    def set_ranks(self, ranks=None):
        """The ranks over which a model that is built from it is cut by heads (tensor parallelism); NULL,
        the default: it is whole. Files do not contain this."""
        return _c.sb_description_set_ranks(self, _to.handle("sb_communicator", ranks))

    @staticmethod
    def model_describe(model):
        """A description of the model, to be freed."""
        return _to.adopt(Description, _c.sb_model_describe(_to.model(model)), [model])


class Classifier(Object):
    """The classifier: an encoder, the mean over its outputs or the first of them, and a logit for each
    label."""

    c_name = "sb_classifier"

    @staticmethod
    def for_(weights, vocabulary, labels, **option):
        """A model for a vocabulary, which it retains, and for `count` different labels, which it copies and
        numbers in the order of their bytes, as sb_labels does. It adds its weights to the set:
        "encoder...", "output.weight", "output.bias". The set must outlive the model. Options may be
        NULL.

        Options

          transformer: decoder_layers is ignored
          pooling
          label_smoothing: of the loss, in [0, 1)"""
        given = _to.options(sb_classifier_options, option, "classifier_for")
        return _to.adopt(Classifier, _c.sb_classifier_for(_to.instance(Parameters, weights), _to.instance(Vocabulary, vocabulary), _to.texts(labels), len(labels), given), [weights, vocabulary, labels])

    _free = _c.sb_classifier_free

    def options_of(self):
        """The options with every default filled in."""
        return _to.contents(sb_classifier_options, _c.sb_classifier_options_of(self))

    def vocabulary(self):
        """The options with every default filled in."""
        return _to.adopt(Vocabulary, _c.sb_classifier_vocabulary(self), self, owned=False)

    def labels(self):
        """The options with every default filled in."""
        return _c.sb_classifier_labels(self)

    def label(self, i):
        """The i-th label; NULL, without a message, past the last."""
        return _c.sb_classifier_label(self, _to.whole(c_int64, i, "i"))

    def logits(self, batch):
        """The logits (B, labels) of a batch of texts (data/labelled.h), on the open tape."""
        c = _c.sb_classifier_logits(self, _to.instance(Batch, batch))
        if c:
            return _to.result(c)
        return _to.retry(self.logits, batch)

    def classify(self, texts):
        """The most probable label of each of n texts."""
        classes = (sb_class * len(texts))()
        _to.check(_c.sb_classify(self, _to.texts(texts), len(texts), classes))
        return list(classes)

    def save(self, path):
        """Writes the model to a file, and reads an untrusted one into an empty set of weights, which after
        a failure can only be freed; as sb_model_save and sb_model_load do."""
        _to.check(_c.sb_classifier_save(self, _to.text(path, "path")))

    @staticmethod
    def load(weights, path):
        """Writes the model to a file, and reads an untrusted one into an empty set of weights, which after
        a failure can only be freed; as sb_model_save and sb_model_load do."""
        return _to.adopt(Classifier, _c.sb_classifier_load(_to.instance(Parameters, weights), _to.text(path, "path")), [weights, path])

    def as_model(self):
        """The model for training and files, of the kind "classifier"."""
        return _c.sb_classifier_as_model(self)


class Documents(Object):
    """Documents: the texts that a language model learns from, in UTF-8.

    A file is one document, or many, one a line or one between blank lines. Ends of lines are LF;
    CRLF becomes LF, and a byte-order mark at the start of a file is left out. A document may be a
    piece of a longer one, from which another part was held out: then it lacks a beginning or an end,
    and no model learns one there."""

    c_name = "sb_documents"

    def __init__(self):
        self._take(_c.sb_documents_new(), [])

    _free = _c.sb_documents_free

    def add(self, name, text, cut="files"):
        """Adds the documents of a text of `size` bytes; `name` opens messages. Fails at a byte that is not
        UTF-8 and at a NUL, naming the line, and where the text has no document."""
        _to.check(_c.sb_documents_add(self, _to.text(name, "name"), (data := _to.text(text, "text")), len(data), _to.choice("sb_document_cut", cut)))

    def read(self, path, cut="files"):
        """The same of a file; "-" is standard input."""
        _to.check(_c.sb_documents_read(self, _to.text(path, "path"), _to.choice("sb_document_cut", cut)))

    def count(self):
        return _c.sb_documents_count(self)

    def bytes(self):
        """of all texts"""
        return _c.sb_documents_bytes(self)

    def text(self, i):
        return _c.sb_documents_text(self, _to.whole(c_int64, i, "i"))

    def begins(self, i):
        """Whether document i starts at the beginning, or ends at the end, of the text it was cut from."""
        return _c.sb_documents_begins(self, _to.whole(c_int64, i, "i"))

    def ends(self, i):
        """Whether document i starts at the beginning, or ends at the end, of the text it was cut from."""
        return _c.sb_documents_ends(self, _to.whole(c_int64, i, "i"))

    def hash(self):
        """A number that changes with the texts, their order and their cuts."""
        return _c.sb_documents_hash(self)


class Windows(Object):
    """Windows over documents: what a language model learns from, as batches.

    A document is the stream begin, its symbols, end; a piece of one lacks what was cut off. An epoch
    cuts every stream into windows of up to `length` symbols, so that each symbol behind the first of
    a stream is predicted once, from those before it in its window. Where the cuts lie differs from
    epoch to epoch, unless windows are fixed. Windows are shuffled and batched as pairs are
    (data.h): the position (epoch, batch) alone says what comes next.

    Parts of a batch, of i32: target_in (B, L), what is read; target_out (B, L), what is to be
    predicted at each place, -1 behind the end of a window; target_lengths (B)."""

    c_name = "sb_windows"

    def __init__(self, documents, vocabulary, **option):
        """Encodes documents, which may be freed afterwards, by a vocabulary, which is retained. Options may
        be NULL. Fails where no document has two symbols.

        Options

          seed
          length: the most symbols of a window; default 128
          batch_windows: the most windows of a batch; default 64
          batch_symbols: the most symbols of a batch with padding; default 4096 (a single
        longer window makes a batch alone)
          fixed: the same windows in each epoch, from the start of each document"""
        given = _to.options(sb_windows_options, option, "windows_new")
        self._take(_c.sb_windows_new(_to.instance(Documents, documents), _to.instance(Vocabulary, vocabulary), given), [documents, vocabulary])

    _free = _c.sb_windows_free

    def vocabulary(self):
        return _to.adopt(Vocabulary, _c.sb_windows_vocabulary(self), self, owned=False)

    def symbols(self):
        """predicted in an epoch"""
        return _c.sb_windows_symbols(self)

    def bytes(self):
        """of the documents"""
        return _c.sb_windows_bytes(self)

    def unknown(self):
        """symbols without an id"""
        return _c.sb_windows_unknown(self)

    def batches(self):
        """in this epoch, once begun"""
        return _c.sb_windows_batches(self)

    def next(self):
        """The next batch; it belongs to the windows and lives until the next call."""
        return _to.batch(Batch, _c.sb_windows_next(self), self)

    def tell(self):
        """The next batch; it belongs to the windows and lives until the next call."""
        return _c.sb_windows_tell(self)

    def seek(self, position):
        """The next batch; it belongs to the windows and lives until the next call."""
        _to.check(_c.sb_windows_seek(self, _to.value(sb_data_position, position)))

    def hash(self):
        """A number that changes with the symbols and how they are cut into batches."""
        return _c.sb_windows_hash(self)

    def as_source(self):
        """The windows as a source of batches; they must outlive it."""
        return _c.sb_windows_as_source(self)


class Decoder(Object):
    """The decoder: layers of causal self-attention, cross-attention to the encoder's memory, and
    feed-forward, over a target sequence; and its state for incremental decoding. Without a memory it
    is a decoder-only language model."""

    c_name = "sb_decoder"

    def __init__(self, set, name, V, crosses=False, shared=None, **option):
        """A decoder for a vocabulary of V symbols. `shared`, unless NULL, is an embedding table (V, C) to
        use instead of a new one. Parameters are named as in the encoder.

        Options

          width: C: of embeddings and layers; default 128
          heads: H: attention heads; default 4
          head_size: D: of queries, keys and values; default C / H, which must be whole
          key_heads: heads of keys and values, a divisor of H; default H
          key_width: attention: the width of the memory that keys are projected from, in a
        decoder of cross-attention; default C
          value_width: the same of values; default key_width
          feed_forward: hidden width of the feed-forward network; default 4 C
          encoder_layers: default 3
          decoder_layers: default 3
          dropout: of embeddings, branches and attention weights; in [0, 1)
          attention_dropout: of attention weights; default dropout; SB_ZERO: none
          feed_forward_dropout: of the hidden units of feed-forward, in [0, 1)
          norm_place
          norm_kind
          norm_epsilon: of all norms; default that of the operation
          biases
          no_output_bias: of a model's logits; they have none either unless biases is ALL
          activation: default (SB_ACTIVATION_IDENTITY): SB_ACTIVATION_RELU
          gated: gated feed-forward: (activation(x G') * (x U')) W'
          score: of all attention layers
          score_scale: the factor of their scores; default 1 / sqrt D, or 1 with
        SB_SCORE_COSINE
          temperature: extra divisor of attention scores; default 1
          attention: except where attention weights are requested
          embedding_scale: the factor of symbols' embeddings; default sqrt C
          position_scale: and of learned positions; default sqrt C
          embedding_norm: a norm after embeddings and positions, before dropout
          positions
          position_offset: learned: rows of the table before that of the first position
          rotary_base: default 10000
          rotary_scaling: divides the positions that rotary ones turn by; default 1
          position_buckets: of SB_POSITIONS_BUCKETS, an even number; default 32
          position_distance: from which on all share the last bucket; default 128
          precision
          recompute: activation checkpointing of each layer, except where attention weights are
        requested
          along: the sequence of x in a partition; decoders always use the target
          longest: number of positions with SB_POSITIONS_LEARNED; default 512
          padded: embeddings: the symbol padding_id stands for padding; its row of the table
        starts at 0 and gets no gradient, also from logits that are
        tied to it
          padding_id
          ranks: tensor parallelism: each rank holds an equal part of the heads and
        hidden units; must outlive the model. NULL: none"""
        given = _to.options(sb_transformer_options, option, "decoder_new")
        self._take(_c.sb_decoder_new(_to.instance(Parameters, set), _to.text(name, "name"), _to.whole(c_int64, V, "V"), given, crosses, _to.tensor(shared)), [set, name, V, crosses, shared])

    _free = _c.sb_decoder_free

    def table(self):
        """A decoder for a vocabulary of V symbols. `shared`, unless NULL, is an embedding table (V, C) to
        use instead of a new one. Parameters are named as in the encoder."""
        c = _c.sb_decoder_table(self)
        if c:
            return _to.result(c)
        return _to.retry(self.table)

    def layers(self):
        """A decoder for a vocabulary of V symbols. `shared`, unless NULL, is an embedding table (V, C) to
        use instead of a new one. Parameters are named as in the encoder."""
        return _c.sb_decoder_layers(self)

    def __call__(self, ids, memory=None, lengths=None):
        """ids (B, Lt) of i32; memory (B, Ls, C) with lengths (B) of i32, or both NULL -> (B, Lt, C)."""
        c = _c.sb_decoder_forward(self, _to.tensor(ids), _to.tensor(memory), _to.tensor(lengths), None)
        if c:
            return _to.result(c)
        return _to.retry(self.__call__, ids, memory, lengths)

    def step(self, state, ids, memory=None, lengths=None):
        """Like sb_decoder_forward for the next positions, on a tape that does not record: ids (B, L) of the
        new positions -> (B, L, C). The memory is read in the first step only and may be NULL later;
        lengths (B) belong to the present sequences. A step that fails leaves the state unchanged."""
        c = _c.sb_decoder_step(self, _to.instance(DecoderState, state), _to.tensor(ids), _to.tensor(memory), _to.tensor(lengths), None)
        if c:
            return _to.result(c)
        return _to.retry(self.step, state, ids, memory, lengths)


class DecoderState(Object):
    """The decoder: layers of causal self-attention, cross-attention to the encoder's memory, and
    feed-forward, over a target sequence; and its state for incremental decoding. Without a memory it
    is a decoder-only language model."""

    c_name = "sb_decoder_state"

    def __init__(self, decoder):
        self._take(_c.sb_decoder_state_new(_to.instance(Decoder, decoder)), [decoder])

    _free = _c.sb_decoder_state_free

    def length(self):
        """The number of positions in the state."""
        return _c.sb_decoder_state_length(self)


class LanguageModel(Object):
    """The language model: a decoder without an encoder, which predicts each symbol from those before
    it (Radford et al. 2018)."""

    c_name = "sb_language_model"

    def __init__(self, weights, data, **option):
        """A model for a vocabulary, which it retains, or for that of the data's targets. It adds its
        weights to the set: "decoder...", "output.weight", "output.bias". The set must outlive the
        model. Options may be NULL.

        Options

          transformer: encoder_layers is ignored
          tie_embeddings: the output's weights are the embeddings
          label_smoothing: of the loss, in [0, 1)
          context: the most symbols that it reads at a time: what follows a longer text is
        predicted from its last symbols alone, at least half of so many; 0: all, as
        far as it has positions
          running_text: it was trained on pieces of long texts: a prompt stands in the middle of
        one, and "begin" is put before an empty one only"""
        given = _to.options(sb_language_model_options, option, "language_model_new")
        self._take(_c.sb_language_model_new(_to.instance(Parameters, weights), _to.instance(Data, data), given), [weights, data])

    @staticmethod
    def for_(weights, vocabulary, **option):
        """A model for a vocabulary, which it retains, or for that of the data's targets. It adds its
        weights to the set: "decoder...", "output.weight", "output.bias". The set must outlive the
        model. Options may be NULL.

        Options

          transformer: encoder_layers is ignored
          tie_embeddings: the output's weights are the embeddings
          label_smoothing: of the loss, in [0, 1)
          context: the most symbols that it reads at a time: what follows a longer text is
        predicted from its last symbols alone, at least half of so many; 0: all, as
        far as it has positions
          running_text: it was trained on pieces of long texts: a prompt stands in the middle of
        one, and "begin" is put before an empty one only"""
        given = _to.options(sb_language_model_options, option, "language_model_for")
        return _to.adopt(LanguageModel, _c.sb_language_model_for(_to.instance(Parameters, weights), _to.instance(Vocabulary, vocabulary), given), [weights, vocabulary])

    _free = _c.sb_language_model_free

    def options_of(self):
        """The options with every default filled in."""
        return _to.contents(sb_language_model_options, _c.sb_language_model_options_of(self))

    def vocabulary(self):
        """The options with every default filled in."""
        return _to.adopt(Vocabulary, _c.sb_language_model_vocabulary(self), self, owned=False)

    def parameters(self):
        """The options with every default filled in."""
        return _to.adopt(Parameters, _c.sb_language_model_parameters(self), self, owned=False)

    def loss(self, ids):
        """ids (B, L) of i32 hold a text in each row, with SB_SYMBOL_END where it ends, and negative ids
        after it: as `target_out` of a batch. Each symbol is predicted from those before it, the first
        from "begin".

        loss: the mean cross entropy, in nats a symbol, of the ids that are not negative.
        logits: (B, L, V); those at position t are of symbol t."""
        c = _c.sb_language_model_loss(self, _to.tensor(ids))
        if c:
            return _to.result(c)
        return _to.retry(self.loss, ids)

    def logits(self, ids):
        """ids (B, L) of i32 hold a text in each row, with SB_SYMBOL_END where it ends, and negative ids
        after it: as `target_out` of a batch. Each symbol is predicted from those before it, the first
        from "begin".

        loss: the mean cross entropy, in nats a symbol, of the ids that are not negative.
        logits: (B, L, V); those at position t are of symbol t."""
        c = _c.sb_language_model_logits(self, _to.tensor(ids))
        if c:
            return _to.result(c)
        return _to.retry(self.logits, ids)

    def window_loss(self, input, targets):
        """The same of windows of text (data/windows.h), with nothing put before them: input (B, L) of i32
        is what is read, and targets (B, L) what follows at each place; negative ones do not count.
        The logits at position t, (B, L, V), are of the symbol that follows input t."""
        c = _c.sb_language_model_window_loss(self, _to.tensor(input), _to.tensor(targets))
        if c:
            return _to.result(c)
        return _to.retry(self.window_loss, input, targets)

    def window_logits(self, input):
        """The same of windows of text (data/windows.h), with nothing put before them: input (B, L) of i32
        is what is read, and targets (B, L) what follows at each place; negative ones do not count.
        The logits at position t, (B, L, V), are of the symbol that follows input t."""
        c = _c.sb_language_model_window_logits(self, _to.tensor(input))
        if c:
            return _to.result(c)
        return _to.retry(self.window_logits, input)

    def save(self, path):
        """Writes the model to a file, and reads one that may come from anywhere into an empty set of
        weights, which after a failure can only be freed; as sb_model_save and sb_model_load do."""
        _to.check(_c.sb_language_model_save(self, _to.text(path, "path")))

    @staticmethod
    def load(weights, path):
        """Writes the model to a file, and reads one that may come from anywhere into an empty set of
        weights, which after a failure can only be freed; as sb_model_save and sb_model_load do."""
        return _to.adopt(LanguageModel, _c.sb_language_model_load(_to.instance(Parameters, weights), _to.text(path, "path")), [weights, path])

    def as_model(self):
        """The model for training and files, of the kind "language_model". It learns windows of text, or the
        targets of sentence pairs, and ignores their sources."""
        return _c.sb_language_model_as_model(self)

    def continue_(self, prompt, **option):
        """The model's continuation of a prompt (which may be empty), without the prompt, to be freed with
        sb_free. Options as in decoding.h, where "source" is the prompt.

        Options

          beam_width: hypotheses kept at each step; 0 and 1: greedy
          length_penalty: the alpha of the score, at least 0; default 1 for a beam over words or
        byte pairs, else none; SB_ZERO: none
          longest: the most symbols of an output; 0: 2 n + 50 for a source of n
          sample: draw symbols; needs beam_width 0 or 1
          temperature: of sampling: probabilities become p^(1/T), normalised; 0: 1
          top_k: sampling among the k most probable symbols; 0: all
          top_p: and among the fewest that together have this probability, in (0, 1];
        0: all (Holtzman et al. 2020)
          seed: of sampling; the i-th text of a call has its own random stream
          batch_pairs: the most texts that are decoded together; 0: 64
          weights: SB_WEIGHTS_INT8, on the CPU: fewer bytes and integer products, and
        outputs that may differ a little from those of the model's own
          no_cache: recomputes all earlier positions for each symbol: slow, for tests
          listen: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
        failure. Not with a beam. NULL: nobody listens.
          listener: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
        failure. Not with a beam. NULL: nobody listens."""
        given = _to.options(sb_decoding_options, option, "continue")
        return _to.owned_text(_c.sb_continue(self, _to.text(prompt, "prompt"), given))

    def continue_texts(self, prompts, **option):
        """The same for n prompts, as symbols with their scores, to be freed with sb_decoded_free.

        Options

          beam_width: hypotheses kept at each step; 0 and 1: greedy
          length_penalty: the alpha of the score, at least 0; default 1 for a beam over words or
        byte pairs, else none; SB_ZERO: none
          longest: the most symbols of an output; 0: 2 n + 50 for a source of n
          sample: draw symbols; needs beam_width 0 or 1
          temperature: of sampling: probabilities become p^(1/T), normalised; 0: 1
          top_k: sampling among the k most probable symbols; 0: all
          top_p: and among the fewest that together have this probability, in (0, 1];
        0: all (Holtzman et al. 2020)
          seed: of sampling; the i-th text of a call has its own random stream
          batch_pairs: the most texts that are decoded together; 0: 64
          weights: SB_WEIGHTS_INT8, on the CPU: fewer bytes and integer products, and
        outputs that may differ a little from those of the model's own
          no_cache: recomputes all earlier positions for each symbol: slow, for tests
          listen: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
        failure. Not with a beam. NULL: nobody listens.
          listener: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
        failure. Not with a beam. NULL: nobody listens."""
        outputs = (sb_decoded * len(prompts))()
        given = _to.options(sb_decoding_options, option, "continue_texts")
        _to.check(_c.sb_continue_texts(self, _to.texts(prompts), len(prompts), given, outputs))
        return _to.decoded(outputs)


class Seq2Seq(Object):
    """The encoder-decoder transformer of "Attention Is All You Need" (Vaswani et al. 2017)."""

    c_name = "sb_seq2seq"

    def __init__(self, weights, data, **option):
        """A model for the vocabularies of the data, or for two given ones, which it retains. It adds its
        weights to the set: "encoder...", "decoder...", "output.weight", "output.bias". The set must
        outlive the model. Options may be NULL.

        Options

          transformer
          tie_embeddings: the output's weights are the target's embeddings
          share_embeddings: one table for source and target, whose vocabularies must be one
          label_smoothing: of the loss, in [0, 1)"""
        given = _to.options(sb_seq2seq_options, option, "seq2seq_new")
        self._take(_c.sb_seq2seq_new(_to.instance(Parameters, weights), _to.instance(Data, data), given), [weights, data])

    @staticmethod
    def for_(weights, source, target, **option):
        """A model for the vocabularies of the data, or for two given ones, which it retains. It adds its
        weights to the set: "encoder...", "decoder...", "output.weight", "output.bias". The set must
        outlive the model. Options may be NULL.

        Options

          transformer
          tie_embeddings: the output's weights are the target's embeddings
          share_embeddings: one table for source and target, whose vocabularies must be one
          label_smoothing: of the loss, in [0, 1)"""
        given = _to.options(sb_seq2seq_options, option, "seq2seq_for")
        return _to.adopt(Seq2Seq, _c.sb_seq2seq_for(_to.instance(Parameters, weights), _to.instance(Vocabulary, source), _to.instance(Vocabulary, target), given), [weights, source, target])

    _free = _c.sb_seq2seq_free

    def save(self, path):
        """Writes the model to a safetensors file: its weights under their names, options and vocabularies
        in the metadata. An existing file is replaced atomically. The program reads such files, and
        sb_seq2seq_load reads those of `softback train`; it checks everything, as files may be untrusted.
        The model is made in an empty set of weights, which can only be freed after a failure. All ranks
        that hold parts of a model save it together."""
        _to.check(_c.sb_seq2seq_save(self, _to.text(path, "path")))

    @staticmethod
    def load(weights, path):
        """Writes the model to a safetensors file: its weights under their names, options and vocabularies
        in the metadata. An existing file is replaced atomically. The program reads such files, and
        sb_seq2seq_load reads those of `softback train`; it checks everything, as files may be untrusted.
        The model is made in an empty set of weights, which can only be freed after a failure. All ranks
        that hold parts of a model save it together."""
        return _to.adopt(Seq2Seq, _c.sb_seq2seq_load(_to.instance(Parameters, weights), _to.text(path, "path")), [weights, path])

    def options_of(self):
        """The options with every default filled in."""
        return _to.contents(sb_seq2seq_options, _c.sb_seq2seq_options_of(self))

    def source(self):
        """The options with every default filled in."""
        return _to.adopt(Vocabulary, _c.sb_seq2seq_source(self), self, owned=False)

    def target(self):
        """The options with every default filled in."""
        return _to.adopt(Vocabulary, _c.sb_seq2seq_target(self), self, owned=False)

    def parameters(self):
        """The options with every default filled in."""
        return _to.adopt(Parameters, _c.sb_seq2seq_parameters(self), self, owned=False)

    def as_model(self):
        """The model for training and files, of the kind "seq2seq"."""
        return _c.sb_seq2seq_as_model(self)

    def loss(self, batch):
        """The mean cross entropy, in nats a symbol, of the batch's targets."""
        c = _c.sb_seq2seq_loss(self, _to.instance(Batch, batch))
        if c:
            return _to.result(c)
        return _to.retry(self.loss, batch)

    def loss_sum(self, batch):
        """The sum of what sb_seq2seq_loss is the mean of: for gradient accumulation."""
        c = _c.sb_seq2seq_loss_sum(self, _to.instance(Batch, batch))
        if c:
            return _to.result(c)
        return _to.retry(self.loss_sum, batch)

    def cost(self, batch):
        """The sum of the cross entropies without label smoothing: for evaluation."""
        c = _c.sb_seq2seq_cost(self, _to.instance(Batch, batch))
        if c:
            return _to.result(c)
        return _to.retry(self.cost, batch)

    def logits(self, batch):
        """The logits (B, Lt, V) of the symbol after each one of target_in."""
        c = _c.sb_seq2seq_logits(self, _to.instance(Batch, batch), None)
        if c:
            return _to.result(c)
        return _to.retry(self.logits, batch)

    def encode(self, ids, lengths=None):
        """For decoding. ids (B, Ls), lengths (B) -> memory (B, Ls, C)."""
        c = _c.sb_seq2seq_encode(self, _to.tensor(ids), _to.tensor(lengths))
        if c:
            return _to.result(c)
        return _to.retry(self.encode, ids, lengths)

    def decoder(self):
        """For decoding. ids (B, Ls), lengths (B) -> memory (B, Ls, C)."""
        return _to.adopt(Decoder, _c.sb_seq2seq_decoder(self), self, owned=False)

    def output(self, y):
        """y (..., C) of the decoder -> logits (..., V)."""
        c = _c.sb_seq2seq_output(self, _to.tensor(y))
        if c:
            return _to.result(c)
        return _to.retry(self.output, y)

    def evaluate_loss(self, data):
        """The mean cross entropy of an encoder-decoder, in nats a symbol, over one epoch of the data; NaN
        on failure, and when the loss is not finite."""
        return _c.sb_evaluate_loss(self, _to.instance(Data, data))

    def translate(self, text, **option):
        """The model's output for a text (which may be empty), to be freed with sb_free. Options may be
        NULL: greedy.

        Options

          beam_width: hypotheses kept at each step; 0 and 1: greedy
          length_penalty: the alpha of the score, at least 0; default 1 for a beam over words or
        byte pairs, else none; SB_ZERO: none
          longest: the most symbols of an output; 0: 2 n + 50 for a source of n
          sample: draw symbols; needs beam_width 0 or 1
          temperature: of sampling: probabilities become p^(1/T), normalised; 0: 1
          top_k: sampling among the k most probable symbols; 0: all
          top_p: and among the fewest that together have this probability, in (0, 1];
        0: all (Holtzman et al. 2020)
          seed: of sampling; the i-th text of a call has its own random stream
          batch_pairs: the most texts that are decoded together; 0: 64
          weights: SB_WEIGHTS_INT8, on the CPU: fewer bytes and integer products, and
        outputs that may differ a little from those of the model's own
          no_cache: recomputes all earlier positions for each symbol: slow, for tests
          listen: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
        failure. Not with a beam. NULL: nobody listens.
          listener: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
        failure. Not with a beam. NULL: nobody listens."""
        given = _to.options(sb_decoding_options, option, "translate")
        return _to.owned_text(_c.sb_translate(self, _to.text(text, "text"), given))

    def translate_texts(self, texts, **option):
        """The same for n texts, each output to be freed with sb_free. On failure there is none.

        Options

          beam_width: hypotheses kept at each step; 0 and 1: greedy
          length_penalty: the alpha of the score, at least 0; default 1 for a beam over words or
        byte pairs, else none; SB_ZERO: none
          longest: the most symbols of an output; 0: 2 n + 50 for a source of n
          sample: draw symbols; needs beam_width 0 or 1
          temperature: of sampling: probabilities become p^(1/T), normalised; 0: 1
          top_k: sampling among the k most probable symbols; 0: all
          top_p: and among the fewest that together have this probability, in (0, 1];
        0: all (Holtzman et al. 2020)
          seed: of sampling; the i-th text of a call has its own random stream
          batch_pairs: the most texts that are decoded together; 0: 64
          weights: SB_WEIGHTS_INT8, on the CPU: fewer bytes and integer products, and
        outputs that may differ a little from those of the model's own
          no_cache: recomputes all earlier positions for each symbol: slow, for tests
          listen: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
        failure. Not with a beam. NULL: nobody listens.
          listener: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
        failure. Not with a beam. NULL: nobody listens."""
        outputs = (c_void_p * len(texts))()
        given = _to.options(sb_decoding_options, option, "translate_texts")
        _to.check(_c.sb_translate_texts(self, _to.texts(texts), len(texts), given, outputs))
        return list(map(_to.owned_text, outputs))

    def decode_texts(self, texts, **option):
        """The same as symbols, with their scores, to be freed with sb_decoded_free.

        Options

          beam_width: hypotheses kept at each step; 0 and 1: greedy
          length_penalty: the alpha of the score, at least 0; default 1 for a beam over words or
        byte pairs, else none; SB_ZERO: none
          longest: the most symbols of an output; 0: 2 n + 50 for a source of n
          sample: draw symbols; needs beam_width 0 or 1
          temperature: of sampling: probabilities become p^(1/T), normalised; 0: 1
          top_k: sampling among the k most probable symbols; 0: all
          top_p: and among the fewest that together have this probability, in (0, 1];
        0: all (Holtzman et al. 2020)
          seed: of sampling; the i-th text of a call has its own random stream
          batch_pairs: the most texts that are decoded together; 0: 64
          weights: SB_WEIGHTS_INT8, on the CPU: fewer bytes and integer products, and
        outputs that may differ a little from those of the model's own
          no_cache: recomputes all earlier positions for each symbol: slow, for tests
          listen: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
        failure. Not with a beam. NULL: nobody listens.
          listener: Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
        failure. Not with a beam. NULL: nobody listens."""
        outputs = (sb_decoded * len(texts))()
        given = _to.options(sb_decoding_options, option, "decode_texts")
        _to.check(_c.sb_decode_texts(self, _to.texts(texts), len(texts), given, outputs))
        return _to.decoded(outputs)


class Average(Object):
    """The exponential moving average (EMA) of parameters, which often gives better results in decoding
    than the parameters themselves (Polyak and Juditsky 1992)."""

    c_name = "sb_average"

    def __init__(self, set, decay):
        """`decay` is in (0, 1). The average starts with the present parameters, except for frozen ones, and
        ends when parameters are added, frozen or thawed. The set must outlive it."""
        self._take(_c.sb_average_new(_to.instance(Parameters, set), _to.real(decay, "decay")), [set, decay])

    _free = _c.sb_average_free

    def update(self):
        """average = d average + (1 - d) parameters, with d = min(decay, (1 + t) / (10 + t)) in update t, so
        that the initial values lose their weight quickly."""
        _to.check(_c.sb_average_update(self))

    def swap(self):
        """Swaps the parameters with their average; a second call swaps them back."""
        _to.check(_c.sb_average_swap(self))

    def values(self):
        """For checkpoints: the values, as long as the gradients, and the number of updates."""
        c = _c.sb_average_values(self)
        if c:
            return _to.result(c)
        return _to.retry(self.values)

    def updates(self):
        """For checkpoints: the values, as long as the gradients, and the number of updates."""
        return _c.sb_average_updates(self)

    def restore(self, updates):
        """For checkpoints: the values, as long as the gradients, and the number of updates."""
        return _c.sb_average_restore(self, _to.whole(c_int64, updates, "updates"))


class Optimiser(Object):
    """Optimisers: SGD with momentum, Adam and AdamW. A step is one pass over the parameters of a set
    that are not frozen, or one for each run of neighbours that have the same rate and decay
    (nn/groups.h)."""

    c_name = "sb_optimiser"

    @staticmethod
    def sgd(set, **option):
        """An optimiser for all parameters of the set, including later ones. Fails when a number is out of
        range, when nesterov is set without a momentum, and when the parameters are of bf16, in which
        small steps would be lost. The set must outlive the optimiser.

        Options

          learning_rate: without a schedule; 0: 0.001 (SGD: 0.1)
          schedule: used instead if its rate is not 0
          beta1: Adam; 0: 0.9 and 0.98 (Vaswani et al. 2017)
          beta2: Adam; 0: 0.9 and 0.98 (Vaswani et al. 2017)
          epsilon: Adam; 0: 1e-9
          momentum: SGD; in [0, 1)
          nesterov: SGD
          weight_decay: Adam and SGD: L2 penalty (decay w is added to the gradient); AdamW:
        decoupled. Groups may have others (nn/groups.h)
          decay_all: AdamW: also decay biases and norms, the parameters of rank below 2
          clip: gradient clipping by global norm; 0: none"""
        given = _to.options(sb_optimiser_options, option, "sgd_new")
        return _to.adopt(Optimiser, _c.sb_sgd_new(_to.instance(Parameters, set), given), [set])

    @staticmethod
    def adam(set, **option):
        """An optimiser for all parameters of the set, including later ones. Fails when a number is out of
        range, when nesterov is set without a momentum, and when the parameters are of bf16, in which
        small steps would be lost. The set must outlive the optimiser.

        Options

          learning_rate: without a schedule; 0: 0.001 (SGD: 0.1)
          schedule: used instead if its rate is not 0
          beta1: Adam; 0: 0.9 and 0.98 (Vaswani et al. 2017)
          beta2: Adam; 0: 0.9 and 0.98 (Vaswani et al. 2017)
          epsilon: Adam; 0: 1e-9
          momentum: SGD; in [0, 1)
          nesterov: SGD
          weight_decay: Adam and SGD: L2 penalty (decay w is added to the gradient); AdamW:
        decoupled. Groups may have others (nn/groups.h)
          decay_all: AdamW: also decay biases and norms, the parameters of rank below 2
          clip: gradient clipping by global norm; 0: none"""
        given = _to.options(sb_optimiser_options, option, "adam_new")
        return _to.adopt(Optimiser, _c.sb_adam_new(_to.instance(Parameters, set), given), [set])

    @staticmethod
    def adamw(set, **option):
        """An optimiser for all parameters of the set, including later ones. Fails when a number is out of
        range, when nesterov is set without a momentum, and when the parameters are of bf16, in which
        small steps would be lost. The set must outlive the optimiser.

        Options

          learning_rate: without a schedule; 0: 0.001 (SGD: 0.1)
          schedule: used instead if its rate is not 0
          beta1: Adam; 0: 0.9 and 0.98 (Vaswani et al. 2017)
          beta2: Adam; 0: 0.9 and 0.98 (Vaswani et al. 2017)
          epsilon: Adam; 0: 1e-9
          momentum: SGD; in [0, 1)
          nesterov: SGD
          weight_decay: Adam and SGD: L2 penalty (decay w is added to the gradient); AdamW:
        decoupled. Groups may have others (nn/groups.h)
          decay_all: AdamW: also decay biases and norms, the parameters of rank below 2
          clip: gradient clipping by global norm; 0: none"""
        given = _to.options(sb_optimiser_options, option, "adamw_new")
        return _to.adopt(Optimiser, _c.sb_adamw_new(_to.instance(Parameters, set), given), [set])

    _free = _c.sb_optimiser_free

    def step(self):
        """One step. It consumes the gradients, so there is no zero_grad. A parameter without a gradient is
        neither moved nor decayed, and its moments stay, as in PyTorch.

        When the gradient norm is not finite, the step is skipped, the gradients are cleared, and the
        message names the first such parameter. Fails also when no parameter has a gradient."""
        _to.check(_c.sb_optimiser_step(self))

    def step_scaled(self, factor):
        """The same with all gradients multiplied by a factor > 0. For gradient accumulation: after several
        backward passes of summed losses, the factor 1 / (number of targets) gives the gradient of the
        mean."""
        _to.check(_c.sb_optimiser_step_scaled(self, _to.real(factor, "factor")))

    def steps(self):
        """the number of steps"""
        return _c.sb_optimiser_steps(self)

    def rate(self):
        """learning rate of the last step"""
        return _c.sb_optimiser_rate(self)

    def norm(self):
        """gradient norm of the last step, before clipping"""
        return _c.sb_optimiser_norm(self)

    def set_rate(self, rate):
        """Sets the learning rate of all later steps, in place of the schedule. Fails when it is not a
        number
        >= 0."""
        _to.check(_c.sb_optimiser_set_rate(self, _to.real(rate, "rate")))

    def observe(self, loss):
        """Reports the loss of an evaluation to a plateau schedule."""
        return _c.sb_optimiser_observe(self, _to.real(loss, "loss"))

    def moment(self, i):
        """The state that a checkpoint stores: up to two tensors, each as long as the parameters together
        that are not frozen (NULL past the last), and counters."""
        c = _c.sb_optimiser_moment(self, _to.whole(c_int, i, "i"))
        if c:
            return _to.result(c)
        return _to.retry(self.moment, i)

    def plateau(self):
        """The state that a checkpoint stores: up to two tensors, each as long as the parameters together
        that are not frozen (NULL past the last), and counters."""
        return _c.sb_optimiser_plateau(self)

    def restore(self, steps, plateau):
        """The state that a checkpoint stores: up to two tensors, each as long as the parameters together
        that are not frozen (NULL past the last), and counters."""
        return _c.sb_optimiser_restore(self, _to.whole(c_int64, steps, "steps"), _to.value(sb_plateau, plateau))

    def save(self, path):
        """The optimiser's whole state: moments under the names of their parameters, the numbers of steps,
        what a plateau schedule has seen, and a rate from sb_optimiser_set_rate. After loading it into an
        optimiser of the same kind, with the same parameters frozen, steps continue with the same bits."""
        _to.check(_c.sb_optimiser_save(self, _to.text(path, "path")))

    def load(self, path):
        """Fails, and changes nothing, when the file is of another kind of optimiser, or its moments are not
        those of the parameters that are trained."""
        _to.check(_c.sb_optimiser_load(self, _to.text(path, "path")))


class Trainer(Object):
    """A trainer: it runs training steps with a model, a source of batches, an optimiser and the random
    stream of dropout.

    The options and the number of steps determine its state. A checkpoint stores the tensors and
    sb_trainer_state, so that another trainer continues with the same bits."""

    c_name = "sb_trainer"

    def __init__(self, model, source, **option):
        """The model, the source and the communicator must outlive the trainer, which keeps copies of the
        two structs.

        Data parallelism: ranks have the same model, source and options. Each takes a share of the same
        batch; the loss and the gradient are those of the whole batch, and after a step every rank has
        the same weights, bit by bit. The number of ranks changes a step by rounding only. Sequence
        parallelism: neighbours hold pieces of each sequence and compute ring attention (ops/ops.h).
        Tensor parallelism: ranks that hold parts of one model, by heads, take the same share, and the
        communicator has the ranks with the same part of the model. A rank whose step fails must end the
        job, as the others wait for it.

        Options

          seed: of dropout
          optimiser_kind
          optimiser
          accumulate: batches a step, default 1
          average_decay: of the moving average of the weights; 0: none
          graphs
          communicator: data parallelism over its ranks; NULL: this one alone
          sequence_ranks: the degree of sequence parallelism, over neighbours; 0: 1
          stop: Asked after each batch of a step but the last: true gives up the step. NULL: never.
          stop_context: Asked after each batch of a step but the last: true gives up the step. NULL: never."""
        given = _to.options(sb_trainer_options, option, "trainer_for")
        self._take(_c.sb_trainer_for(_to.model(model), _to.source(source), given), [model, source])

    _free = _c.sb_trainer_free

    def step(self):
        """One step: forward, backward, update, on as many batches as are accumulated.

        A gradient that is not finite skips the step and is no failure, up to ten times in a row. A loss
        that is not finite fails; the message names the operation that first made such a value, and the
        batch stays readable through sb_trainer_batch and its loss in `trained`. A step that fails
        changes nothing and can be repeated."""
        trained = sb_trained()
        _to.check(_c.sb_trainer_step(self, byref(trained)))
        return trained

    def subject(self):
        """The batch of the last step (the last one of several); belongs to the source."""
        return _to.contents(sb_model, _c.sb_trainer_subject(self))

    def source(self):
        """The batch of the last step (the last one of several); belongs to the source."""
        return _to.contents(sb_source, _c.sb_trainer_source(self))

    def model(self):
        """The arguments of sb_trainer_new; NULL for other kinds of models or sources."""
        return _to.adopt(Seq2Seq, _c.sb_trainer_model(self), self, owned=False)

    def data(self):
        """The arguments of sb_trainer_new; NULL for other kinds of models or sources."""
        return _to.adopt(Data, _c.sb_trainer_data(self), self, owned=False)

    def optimiser(self):
        """The arguments of sb_trainer_new; NULL for other kinds of models or sources."""
        return _to.adopt(Optimiser, _c.sb_trainer_optimiser(self), self, owned=False)

    def average(self):
        """NULL without one"""
        return _to.adopt(Average, _c.sb_trainer_average(self), self, owned=False)

    def steps(self):
        """taken or skipped"""
        return _c.sb_trainer_steps(self)

    def save(self):
        return _c.sb_trainer_save(self)

    def restore(self, state):
        _to.check(_c.sb_trainer_restore(self, _to.value(sb_trainer_state, state)))

    def checkpoint_save(self, path):
        """Writes the model and the state of its training, from which a trainer of the same model, source
        and options continues with the same bits. With data parallelism one rank calls it, with tensor
        parallelism all that hold parts of one model."""
        _to.check(_c.sb_checkpoint_save(self, _to.text(path, "path")))

    def checkpoint_resume(self, path):
        """Puts the weights and the state of such a file into the trainer. Fails when the description
        of the model or the data differs; after a failure the trainer can only be freed."""
        _to.check(_c.sb_checkpoint_resume(self, _to.text(path, "path")))


class EmbeddingLayer(sb_embedding_layer):
    """The input layer of a model: scaled token embeddings plus positional encodings, and maybe a norm."""

    def __init__(self, set, name, V, shared=None, **option):
        """Adds "<name>.weight", unless `shared` is another layer's table to use instead,
        "<name>.positions" for learned positions, and "<name>.norm" if the options have one. Fails as
        described in transformer.h, when the shared table is not (V, C), and when padding_id is not below
        V.

        Options

          width: C: of embeddings and layers; default 128
          heads: H: attention heads; default 4
          head_size: D: of queries, keys and values; default C / H, which must be whole
          key_heads: heads of keys and values, a divisor of H; default H
          key_width: attention: the width of the memory that keys are projected from, in a
        decoder of cross-attention; default C
          value_width: the same of values; default key_width
          feed_forward: hidden width of the feed-forward network; default 4 C
          encoder_layers: default 3
          decoder_layers: default 3
          dropout: of embeddings, branches and attention weights; in [0, 1)
          attention_dropout: of attention weights; default dropout; SB_ZERO: none
          feed_forward_dropout: of the hidden units of feed-forward, in [0, 1)
          norm_place
          norm_kind
          norm_epsilon: of all norms; default that of the operation
          biases
          no_output_bias: of a model's logits; they have none either unless biases is ALL
          activation: default (SB_ACTIVATION_IDENTITY): SB_ACTIVATION_RELU
          gated: gated feed-forward: (activation(x G') * (x U')) W'
          score: of all attention layers
          score_scale: the factor of their scores; default 1 / sqrt D, or 1 with
        SB_SCORE_COSINE
          temperature: extra divisor of attention scores; default 1
          attention: except where attention weights are requested
          embedding_scale: the factor of symbols' embeddings; default sqrt C
          position_scale: and of learned positions; default sqrt C
          embedding_norm: a norm after embeddings and positions, before dropout
          positions
          position_offset: learned: rows of the table before that of the first position
          rotary_base: default 10000
          rotary_scaling: divides the positions that rotary ones turn by; default 1
          position_buckets: of SB_POSITIONS_BUCKETS, an even number; default 32
          position_distance: from which on all share the last bucket; default 128
          precision
          recompute: activation checkpointing of each layer, except where attention weights are
        requested
          along: the sequence of x in a partition; decoders always use the target
          longest: number of positions with SB_POSITIONS_LEARNED; default 512
          padded: embeddings: the symbol padding_id stands for padding; its row of the table
        starts at 0 and gets no gradient, also from logits that are
        tied to it
          padding_id
          ranks: tensor parallelism: each rank holds an equal part of the heads and
        hidden units; must outlive the model. NULL: none"""
        given = _to.options(sb_transformer_options, option, "embedding_layer_init")
        self.kept = [set, name, V, shared]
        _to.check(_c.sb_embedding_layer_init(self, _to.instance(Parameters, set), _to.text(name, "name"), _to.whole(c_int64, V, "V"), given, _to.tensor(shared)))

    def __call__(self, ids, start=0):
        """ids (B, L) of i32, the first at position `start` -> x (B, L, C). Source: Vaswani et al. 2017,
        section 3.4."""
        c = _c.sb_embedding_layer_forward(self, _to.tensor(ids), _to.whole(c_int64, start, "start"))
        if c:
            return _to.result(c)
        return _to.retry(self.__call__, ids, start)


class AdditiveAttention(sb_additive_attention):
    """Attention with a learned score: additive, multiplicative and cosine attention, for comparison
    with the scaled dot product of attention.h. Each has one head.

    From queries q (B, Lq, Dq), keys k (B, Lk, Dk) and values v (B, Lk, Dv) they compute a score s_ij
    for each pair, and

        a_i = softmax over the kept j of s_ij,   y_i = sum_j a_ij v_j     (B, Lq, Dv)

    with dropout of the weights a, by the tape's random stream. The mask applies to the scores
    (B, 1, Lq, Lk); NULL keeps every pair. `weights`, unless NULL, receives a, before dropout, as
    (B, 1, Lq, Lk). A fully masked query has y = 0 and zero gradients, whatever the values are. A NaN
    in a blocked key or value changes neither y nor the gradients of queries, values and other keys;
    only the gradient of W_k, a sum over all keys, becomes NaN.

    Backward always begins with ds_ij = a_ij (g_ij - sum_n a_in g_in), g_ij = v_j . dy_i."""

    def __init__(self, set, name, query_size, key_size, hidden, bias, dropout):
        """Adds "<name>.query", ".key" and ".score", each with weight, and with `bias` "<name>.query.bias".
        Fails as sb_linear_layer_init does, and when dropout is not in [0, 1)."""
        self.kept = [set, name, query_size, key_size, hidden, bias, dropout]
        _to.check(_c.sb_additive_attention_init(self, _to.instance(Parameters, set), _to.text(name, "name"), _to.whole(c_int64, query_size, "query_size"), _to.whole(c_int64, key_size, "key_size"), _to.whole(c_int64, hidden, "hidden"), bias, _to.real(dropout, "dropout")))

    def __call__(self, q, k, v, mask=None):
        """Adds "<name>.query", ".key" and ".score", each with weight, and with `bias` "<name>.query.bias".
        Fails as sb_linear_layer_init does, and when dropout is not in [0, 1)."""
        weights = c_void_p()
        c = _c.sb_additive_attention_forward(self, _to.tensor(q), _to.tensor(k), _to.tensor(v), _to.mask(mask), byref(weights))
        if c:
            return _to.result(c), _to.result(weights.value)
        return _to.retry(self.__call__, q, k, v, mask)


class MultiplicativeAttention(sb_multiplicative_attention):
    """Attention with a learned score: additive, multiplicative and cosine attention, for comparison
    with the scaled dot product of attention.h. Each has one head.

    From queries q (B, Lq, Dq), keys k (B, Lk, Dk) and values v (B, Lk, Dv) they compute a score s_ij
    for each pair, and

        a_i = softmax over the kept j of s_ij,   y_i = sum_j a_ij v_j     (B, Lq, Dv)

    with dropout of the weights a, by the tape's random stream. The mask applies to the scores
    (B, 1, Lq, Lk); NULL keeps every pair. `weights`, unless NULL, receives a, before dropout, as
    (B, 1, Lq, Lk). A fully masked query has y = 0 and zero gradients, whatever the values are. A NaN
    in a blocked key or value changes neither y nor the gradients of queries, values and other keys;
    only the gradient of W_k, a sum over all keys, becomes NaN.

    Backward always begins with ds_ij = a_ij (g_ij - sum_n a_in g_in), g_ij = v_j . dy_i."""

    def __init__(self, set, name, query_size, key_size, dropout):
        """Adds "<name>.query.weight". Fails as sb_additive_attention_init does."""
        self.kept = [set, name, query_size, key_size, dropout]
        _to.check(_c.sb_multiplicative_attention_init(self, _to.instance(Parameters, set), _to.text(name, "name"), _to.whole(c_int64, query_size, "query_size"), _to.whole(c_int64, key_size, "key_size"), _to.real(dropout, "dropout")))

    def __call__(self, q, k, v, mask=None):
        """Adds "<name>.query.weight". Fails as sb_additive_attention_init does."""
        weights = c_void_p()
        c = _c.sb_multiplicative_attention_forward(self, _to.tensor(q), _to.tensor(k), _to.tensor(v), _to.mask(mask), byref(weights))
        if c:
            return _to.result(c), _to.result(weights.value)
        return _to.retry(self.__call__, q, k, v, mask)


class CosineAttention(sb_cosine_attention):
    """Attention with a learned score: additive, multiplicative and cosine attention, for comparison
    with the scaled dot product of attention.h. Each has one head.

    From queries q (B, Lq, Dq), keys k (B, Lk, Dk) and values v (B, Lk, Dv) they compute a score s_ij
    for each pair, and

        a_i = softmax over the kept j of s_ij,   y_i = sum_j a_ij v_j     (B, Lq, Dv)

    with dropout of the weights a, by the tape's random stream. The mask applies to the scores
    (B, 1, Lq, Lk); NULL keeps every pair. `weights`, unless NULL, receives a, before dropout, as
    (B, 1, Lq, Lk). A fully masked query has y = 0 and zero gradients, whatever the values are. A NaN
    in a blocked key or value changes neither y nor the gradients of queries, values and other keys;
    only the gradient of W_k, a sum over all keys, becomes NaN.

    Backward always begins with ds_ij = a_ij (g_ij - sum_n a_in g_in), g_ij = v_j . dy_i."""

    def __init__(self, set, name, temperature, dropout):
        """Adds "<name>.log_temperature". `temperature` is T before training; 0 stands for 0.1. Fails as
        sb_linear_layer_init does, and when it is not a positive number or dropout is not in [0, 1)."""
        self.kept = [set, name, temperature, dropout]
        _to.check(_c.sb_cosine_attention_init(self, _to.instance(Parameters, set), _to.text(name, "name"), _to.real(temperature, "temperature"), _to.real(dropout, "dropout")))

    def __call__(self, q, k, v, mask=None):
        """Adds "<name>.log_temperature". `temperature` is T before training; 0 stands for 0.1. Fails as
        sb_linear_layer_init does, and when it is not a positive number or dropout is not in [0, 1)."""
        weights = c_void_p()
        c = _c.sb_cosine_attention_forward(self, _to.tensor(q), _to.tensor(k), _to.tensor(v), _to.mask(mask), byref(weights))
        if c:
            return _to.result(c), _to.result(weights.value)
        return _to.retry(self.__call__, q, k, v, mask)


class OutputHead(sb_output_head):
    """The output layer of a model: a logit for each symbol, and the loss of the targets."""

    def __init__(self, set, name, C, V, bias=True, tied=None):
        """Adds "<name>.bias", if it has one, and, unless `tied` is an embedding table (V, C) to use
        instead,
        "<name>.weight". Fails as sb_linear_layer_init does."""
        self.kept = [set, name, C, V, bias, tied]
        _to.check(_c.sb_output_head_init(self, _to.instance(Parameters, set), _to.text(name, "name"), _to.whole(c_int64, C, "C"), _to.whole(c_int64, V, "V"), bias, _to.tensor(tied)))

    def logits(self, y):
        """y (..., C) -> logits (..., V)"""
        c = _c.sb_output_head_logits(self, _to.tensor(y))
        if c:
            return _to.result(c)
        return _to.retry(self.logits, y)

    def loss(self, y, targets, **option):
        """The cross entropy of the logits of y (..., C) with targets (...) of i32, without storing all
        logits (sb_linear_cross_entropy).

        Options

          label_smoothing: e: targets become (1 - e) target + e / V; in [0, 1)
          class_weight: (V), constant: the weight of each class; NULL: all 1
          reduction: MEAN divides by the sum of the class weights of the targets that
        are not ignored; with probabilities, by the number of rows"""
        given = _to.options(sb_cross_entropy_options, option, "output_head_loss")
        c = _c.sb_output_head_loss(self, _to.tensor(y), _to.tensor(targets), given)
        if c:
            return _to.results(given, c)
        return _to.retry(self.loss, y, targets, **option)


class PositionBias(sb_position_bias):
    """Positional encoding as a bias of self-attention scores: ALiBi, or learned relative positions,
    each distance with a bias of its own or in logarithmic buckets."""

    def __init__(self, set, name, **option):
        """Adds "<name>.distance" for learned biases, one table for all layers.

        Options

          width: C: of embeddings and layers; default 128
          heads: H: attention heads; default 4
          head_size: D: of queries, keys and values; default C / H, which must be whole
          key_heads: heads of keys and values, a divisor of H; default H
          key_width: attention: the width of the memory that keys are projected from, in a
        decoder of cross-attention; default C
          value_width: the same of values; default key_width
          feed_forward: hidden width of the feed-forward network; default 4 C
          encoder_layers: default 3
          decoder_layers: default 3
          dropout: of embeddings, branches and attention weights; in [0, 1)
          attention_dropout: of attention weights; default dropout; SB_ZERO: none
          feed_forward_dropout: of the hidden units of feed-forward, in [0, 1)
          norm_place
          norm_kind
          norm_epsilon: of all norms; default that of the operation
          biases
          no_output_bias: of a model's logits; they have none either unless biases is ALL
          activation: default (SB_ACTIVATION_IDENTITY): SB_ACTIVATION_RELU
          gated: gated feed-forward: (activation(x G') * (x U')) W'
          score: of all attention layers
          score_scale: the factor of their scores; default 1 / sqrt D, or 1 with
        SB_SCORE_COSINE
          temperature: extra divisor of attention scores; default 1
          attention: except where attention weights are requested
          embedding_scale: the factor of symbols' embeddings; default sqrt C
          position_scale: and of learned positions; default sqrt C
          embedding_norm: a norm after embeddings and positions, before dropout
          positions
          position_offset: learned: rows of the table before that of the first position
          rotary_base: default 10000
          rotary_scaling: divides the positions that rotary ones turn by; default 1
          position_buckets: of SB_POSITIONS_BUCKETS, an even number; default 32
          position_distance: from which on all share the last bucket; default 128
          precision
          recompute: activation checkpointing of each layer, except where attention weights are
        requested
          along: the sequence of x in a partition; decoders always use the target
          longest: number of positions with SB_POSITIONS_LEARNED; default 512
          padded: embeddings: the symbol padding_id stands for padding; its row of the table
        starts at 0 and gets no gradient, also from logits that are
        tied to it
          padding_id
          ranks: tensor parallelism: each rank holds an equal part of the heads and
        hidden units; must outlive the model. NULL: none"""
        given = _to.options(sb_transformer_options, option, "position_bias_init")
        self.kept = [set, name]
        _to.check(_c.sb_position_bias_init(self, _to.instance(Parameters, set), _to.text(name, "name"), given))


for _name in ['add', 'subtract', 'multiply', 'divide', 'maximum', 'minimum', 'where', 'negate', 'scale', 'sqrt', 'exp', 'log', 'tanh', 'sigmoid', 'relu', 'gelu', 'gelu_tanh', 'silu', 'abs', 'sin', 'cos', 'expm1', 'log1p', 'erf', 'pow', 'clamp', 'detach', 'cast', 'matmul', 'matmul_nt', 'matmul_tn', 'linear', 'linear_activation', 'reshape', 'permute', 'transpose', 'slice', 'split', 'expand', 'sum', 'mean', 'max', 'argmax', 'variance', 'topk', 'softmax', 'masked_softmax', 'log_softmax', 'logsumexp', 'layer_norm', 'residual_layer_norm', 'rms_norm', 'l2_normalize', 'softmax_over', 'log_softmax_over', 'logsumexp_over', 'layer_norm_over', 'rms_norm_over', 'l2_normalize_over', 'embedding', 'embedding_padded', 'gather', 'dropout', 'residual_dropout', 'cross_entropy', 'linear_cross_entropy', 'mean_squared_error', 'rotary', 'rotary_scaled', 'relative_bias', 'attention', 'attention_weights', 'to_ranks', 'from_ranks']:
    setattr(Tensor, _name, globals()[_name])
