"""softback's models in PyTorch, as an expert would write them: queries, keys and values of
self-attention are one product, attention is scaled_dot_product_attention, layers are pre-norm.
Names and shapes of weights are those of softback's files, except for packed ones.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from protocol import sinusoids


class Packed(nn.Module):
    """Projections of the same x, as one: q, k, v of self-attention, k, v of cross."""

    def __init__(self, weights, name, parts):
        super().__init__()
        self.weight, self.bias = (
            nn.Parameter(torch.cat([weights[f"{name}.{part}.{kind}"] for part in parts]))
            for kind in ("weight", "bias"))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class LayerNorm(nn.Module):
    def __init__(self, weights, name):
        super().__init__()
        self.weight = nn.Parameter(weights[name + ".weight"])
        self.bias = nn.Parameter(weights[name + ".bias"])

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias)


class Attention(nn.Module):
    def __init__(self, weights, name, sizes, causal, crosses):
        super().__init__()
        self.heads, self.dropout, self.causal = sizes["heads"], sizes["dropout"], causal
        self.crosses = crosses
        if crosses:
            self.query = Packed(weights, name, ["query"])
            self.key_value = Packed(weights, name, ["key", "value"])
        else:
            self.all = Packed(weights, name, ["query", "key", "value"])
        self.output = Packed(weights, name, ["output"])

    def split(self, x, parts):
        """(B, L, parts C) -> parts of (B, H, L, D)"""
        B, L, C = x.shape
        return x.view(B, L, parts, self.heads, C // parts // self.heads).permute(2, 0, 3, 1, 4)

    def forward(self, x, memory):
        if self.crosses:
            (q,), (k, v) = self.split(self.query(x), 1), self.split(self.key_value(memory), 2)
        else:
            q, k, v = self.split(self.all(x), 3)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=self.causal)
        return self.output(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, weights, name, sizes, causal, crosses):
        super().__init__()
        self.dropout, self.crosses = sizes["dropout"], crosses
        self.self_norm = LayerNorm(weights, name + ".self_norm")
        self.self_attention = Attention(weights, name + ".self_attention", sizes, causal, False)
        if crosses:
            self.cross_norm = LayerNorm(weights, name + ".cross_norm")
            self.cross_attention = Attention(weights, name + ".cross_attention", sizes, False, True)
        self.feed_norm = LayerNorm(weights, name + ".feed_norm")
        self.up = Packed(weights, name + ".feed_forward", ["up"])
        self.down = Packed(weights, name + ".feed_forward", ["down"])
        self.activation = sizes["activation"]

    def forward(self, x, memory=None):
        x = x + F.dropout(self.self_attention(self.self_norm(x), None), self.dropout)
        if self.crosses:
            x = x + F.dropout(self.cross_attention(self.cross_norm(x), memory), self.dropout)
        y = self.down(self.activation(self.up(self.feed_norm(x))))
        return x + F.dropout(y, self.dropout)


class Stack(nn.Module):
    """An encoder or decoder: embeddings, positions, layers, a last norm."""

    def __init__(self, weights, name, sizes, causal, crosses):
        super().__init__()
        self.dropout = sizes["dropout"]
        self.embedding = nn.Parameter(weights[name + ".embedding.weight"])
        learned = weights.get(name + ".embedding.positions")
        if learned is None:
            table = torch.from_numpy(sinusoids(sizes["length"], sizes["width"]))
            self.register_buffer("positions", table)
        else:
            self.positions = nn.Parameter(learned)
        self.scale = math.sqrt(sizes["width"])
        self.learned = learned is not None
        self.layers = nn.ModuleList(Layer(weights, f"{name}.layers.{i}", sizes, causal, crosses)
                                    for i in range(sizes["layers"]))
        self.norm = LayerNorm(weights, name + ".norm")

    def forward(self, ids, memory=None):
        positions = self.positions[:ids.shape[1]]
        x = F.embedding(ids, self.embedding) * self.scale
        x = x + (positions * self.scale if self.learned else positions)
        x = F.dropout(x, self.dropout)
        for layer in self.layers:
            x = layer(x, memory)
        return self.norm(x)


class Output(nn.Module):
    """The loss of the decoder's output, whose weights may be the decoder's embeddings."""

    def __init__(self, weights, decoder):
        super().__init__()
        own = weights.get("output.weight")
        self.weight = decoder.embedding if own is None else nn.Parameter(own)
        self.bias = nn.Parameter(weights["output.bias"])

    def forward(self, y, targets):
        return F.cross_entropy(F.linear(y, self.weight, self.bias).flatten(0, 1),
                               targets.flatten())


class Seq2seq(nn.Module):
    def __init__(self, weights, sizes):
        super().__init__()
        sizes = dict(sizes, activation=F.relu)
        self.encoder = Stack(weights, "encoder", sizes, False, False)
        self.decoder = Stack(weights, "decoder", sizes, True, True)
        self.output = Output(weights, self.decoder)

    def forward(self, source, target_in, target_out):
        return self.output(self.decoder(target_in, self.encoder(source)), target_out)


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


class LanguageModel(nn.Module):
    def __init__(self, weights, sizes):
        super().__init__()
        sizes = dict(sizes, activation=gelu_tanh)
        self.decoder = Stack(weights, "decoder", sizes, True, False)
        self.output = Output(weights, self.decoder)

    def forward(self, ids_in, ids):
        return self.output(self.decoder(ids_in), ids)
