"""The rows of tests/bench/compare.py, with the work that every library must do."""
from dataclasses import dataclass

TORCH = ["torch", "tuned"]
DECODERS = ["ctranslate2", "softback_int8", "ctranslate2_int8"]
TRAINING = TORCH + ["bf16", "compiled", "softback_bf16"]


@dataclass
class Row:
    name: str
    kind: str  # of job that workers open
    sizes: dict
    peers: list
    flop: float = 0.0  # of a step; its time is compared with the FMA peak,
    bytes: float = 0.0  # or, if this is given, with a copy
    working_set: float = 0.0  # bytes, for the size of that copy
    tokens: float = 0.0  # decoded by a step
    twin: str = ""  # the row without dropout, whose losses show that this one computes the same

    def line(self):
        """The job, as the line "open" names it."""
        return self.kind + "".join(f" {key}={value}" for key, value in self.sizes.items())


# name: width, heads, feed forward, layers on each side, pairs, length, symbols, output tied
MODELS = {
    "toy": (64, 2, 128, 2, 64, 16, 64, 0),
    "tiny": (128, 4, 256, 4, 64, 24, 10000, 1),
    "base": (512, 8, 2048, 6, 16, 64, 8000, 1),
}
QUICK_MODELS = {"quick": (16, 2, 32, 1, 4, 8, 32, 1)}
KEYS = "width", "heads", "feed_forward", "layers", "pairs", "length", "symbols"

GPT2 = (768, 12, 3072, 12, 4, 64, 50304)
QUICK_GPT2 = (16, 2, 32, 1, 2, 8, 32)

ATTENTION = [512, 1024, 2048, 4096, 8192, 16384]
QUICK_ATTENTION = [64]


def weights(sizes):
    """Elements of the matrices of an encoder's and a decoder's layer, and of the output."""
    C, F = sizes["width"], sizes["feed_forward"]
    return 4 * C * C + 2 * C * F, 8 * C * C + 2 * C * F, C * sizes["symbols"]


def training_flop(kind, sizes):
    """3 times those of forward: 2 for each weight and position, 4 C for each pair of positions."""
    C, L, N = sizes["width"], sizes["length"], sizes["layers"]
    encoder, decoder, output = weights(sizes)
    layers = encoder if kind == "language_model" else encoder + decoder
    attentions = 1 if kind == "language_model" else 3
    return 3 * sizes["pairs"] * L * (2 * (N * layers + output) + attentions * N * 4 * C * L)


def training_rows(quick):
    for name, values in (QUICK_MODELS if quick else MODELS).items():
        for dropout in 0, 0.1:
            sizes = dict(zip(KEYS, values), tied=values[7], dropout=dropout)
            yield Row(f"train {name}" + (", dropout" if dropout else ""), "seq2seq", sizes,
                      TRAINING + ["jax"], flop=training_flop("seq2seq", sizes),
                      twin=f"train {name}" if dropout else "")
    sizes = dict(zip(KEYS, QUICK_GPT2 if quick else GPT2), positions=1024, dropout=0)
    yield Row("train GPT-2 124M", "language_model", sizes, TRAINING,
              flop=training_flop("language_model", sizes))


def attention_rows(quick):
    heads, size = (2, 32) if quick else (8, 64)
    for n in QUICK_ATTENTION if quick else ATTENTION:
        for causal in 0, 1:
            pairs = n * (n + 1) / 2 if causal else n * n
            yield Row(f"attention {'causal' if causal else 'full'} {n}", "attention",
                      dict(n=n, heads=heads, size=size, causal=causal), TORCH,
                      flop=12 * size * heads * pairs)


def operation_rows(quick):
    """Bytes are float32 elements that a step must read and write: softmax and layer norm x, y, then
    one of them, dy and dx; cross entropy x twice and dx; Adam 7 numbers for each parameter."""
    for name, rows, columns, passes, matrices in (("softmax", 1024, 8192, 5, 4),
                                                  ("layer_norm", 8192, 1024, 5, 4),
                                                  ("cross_entropy", 1536, 10000, 3, 2)):
        rows, columns = (8, 64) if quick else (rows, columns)
        yield Row(f"{name.replace('_', ' ')} {rows} x {columns}", name,
                  dict(rows=rows, columns=columns), TORCH, bytes=4.0 * passes * rows * columns,
                  working_set=4.0 * matrices * rows * columns)
    n = 1000 if quick else 10_000_000
    yield Row(f"adam {n:,}", "adam", dict(size=n), TORCH, bytes=28.0 * n, working_set=16.0 * n)


def decoding_rows(quick):
    """A step of one sequence reads all weights of the decoder; one of many computes more."""
    sizes = dict(width=128, heads=4, feed_forward=256, layers=4, symbols=10000, source=24,
                 target=64, dropout=0)
    if quick:
        sizes.update(width=16, feed_forward=32, layers=1, symbols=32, source=4, target=4)
    _, layer, output = weights(sizes)
    read = sizes["layers"] * layer + output
    for pairs in (1, 2) if quick else (1, 64):
        tokens = pairs * sizes["target"]
        yield Row(f"decode, batch {pairs}", "decoding", dict(sizes, pairs=pairs), DECODERS,
                  flop=2.0 * read * tokens, tokens=tokens, working_set=4.0 * read,
                  bytes=4.0 * read * tokens if pairs == 1 else 0)


def all_rows(quick):
    return [row for part in (training_rows, attention_rows, operation_rows, decoding_rows)
            for row in part(quick)]
