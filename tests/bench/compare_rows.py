"""The rows that the scripts here measure: those of `softback bench --rows`, with the work that every
library must do, and a lower bound of training steps."""
import subprocess
from dataclasses import dataclass, field, replace

TORCH = ["torch", "tuned"]
DECODERS = ["ctranslate2", "softback_int8", "ctranslate2_int8"]
TRAINING = TORCH + ["bf16", "compiled", "softback_bf16"]
PEERS = {"seq2seq": TRAINING + ["jax"], "language_model": TRAINING, "decoding": DECODERS}  # else TORCH


@dataclass
class Row:
    name: str
    kind: str = ""  # of job that workers open
    sizes: dict = field(default_factory=dict)
    flop: float = 0.0  # of a step; its time is compared with the FMA peak,
    bytes: float = 0.0  # or, if this is given, with a copy
    working_set: float = 0.0  # bytes, for the size of that copy
    tokens: float = 0.0  # decoded by a step
    where: tuple = ()  # "cpu", "gpu", "quick", "peers"
    twin: str = ""  # the row without dropout, whose losses show that this one computes the same

    @property
    def peers(self):
        return PEERS.get(self.kind, TORCH)

    def line(self):
        """The job, as the line "open" names it."""
        return self.kind + "".join(f" {key}={value}" for key, value in self.sizes.items())

    def resized(self, **sizes):
        return replace(self, sizes={**self.sizes, **sizes})


def row_of(group, name, line, flop, work, working_set, tokens, where):
    kind, *words = line.split()
    sizes = {key: float(value) if key == "dropout" else int(value)
             for key, value in (word.split("=") for word in words)}
    return Row(f"{group} {name}", kind, sizes, float(flop), float(work), float(working_set),
               float(tokens) if group == "decode" else 0.0, tuple(where.split()))


def listed(program):
    """All rows of the program `softback`."""
    done = subprocess.run([program, "bench", "--rows"], check=True, stdout=subprocess.PIPE, text=True)
    return [row_of(*line.split("\t")) for line in done.stdout.splitlines()]


def all_rows(program, quick):
    """Those of compare.py; one with dropout follows the same one without, which can be checked."""
    rows = []
    for row in listed(program):
        if "peers" not in row.where or ("quick" in row.where) != quick:
            continue
        if row.kind == "seq2seq" and row.sizes["dropout"]:
            rows.append(replace(row.resized(dropout=0), name=row.name + ", no dropout"))
            row.twin = rows[-1].name
        rows.append(row)
    return rows


# ---- a lower bound for each training step ----
#
# Its time if each part ran at the best rate measured for such a part in the same run. It depends only
# on the model's shapes.
#
# products   each at the best rate of any product that softback can link, for its shape and transpose.
#            Forward is x W', backward dy W and dy' x; projections that read the same x are one.
# attention  six products over the pairs of positions, at the peak of multiply-adds
# passes     PASSES below, every input read once and every output written once, at the rate of a copy
#            of as many bytes
# adam       28 bytes a parameter, at the rate of a copy of four times the parameters
# dropout    16 bits an element, drawn in forward and again in backward, at the measured rate

# Matrices that are read and written in forward + backward.
PASSES = {
    "norm": 2 + 3,  # x, y; x, dy, dx
    "residual": 3 + 2,  # x, branch, sum; dsum, dbranch
    "activation": 2 + 3,  # h, y; h, dy, dh
    "embedding": 2 + 3,  # rows of the table, x; dx, rows of its gradient read and written
    "cross_entropy": 2,  # logits, overwritten by their gradient
}


def stacks(row):
    """Of each stack of layers: attentions with the fraction of unmasked pairs, and whether they are
    cross-attention."""
    if row.kind == "language_model":
        return [[(causal(row), False)]]
    return [[(1.0, False)], [(causal(row), False), (1.0, True)]]


def causal(row):
    L = row.sizes["length"]
    return (L + 1) / (2 * L)


def products(row):
    """(m, n, k) of each forward product x W', and their numbers."""
    C, F, V = (row.sizes[key] for key in ("width", "feed_forward", "symbols"))
    R = row.sizes["pairs"] * row.sizes["length"]
    found = [(R, V, C)]
    for stack in stacks(row):
        for _ in range(row.sizes["layers"]):
            for _, crosses in stack:
                found += [(R, C, C), (R, 2 * C, C)] if crosses else [(R, 3 * C, C)]
                found.append((R, C, C))
            found += [(R, F, C), (R, C, F)]
    return {shape: found.count(shape) for shape in found}


def passes(row):
    """Elements of the matrices of each kind of pass."""
    C, F, V = (row.sizes[key] for key in ("width", "feed_forward", "symbols"))
    R, N = row.sizes["pairs"] * row.sizes["length"], row.sizes["layers"]
    for stack in stacks(row):
        parts = len(stack) + 1
        yield "embedding", R * C, 1
        yield "norm", R * C, N * parts + 1
        yield "residual", R * C, N * parts
        yield "activation", R * F, N
    yield "cross_entropy", R * V, 1


def dropped(row):
    """Elements of dropout in forward: of embeddings, branches and attention weights."""
    s = row.sizes
    R, N = s["pairs"] * s["length"], s["layers"]
    total = 0.0
    for stack in stacks(row):
        total += R * s["width"] * (1 + N * (len(stack) + 1))
        total += sum(N * R * s["length"] * s["heads"] * seen for seen, _ in stack)
    return total if s["dropout"] else 0.0


def parameters(row):
    s = row.sizes
    C, F, V, N = s["width"], s["feed_forward"], s["symbols"], s["layers"]
    total = V if s.get("tied", 1) else V * C + V
    for stack in stacks(row):
        attention = len(stack) * (4 * C * C + 4 * C + 2 * C)
        total += V * C + 2 * C + N * (attention + 2 * C * F + F + C + 2 * C)
    return total + s.get("positions", 0) * C


def bound(row, rate):
    """Seconds of each part, and the rates of its products. rate(words) asks softback's worker."""
    s = row.sizes
    R = s["pairs"] * s["length"]
    parts = dict.fromkeys(("products", "attention", "passes", "adam", "dropout"), 0.0)
    rates = {}
    for (m, n, k), count in products(row).items():
        for shape in (m, n, k, 0, 1), (m, k, n, 0, 0), (n, k, m, 1, 0):
            words = "gemm " + " ".join(map(str, shape))
            rates[words] = rate(words)
            parts["products"] += count * 2.0 * m * n * k / rates[words]
    seen = sum(share for stack in stacks(row) for share, _ in stack)
    parts["attention"] = 12.0 * R * s["length"] * seen * s["layers"] * s["width"] / rate("fma")
    for kind, elements, count in passes(row):
        read_and_written = 4.0 * PASSES[kind] * elements
        parts["passes"] += count * read_and_written / copy_rate(rate, read_and_written)
    numbers = parameters(row)
    parts["adam"] = 28.0 * numbers / copy_rate(rate, 16.0 * numbers)
    if s["dropout"]:
        parts["dropout"] = dropped(row) / rate("philox")  # half a word each, twice
    return {"seconds": sum(parts.values()), "parts": parts, "products": rates}


def copy_rate(rate, size):
    """Of a copy whose source and target have this size together, rounded down to a power of two, so
    that similar sizes are measured once."""
    return rate(f"copy {1 << max(13, round(size).bit_length() - 1)}")
