#!/usr/bin/env python3
"""How the time of softback grows with the work, compared with formulas:

    python3 tests/bench/scaling.py [--quick] [--only SECTIONS] [--rounds N]

batch      a step of tiny, dropout 0.1, as a + b tokens; a is the time without tokens
layers     the same model with more layers, as a + b layers
attention  forward and backward of n positions without mask, as a n^2 + b n
decoding   a step with cache after t positions, as a + b t

Each point is a process that keeps its model and takes turns with the others; its time is the least
of all rounds, since other load only adds. The coefficients are least squares of relative
deviations, so that small points count as much as large ones. Results are written like those of
compare.py."""
import argparse
import datetime
import statistics
import sys
from dataclasses import dataclass, field

from compare_peers import ROOT, Contestants, Failure
from compare_report import command, count, processor, table, time, write
from compare_rows import Row, listed, parameters

LIMIT = 0.15  # the largest relative deviation of a point
TURN_SECONDS, MOST_STEPS, WARM_STEPS = 0.7, 30, 2
PASSES = 7  # of decoding, in a round


@dataclass
class Point:
    x: float
    row: Row
    rounds: list = field(default_factory=list)  # the least time of each


@dataclass
class Section:
    name: str
    title: str
    x: str  # what grows
    terms: list  # the formula, as texts and as functions of x
    functions: list
    points: list
    parts: dict = field(default_factory=dict)  # that explain the first term: rows by name


def line_of(first, second):
    return [first, second], [lambda x: 1.0, lambda x: x]


def batch_section(model, attention, quick):
    """A step on one symbol, by a model of as many layers and little width, is only dispatch."""
    points = []
    for pairs in (2, 4, 8) if quick else (8, 16, 32, 64, 128, 256, 512):
        row = model.resized(pairs=pairs)
        points.append(Point(pairs * row.sizes["length"], row))
    weights = int(parameters(points[0].row))
    narrow = dict(pairs=1, length=1, width=16, feed_forward=16, symbols=16)
    parts = {f"Adam, {weights:,} parameters": Row("", "adam", {"size": weights}),
             "dispatch: a model of width 16, one pair of one symbol": model.resized(**narrow)}
    return Section("batch", "Tokens of a batch", "tokens", *line_of("a", "b tokens"), points, parts)


def layers_section(model, attention, quick):
    points = [Point(n, model.resized(layers=n)) for n in ((1, 2, 3) if quick else (1, 2, 4, 8))]
    return Section("layers", "Layers on each side", "layers", *line_of("a", "b layers"), points)


def attention_section(model, attention, quick):
    points = [Point(n, attention.resized(n=n))
              for n in ((32, 64, 128) if quick else (256, 512, 1024, 2048, 4096, 8192))]
    return Section("attention", "Attention, full, forward and backward", "n", ["a n²", "b n"],
                   [lambda n: n * n, lambda n: n], points)


