"""The rows that the scripts here measure: those of `softback bench --rows`, with the work that every
library must do."""
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
