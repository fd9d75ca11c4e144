#!/usr/bin/env python3
"""Trains a language model with softback and with PyTorch: the same model (width 128, 4 layers,
context 128), initial weights, text, optimiser, schedule and number of steps; compares their losses on
text that neither was trained on.

    python3 tests/bench/language.py [--steps 3000] [--windows 32] [--seeds 1,2] [--threads 2]

The text is the user manual of Vim, of Debian's package vim-runtime, in characters; the last twentieth
is held out. softback trains as its program does. PyTorch's model is made of nn.TransformerEncoderLayer,
starts from the weights that softback starts from, and draws its own windows: each epoch cuts the text
into pieces of the context's length at another offset, in random order, as softback does. Both losses
are computed by `softback evaluate`, from a file of PyTorch's weights in softback's names.
"""
import argparse
import glob
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

TEXT = "/usr/share/vim/vim*/doc/usr_*.txt"
WIDTH, HEADS, LAYERS, CONTEXT, SPECIAL = 128, 4, 4, 128, 4
RATE, WARMUP, BETAS, EPSILON, CLIP = 0.024 / WIDTH ** 0.5, 200, (0.9, 0.98), 1e-9, 1.0


# ---- the text ----

def texts():
    """(to learn, held out)"""
    files = sorted(glob.glob(TEXT))
    if not files:
        sys.exit(f"no {TEXT}: install Debian's vim-runtime")
    text = "".join(open(f, encoding="utf-8").read() for f in files)
    cut = len(text) * 19 // 20
    return text[:cut], text[cut:]


# ---- softback ----

def softback(program, *arguments):
    run = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return run.stdout


def train_softback(program, folder, a, seed, out, **more):
    options = {"steps": a.steps, "evaluate-every": a.steps, "seed": seed, "threads": a.threads,
               "width": WIDTH, "heads": HEADS, "decoder-layers": LAYERS, "context": CONTEXT,
               "batch-pairs": a.windows, "batch-symbols": a.windows * CONTEXT, "dropout": 0,
               "warmup": min(WARMUP, a.steps // 10), **more}
    began = time.monotonic()
    softback(program, "train", "--model", "language", "--data", f"{folder}/learn.txt", "--valid",
             f"{folder}/held.txt", "--out", out, *(f"--{k}={v}" for k, v in options.items()))
    return time.monotonic() - began


def held_out_loss(program, folder, model):
    return json.loads(softback(program, "evaluate", model, "--data", f"{folder}/held.txt",
                               "--json"))["loss"]


# ---- PyTorch ----

def sinusoids(length, width):
    place = torch.arange(length, dtype=torch.float64)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(1e4) / width))
    table = torch.empty(length, width, dtype=torch.float64)
    table[:, 0::2], table[:, 1::2] = torch.sin(place * rate), torch.cos(place * rate)
    return table.float()


class LanguageModel(nn.Module):
    def __init__(self, symbols):
        super().__init__()
        self.embedding = nn.Embedding(symbols, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True,
                                       norm_first=True, activation="relu")
            for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, symbols)
        self.register_buffer("positions", sinusoids(CONTEXT, WIDTH), persistent=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT),
                             persistent=False)

    def forward(self, ids):
        L = ids.shape[1]
        x = self.embedding(ids) * WIDTH ** 0.5 + self.positions[:L]
        for layer in self.layers:
            x = layer(x, src_mask=self.mask[:L, :L], is_causal=True)
        return self.output(self.norm(x))

    def places(self):
        """softback's name of each tensor; q, k and v are thirds of one."""
        yield "decoder.embedding.weight", self.embedding.weight
        for i, layer in enumerate(self.layers):
            for kind in "weight", "bias":
                attention = f"decoder.layers.{i}.self_attention"
                packed = getattr(layer.self_attn, f"in_proj_{kind}")
                for part, name in enumerate(("query", "key", "value")):
                    yield f"{attention}.{name}.{kind}", packed[part * WIDTH:(part + 1) * WIDTH]
                for name, module in ((f"{attention}.output", layer.self_attn.out_proj),
                                     (f"decoder.layers.{i}.self_norm", layer.norm1),
                                     (f"decoder.layers.{i}.feed_norm", layer.norm2),
                                     (f"decoder.layers.{i}.feed_forward.up", layer.linear1),
                                     (f"decoder.layers.{i}.feed_forward.down", layer.linear2)):
                    yield f"{name}.{kind}", getattr(module, kind)
        for name, module in ("decoder.norm", self.norm), ("output", self.output):
            yield f"{name}.weight", module.weight
            yield f"{name}.bias", module.bias

    def load(self, file):
        places = dict(self.places())
        assert set(places) == set(file.keys()), set(places) ^ set(file.keys())
        with torch.no_grad():
            for name, place in places.items():
                place.copy_(file.get_tensor(name))


