"""References for sb_attention: torch.nn.functional.scaled_dot_product_attention, in PyTorch's order
(batch, heads, length, size), and torch.nn.MultiheadAttention. Options that those do not have become
a mask or other inputs; only dropout is missing, since its random stream differs."""

import torch
import torch.nn.functional as F
from torch import nn

from .layers import causal, padding

ORDERS = 12


def attend(q, k, v, bias=None, **options):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True, **options)


def measure_orders(r, name, f, *inputs):
    """Measures float32 again with the keys, axis 2 of all inputs but the first, in other orders: if
    many terms cancel, a single result is a poor estimate of the error (see order.py)."""
    for _ in range(ORDERS):
        order = torch.randperm(inputs[1].shape[2], generator=r.random)
        x = [r.leaf(t[:, :, order] if i else t, torch.float32) for i, t in enumerate(inputs)]
        y = f(*x)
        y.backward(r.tensors[f"{name}.dy"].float())
        r.measure_again(f"{name}.y", y)
        for i, t in enumerate(x):
            r.measure_again(f"{name}.d.{i}", t.grad[:, :, order.argsort()] if i else t.grad)


def dot_product(r):
    def qkv(B=2, H=2, G=2, Lq=5, Lk=7, D=4, Dv=2):
        return r.normal(B, H, Lq, D), r.normal(B, G, Lk, D), r.normal(B, G, Lk, Dv)

    def case(name, f, *inputs):
        r.case(f"attention/{name}", f, *inputs)

    i, j = torch.arange(5)[:, None], torch.arange(7)
    case("plain", attend, *qkv())
    case("one_head", lambda q, k, v: attend(*[t[:, None] for t in (q, k, v)])[:, 0],
         r.normal(2, 5, 8), r.normal(2, 7, 8), r.normal(2, 7, 8))
    case("length_first", lambda *x: attend(*[t.transpose(1, 2) for t in x]).transpose(1, 2),
         r.normal(2, 5, 3, 4), r.normal(2, 7, 3, 4), r.normal(2, 7, 3, 2))
    case("long", attend, *qkv(1, 1, 1, 6, 67, 4, 3))
    case("scale", lambda *x: attend(*x, scale=0.3), *qkv(1))
    case("temperature", lambda *x: attend(*x, scale=0.5 / 1.7), *qkv(1))
    case("groups", attend, *qkv(H=4))
    case("one_group", lambda *x: attend(*x, is_causal=True), *qkv(H=4, G=1))
    case("causal", lambda *x: attend(*x, is_causal=True), *qkv())
    case("causal_last", lambda q, k, v: attend(q, k, v, j <= i + 2), *qkv())
    case("window", lambda q, k, v: attend(q, k, v, (j >= i - 1) & (j <= i + 3)), *qkv())
    lengths = torch.tensor([7, 3])
    case("lengths", lambda q, k, v, n: attend(q, k, v, j < n[:, None, None, None]), *qkv(), lengths)
    case("lengths_and_causal",
         lambda q, k, v, n: attend(q, k, v, (j < n[:, None, None, None]) & (j <= i)), *qkv(),
         lengths)
    allowed = r.uniform(0, 1, 2, 1, 5, 7) < 0.5
    allowed[1, 0, 2] = False  # a query that attends to no key
    case("allowed", attend, *qkv(), allowed)
    case("blocked", lambda q, k, v, blocked: attend(q, k, v, ~blocked), *qkv(), ~allowed)
    case("bias", attend, *qkv(), r.normal(2, 2, 5, 7))
    case("bias_broadcast", attend, *qkv(H=4), r.normal(4, 1, 7))
    case("bias_and_causal",
         lambda q, k, v, bias: attend(q, k, v, bias.masked_fill(j > i, float("-inf"))), *qkv(),
         r.normal(1, 2, 5, 7))
    case("log_temperature", lambda q, k, v, t: attend(q / t.exp(), k, v), *qkv(), r.normal(1)[0])
    case("log_temperatures", lambda q, k, v, t: attend(q / t.exp()[:, None, None], k, v), *qkv(),
         r.uniform(-1, 1, 2))
    case("balanced", attend, *qkv())
    case("cosine", lambda q, k, v: attend(F.normalize(q, dim=-1), F.normalize(k, dim=-1), v,
                                          scale=1.0), *qkv())
    case("cosine_scale", lambda q, k, v: attend(F.normalize(q, dim=-1), F.normalize(k, dim=-1), v,
                                                scale=8.0), *qkv())

    def weights(q, k, v):
        return (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(j > i, float("-inf")).softmax(-1)

    case("weights", weights, *qkv())

    # Other broadcasts, more queries than keys, and keys (and queries) for several tiles.
    case("allowed_pairs", attend, *qkv(1), r.uniform(0, 1, 5, 7) < 0.7)
    case("allowed_heads", attend, *qkv(1), r.uniform(0, 1, 2, 1, 7) < 0.5)
    case("bias_of_keys", attend, *qkv(), r.normal(2, 1, 1, 7))
    case("causal_tall", lambda *x: attend(*x, is_causal=True), *qkv(1, Lq=7, Lk=4))
    case("tiles_causal", lambda *x: attend(*x, is_causal=True), *qkv(1, 1, 1, 270, 300, 2, 1))
    tiles = *qkv(1, 2, 1, 3, 300, 2, 2), r.normal(2, 1, 300)
    case("tiles", lambda *x: attend(*x, scale=0.8), *tiles)
    measure_orders(r, "attention/tiles", lambda *x: attend(*x, scale=0.8), *tiles)


def multi_head(r):
    """The weights are inputs too, in PyTorch's order and after all others."""
    B, L, S, C, H = 2, 3, 4, 4, 2

    def case(name, forward, *inputs, **options):
        m = r.draw_weights(nn.MultiheadAttention(C, H, batch_first=True, **options))
        names = [key for key, _ in m.named_parameters()]

        def run(*tensors):
            x, weights = tensors[:len(inputs)], tensors[len(inputs):]
            y, a = torch.func.functional_call(m, dict(zip(names, weights)), *forward(*x))
            return y if a is None else a

        r.case(f"multi_head/{name}", run, *inputs, *[p.detach() for p in m.parameters()])

    def call(q, k, v, **options):
        return (q, k, v), {"need_weights": False, **options}

    queries, memory, lengths = r.normal(B, L, C), r.normal(B, S, C), torch.tensor([4, 2])
    blocked = r.uniform(0, 1, B, H, L, S) < 0.3
    blocked[..., 0] = False  # PyTorch gives NaN to a query without keys
    case("masks", lambda q, m, blocked, lengths: call(
        q, m, m, attn_mask=blocked.flatten(0, 1), key_padding_mask=padding(lengths, S)),
        queries, memory, blocked, lengths)
    case("biases", lambda q, m, bias, of_keys: call(
        q, m, m, attn_mask=bias.flatten(0, 1), key_padding_mask=of_keys),
        queries, memory, r.normal(B, H, L, S), r.normal(B, S))
    case("sizes", call, queries, r.normal(B, S, 3), r.normal(B, S, 2), kdim=3, vdim=2, bias=False)
    case("added_keys", lambda q, m: call(q, m, m), queries, memory, add_bias_kv=True,
         add_zero_attn=True)
    case("average_weights", lambda x: call(x, x, x, attn_mask=causal(L), is_causal=True,
                                           need_weights=True), queries)


def add(r):
    dot_product(r)
    multi_head(r)
