#!/usr/bin/env python3
"""The cost of data parallelism: measured here, and by a model for many machines.

    python3 tests/bench/ranks.py [--build BUILD] [--rounds N] [--quick]

Measured: training of the base model (d 512, 8 heads, feed-forward 2,048, 6 + 6 layers, 8,000
symbols), 16 pairs of 64 symbols a step, by one process of two threads and by two ranks of one
thread each, in turns. Both compute the same; the ranks also sum gradients, and print the part of
that time which backward does not hide, and each rank runs Adam over all weights.

By the model: every rank adds a batch (weak scaling). Each sends and
receives 2 (P - 1) / P of the gradient, in buckets, each of which takes 2 (P - 1) messages:

    sum(P) = buckets 2 (P - 1) latency + 2 (P - 1) / P bytes / bandwidth
    step(P) = step(1) + max(0, sum(P) - hidden),   hidden = the time of backward, 60 % of a step

The networks' numbers are not measured: those of vendors, less a usual overhead.
"""
import argparse
import os
import pathlib
import random
import re
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUCKET = 1 << 19  # numbers, as in nn/shared_gradients.c
HIDDEN = 0.6
NETWORKS = [("Ethernet, 10 Gbit/s", 30e-6, 1.1e9), ("Ethernet, 100 Gbit/s", 10e-6, 11e9),
            ("InfiniBand, 200 Gbit/s", 2e-6, 22e9)]
BASE = ("--width 512 --heads 8 --feed-forward 2048 --encoder-layers 6 --decoder-layers 6 "
        "--batch-pairs 16 --tie-embeddings")
QUICK = ("--width 16 --heads 2 --feed-forward 32 --encoder-layers 1 --decoder-layers 1 "
         "--batch-pairs 4 --tie-embeddings")


def write_pairs(path, pairs, symbols, length):
    chosen = random.Random(1)
    with open(path, "w") as file:
        for n in range(pairs):
            words = [f"w{(n * length + i) % symbols}" for i in range(length)]
            chosen.shuffle(words)
            file.write(" ".join(words) + "\t" + " ".join(words[:-1]) + "\n")


def train(build, folder, ranks, threads, options):
    """Target symbols a second, and the share of the time that was spent only on sums."""
    model = f"{folder}/model.safetensors"
    for name in os.listdir(folder):
        if name.startswith("model"):
            os.remove(f"{folder}/{name}")
    start = [] if ranks == 1 else ["mpirun", "--oversubscribe", "--bind-to", "none", "-n",
                                   str(ranks)]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    environment.pop("OPENBLAS_CORETYPE", None)
    done = subprocess.run(start + [f"{build}/softback", "train", "--data", f"{folder}/pairs.tsv",
                                   "--valid", f"{folder}/valid.tsv", "--out", model,
                                   "--source-units", "words", "--target-units", "words",
                                   "--threads", str(threads), "--evaluate-pairs", "0"] +
                          options.split(), capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(done.stderr or done.stdout)
    spent = re.search(r"spent ([0-9.]+) %", done.stdout)
    rate = re.search(r"([0-9,]+) target symbols/s", done.stdout).group(1)
    return float(rate.replace(",", "")), float(spent.group(1)) / 100 if spent else 0.0


def measure(options):
    with tempfile.TemporaryDirectory() as folder:
        length, symbols, pairs = (8, 40, 64) if options.quick else (64, 7900, 1024)
        write_pairs(f"{folder}/pairs.tsv", pairs, symbols, length)
        write_pairs(f"{folder}/valid.tsv", 4, symbols, length)
        model = QUICK + " --steps 20" if options.quick else BASE + " --steps 10"
        ratios, alone, shares = [], [], []
        for _ in range(options.rounds):
            one, _ = train(options.build, folder, 1, 2, model)
            two, share = train(options.build, folder, 2, 1, model)
            alone.append(one)
            ratios.append(two / one)
            shares.append(share)
        parameters = os.path.getsize(f"{folder}/model.safetensors") // 4
    rate = statistics.median(alone)
    print(f"one process of two threads: {rate:,.0f} target symbols/s; two ranks of one thread: "
          f"{statistics.median(ratios):.2f} of that, {statistics.median(shares):.0%} of the time "
          f"on sums alone (medians of {options.rounds})")
    return parameters, (4 if options.quick else 16) * length / rate


def model_step(parameters, step, ranks, latency, bandwidth):
    buckets = -(-parameters // BUCKET)
    sums = (buckets * 2 * (ranks - 1) * latency +
            2 * (ranks - 1) / ranks * 4 * parameters / bandwidth)
    return step + max(0.0, sums - HIDDEN * step), sums


def table(parameters, step):
    print(f"\n{parameters / 1e6:.1f} M parameters, {step:.2f} s a step of one rank\n")
    print("| network | latency | bandwidth | " +
          " | ".join(f"{1 << k} ranks" for k in range(3, 11)) + " | half of the time from |")
    print("|---|---|---|" + "---|" * 9)
    for name, latency, bandwidth in NETWORKS:
        cells = []
        for k in range(3, 11):
            whole, sums = model_step(parameters, step, 1 << k, latency, bandwidth)
            cells.append(f"{step / whole:.0%}")
        half = next((p for p in range(2, 1 << 20)
                     if model_step(parameters, step, p, latency, bandwidth)[0] >= 2 * step), None)
        print(f"| {name} | {latency * 1e6:.0f} us | {bandwidth / 1e9:.1f} GB/s | " +
              " | ".join(cells) + f" | {half:,} ranks |")
    print("\nShares of the speed that as many ranks would have if sums cost nothing.")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="softback's build; default: build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: a test, no measurement")
    options = parser.parse_args()
    table(*measure(options))


if __name__ == "__main__":
    main()
