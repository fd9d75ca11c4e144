#!/usr/bin/env python3
"""Predicts the rows of `softback bench --device cuda`, and so of ./run gpu, on an H100 or H200:

    python3 tests/bench/gpu_model.py [--device h100|h200]
    python3 tests/bench/gpu_model.py --measured FILE   fails if a row is beyond 1.3 times
    python3 tests/bench/gpu_model.py --check            the model agrees with the sources; no GPU needed

A kernel takes START and the time of its bytes, multiply-adds and longest block, which overlap in
part: their squares are added. In a graph the next kernel follows after GRAPH_GAP; without one after
EAGER_GAP, or when the host, which takes HOST for each, has launched it.

Peaks are from data sheets, and numbers of kernels were counted on the emulator. All other numbers are
calibrated on one H200: results/2026-11-27-nvidia-h200.tsv. No H100 has been measured.
"""
import argparse
import collections
import math
import os
import re
import sys

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(BENCH))
LIMIT = 1.3 # of measured over predicted, and of predicted over measured

# SXM modules: NVIDIA H100 Tensor Core GPU Architecture (2022), table 3, and the data sheet of H200
# (2023): bytes/s, and dense FLOP/s of tensor cores in bf16 and TF32, and of CUDA cores.
Device = collections.namedtuple("Device", "name memory bf16 tf32 f32")
PROCESSORS = 132
DEVICES = {
    "h100": Device("H100", 3.35e12, 989.4e12, 494.7e12, 66.9e12),
    "h200": Device("H200", 4.8e12, 989.4e12, 494.7e12, 66.9e12),
}

# Shares of the peaks that large copies and products of cuBLAS reach.
SHARE = {"memory": 0.87, "bf16": 0.80, "tf32": 0.70, "f32": 0.75}
TILES = (128, 1.0), (64, 1.4), (32, 2.0) # of C for a block of cuBLAS, and the cost of small ones

# Seconds: the shortest kernel; from one to the next in a graph, and without one; of the host for each
# launch; what the first launch and waiting for the last kernel add to an operation and to a step.
START, GRAPH_GAP, EAGER_GAP, HOST = 2.2e-6, 1.2e-6, 2.4e-6, 5.8e-6
OPERATION, STEP = 30e-6, 0.6e-3

# Tiled attention, heads of 64: kernels of forward, dq, dk and dv; the rows of a block and the columns
# of a tile; microseconds of a tile in a block that is alone on a multiprocessor, and of a full
# multiprocessor for each tile; the cost of a tile that a mask cuts where whole tiles have own code.
Tiles = collections.namedtuple("Tiles", "kernel rows columns alone shared cut", defaults=(1,))
TILED = {
    "bf16": (Tiles("forward_tiles<small_forward_shape<64, false>", 64, 64, 1.0, 0.47, 2.3),
             Tiles("query_gradient<small_queries_shape<64, false>", 64, 64, 1.4, 0.63, 2.3),
             Tiles("key_gradients<keys_shape<64, false>", 128, 64, 2.2, 2.0, 2.3)),
    # The first two were not measured: those without dropout and the instructions of its bits (Philox,
    # 250 of a warp for each tile) at the rate of a multiprocessor.
    "bf16, dropout": (Tiles("forward_tiles<small_forward_shape<64, true>", 64, 64, 1.3, 0.78, 2.3),
                      Tiles("query_gradient<small_queries_shape<64, true>", 64, 64, 1.7, 0.84),
                      Tiles("key_gradients<keys_shape<64, true>", 128, 64, 3.6, 3.3)),
    "f32": (Tiles("forward_tiles<tf32_forward_shape<64>", 128, 32, 3.2, 3.1),
            Tiles("query_gradient<tf32_queries_shape<64>", 128, 32, 4.2, 4.1),
            Tiles("key_gradients<tf32_keys_shape<64>", 64, 32, 4.2, 2.3)),
}
OPEN = 2 # tiles that the start and the end of a block take
# Composed attention: a share of the CUDA cores' peak, and microseconds for a key that a block reads.
COMPOSED, KEY = 0.095, 0.46

