"""Losses of 300 training steps of a language model in float64, without dropout: decoder-only, two
layers of width 16, on a few batches of windows of a text, in turn.

torch.nn's encoder layers with a causal mask are such a decoder's. Embeddings are times sqrt C, and
so is a learned table of positions; else the sinusoidal table is added to them."""

import torch
import torch.nn.functional as F
from torch import nn

from .layers import causal, names as names_of
from .models import sinusoidal
from .training import train

C, HEADS, HIDDEN, LAYERS, LONGEST, SPECIAL = 16, 2, 32, 2, 16, 4
STEPS, BATCHES, WINDOWS = 300, 6, 4
TEXT = ("each symbol of a text is predicted from those before it. what a model has read it keeps "
        "as keys and values; a new symbol asks them all, weighs their answers and adds them up. "
        "what comes after the end of a window is not seen, and what comes before its start is "
        "forgotten. the loss is the mean over all windows, in nats a symbol.")
LETTERS = sorted(set(TEXT))
V = SPECIAL + len(LETTERS)


class Decoder(nn.Module):
    def __init__(self, norm_first, activation, learned):
        super().__init__()
        self.embedding = nn.Embedding(V, C)
        if learned:
            self.positions = nn.Embedding(LONGEST, C)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(C, HEADS, HIDDEN, dropout=0.0, batch_first=True,
                                       norm_first=norm_first, activation=activation)
            for _ in range(LAYERS))
        self.norm = nn.LayerNorm(C) if norm_first else None

    def forward(self, ids):
        L = ids.shape[1]
        x = self.embedding(ids) * C ** 0.5
        x = x + (self.positions.weight[:L] * C ** 0.5 if hasattr(self, "positions") else
                 sinusoidal(L, C).to(x))
        for layer in self.layers:
            x = layer(x, src_mask=causal(L))
        return self.norm(x) if self.norm else x


class LanguageModel(nn.Module):
    def __init__(self, norm_first=True, activation="relu", learned=False, tied=False):
        super().__init__()
        self.decoder = Decoder(norm_first, activation, learned)
        self.output = nn.Linear(C, V)
        if tied:
            self.output.weight = self.decoder.embedding.weight

    def loss(self, input, targets, label_smoothing=0.0):
        """targets is -1 behind the end of a window."""
        return F.cross_entropy(self.output(self.decoder(input)).flatten(0, 1), targets.flatten(),
                               ignore_index=-1, label_smoothing=label_smoothing)


def names(model):
    return {own.replace("positions.weight", "embedding.positions"): place
            for own, place in names_of(model, False).items()}


def windows(r):
    """Pieces of the text that start anywhere; the first has the full length."""
    text = torch.tensor([SPECIAL + LETTERS.index(letter) for letter in TEXT])
    lengths = LONGEST - r.ids(LONGEST // 2, WINDOWS)
    lengths[0] = LONGEST
    input = torch.zeros(WINDOWS, LONGEST, dtype=torch.int64)
    targets = torch.full((WINDOWS, LONGEST), -1)
    for b, n in enumerate(lengths.tolist()):
        start = r.ids(len(text) - LONGEST, 1).item()
        input[b, :n], targets[b, :n] = text[start:start + n], text[start + 1:start + n + 1]
    return dict(input=input, targets=targets)


def add(r):
    batches = [windows(r) for _ in range(BATCHES)]
    for i, one in enumerate(batches):
        for key, t in one.items():
            r.put(f"batch.{i}.{key}", t)
    train(r, "adam", LanguageModel(), names, batches, STEPS,
          lambda p: torch.optim.Adam(p, lr=0.001, betas=(0.9, 0.98), eps=1e-9))
    train(r, "adamw", LanguageModel(False, "gelu", learned=True, tied=True), names, batches, STEPS,
          lambda p: torch.optim.AdamW(p, lr=0.005, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.01),
          rate=lambda step: min(step / 20, (20 / step) ** 0.5), clip=1.0, label_smoothing=0.1)
