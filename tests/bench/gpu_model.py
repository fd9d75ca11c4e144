#!/usr/bin/env python3
"""Predicts the rows of `softback bench --device cuda`, and so of ./run gpu, on an H100 or H200:

    python3 tests/bench/gpu_model.py [--device h100|h200]
    python3 tests/bench/gpu_model.py --measured LOG     beside the rows of softback bench --tabs
    python3 tests/bench/gpu_model.py --check            the model agrees with the sources; no GPU needed
    python3 tests/bench/gpu_model.py --tried            kernels that were not written, since they gain nothing

A roofline. A kernel takes the longest of three times: memory moves its bytes, cores multiply, the
schedulers issue its instructions; and never less than FLOOR. Then the next one starts after a gap: of
the device in a graph, of the host without one. The numbers below are of three kinds: peaks of the
device (data sheets), counts (disassembly, tests/sass.py; kernels on the emulator), and shares of the
peaks that good kernels reach, which are assumptions. A row that is measured far from its prediction
shows which of them is wrong.
"""
import argparse
import collections
import math
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# SXM modules: NVIDIA H100 Tensor Core GPU Architecture (2022), table 3, and the data sheet of H200
# (2023). Multiprocessors, clock, bytes/s, and dense FLOP/s of tensor cores in bf16 and of CUDA cores.
Device = collections.namedtuple("Device", "name processors clock memory bf16 f32")
PROCESSORS = 132
DEVICES = {
    "h100": Device("H100", PROCESSORS, 1.83e9, 3.35e12, 989.4e12, 66.9e12),
    "h200": Device("H200", PROCESSORS, 1.83e9, 4.8e12, 989.4e12, 66.9e12),
}

# Assumed shares of the peaks.
COPY = 0.90      # of memory bandwidth, by a large copy
CUBLAS = {"bf16": 0.70, "f32": 0.80}  # by large products; bf16 is limited by power
MMA_SYNC = 0.62  # of the tensor cores' peak without wgmma (Luo et al. 2024, arXiv:2402.13499)
ISSUE = 0.60     # of the issue slots with two warps a scheduler, as attention has
TILES = (128, 1.0), (64, 1.4), (32, 2.0)  # of C for a block of cuBLAS, and the cost of small ones

# Assumed seconds: the shortest kernel, from one kernel to the next in a graph, and of the host for
# each kernel without one.
FLOOR, GRAPH_GAP, HOST_GAP = 2.0e-6, 0.7e-6, 4.0e-6

# Instructions of a warp for a tile, heads of 64: the shortest way through the tile loop
# (tests/sass.py), with both halves of a tile for dq and for dk and dv. Warps of a block, the rows that
# it owns, and the rows of a tile.
WARPS, OWNED, STREAMED = 4, 128, 64
FORWARD, QUERIES, KEYS = 729, 866, 1213
# The same of float as 3xTF32, for tiles of 32 rows; a block of keys owns 64. Forward's was counted by
# hand: 590 for scores, 550 for p, 600 for y, 360 of the loop.
TF32_STREAMED, TF32_KEYS_OWNED = 32, 64
TF32_FORWARD, TF32_QUERIES, TF32_KEYS = 2100, 2571, 2575
DROPOUT = 1.5    # with Philox's ten rounds for each eight pairs

# Float attention on CUDA cores: of a multiprocessor's cycles for each 32 multiply-adds of a warp that
# are not spent on loads from shared memory (40 and 14 LDS in the inner loops).
SCORES, VALUES = 8 / 40, 8 / 14

Kernel = collections.namedtuple("Kernel", "bytes flops rate issued", defaults=(0, "f32", 0))


def seconds(device, kernels, gap):
    return sum(max(FLOOR, k.bytes / (device.memory * COPY), k.flops / rate(device, k.rate),
                   k.issued / (device.processors * 4 * device.clock * ISSUE)) + gap for k in kernels)


