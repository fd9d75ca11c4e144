#!/usr/bin/env python3
"""How long a model of GPT-2's size (124 million weights, seeded) takes to load, and how much memory it needs:

    python3 python/tests/pretrained/speed.py

Prints the time of loading as a multiple of that of reading the file into memory, the least of several of each, one after
the other, each in a process of its own; and the resident memory of the process that has loaded it, as a multiple of the
file. Exits with 1 above 1.5 and 1.2.
"""
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

V, C, N, L = 50257, 768, 1024, 12
RUNS = 9

READ = """
import sys, time
import numpy as np
began = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    read = file.read()
print(time.perf_counter() - began)
"""
LOAD = """
import sys, time
import softback as sb
began = time.perf_counter()
model = sb.from_pretrained(sys.argv[1])
print(time.perf_counter() - began)
with open("/proc/self/status") as file:
    print(next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS")))
    file.seek(0)
    print(next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")))
"""


def shapes():
    yield "wte.weight", (V, C)
    yield "wpe.weight", (N, C)
    for i in range(L):
        for name, shape in (("ln_1.weight", (C,)), ("ln_1.bias", (C,)), ("attn.c_attn.weight", (C, 3 * C)), ("attn.c_attn.bias", (3 * C,)),
                            ("attn.c_proj.weight", (C, C)), ("attn.c_proj.bias", (C,)), ("ln_2.weight", (C,)), ("ln_2.bias", (C,)),
                            ("mlp.c_fc.weight", (C, 4 * C)), ("mlp.c_fc.bias", (4 * C,)), ("mlp.c_proj.weight", (4 * C, C)), ("mlp.c_proj.bias", (C,))):
            yield f"h.{i}.{name}", shape
    yield "ln_f.weight", (C,)
    yield "ln_f.bias", (C,)


def make(folder):
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "bos_token_id": V - 1, "eos_token_id": V - 1}
    (folder / "config.json").write_text(json.dumps(config))
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes():
        header["transformer." + name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * int(np.prod(shape))]}
        at += 4 * int(np.prod(shape))
    text, random = json.dumps(header).encode(), np.random.default_rng(1)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, shape in shapes():
            file.write((random.standard_normal(shape, "f4") * 0.02).tobytes())


def run(program, path):
    return [float(x) for x in subprocess.run([sys.executable, "-c", program, str(path)], check=True, capture_output=True, text=True).stdout.split()]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        path = folder / "model.safetensors"
        read, loaded = [], []
        for _ in range(RUNS):
            read.append(run(READ, path)[0])
            loaded.append(run(LOAD, folder))
        size, seconds = path.stat().st_size, min(x[0] for x in loaded)
        memory, most = (statistics.median(x[i] for x in loaded) / size for i in (1, 2))
        times = seconds / min(read)
        print(f"{size / 1e6:.0f} MB: read in {min(read):.2f} s, loaded in {seconds:.2f} s, {times:.2f} times that; "
              f"resident {memory:.2f} times the file, at most {most:.2f}")
        return 0 if times <= 1.5 and most <= 1.2 else 1


if __name__ == "__main__":
    sys.exit(main())
