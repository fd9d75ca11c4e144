"""sb_attention beside torch.nn.functional.scaled_dot_product_attention, in PyTorch's order (batch,
heads, length, size). What that has no option for is given to it as a mask or with other inputs."""

import torch
import torch.nn.functional as F


def attend(q, k, v, bias=None, **options):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True, **options)


def add(r):
    def qkv(B=2, H=2, G=2, Lq=5, Lk=7, D=4, Dv=3):
        return r.normal(B, H, Lq, D), r.normal(B, G, Lk, D), r.normal(B, G, Lk, Dv)

    def case(name, f, *inputs):
        r.case(f"attention/{name}", f, *inputs)

    i, j = torch.arange(5)[:, None], torch.arange(7)
    case("plain", attend, *qkv())
    case("one_head", lambda q, k, v: attend(*[t[:, None] for t in (q, k, v)])[:, 0],
         r.normal(2, 5, 8), r.normal(2, 7, 8), r.normal(2, 7, 8))
    case("length_first", lambda *x: attend(*[t.transpose(1, 2) for t in x]).transpose(1, 2),
         r.normal(2, 5, 3, 4), r.normal(2, 7, 3, 4), r.normal(2, 7, 3, 2))
    case("long", attend, *qkv(1, 1, 1, 6, 67, 8, 5))
    case("scale", lambda *x: attend(*x, scale=0.3), *qkv())
    case("temperature", lambda *x: attend(*x, scale=0.5 / 1.7), *qkv())
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
    allowed[1, 0, 2] = False  # a query that may see no key
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
