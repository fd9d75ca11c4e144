"""The whole encoder-decoder, its logits and its loss, of torch.nn's encoder and decoder layers:
embeddings times sqrt C with the sinusoidal table added; pre-norm with a final norm after each
stack, post-norm without one."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from .layers import C, causal, layer_options, names, padding
from .order import Order

V, PADDING, BEGIN, END, LAYERS = 11, 0, 1, 2, 2
SENTENCES, LONGEST, ORDERS = 3, 5, 12


def sinusoidal(L, C):
    angle = torch.arange(L).double()[:, None] / 10000 ** (torch.arange(0, C, 2).double() / C)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


class Stack(nn.Module):
    """An embedding and the layers above it."""

    def __init__(self, layer, norm_first):
        super().__init__()
        self.embedding = nn.Embedding(V, C)
        self.layers = nn.ModuleList(layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(C) if norm_first else None
        self.width = torch.arange(C)  # the order of the width (order.py)

    def forward(self, ids, *memory, **masks):
        x = self.embedding(ids) * C ** 0.5
        x = x + sinusoidal(ids.shape[1], C)[:, self.width].to(x)
        for layer in self.layers:
            x = layer(x, *memory, **masks)
        return self.norm(x) if self.norm else x


class Seq2seq(nn.Module):
    def __init__(self, norm_first, tied=False, shared=False, activation="relu"):
        super().__init__()
        options = layer_options(norm_first, activation)
        self.encoder = Stack(lambda: nn.TransformerEncoderLayer(**options), norm_first)
        self.decoder = Stack(lambda: nn.TransformerDecoderLayer(**options), norm_first)
        self.output = nn.Linear(C, V)
        if shared:
            self.decoder.embedding.weight = self.encoder.embedding.weight
        if tied:
            self.output.weight = self.decoder.embedding.weight

    def forward(self, source, source_lengths, target_in):
        blocked = padding(source_lengths, source.shape[1])
        memory = self.encoder(source, src_key_padding_mask=blocked)
        y = self.decoder(target_in, memory, tgt_mask=causal(target_in.shape[1]),
                         memory_key_padding_mask=blocked)
        return self.output(y)

    def loss(self, source, source_lengths, target_in, target_out, label_smoothing=0.0):
        """target_out is -1 for padding."""
        logits = self(source, source_lengths, target_in)
        return F.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=-1,
                               label_smoothing=label_smoothing)


def batch(r, B, longest):
    """Sequences and the same reversed, padded as in softback's batches."""
    lengths = 1 + r.ids(longest, B)
    lengths[0] = longest
    source = torch.full((B, longest), PADDING)
    target_in = torch.full((B, longest + 1), PADDING)
    target_out = torch.full((B, longest + 1), -1)
    for b, n in enumerate(lengths.tolist()):
        sentence = 4 + r.ids(V - 4, n)
        source[b, :n] = sentence
        target_in[b, 0], target_in[b, 1:n + 1] = BEGIN, sentence.flip(0)
        target_out[b, :n], target_out[b, n] = sentence.flip(0), END
    return dict(source=source, source_lengths=lengths, target_in=target_in, target_out=target_out)


def add(r):
    variants = {"pre": dict(norm_first=True), "post": dict(norm_first=False),
                "pre_tied": dict(norm_first=True, tied=True),
                "post_tied_shared_gelu": dict(norm_first=False, tied=True, shared=True,
                                              activation="gelu")}
    for name, options in variants.items():
        add_model(r, f"model/{name}", r.draw_weights(Seq2seq(**options)))


def add_model(r, name, model):
    def loss(model, inputs):
        return model.loss(**inputs, label_smoothing=0.1)

    def logits(model, inputs):
        return model(*[inputs[key] for key in ("source", "source_lengths", "target_in")])

    inputs = batch(r, SENTENCES, LONGEST)
    r.module(name, model, loss, names, **inputs)
    r.expect(f"{name}.logits", logits(model, inputs), logits(copy.deepcopy(model).float(), inputs))
    for _ in range(ORDERS):
        y, gradients = Order(r, SENTENCES).run(model, loss, names, inputs,
                                               r.tensors[f"{name}.dy"])
        r.measure_again(f"{name}.y", y)
        for own, gradient in gradients.items():
            r.measure_again(f"{name}.d.{own}", gradient)
