#!/usr/bin/env python3
"""Measures with PyTorch what `softback bench` measures, on the same device:

    python3 tests/bench/gpu.py [--device cuda|cpu] [--quick] [--build BUILD]

Prints rows like `softback bench --tabs`: group, name, variant, seconds, rate. "eager" is PyTorch's
eager mode, "graph" the same step captured as a CUDA graph and launched. bf16 is autocast for models
and bf16 tensors for operations; f32 products are in full float32, without TF32, as in softback. The
rows are those of `softback bench --rows`; PyTorch has no windows, and no generator to compare.
"""
import argparse
import contextlib
import math
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

from compare_peers import ROOT
from compare_rows import Row, listed

LEAST, MOST, ENOUGH = 3, 30, 2.0

class Model(nn.Module):
    """A pre-norm encoder-decoder, like softback's default."""

    def __init__(self, width, heads, feed_forward, layers, length, symbols, tied):
        super().__init__()
        shared = dict(d_model=width, nhead=heads, dim_feedforward=feed_forward, dropout=0.1,
                      batch_first=True, norm_first=True)
        self.source = nn.Embedding(symbols, width)
        self.target = nn.Embedding(symbols, width)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**shared), layers,
                                             nn.LayerNorm(width), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**shared), layers,
                                             nn.LayerNorm(width))
        self.output = nn.Linear(width, symbols)
        if tied:
            self.output.weight = self.target.weight
        self.dropout = nn.Dropout(0.1)
        self.scale = math.sqrt(width)
        self.register_buffer("places", torch.randn(length, width))
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, source, target):
        memory = self.encoder(self.dropout(self.source(source) * self.scale + self.places))
        y = self.decoder(self.dropout(self.target(target) * self.scale + self.places), memory,
                         tgt_mask=self.mask, tgt_is_causal=True)
        return self.output(y)


class LanguageModel(nn.Module):
    """GPT-2: a pre-norm decoder with learned positions, whose output is tied to its embeddings."""

    def __init__(self, width, heads, feed_forward, layers, symbols, positions):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, feed_forward, 0.0,
                                           lambda x: F.gelu(x, approximate="tanh"),
                                           batch_first=True, norm_first=True)
        self.symbols = nn.Embedding(symbols, width)
        self.positions = nn.Embedding(positions, width)
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width),
                                            enable_nested_tensor=False)
        self.output = nn.Linear(width, symbols, bias=False)
        self.output.weight = self.symbols.weight
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(positions))

    def forward(self, ids):
        n = ids.shape[1]
        x = self.symbols(ids) + self.positions.weight[:n]
        return self.output(self.layers(x, mask=self.mask[:n, :n], is_causal=True))


