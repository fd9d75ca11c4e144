"""Products with the Hessian, by PyTorch's double backward: of attention (composed, since the fused
one has no double backward), layer norm, cross entropy, and the loss of an encoder-decoder of two
layers. A case has, next to its inputs, a direction "group/case.v.0" for each real input or weight,
and "group/case.h.0", that part of the product. All of it is float64."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from .layers import causal, names
from .models import Seq2seq, batch


def products(y, leaves, directions):
    """H v for each leaf."""
    gradients = torch.autograd.grad(y, leaves, create_graph=True)
    along = sum((g * v).sum() for g, v in zip(gradients, directions))
    return torch.autograd.grad(along, leaves, materialize_grads=True)


def case(r, name, function, *inputs):
    """The loss is the sum of the squared result times fixed weights, "group/case.w"."""
    x = [r.leaf(t, torch.float64) for t in inputs]
    leaves = [t for t in x if t.is_floating_point()]
    y = function(*x)
    w = r.uniform(0.25, 1.25, *y.shape)
    v = [r.normal(*t.shape) for t in leaves]
    h = products((w * y * y).sum(), leaves, v)
    r.put(f"{name}.w", w)
    for i, t in enumerate(inputs):
        r.put(f"{name}.{i}", t)
    for i in range(len(leaves)):
        r.put(f"{name}.v.{i}", v[i])
        r.put(f"{name}.h.{i}", h[i])


def model(r, name, m):
    inputs = batch(r, 3, 5)
    with sdpa_kernel(SDPBackend.MATH):
        y = m.loss(**inputs, label_smoothing=0.1)
        weights = dict(m.named_parameters())
        v = {key: r.normal(*p.shape) for key, p in weights.items()}
        h = dict(zip(weights, products(y, list(weights.values()), list(v.values()))))
    for key, t in inputs.items():
        r.put(f"{name}.{key}", t)
    r.weights(name, m, names)
    for own, (theirs, rows) in names(m).items():
        r.put(f"{name}.v.{own}", v[theirs][rows])
        r.put(f"{name}.h.{own}", h[theirs][rows])


def add(r):
    def attend(q, k, v):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return scores.masked_fill(causal(scores.shape[-1]), float("-inf")).softmax(-1) @ v

    case(r, "product/attention", attend, *[r.normal(2, 2, 5, 4) for _ in range(3)])
    case(r, "product/layer_norm", lambda x, gain, bias: F.layer_norm(x, x.shape[-1:], gain, bias),
         r.normal(3, 6), r.normal(6), r.normal(6))
    case(r, "product/cross_entropy",
         lambda x, ids: F.cross_entropy(x, ids, label_smoothing=0.1, reduction="none"),
         r.normal(4, 7), r.ids(7, 4))
    model(r, "model", r.draw_weights(Seq2seq(norm_first=True, activation="gelu")))
