"""The operations of ops/ops.h, group by group. Those that PyTorch does not have (positions) are
computed by their formulas."""

import torch
import torch.nn.functional as F

from .record import Constant


def arithmetic(r):
    r.case("arithmetic/add", torch.add, r.normal(5, 13), r.normal(5, 13))
    r.case("arithmetic/add_broadcast", torch.add, r.normal(2, 3, 4), r.normal(3, 1))
    r.case("arithmetic/subtract", torch.sub, r.normal(4), r.normal(2, 1, 4))
    r.case("arithmetic/multiply", torch.mul, r.normal(2, 1, 4), r.normal(3, 1))
    r.case("arithmetic/divide", torch.div, r.normal(2, 3, 4), r.uniform(0.5, 3, 3, 4))
    r.case("arithmetic/where", torch.where, r.uniform(0, 1, 3, 1) < 0.5, r.normal(2, 3, 4),
           r.normal(4))


def elementwise(r):
    functions = {"negate": torch.neg, "scale": lambda x: -1.7 * x, "exp": torch.exp,
                 "tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": F.relu, "gelu": F.gelu,
                 "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu}
    for name, function in functions.items():
        r.case(f"elementwise/{name}", function, r.uniform(-5, 5, 3, 21))
    r.case("elementwise/sqrt", torch.sqrt, r.uniform(0.1, 9, 3, 21))
    r.case("elementwise/log", torch.log, r.uniform(0.1, 9, 3, 21))
    r.case("elementwise/cast", lambda x: x.float().to(x.dtype), r.normal(3, 7))


def products(r):
    r.case("products/matmul", torch.matmul, r.normal(3, 4), r.normal(4, 5))
    r.case("products/matmul_long", torch.matmul, r.normal(5, 65), r.normal(65, 7))
    r.case("products/matmul_broadcast", torch.matmul, r.normal(2, 1, 3, 4), r.normal(3, 4, 5))
    r.case("products/matmul_nt", lambda a, b: a @ b.mT, r.normal(2, 3, 4), r.normal(5, 4))
    r.case("products/matmul_tn", lambda a, b: a.mT @ b, r.normal(4, 3), r.normal(2, 4, 5))
    layer = [(2, 3, 5), (7, 5), (7,)]
    r.case("products/linear", F.linear, *[r.normal(*shape) for shape in layer])
    r.case("products/linear_without_bias", F.linear, *[r.normal(*shape) for shape in layer[:2]])
    activations = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "tanh": torch.tanh,
                   "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "sigmoid": torch.sigmoid}
    for name, activation in activations.items():
        r.case(f"products/linear_{name}", lambda x, w, b: activation(F.linear(x, w, b)),
               *[r.normal(*shape) for shape in layer])


def shapes(r):
    r.case("shapes/reshape", lambda x: x.reshape(4, -1), r.normal(2, 3, 4))
    r.case("shapes/permute", lambda x: x.permute(2, 0, 3, 1), r.normal(2, 3, 4, 5))
    r.case("shapes/transpose", lambda x: x.transpose(0, 2), r.normal(2, 3, 4))
    r.case("shapes/concatenate", lambda *x: torch.cat(x, 1), r.normal(2, 3, 4), r.normal(2, 1, 4),
           r.normal(2, 2, 4))
    r.case("shapes/stack", lambda *x: torch.stack(x, 1), r.normal(2, 3), r.normal(2, 3))
    r.case("shapes/slice", lambda x: x[:, 1:3], r.normal(2, 4, 3))
    r.case("shapes/split", lambda x: torch.cat(x.split([1, 2, 3], 1)[::-1], 1), r.normal(2, 6, 2))
    r.case("shapes/expand", lambda x: x.expand(2, 3, 4), r.normal(3, 1))


def reductions(r):
    r.case("reductions/sum", torch.sum, r.normal(3, 5, 7))
    r.case("reductions/sum_axis", lambda x: x.sum(1), r.normal(3, 5, 7))
    r.case("reductions/sum_last", lambda x: x.sum(-1, keepdim=True), r.normal(3, 65))
    r.case("reductions/mean", torch.mean, r.normal(3, 5, 7))
    r.case("reductions/mean_axis", lambda x: x.mean(0, keepdim=True), r.normal(3, 5, 7))
    ties = r.ids(3, 4, 6).double()
    r.case("reductions/max", torch.amax, ties)
    r.case("reductions/max_axis", lambda x: x.amax(1), ties)
    r.case("reductions/max_first", lambda x: x.amax(0, keepdim=True), r.normal(3, 5))
    r.case("reductions/argmax", lambda x: x.argmax(-1), r.normal(4, 6))


def norms(r):
    C = 19
    x, gain, bias = r.normal(2, 3, C), r.uniform(0.5, 2, C), r.normal(C)

    def layer_norm(x, gain, bias=None, epsilon=1e-5):
        return F.layer_norm(x, gain.shape, gain, bias, epsilon)

    def residual(x, branch, gain, bias):
        """The norm of the sum, and the sum, as one tensor."""
        return torch.stack([layer_norm(x + branch, gain, bias), x + branch])

    # Small rows, for which the usual epsilon matters.
    r.case("norms/layer_norm", layer_norm, x / 64, gain, bias)
    r.case("norms/layer_norm_without_bias", layer_norm, x, gain)
    r.case("norms/layer_norm_epsilon", lambda *x: layer_norm(*x, 0.3), x, gain, bias)
    r.case("norms/layer_norm_far_mean", layer_norm, x + 100, gain, bias)
    r.case("norms/residual_layer_norm", residual, x, r.normal(2, 3, C), gain, bias)
    r.case("norms/rms_norm", lambda x, gain: F.rms_norm(x, gain.shape, gain, 1e-6), x / 64, gain)
    r.case("norms/rms_norm_epsilon", lambda x, gain: F.rms_norm(x, gain.shape, gain, 0.3), x, gain)
    r.case("norms/l2_normalize", lambda x: F.normalize(x, dim=-1), x)


def lookup(r):
    r.case("lookup/embedding", lambda table, ids: F.embedding(ids, table), r.normal(5, 6),
           r.ids(5, 3, 4))
    r.case("lookup/gather", lambda x, ids: x.gather(-1, ids[..., None])[..., 0], r.normal(3, 4, 6),
           r.ids(6, 3, 4))


def softmax(r):
    r.case("softmax/softmax", lambda x: x.softmax(-1), 3 * r.normal(3, 5, 21))
    r.case("softmax/log_softmax", lambda x: x.log_softmax(-1), 3 * r.normal(3, 21))
    r.case("softmax/logsumexp", lambda x: x.logsumexp(-1), 3 * r.normal(3, 21))

    def masked(allowed, T=1.0):
        """Blocked scores become the lowest number, rows without an allowed one 0."""
        def f(x, *unused):
            a = allowed.expand(x.shape)
            y = (x / T).masked_fill(~a, float("-inf")).masked_fill(~a.any(-1, keepdim=True), 0)
            return y.softmax(-1).masked_fill(~a, 0)
        return f

    i, j = torch.arange(5)[:, None], torch.arange(7)
    lengths = torch.tensor([7, 3, 0])
    dense = r.uniform(0, 1, 3, 1, 5, 7) < 0.6
    dense[1, 0, 2] = False
    x = 3 * r.normal(3, 2, 5, 7)
    r.case("softmax/allowed", masked(dense), x, dense)
    r.case("softmax/blocked", masked(~dense), x, dense)
    r.case("softmax/causal", masked(j <= i), x)
    r.case("softmax/causal_last", masked(j <= i + 2), x)
    r.case("softmax/lengths", masked(j < lengths[:, None, None, None]), x, lengths)
    r.case("softmax/window", masked((j >= i - 2) & (j <= i + 1)), x)
    r.case("softmax/two_masks_and_temperature",
           masked((j <= i) & (j < lengths[:, None, None, None]), 0.7), x, lengths)


def losses(r):
    V = 9
    logits, ids = 2 * r.normal(2, 4, V), r.ids(V, 2, 4)
    ids[0, 2] = ids[1, 3] = -100
    some = Constant(r.uniform(0.2, 2, V))
    probabilities = Constant(r.normal(2, 4, V).softmax(-1).float().double())

    def cross_entropy(**options):
        def f(x, targets, weight=None):
            x, targets = x.flatten(0, 1), targets.flatten(0, 1)
            y = F.cross_entropy(x, targets, weight=weight, **options)
            return y.reshape(2, 4) if options.get("reduction") == "none" else y
        return f

    for kind, targets in ("ids", ids), ("probabilities", probabilities):
        for reduction in "mean", "sum", "none":
            name = f"losses/{kind}_{reduction}"
            r.case(name, cross_entropy(reduction=reduction), logits, targets)
            r.case(name + "_smoothed", cross_entropy(reduction=reduction, label_smoothing=0.1),
                   logits, targets)
            r.case(name + "_weighted", cross_entropy(reduction=reduction), logits, targets, some)
            r.case(name + "_smoothed_weighted",
                   cross_entropy(reduction=reduction, label_smoothing=0.3), logits, targets, some)

    def linear(**options):
        return lambda x, w, b, targets, weight=None: cross_entropy(**options)(
            F.linear(x, w, b), targets, weight)

    layer = r.normal(2, 4, 6), r.normal(V, 6), r.normal(V)
    r.case("losses/linear", linear(), *layer, ids)
    r.case("losses/linear_sum_smoothed", linear(reduction="sum", label_smoothing=0.1), *layer, ids)
    r.case("losses/linear_none_weighted", linear(reduction="none"), *layer, ids, some)
    r.case("losses/linear_smoothed_weighted", linear(label_smoothing=0.1), *layer, ids, some)
    for reduction in "mean", "sum", "none":
        r.case(f"losses/squared_{reduction}",
               lambda x, t: F.mse_loss(x, t, reduction=reduction), r.normal(3, 5), r.normal(3, 5))


def positions(r):
    def sinusoidal(start, length, C):
        angle = torch.arange(start, start + length).double()[:, None] / 10000 ** (
            torch.arange(0, C, 2).double() / C)
        return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)

    def rotary(x, start=0, base=10000.0):
        """Rotates pairs as complex numbers."""
        L, D = x.shape[1], x.shape[3]
        angle = torch.arange(start, start + L).double()[:, None] * base ** (
            -torch.arange(0, D, 2).double() / D)
        pairs = torch.complex(x[..., : D // 2], x[..., D // 2:])
        turned = pairs * torch.polar(torch.ones_like(angle), angle)[:, None].to(pairs.dtype)
        return torch.cat([turned.real, turned.imag], -1)

    def distance(Lq, Lk):
        return torch.arange(Lk) - (torch.arange(Lq)[:, None] + Lk - Lq)

    slopes = 2.0 ** (-8 * torch.arange(1, 5).double() / 4)
    alibi = -slopes[:, None, None] * distance(3, 5).abs()
    r.case("positions/sinusoidal", lambda x: x * sinusoidal(3, 6, 10).to(x), r.normal(6, 10))
    r.case("positions/rotary", rotary, r.normal(2, 3, 2, 6))
    r.case("positions/rotary_later", lambda x: rotary(x, 5, 100.0), r.normal(2, 3, 1, 4))
    r.case("positions/alibi", lambda x: x + alibi.to(x), r.normal(1, 4, 3, 5))
    r.case("positions/relative_bias", lambda table: table[:, distance(4, 6).clamp(-2, 2) + 2][None],
           r.normal(3, 5))


def add(r):
    for group in (arithmetic, elementwise, products, shapes, reductions, norms, lookup, softmax,
                  losses, positions):
        group(r)