def fit(section):
    """The two coefficients with the least sum of squares of (formula / seconds - 1), and their
    standard errors."""
    first, second = section.functions
    rows = [(first(p.x) / min(p.rounds), second(p.x) / min(p.rounds)) for p in section.points]
    aa, ab, bb = (sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = (sum(row[i] for row in rows) for i in (0, 1))
    scale = aa * bb - ab * ab
    found = (a * bb - b * ab) / scale, (b * aa - a * ab) / scale
    squares = sum((found[0] * row[0] + found[1] * row[1] - 1) ** 2 for row in rows)
    variance = squares / (len(rows) - 2)
    return found, ((variance * bb / scale) ** 0.5, (variance * aa / scale) ** 0.5)


class Scaling:
    def __init__(self, options):
        self.options = options
        self.contestants = Contestants([], options.build, options.threads, {})

    def open(self, row):
        """A worker that has made some steps, and its number of steps in a turn."""
        worker = self.contestants.worker("softback")
        worker.open(row)
        once = min(worker.ask(f"steps {WARM_STEPS}")["seconds"])
        enough = 1 if self.options.quick else round(TURN_SECONDS / once)
        return worker, max(1, min(MOST_STEPS, enough))

    def measure(self, section):
        rows = [point.row for point in section.points] + list(section.parts.values())
        rounds = [point.rounds for point in section.points] + [[] for _ in section.parts]
        workers = [self.open(row) for row in rows]
        for i in range(self.options.rounds):
            for k in range(len(rows)):
                at = (i + k) % len(rows)
                worker, steps = workers[at]
                rounds[at].append(min(worker.ask(f"steps {steps}")["seconds"]))
        for worker, _ in workers:
            worker.close()
        parts = rounds[len(section.points):]
        return self.result(section, dict(zip(section.parts, map(min, parts))))

    def result(self, section, parts):
        coefficients, errors = fit(section)
        formula = [sum(c * f(p.x) for c, f in zip(coefficients, section.functions))
                   for p in section.points]
        return {
            "name": section.name, "title": section.title, "x": section.x, "terms": section.terms,
            "coefficients": coefficients, "errors": errors, "parts": parts,
            "points": [{"x": p.x, "seconds": min(p.rounds), "formula": expected,
                        "off": min(p.rounds) / expected - 1, "rounds": p.rounds}
                       for p, expected in zip(section.points, formula)],
        }

    def decoding(self, row):
        """Steps at all positions, each the least of several passes; the mean of each eighth."""
        worker, count = self.contestants.worker("softback"), row.sizes["target"]
        part = count // 8
        points = [Point(first + (part + 1) / 2, row) for first in range(0, count, part)]
        worker.open(row)
        for _ in range(self.options.rounds):
            passes = [worker.ask(f"steps {count}")["seconds"] for _ in range(PASSES)]
            taken = [min(seconds) for seconds in zip(*passes)]
            for i, point in enumerate(points):
                point.rounds.append(statistics.mean(taken[i * part:(i + 1) * part]))
        worker.close()
        return self.result(Section("decoding", "A decoding step, one sequence, with cache", "t",
                                   *line_of("a", "b t"), points), {})

    def run(self):
        sections = {f.__name__.split("_")[0]: f
                    for f in (batch_section, layers_section, attention_section)}
        quick = self.options.quick
        rows = {row.name: row for row in listed(self.contestants.program)
                if ("quick" in row.where) == quick}
        sizes = ([rows["train quick"], rows["attention full 64 x 2"]] if quick else
                 [rows["train tiny"], rows["attention full 512 x 8"]])
        results = []
        for name in [*sections, "decoding"]:
            if self.options.only and name not in self.options.only.split(","):
                continue
            print(name, file=sys.stderr, flush=True)
            results.append(self.measure(sections[name](*sizes, quick)) if name in sections
                           else self.decoding(rows["decode with cache"]))
        return results


def percent(share):
    return f"{100 * share:+.1f} %"


def section_text(result):
    lines = [[f"{p['x']:,g}", time(p["seconds"]), time(p["formula"]), percent(p["off"]),
              f"{statistics.median(p['rounds']) / p['seconds']:.2f}"] for p in result["points"]]
    most = max(abs(p["off"]) for p in result["points"])
    how = "within" if most <= LIMIT else "not within"
    found = ", ".join(f"{term.split()[0]} = {1e6 * value:.4g} ± {1e6 * error:.2g} µs"
                      for term, value, error in zip(result["terms"], result["coefficients"],
                                                    result["errors"]))
    text = [f"## {result['title']}", "",
            f"{' + '.join(result['terms'])}: {found}. The farthest point is {100 * most:.1f} % "
            f"off, {how} {100 * LIMIT:.0f} %.", "",
            *table([result["x"], "measured", "formula", "off", "median / least"], lines)]
    if result["parts"]:
        whole = result["coefficients"][0]
        parts = [[name, f"{1e3 * seconds:.3g} ms"]
                 for name, seconds in [*result["parts"].items(),
                                       ("the rest", whole - sum(result["parts"].values())),
                                       ("a", whole)]]
        text += ["The parts of a step without tokens, measured separately:", "",
                 *table(["part", "time"], parts)]
    return text


def report(scaling, results):
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "command": command("scaling.py", sys.argv[1:]),
        "threads": scaling.options.threads,
        "quick": scaling.options.quick,
        "rounds": scaling.options.rounds,
        "sections": results,
    }


def markdown(found):
    text = [f"# How softback's cost grows, {found['date']}", "",
            f"{found['processor']}, {count(found['threads'], 'thread')}. `{found['command']}`", ""]
    if found["quick"]:
        text += ["Sizes are tiny: this is a test, no measurement.", ""]
    text += [f"Times are the least of {count(found['rounds'], 'round')} in turns; the last column "
             "shows the other load of the machine.", ""]
    return "\n".join(text + [line for result in found["sections"] for line in section_text(result)])


def options_of():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes and one round: a test, no measurement")
    parser.add_argument("--only", metavar="SECTIONS", default="",
                        help="of batch, layers, attention, decoding")
    parser.add_argument("--rounds", type=int, default=0, help="default: 7")
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--build", default=ROOT / "build", help="softback's build; default: build")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 7)
    for name in filter(None, options.only.split(",")):
        if name not in ("batch", "layers", "attention", "decoding"):
            parser.error(f'--only: "{name}" is none of batch, layers, attention, decoding')
    return options


def main():
    try:
        scaling = Scaling(options_of())
        found = report(scaling, scaling.run())
    except Failure as failure:
        sys.exit(f"scaling.py: {failure}")
    write(found, markdown(found), "scaling")


if __name__ == "__main__":
    main()