def in_graph(device, kernels):
    return seconds(device, kernels, GRAPH_GAP)


def eager(device, kernels):
    """The host queues ahead of the device, or the device waits for it."""
    return max(in_graph(device, kernels), HOST_GAP * len(kernels))


def rate(device, name):
    return {"mma": device.bf16 * MMA_SYNC, "tf32": device.bf16 / 2 * MMA_SYNC,
            "scores": device.f32 * SCORES, "values": device.f32 * VALUES}.get(name) or getattr(device, name) * CUBLAS[name]


def product(m, n, k, width, count=1):
    """A product of cuBLAS, or a batch of them; few blocks of C leave multiprocessors idle."""
    costs = []
    for tile, cost in TILES:
        blocks = count * math.ceil(m / tile) * math.ceil(n / tile)
        idle = math.ceil(blocks / PROCESSORS) * PROCESSORS / blocks
        # Long sums are split over the idle ones, down to 256 terms each.
        costs.append(cost * max(1, idle / max(1, min(k // 256, int(idle)))))
    return Kernel(count * width * (m * k + k * n + m * n), 2 * count * m * n * k * min(costs),
                  name_of(width))


def name_of(width):
    return "bf16" if width == 2 else "f32"


def passes(elements, width, count):
    """A kernel that reads or writes so many arrays of this size."""
    return Kernel(elements * width * count)


# ---- Operations: the kernels of forward and of backward, as traced on the emulator

def norm(rows, width, C, residual):
    n = rows * C
    return [passes(n, width, 4 if residual else 2)], [passes(n, width, 5 if residual else 3),
                                                     passes(C * rows / 64, 4, 2)]


def linear(rows, k, n, width, count=1):
    """Or a group of them (ops/linear_group.c), which adds to dx one after the other."""
    return [product(rows, n, k, width, count)], [
        passes(count * rows * n, width, 1), passes(count * n * rows / 64, 4, 1),
        *[product(rows, k, n, width)] * count, product(n, k, rows, width, count)]


def activation(elements, width):
    return [passes(elements, width, 2)], [passes(elements, width, 3)]


def dropout(elements, width):
    return [passes(elements, width, 3)], [passes(elements, width, 2)]


CAST_LIST = 64  # ops/cast.h


def casts(parameters):
    """bf16: parameters are cast in lists, their gradients back."""
    lists = [parameters[i:i + CAST_LIST] for i in range(0, len(parameters), CAST_LIST)]
    return [passes(sum(n), 6, 1) for n in lists], [passes(sum(n), 6, 1) for n in lists]


def attention(B, H, Lq, Lk, D, width, dropped):
    """In a model: composed for f32 with few pairs, tiled for bf16. Pairs are products of heads."""
    pairs = B * H * Lq * Lk
    if width == 2:
        return tiled(B * H, Lq, Lk, D, 1.0, dropped, width)
    return composed(pairs, D)


def composed(pairs, D):
    """Weights are stored; a kernel for each product, in float."""
    work = 2 * pairs * D
    steps = [Kernel(4 * pairs, work, "scores"), passes(pairs, 4, 2),
             Kernel(4 * pairs, work, "values")]
    return steps, [Kernel(4 * pairs, work, "scores"), passes(pairs, 4, 4)] + [
        Kernel(4 * pairs, work, "values")] * 3


def tiled(heads, Lq, Lk, D, kept, dropped, width):
    """`kept`: the share of pairs in tiles that the mask does not skip."""
    n, pairs = heads * (Lq + Lk) * D, heads * Lq * Lk * kept
    read = 2 * width * n
    if width == 2:
        tiles = heads * math.ceil(Lq / OWNED) * math.ceil(Lk / STREAMED) * kept
        issued = tiles * WARPS * max(D / 64, 0.5) * (DROPOUT if dropped else 1)
        work = tiles * OWNED * STREAMED * D * 2
        return [Kernel(read, 2 * work, "mma", issued * FORWARD)], [
            Kernel(read, 0), Kernel(read, 3 * work, "mma", issued * QUERIES),
            Kernel(read, 4 * work, "mma", issued * KEYS)]
    work = 2 * pairs * D * (1.2 if dropped else 1)

    def both(scores, values):
        cost = work * (scores / SCORES + values / VALUES) / (1 / SCORES)
        return Kernel(read, cost, "scores")

    return [both(1, 1)], [Kernel(read, 0), both(2, 1), both(2, 2)]


def tf32x3(heads, Lq, Lk, D, kept, dropped):
    """Tiles of float on tensor cores: each product is three."""
    n, pairs = heads * (Lq + Lk) * D, heads * Lq * Lk * kept

    def kernel(products, owned, instructions):
        issued = pairs / (owned * TF32_STREAMED) * WARPS * instructions * max(D / 64, 0.5)
        return Kernel(8 * n, 3 * products * 2 * pairs * D, "tf32", issued * (DROPOUT if dropped else 1))

    return [kernel(2, OWNED, TF32_FORWARD)], [Kernel(8 * n, 0), kernel(3, OWNED, TF32_QUERIES),
                                              kernel(4, TF32_KEYS_OWNED, TF32_KEYS)]


def one_backward(heads, Lq, Lk, D):
    """bf16's backward as one kernel with 5 products instead of 7, which was not written: a block of
    keys stores its terms of dq in f32, and a second kernel adds them in order. At least: to dk and dv
    it adds a product, ds and the operands of that product in shared memory, and the stores."""
    tiles = heads * math.ceil(Lq / STREAMED) * math.ceil(Lk / OWNED)
    products, operands, stores = 64, 32 + 48, 2 * 16
    issued = tiles * WARPS * max(D / 64, 0.5) * (KEYS + products + operands + stores)
    terms = 4 * heads * Lq * D * math.ceil(Lk / OWNED)
    n = heads * (Lq + Lk) * D
    return [Kernel(4 * n, 0), Kernel(6 * n + terms, 5 * 2 * tiles * OWNED * STREAMED * D, "mma", issued),
            Kernel(terms + 2 * heads * Lq * D)]


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
QUICK_KERNELS = 112  # of an eager f32 step, counted on the emulator, without products


def layer(size, crosses, width):
    C, H, F, _, B, L, _ = size
    rows, norms = B * L, 2 + crosses
    ids = ([Kernel(4 * B)], [])  # lengths of masks are checked
    parts = [norm(rows, width, C, i > 0) for i in range(norms)]
    if not crosses:
        parts.append(ids)
    for cross in range(1 + crosses):
        groups = [1, 2] if cross else [3] # queries, keys and values
        parts += [linear(rows, C, C, width, n) for n in groups + [1]]
        parts.append(attention(B, H, L, L, C // H, width, True))
        if cross:
            parts.append(ids)
    parts += [linear(rows, C, F, width), activation(rows * F, width), linear(rows, F, C, width),
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


def loss(rows, C, V, width):
    logits = rows * V
    forward = [Kernel(4 * rows), Kernel(4), product(rows, V, C, width)._replace(
        bytes=width * (rows * C + C * V) + 4 * logits), Kernel(4 * logits),
        Kernel((4 + width) * logits), Kernel(width * logits), passes(V * rows / 64, 4, 1),
        product(rows, C, V, width), product(V, C, rows, width), Kernel(8 * rows)]
    return forward, [Kernel(8), passes(rows * C, 4, 2), passes(V * C, 4, 2), passes(V, 4, 2)]


def step(size, width):
    """All kernels of a step; Adam reads and writes 28 bytes a parameter."""
    C, _, F, layers, B, L, V = size
    rows = B * L
    parts = [embedding(rows, C), norm(rows, width, C, False)] * 2 + [loss(rows, C, V, width)]
    parts += (layer(size, False, width) + layer(size, True, width)) * layers
    if width == 2:
        parts.append(casts((rounded(size, False) + rounded(size, True)) * layers + [C] * 4 + [V * C]))
    parameters = layers * (12 * C * C + 4 * C * F) + 2 * V * C
    return [k for part in parts for k in part[0] + part[1]] + [Kernel(4 * parameters),
                                                               Kernel(28 * parameters)]


def products_of(kernels):
    return [k for k in kernels if k.rate in CUBLAS and k.flops]


def train_rows(device):
    for name, size in SIZES.items():
        for width, dtype in (4, "f32"), (2, "bf16"):
            kernels = step(size, width)
            yield ("train", name, dtype), in_graph(device, kernels)
            yield ("train", name, dtype + ", no graph"), eager(device, kernels)


# ---- The other rows

OPERATIONS = {  # rows, columns; passes of each kernel of forward and backward
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
# Kernels of a decoding step without a graph: 4 layers of about 26, embedding and output.
DECODING, DECODED_BYTES = 114, 4 * (4 * (8 * 128 * 128 + 2 * 128 * 256) + 2 * 128 * 64)


def kept_share(n, kind):
    """Of the pairs: those in tiles of OWNED x STREAMED that are not skipped."""
    if kind == "full":
        return 1.0
    across = n // STREAMED
    if kind == "causal":
        tiles = sum(min(across, (i + 1) * OWNED // STREAMED) for i in range(n // OWNED))
    else:
        tiles = sum(min(across, (i + 1) * OWNED // STREAMED) -
                    max(0, (i * OWNED - WINDOW + 1) // STREAMED) for i in range(n // OWNED))
    return tiles / (across * (n // OWNED))


def attention_rows(device):
    for n, heads, kind, p, stored in ATTENTION:
        name = f"{kind} {n} x {heads}" + (", dropout" if p else "")
        for width, dtype in (4, "f32"), (2, "bf16"):
            kernels = sum(tiled(heads, n, n, 64, kept_share(n, kind), p > 0, width), [])
            yield ("attention", name, dtype + ", tiled"), eager(device, kernels)
            kernels = sum(composed(heads * n * n * kept_share(n, kind), 64), [])
            if stored:
                yield ("attention", name, dtype + ", composed"), eager(device, kernels)
        kernels = sum(tf32x3(heads, n, n, 64, kept_share(n, kind), p > 0), [])
        yield ("attention", name, "tf32x3, tiled"), eager(device, kernels)


def operation_rows(device):
    for name, (rows, columns, counts) in OPERATIONS.items():
        for width, dtype in (4, "f32"), (2, "bf16"):
            kernels = [passes(rows * columns, width, count) for count in counts]
            yield ("operation", name, dtype), eager(device, kernels)
    yield ("operation", "adam", "f32"), eager(device, [Kernel(28 * ADAM), Kernel(4 * ADAM)])


def decode_rows(device):
    time = eager(device, [Kernel(DECODED_BYTES / DECODING)] * DECODING)
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

    kernels = step(QUICK, 4)
    expect("kernels of the quick step", len(kernels) - len(products_of(kernels)), QUICK_KERNELS)
    for name, (C, H, F, layers, B, L, V) in SIZES.items():
        weights = layers * (12 * C * C + 4 * C * F) + C * V
        work = sum(2 * m * n * k for m, n, k in shapes_of((C, H, F, layers, B, L, V)))
        expect(f"products of a step of {name}", work, 3 * 2 * B * L * weights)
    rows = re.sub(r'"\s+"', "", source("program/bench/rows.c"))  # joins the parts of texts

    def expect_row(group, name, line, where):
        if not re.search(rf'\{{"{group}", "{name}",[^"]*"{line}",\s*{where}', rows):
            failed.append(f"program/bench/rows.c has no {group} {name} of {line}")

    for name, size in SIZES.items():
        keys = "width", "heads", "feed_forward", "layers", "pairs", "length", "symbols"
        line = " ".join(["seq2seq", *(f"{key}={value}" for key, value in zip(keys, size))])
        expect_row("train", name, line + r" tied=[01] dropout=0\.1", "(BOTH|GPU)")
    for name, (height, columns, _) in OPERATIONS.items():
        expect_row("operation", name, f"{name.replace(' ', '_')} rows={height} columns={columns}", "GPU")
    expect_row("operation", "adam", f"adam size={ADAM}", "GPU")
    for n, heads, kind, p, stored in ATTENTION:
        mask = {"full": "", "causal": " causal=1", "window": f" window={WINDOW}"}[kind]
        expect_row("attention", f"{kind} {n} x {heads}" + (", dropout" if p else ""),
                   f"attention n={n} heads={heads} size=64{mask}" + (f" dropout={p:g}" if p else ""),
                   r"(BOTH|GPU)" + (r"\s*\|\s*COMPOSED" if stored else r"(?!\s*\|\s*COMPOSED)"))
    if f"CAST_LIST = {CAST_LIST} }}" not in source("ops/cast.h"):
        failed.append(f"ops/cast.h has no CAST_LIST of {CAST_LIST}")
    ceilings = source("tests/sass.tsv")
    if f"forward_tiles<forward_shape<64, false, false, false> >\t226\t{FORWARD}\n" not in ceilings:
        failed.append(f"tests/sass.tsv does not have {FORWARD} instructions for attention's forward")
    for kernel, count in (("query_gradient<tf32_queries_shape<64>, false>", TF32_QUERIES),
                          ("key_gradients<tf32_keys_shape<64>, 3>", TF32_KEYS)):
        if not re.search(rf"{re.escape(kernel)}\t\d+\t{count}\n", ceilings):
            failed.append(f"tests/sass.tsv does not have {count} instructions for {kernel}")
    for device in DEVICES.values():
        for row, time in predictions(device).items():
            if not 1e-6 < time < 1:
                failed.append(f"{row} on {device.name}: {time} s")
    copied = Device("twice", PROCESSORS, 1.83e9, 2 * 3.35e12, 989.4e12, 66.9e12)
    half = seconds(copied, [Kernel(1e9)], 0) / seconds(DEVICES["h100"], [Kernel(1e9)], 0)
    expect("time with twice the bandwidth", round(half, 6), 0.5)
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
    rows = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) >= 5 and fields[0] != "limit":
                rows[tuple(fields[:3])] = float(fields[3])
    return rows


def print_tried(device):
    print("backward of bf16 attention, 8 heads of 64: two kernels, one, ratio, bytes of terms of dq")
    for n in 512, 1024, 2048, 4096:
        now = seconds(device, tiled(8, n, n, 64, 1.0, False, 2)[1], GRAPH_GAP)
        one = seconds(device, one_backward(8, n, n, 64), GRAPH_GAP)
        terms = 4 * 8 * n * 64 * math.ceil(n / OWNED)
        print(f"{n:>6} {1e6 * now:>9.1f} us {1e6 * one:>9.1f} us {now / one:>6.2f} {terms / 1e6:>7.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=DEVICES, default="h100")
    parser.add_argument("--measured", metavar="LOG", help="the output of softback bench --tabs")
    parser.add_argument("--check", action="store_true", help="compare the model with the sources")
    parser.add_argument("--tried", action="store_true", help="what was computed but not written")
    given = parser.parse_args()
    if given.tried:
        print_tried(DEVICES[given.device])
        return 0
    if given.check:
        failed = check()
        print("\n".join(failed + [f"gpu_model: {len(failed)} problems"]))
        return 1 if failed else 0
    measured = measured_rows(given.measured) if given.measured else {}
    for row, time in predictions(DEVICES[given.device]).items():
        found = measured.get(row)
        print(f"{row[0]:<10} {row[1]:<26} {row[2]:<16} {1e3 * time:>10.3f} ms" +
              (f" {1e3 * found:>10.3f} ms {found / time:>6.2f} x" if found else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