def epochs(ids, windows, random):
    """Batches (input, targets) without end; -1 is behind the end of a window."""
    while True:
        start = -int(torch.randint(CONTEXT, (), generator=random))
        cuts = [(max(at, 0), min(at + CONTEXT, len(ids) - 1))
                for at in range(start, len(ids) - 1, CONTEXT)]
        order = torch.randperm(len(cuts), generator=random).tolist()
        for first in range(0, len(order), windows):
            some = [cuts[i] for i in order[first:first + windows]]
            input = torch.zeros(len(some), CONTEXT, dtype=torch.int64)
            targets = torch.full((len(some), CONTEXT), -1)
            for b, (i, j) in enumerate(some):
                input[b, :j - i], targets[b, :j - i] = ids[i:j], ids[i + 1:j + 1]
            yield input, targets


def rate_at(step, steps):
    warmup = min(WARMUP, steps // 10)
    if step < warmup:
        return step / warmup
    return 0.5 * (1 + math.cos(math.pi * min(1, (step - warmup) / (steps - warmup))))


def train_torch(folder, a, seed, initial, out):
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    with safe_open(initial, "pt") as file:
        about = json.loads(file.metadata()["softback"])
        symbols = about["vocabularies"]["text"]["symbols"]
        model = LanguageModel(SPECIAL + len(symbols))
        model.load(file)
    id_of = {symbol: SPECIAL + i for i, symbol in enumerate(symbols)}
    ids = torch.tensor([id_of[c] for c in open(f"{folder}/learn.txt", encoding="utf-8").read()])
    adam = torch.optim.Adam(model.parameters(), lr=RATE, betas=BETAS, eps=EPSILON)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda n: rate_at(n + 1, a.steps))
    batches = epochs(ids, a.windows, random)
    began = time.monotonic()
    for _ in range(a.steps):
        input, targets = next(batches)
        loss = F.cross_entropy(model(input).flatten(0, 1), targets.flatten(), ignore_index=-1)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        adam.step()
        schedule.step()
    seconds = time.monotonic() - began
    for key in "fingerprint", "best":
        about.pop(key, None)
    save_file({name: place.detach().contiguous() for name, place in model.places()}, out,
              {"softback": json.dumps(about)})
    return seconds


# ---- both ----

def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/softback")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--windows", type=int, default=32)
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    learn, held = texts()
    print(f"{len(learn):,} characters to learn, {len(held):,} held out; {a.steps} steps of "
          f"{a.windows} windows; PyTorch {torch.__version__}\n")
    print("| seed | held-out loss: softback | PyTorch | minutes: softback | PyTorch |")
    print("|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in ("learn", learn), ("held", held):
            with open(f"{folder}/{name}.txt", "w", encoding="utf-8") as file:
                file.write(text)
        for seed in map(int, a.seeds.split(",")):
            own, initial, theirs = (os.path.join(folder, f"{name}{seed}.safetensors")
                                    for name in ("softback", "initial", "torch"))
            train_softback(a.program, folder, a, seed, initial, steps=1, warmup=0,
                           **{"evaluate-every": 1, "schedule": "constant", "learning-rate": 1e-30})
            seconds = train_softback(a.program, folder, a, seed, own)
            theirs_seconds = train_torch(folder, a, seed, initial, theirs)
            print(f"| {seed} | {held_out_loss(a.program, folder, own):.4f} | "
                  f"{held_out_loss(a.program, folder, theirs):.4f} | {seconds / 60:.1f} | "
                  f"{theirs_seconds / 60:.1f} |", flush=True)


if __name__ == "__main__":
    main()
