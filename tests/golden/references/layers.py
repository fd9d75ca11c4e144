"""Multi-head attention, and encoder and decoder layers, of torch.nn."""

import torch
from torch import nn

C, HEADS, HIDDEN = 8, 2, 12
OWN_NAMES = {"self_attn": "self_attention", "multihead_attn": "cross_attention",
             "out_proj": "output", "linear1": "feed_forward.up", "linear2": "feed_forward.down"}


def names(module, crosses=None):
    """softback's name of each weight: PyTorch's name and its rows. PyTorch keeps the projections of
    queries, keys and values in one matrix."""
    found = {}
    for theirs, p in module.named_parameters():
        decoder = "decoder" in theirs.split(".") if crosses is None else crosses
        norms = (["self_norm", "cross_norm", "feed_norm"] if decoder else
                 ["self_norm", "feed_norm"])
        own = ".".join(norms[int(part[4]) - 1] if part[:4] == "norm" and part[4:] else
                       OWN_NAMES.get(part, part) for part in theirs.split("."))
        if "in_proj_" not in own:
            found[own] = theirs, slice(None)
            continue
        for i, projection in enumerate(["query", "key", "value"]):
            rows = slice(i * len(p) // 3, (i + 1) * len(p) // 3)
            found[own.replace("in_proj_", projection + ".")] = theirs, rows
    return found


def padding(lengths, L):
    """True where a key is padding."""
    return torch.arange(L) >= lengths[:, None]


def causal(L):
    """True where a key is blocked."""
    return torch.ones(L, L, dtype=torch.bool).triu(1)


def multi_head_attention(r):
    def case(name, forward, **inputs):
        m = r.draw_weights(nn.MultiheadAttention(C, HEADS, batch_first=True))
        r.module(f"multi_head_attention/{name}", m, lambda m, x: forward(m, **x)[0], names,
                 **inputs)

    B, L, M = 3, 5, 7
    lengths = torch.tensor([7, 3, 1])
    x, memory = r.normal(B, L, C), r.normal(B, M, C)
    case("self", lambda m, x: m(x, x, x), x=x)
    case("cross_lengths", lambda m, x, memory, lengths: m(
        x, memory, memory, key_padding_mask=padding(lengths, M)),
        x=x, memory=memory, lengths=lengths)
    case("self_causal_lengths", lambda m, x, lengths: m(
        x, x, x, attn_mask=causal(L), key_padding_mask=padding(lengths, L)),
        x=x, lengths=torch.tensor([5, 2, 4]))
    case("bias", lambda m, x, memory, bias: m(x, memory, memory, attn_mask=bias),
         x=x, memory=memory, bias=r.normal(L, M))


def layer_options(norm_first, activation):
    return dict(d_model=C, nhead=HEADS, dim_feedforward=HIDDEN, dropout=0.0, batch_first=True,
                norm_first=norm_first, activation=activation)


def encoder_layer(r):
    L = 6
    lengths = torch.tensor([6, 2, 5])
    for place, norm_first in ("pre", True), ("post", False):
        def case(name, forward, activation="relu", **inputs):
            m = r.draw_weights(nn.TransformerEncoderLayer(**layer_options(norm_first, activation)))
            r.module(f"encoder_layer/{place}_{name}", m, lambda m, x: forward(m, **x), names,
                     x=r.normal(3, L, C), **inputs)

        case("gelu", lambda m, x: m(x), "gelu")
        case("lengths", lambda m, x, lengths: m(x, src_key_padding_mask=padding(lengths, L)),
             lengths=lengths)
        case("causal_lengths", lambda m, x, lengths: m(
            x, src_mask=causal(L), src_key_padding_mask=padding(lengths, L)), lengths=lengths)


def decoder_layer(r):
    L, M = 4, 6
    for place, norm_first in ("pre", True), ("post", False):
        def case(name, forward, activation="relu", **inputs):
            m = r.draw_weights(nn.TransformerDecoderLayer(**layer_options(norm_first, activation)))
            r.module(f"decoder_layer/{place}_{name}", m, lambda m, x: forward(m, **x),
                     lambda m: names(m, True), x=r.normal(3, L, C), memory=r.normal(3, M, C),
                     **inputs)

        case("gelu", lambda m, x, memory: m(x, memory), "gelu")
        case("causal_lengths", lambda m, x, memory, lengths, memory_lengths: m(
            x, memory, tgt_mask=causal(L), tgt_key_padding_mask=padding(lengths, L),
            memory_key_padding_mask=padding(memory_lengths, M)),
            lengths=torch.tensor([3, 1, 4]), memory_lengths=torch.tensor([2, 6, 5]))


def add(r):
    multi_head_attention(r)
    encoder_layer(r)
    decoder_layer(r)