class Bench:
    def __init__(self, device, quick):
        self.device, self.quick, self.cuda = device, quick, device == "cuda"
        self.dtypes = [torch.float32, torch.bfloat16] if self.cuda else [torch.float32]

    def now(self):
        if self.cuda:
            torch.cuda.synchronize()
        return time.perf_counter()

    def seconds(self, function):
        """The median, as in softback bench."""
        for _ in range(1 if self.quick else 3):
            function()
        taken, begun = [], self.now()
        most = 1 if self.quick else MOST
        while len(taken) < most and (len(taken) < LEAST or self.now() - begun < ENOUGH):
            before = self.now()
            function()
            taken.append(self.now() - before)
        return statistics.median(taken)

    def row(self, row, way, function, work=0.0):
        """One measurement; if it fails, for example without memory, it is reported and skipped."""
        try:
            seconds = self.seconds(function)
        except RuntimeError as error:
            print(f"{row.name} {way}: {str(error).splitlines()[0]}", file=sys.stderr)
            return
        group, name = row.name.split(" ", 1)
        print(f"{group}\t{name}\t{way}\t{0 if group == 'limit' else seconds:.9g}\t"
              f"{work / seconds:.6g}", flush=True)

    def limits(self):
        n = 1 << 12 if self.quick else 1 << 28 if self.cuda else 1 << 26
        x = torch.ones(n, device=self.device)
        y = torch.empty_like(x)
        self.row(Row("limit copy"), "memory", lambda: y.copy_(x), 8.0 * n)
        n = 64 if self.quick else 4096
        for dtype in self.dtypes:
            a, b = (torch.rand(n, n, device=self.device).mul_(2).sub_(1).to(dtype) for _ in "ab")
            self.row(Row("limit matrix product"), way_of(dtype), lambda: a @ b, 2.0 * n ** 3)

    def train_step(self, row, dtype):
        pairs, length, symbols = (row.sizes[key] for key in ("pairs", "length", "symbols"))
        sides, made, names = ((2, Model, ("length", "tied")) if row.kind == "seq2seq" else
                              (1, LanguageModel, ("positions",)))
        model = made(**{key: row.sizes[key] for key in ("width", "heads", "feed_forward", "layers",
                                                        "symbols") + names})
        model = model.to(self.device)
        adam = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9,
                                fused=True, capturable=self.cuda)
        *inputs, answer = (torch.randint(symbols, (pairs, length), device=self.device)
                           for _ in range(sides + 1))

        def step(cache=True):
            precision = (contextlib.nullcontext() if dtype == torch.float32 else
                         torch.autocast(self.device, dtype, cache_enabled=cache))
            with precision:
                logits = model(*inputs)
                loss = F.cross_entropy(logits.view(-1, symbols), answer.view(-1))
            loss.backward()
            adam.step()
            return loss

        def eager():
            adam.zero_grad(set_to_none=True)
            step()

        tokens = float(pairs * length)
        self.row(row, way_of(dtype) + " eager", eager, tokens)
        if self.cuda:
            try:
                graph = captured(lambda: step(cache=False), adam)
            except RuntimeError as error:
                print(f"{row.name}: no graph: {str(error).splitlines()[0]}", file=sys.stderr)
                return
            self.row(row, way_of(dtype) + " graph", graph.replay, tokens)

    def values(self, dtype, *shape):
        return torch.rand(shape, device=self.device).mul_(2).sub_(1).to(dtype).requires_grad_()

    def softmax(self, row, dtype):
        self.operation(row, dtype, lambda x, *_: F.softmax(x, -1))

    def layer_norm(self, row, dtype):
        self.operation(row, dtype, lambda x, gain, bias, _: F.layer_norm(x, gain.shape, gain, bias))

    def cross_entropy(self, row, dtype):
        self.operation(row, dtype, lambda x, gain, bias, ids: F.cross_entropy(x, ids))

    def operation(self, row, dtype, f):
        rows, columns = row.sizes["rows"], row.sizes["columns"]
        x, dy = self.values(dtype, rows, columns), self.values(dtype, rows, columns).detach()
        gain, bias = (self.values(dtype, columns) for _ in range(2))
        ids = torch.full((rows,), 7, device=self.device)

        def call():
            x.grad = gain.grad = bias.grad = None
            y = f(x, gain, bias, ids)
            y.backward(dy if y.dim() else None)

        self.row(row, way_of(dtype) + " eager", call, row.bytes * x.element_size() / 4)

    def adam(self, row, dtype):
        if dtype != torch.float32:
            return
        weights = torch.full((row.sizes["size"],), 0.5, device=self.device, requires_grad=True)
        weights.grad = torch.ones_like(weights)
        adam = torch.optim.Adam([weights], fused=True)
        self.row(row, "f32 eager", adam.step, row.bytes)

    def attention(self, row, dtype):
        n, heads, size = (row.sizes[key] for key in ("n", "heads", "size"))
        if row.sizes.get("window"):
            return
        q, k, v, dy = (self.values(dtype, 1, heads, n, size) for _ in range(4))

        def call():
            q.grad = k.grad = v.grad = None
            F.scaled_dot_product_attention(q, k, v, is_causal=bool(row.sizes.get("causal")),
                                           dropout_p=row.sizes.get("dropout", 0.0)).backward(dy)

        self.row(row, way_of(dtype) + " eager", call, row.flop)


def way_of(dtype):
    return "f32" if dtype == torch.float32 else "bf16"


def captured(step, adam):
    """A CUDA graph of a step (pytorch.org, "Whole-network capture")."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            adam.zero_grad(set_to_none=True)
            step()
    torch.cuda.current_stream().wait_stream(side)
    adam.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    parser.add_argument("--build", default=ROOT / "build", help="softback's build; default: build")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("gpu.py: PyTorch sees no CUDA device")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    bench = Bench(options.device, options.quick)
    print(f"device\t{options.device}\tPyTorch {torch.__version__}")
    bench.limits()
    where = "quick" if options.quick else "gpu" if bench.cuda else "cpu"
    measures = {"seq2seq": bench.train_step, "language_model": bench.train_step,
                "attention": bench.attention, "adam": bench.adam, "softmax": bench.softmax,
                "layer_norm": bench.layer_norm, "cross_entropy": bench.cross_entropy}
    for row in listed(f"{options.build}/softback"):
        if where in row.where and row.kind in measures:
            for dtype in bench.dtypes:
                measures[row.kind](row, dtype)


main()