WIDTH = {"f32": 4, "tf32": 4, "bf16": 2} # bytes of a number
Kernel = collections.namedtuple("Kernel", "bytes flops rate longest", defaults=(0, "f32", 0))


def seconds(device, kernels, gap):
    return sum(START + gap + math.hypot(k.bytes / (device.memory * SHARE["memory"]), k.longest,
                                        k.flops / (getattr(device, k.rate) * SHARE[k.rate]))
               for k in kernels)


def in_graph(device, kernels):
    return seconds(device, kernels, GRAPH_GAP)


def eager(device, kernels, opening):
    return opening + max(seconds(device, kernels, EAGER_GAP), HOST * len(kernels))


def product(m, n, k, kind, count=1):
    """A product of cuBLAS, or a batch of them; few blocks of C leave multiprocessors idle."""
    costs = []
    for tile, cost in TILES:
        blocks = count * math.ceil(m / tile) * math.ceil(n / tile)
        idle = math.ceil(blocks / PROCESSORS) * PROCESSORS / blocks
        # Long sums are split over the idle ones, down to 256 terms each.
        costs.append(cost * max(1, idle / max(1, min(k // 256, int(idle)))))
    numbers, flops = m * k + k * n + m * n, 2 * m * n * k
    return Kernel(count * WIDTH[kind] * numbers, count * flops * min(costs), kind)


def passes(elements, width, count):
    """A kernel that reads or writes so many arrays of this size."""
    return Kernel(elements * width * count)


# ---- Operations: the kernels of forward and of backward, as traced on the emulator

def norm(rows, width, C, residual):
    n = rows * C
    return [passes(n, width, 4 if residual else 2)], [passes(n, width, 5 if residual else 3),
                                                      passes(C * rows / 64, 4, 2)]


def linear(rows, k, n, kind, count=1):
    """Or a group of them (ops/linear_group.c), which adds to dx one after the other."""
    return [product(rows, n, k, kind, count)], [
        passes(count * rows * n, WIDTH[kind], 1), passes(count * n * rows / 64, 4, 1),
        *[product(rows, k, n, kind)] * count, product(n, k, rows, kind, count)]


def activation(elements, width):
    return [passes(elements, width, 2)], [passes(elements, width, 3)]


def dropout(elements, width):
    return [passes(elements, width, 3)], [passes(elements, width, 2)]


CAST_LIST = 64 # ops/cast.h


def casts(parameters):
    """bf16: parameters are cast in lists; products and norms sum their gradients in f32."""
    lists = [parameters[i:i + CAST_LIST] for i in range(0, len(parameters), CAST_LIST)]
    return [passes(sum(n), 6, 1) for n in lists], []


def visits(n, kept, tiles):
    """Tiles of the longest block and of all; each query keeps `kept` keys up to its own, or 0: all."""
    if not kept:
        longest = OPEN + math.ceil(n / tiles.columns)
        return longest, longest * math.ceil(n / tiles.rows)
    blocks = []
    for first in range(0, n, tiles.rows):
        begin, end = max(0, first - kept + 1), first + tiles.rows
        count = math.ceil(end / tiles.columns) - begin // tiles.columns
        whole = (first + 1) // tiles.columns - math.ceil(max(0, end - kept) / tiles.columns)
        blocks.append(OPEN + count + (tiles.cut - 1) * (count - max(0, whole)))
    return max(blocks), sum(blocks)


FEW_KEYS = 256 # cuda/attention_mma.cu: bf16 computes delta from products, by a kernel more


def tiled(heads, n, D, kept, way):
    kernels = []
    for tiles in TILED[way]:
        longest, total = visits(n, kept, tiles)
        time = math.hypot(longest * tiles.alone, heads * total / PROCESSORS * tiles.shared)
        kernels.append(Kernel(4 * WIDTH[way.split(",")[0]] * heads * n * D,
                              longest=1e-6 * time * max(D / 64, 0.5)))
    more = kernels[1:2] if way != "f32" and n <= FEW_KEYS else []
    return kernels[:1], more + kernels[1:]


def composed(heads, n, D, kept):
    """Weights are stored in f32, also those of masked pairs; a kernel for each product."""
    pairs, used = heads * n * n, heads * (n * n if not kept else kept * (n - kept / 2))
    values = Kernel(4 * pairs, 2 * D * used * SHARE["f32"] / COMPOSED, longest=1e-6 * KEY * (kept or n))
    scores = values._replace(longest=0)
    return [scores, passes(pairs, 4, 2), values], [scores, passes(pairs, 4, 4)] + [values] * 3


# ---- A training step

# name: width, heads, feed forward, layers, pairs, length, symbols
SIZES = {
    "toy": (64, 2, 128, 2, 64, 16, 64),
    "usual": (128, 4, 512, 3, 64, 16, 64),
    "tiny": (128, 4, 256, 4, 64, 24, 10000),
    "base": (512, 8, 2048, 6, 16, 64, 8000),
    "base, 256 pairs": (512, 8, 2048, 6, 256, 64, 8000),
}
QUICK = (16, 2, 16, 1, 2, 8, 16)
QUICK_KERNELS = {"f32": 97, "bf16": 106} # of an eager step on the emulator, without products


def layer(size, crosses, kind):
    C, H, F, _, B, L, _ = size
    rows, norms, width = B * L, 2 + crosses, WIDTH[kind]
    ids = ([Kernel(4 * B)], []) # lengths of masks are checked
    parts = [norm(rows, width, C, i > 0) for i in range(norms)]
    if not crosses:
        parts.append(ids)
    for cross in range(1 + crosses):
        groups = [1, 2] if cross else [3] # queries, keys and values
        parts += [linear(rows, C, C, kind, n) for n in groups + [1]]
        parts.append(tiled(B * H, L, C // H, 0, "f32" if width == 4 else "bf16, dropout"))
        if cross:
            parts.append(ids)
    parts += [linear(rows, C, F, kind), activation(rows * F, width), linear(rows, F, C, kind),
              dropout(rows * C, width)]
    return parts


def rounded(size, crosses):
    """The sizes of a layer's parameters."""
    C, _, F, *_ = size
    weights = [C * C] * 4 * (1 + crosses) + [C * F] * 2
    return weights + [C] * (len(weights) + 2 * (2 + crosses))


def embedding(rows, C):
    n = rows * C
    forward = [Kernel(4 * rows)] + [passes(n, 4, 2)] * 4
    return forward, [passes(n, 4, 2)] * 3 + [Kernel(4 * rows), Kernel(8 * rows), passes(n, 4, 2)]


def loss(rows, C, V, kind):
    logits, width = rows * V, WIDTH[kind]
    forward = [Kernel(4 * rows), Kernel(4), product(rows, V, C, kind), passes(logits, width, 1),
               passes(logits, width, 2), passes(logits, width, 1), passes(V * rows / 64, 4, 1),
               product(rows, C, V, kind), product(V, C, rows, kind), Kernel(8 * rows)]
    return forward, [Kernel(8), passes(rows * C, 4, 2), passes(V * C, 4, 2), passes(V, 4, 2)]


def step(size, kind):
    """All kernels of a step; Adam reads and writes 28 bytes a parameter."""
    C, _, F, layers, B, L, V = size
    rows = B * L
    parts = [embedding(rows, C), norm(rows, WIDTH[kind], C, False)] * 2 + [loss(rows, C, V, kind)]
    parts += (layer(size, False, kind) + layer(size, True, kind)) * layers
    if kind == "bf16":
        parts.append(([Kernel(6 * rows * C)] * 4, [Kernel(6 * rows * C)])) # casts of activations
        parts.append(casts((rounded(size, False) + rounded(size, True)) * layers + [C] * 4 + [V * C]))
    parameters = layers * (12 * C * C + 4 * C * F) + 2 * V * C
    return [k for part in parts for k in part[0] + part[1]] + [Kernel(4 * parameters),
                                                               Kernel(28 * parameters)]


def train_rows(device):
    for name, size in SIZES.items():
        for kind in "f32", "tf32", "bf16":
            kernels = step(size, kind)
            yield ("train", name, kind), in_graph(device, kernels)
            if kind != "tf32":
                yield ("train", name, kind + ", no graph"), eager(device, kernels, STEP)


# ---- The other rows

OPERATIONS = { # rows, columns; passes of each kernel of forward and backward
    "softmax": (8192, 8192, (2, 3)),
    "layer norm": (65536, 1024, (2, 3)),
    "cross entropy": (2048, 32768, (1, 2)),
}
ADAM = 1 << 26
# length, heads, kind, dropout, composed too; as in program/bench/rows.c
ATTENTION = [(n, 8, kind, 0, n == 4096 or (kind == "full" and n < 8192))
             for n in (512, 1024, 2048, 4096, 8192, 16384) for kind in ("full", "causal", "window")
             if kind != "window" or n >= 4096]
ATTENTION += [(4096, 8, "full", 0.1, True), (4096, 1, "full", 0, True)]
WINDOW = 256
# Kernels of a decoding step without a graph: 4 layers of about 21, embedding and output.
DECODING, DECODED_BYTES = 94, 4 * (4 * (8 * 128 * 128 + 2 * 128 * 256) + 2 * 128 * 64)


def attention_rows(device):
    for n, heads, mask, p, stored in ATTENTION:
        name = f"{mask} {n} x {heads}" + (", dropout" if p else "")
        kept = {"full": 0, "causal": n, "window": WINDOW}[mask]
        for kind in "f32", "bf16":
            way = "bf16, dropout" if p and kind == "bf16" else kind
            kernels = sum(tiled(heads, n, 64, kept, way), [])
            yield ("attention", name, kind + ", tiled"), eager(device, kernels, OPERATION)
            if stored:
                kernels = sum(composed(heads, n, 64, kept), [])
                yield ("attention", name, kind + ", composed"), eager(device, kernels, OPERATION)


def operation_rows(device):
    for name, (rows, columns, counts) in OPERATIONS.items():
        for kind in "f32", "bf16":
            kernels = [passes(rows * columns, WIDTH[kind], count) for count in counts]
            yield ("operation", name, kind), eager(device, kernels, OPERATION)
    kernels = [Kernel(28 * ADAM), Kernel(4 * ADAM)]
    yield ("operation", "adam", "f32"), eager(device, kernels, OPERATION)


def decode_rows(device):
    time = eager(device, [Kernel(DECODED_BYTES / DECODING)] * DECODING, OPERATION)
    names = [f"with cache, t = {t}" for t in (1, 512)]
    names += [f"steps {t + 1} to {t + 64}" for t in range(0, 512, 64)]
    for name in names: # few bytes: launches decide
        yield ("decode", name, "f32"), time


def predictions(device):
    """(group, name, way): seconds."""
    rows = {}
    for part in train_rows, decode_rows, operation_rows, attention_rows:
        rows.update(part(device))
    return rows


def device_named(text):
    return next((d for d in DEVICES.values() if d.name in text), None)


# ---- Checks, for a machine without a GPU

def source(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def check():
    failed = []

    def expect(said, found, wanted):
        if found != wanted:
            failed.append(f"{said}: {found}, not {wanted}")

    for kind, count in QUICK_KERNELS.items():
        found = sum(not k.flops for k in step(QUICK, kind))
        expect(f"kernels of the quick step in {kind}", found, count)
    for name, (C, H, F, layers, B, L, V) in SIZES.items():
        weights = layers * (12 * C * C + 4 * C * F) + C * V
        work = sum(2 * m * n * k for m, n, k in shapes_of((C, H, F, layers, B, L, V)))
        expect(f"products of a step of {name}", work, 3 * 2 * B * L * weights)
    rows = re.sub(r'"\s+"', "", source("program/bench/rows.c")) # joins the parts of texts

    def expect_row(group, name, line, where):
        if not re.search(rf'\{{"{group}", "{name}",[^"]*"{line}",\s*{where}', rows):
            failed.append(f"program/bench/rows.c has no {group} {name} of {line}")

    for name, size in SIZES.items():
        keys = "width", "heads", "feed_forward", "layers", "pairs", "length", "symbols"
        line = " ".join(["seq2seq", *(f"{key}={value}" for key, value in zip(keys, size))])
        expect_row("train", name, line + r" tied=[01] dropout=0\.1", "(BOTH|GPU)")
    for name, (height, columns, _) in OPERATIONS.items():
        line = f"{name.replace(' ', '_')} rows={height} columns={columns}"
        expect_row("operation", name, line, "GPU")
    expect_row("operation", "adam", f"adam size={ADAM}", "GPU")
    for n, heads, kind, p, stored in ATTENTION:
        mask = {"full": "", "causal": " causal=1", "window": f" window={WINDOW}"}[kind]
        expect_row("attention", f"{kind} {n} x {heads}" + (", dropout" if p else ""),
                   f"attention n={n} heads={heads} size=64{mask}" + (f" dropout={p:g}" if p else ""),
                   r"(BOTH|GPU)" + (r"\s*\|\s*COMPOSED" if stored else r"(?!\s*\|\s*COMPOSED)"))
    for name, text in (("ops/cast.h", f"CAST_LIST = {CAST_LIST} }}"),
                       ("cuda/attention_mma.cu", f"a.Lk <= {FEW_KEYS} ")):
        if text not in source(name):
            failed.append(f"{name} has no {text}")
    compiled = source("tests/sass.tsv")
    failed += [f"tests/sass.tsv has no {tiles.kernel}" for way in TILED.values() for tiles in way
               if tiles.kernel not in compiled]
    for device in DEVICES.values():
        for row, time in predictions(device).items():
            if not 1e-6 < time < 1:
                failed.append(f"{row} on {device.name}: {time} s")
    twice = DEVICES["h100"]._replace(memory=2 * DEVICES["h100"].memory)
    half = seconds(twice, [Kernel(1e12)], 0) / seconds(DEVICES["h100"], [Kernel(1e12)], 0)
    expect("time with twice the bandwidth", round(half, 4), 0.5)
    return failed


def shapes_of(size):
    """The products of a step by cuBLAS, forward and backward."""
    C, _, F, layers, B, L, V = size
    rows = B * L
    one = [(rows, C, C)] * 12 + [(rows, F, C), (rows, C, F)] * 2
    for m, n, k in one * layers + [(rows, V, C)]:
        yield from ((m, n, k), (m, k, n), (n, k, m))


# ---- Output

def measured_rows(path):
    """Lines of softback bench --tabs: group, name, way, seconds. And the device's name."""
    rows, name = {}, ""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) >= 4 and fields[0] != "limit":
                rows[tuple(fields[:3])] = float(fields[3])
            elif fields[0] == "device":
                name = fields[-1]
    return rows, name


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=DEVICES, help="h100, unless FILE names another")
    parser.add_argument("--measured", metavar="FILE", help="the output of softback bench --tabs")
    parser.add_argument("--check", action="store_true", help="compare the model with the sources")
    given = parser.parse_args()
    if given.check:
        failed = check()
        print("\n".join(failed + [f"gpu_model: {len(failed)} problems"]))
        return 1 if failed else 0
    measured, name = measured_rows(given.measured) if given.measured else ({}, "")
    device = DEVICES[given.device] if given.device else device_named(name) or DEVICES["h100"]
    ratios = []
    for row, time in predictions(device).items():
        text = f"{row[0]:<10} {row[1]:<26} {row[2]:<16} {1e3 * time:>10.3f} ms"
        if row in measured:
            ratios.append(measured[row] / time)
            text += f" {1e3 * measured[row]:>10.3f} ms {ratios[-1]:>6.2f} x"
        print(text)
    beyond = sum(not 1 / LIMIT <= ratio <= LIMIT for ratio in ratios)
    if given.measured:
        print(f"gpu_model: {beyond} of {len(ratios)} rows on an {device.name} are beyond {LIMIT} times")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
