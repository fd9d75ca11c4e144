#!/usr/bin/env python3
"""softback and its peers, on the same models, weights and batches, in one run:

    python3 tests/bench/compare.py [--quick] [--only ROWS] [--peers LIST] [--rounds N]

Peers are installed with pip into separate environments below build/bench, which takes minutes and
gigabytes the first time; `--peers ""` measures softback alone. Contestants are processes that keep
their model and take turns, A B C, B C A, ..., so that other load affects all; ratios are medians of
each round's ratio. A time counts only if the peer gets the same numbers as softback: the losses of
three steps without dropout, the results and gradients of an operation, the decoded symbols.

Tables go to tests/bench/results/<date>-<processor>.md, with --quick to build/bench, where the
results as JSON are too. OPENBLAS_CORETYPE and LD_PRELOAD are unset for every contestant; the rest
of the environment is the same for all. If other processes compute too, set GOMP_SPINCOUNT=1000, so that
PyTorch's waiting threads do not keep the processors.
"""
import argparse
import statistics
import sys

import compare_report
from compare_peers import FOLDER, PEERS, ROOT, Contestants, Failure
from compare_rows import all_rows, bound

TOLERANCE = {"bf16": 2e-2, "softback_bf16": 2e-2}  # relative; of all others:
USUAL_TOLERANCE = 1e-4
EQUAL_SYMBOLS = 0.95  # rounding may change the choice of a symbol, and of all later ones
INT8 = "softback_int8", "ctranslate2_int8"  # do so at most symbols of a model that is not trained
ROUND_SECONDS = 0.7  # of a contestant in a round
MOST_STEPS = 50
WARM_STEPS = 3  # before times and page faults are counted
BOUND_ROUNDS = 3


def difference(row, ours, theirs):
    """The difference of a peer: the largest relative error, or the fraction of other symbols."""
    if len(ours) != len(theirs):
        raise Failure(f"{len(theirs)} numbers to check, where softback has {len(ours)}")
    if row.kind == "decoding":
        return sum(a != b for a, b in zip(ours, theirs)) / len(ours)
    return max(abs(a - b) / max(abs(a), 1e-30) for a, b in zip(ours, theirs))


class Comparison:
    def __init__(self, contestants, known, rows, options):
        self.contestants, self.options = contestants, options
        self.rows, self.all = rows, {row.name: row for row in known}
        self.rates = contestants.worker("softback")  # measures the rates of the machine
        self.machine = {"softback": self.rates.ask("machine")}
        self.known_rates, self.differences = {}, {}

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def rate(self, words):
        """A rate of this machine, measured once."""
        if words not in self.known_rates:
            self.known_rates[words] = self.rates.ask("rate " + words)["rate"]
        return self.known_rates[words]

    def bound(self, row):
        """From the best of several measurements of each rate, in turns."""
        best, known = {}, self.known_rates
        for _ in range(1 if self.options.quick else BOUND_ROUNDS):
            self.known_rates = {}
            bound(row, self.rate)
            for words, rate in self.known_rates.items():
                best[words] = max(rate, best.get(words, 0), known.get(words, 0))
        self.known_rates = {**known, **best}
        return bound(row, self.rate)

    def agree(self, row, worker, ours):
        """Checks a peer that has the row open."""
        off = difference(row, ours, worker.ask("check")["numbers"])
        limit = TOLERANCE.get(worker.name, USUAL_TOLERANCE)
        if row.kind == "decoding":
            limit = 1 if worker.name in INT8 else 1 - EQUAL_SYMBOLS
        if not off <= limit:
            raise Failure(f"disagrees with softback: {off:.1e} is above {limit:.0e}")
        self.differences[row.name, worker.name] = off

    def prepare(self, row):
        """Workers that have opened the row and made some steps; and the failures of others."""
        file, failed = FOLDER / "row.safetensors", {}
        softback = self.contestants.worker("softback")
        workers = [softback]
        twin = self.all[row.twin] if row.twin else row
        try:
            softback.open(twin)
            softback.ask(f"export {file}")
            ours = softback.ask("check")["numbers"]
            softback.open(row)
            softback.ask("steps 1")
            for name in self.contestants.names[1:]:
                if name in row.peers:
                    try:
                        workers.append(self.join(row, name, file, ours))
                    except Failure as failure:
                        failed[name] = str(failure)
                        self.say(f"  {name}: {failure}")
        except Failure:
            softback.close()
            raise
        finally:
            file.unlink(missing_ok=True)
        return workers, failed

    def join(self, row, name, file, ours):
        """A peer's worker that has opened the row, after it agreed on the row or on its twin."""
        worker = self.contestants.worker(name)
        try:
            self.machine.setdefault(name, worker.ask("machine"))
            twin = self.all[row.twin] if row.twin else row
            if (twin.name, name) not in self.differences:
                worker.open(twin, f"file={file}")
                self.agree(twin, worker, ours)
            worker.open(row, f"file={file}")
            worker.ask("steps 1")
        except Failure:
            worker.close()
            raise
        return worker

    def measure(self, row):
        """The row's results, without peers that fail."""
        self.say(row.name)
        workers, failed = self.prepare(row)
        limit = f"copy {row.working_set:.0f}" if row.bytes else "fma"
        rounds, limits, steps = {worker.name: [] for worker in workers}, [], {}
        faults, made = dict.fromkeys(rounds, 0), dict.fromkeys(rounds, 0)

        def turn(worker, count):
            """The median time of this number of steps; None if it failed."""
            if worker.name in failed:
                return None
            before = worker.page_faults()
            try:
                taken = statistics.median(worker.ask(f"steps {count}")["seconds"])
                faults[worker.name] += worker.page_faults() - before
                made[worker.name] += count
                return taken
            except Failure as failure:
                if worker.name == "softback":
                    raise
                failed[worker.name] = str(failure)
                del rounds[worker.name]
                return None

        for worker in workers:
            once = turn(worker, WARM_STEPS - 1)  # prepare has made one
            enough = 1 if self.options.quick or not once else round(ROUND_SECONDS / once)
            steps[worker.name] = max(1, min(MOST_STEPS, enough))
            faults[worker.name] = made[worker.name] = 0
        for i in range(self.options.rounds):
            limits.append(self.rates.ask("rate " + limit)["rate"])
            first = i % len(workers)
            for worker in workers[first:] + workers[:first]:
                taken = turn(worker, steps[worker.name])
                if taken is not None:
                    rounds[worker.name].append(taken)
        memory = {worker.name: {"ready": worker.ready_memory, "peak": worker.peak_memory()}
                  for worker in workers if worker.name in rounds}
        faults = {name: 100 * faults[name] / made[name] for name in rounds}
        for worker in workers:
            worker.close()
        return self.result(row, rounds, limits, memory, faults, failed)

    def result(self, row, rounds, limits, memory, faults, failed):
        seconds = {name: statistics.median(taken) for name, taken in rounds.items()}
        ours = rounds["softback"]
        work = row.bytes or row.flop
        peak = statistics.median(limits)
        result = {
            "name": row.name, "sizes": row.sizes, "flop": row.flop, "bytes": row.bytes,
            "tokens": row.tokens, "seconds": seconds, "rounds": rounds, "memory": memory,
            "faults": faults,  # in 100 steps
            "ratio": {name: statistics.median(b / a for a, b in zip(ours, taken))
                      for name, taken in rounds.items() if name != "softback"},
            "limit": {"kind": "copy" if row.bytes else "fma", "rate": peak},
            "share": {name: work / taken / peak for name, taken in seconds.items()},
            "difference": {name: self.differences.get((row.twin or row.name, name))
                           for name in rounds if name != "softback"},
            "failed": failed,
        }
        if row.name.startswith("train"):
            result["bound"] = self.bound(row)
        return result

    def start_up(self):
        """Seconds from starting a process to its first answer, in turns; the files are in the
        system's cache."""
        self.say("start-up")
        found = {name: [] for name in self.contestants.names}
        for i in range(-1, self.options.rounds):
            for name in list(found):
                try:
                    worker = self.contestants.worker(name)
                except Failure as failure:
                    self.say(f"  {name}: {failure}")
                    del found[name]
                    continue
                if i >= 0:
                    found[name].append((worker.start_up, worker.peak_memory()))
                worker.close()
        return {name: {"seconds": statistics.median(s for s, _ in taken),
                       "memory": statistics.median(m for _, m in taken),
                       "size": self.contestants.size(name)} for name, taken in found.items()}

    def run(self):
        results = []
        for row in self.rows:
            try:
                results.append(self.measure(row))
            except Failure as failure:
                self.say(f"  softback: {failure}")
                results.append({"name": row.name, "failed": {"softback": str(failure)}})
        wanted = self.options.only
        start_up = self.start_up() if not wanted or "start-up" in wanted.split(",") else {}
        self.rates.close()
        return results, start_up


def options_of():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes and one round: a test, no measurement")
    parser.add_argument("--only", metavar="ROWS", default="",
                        help='rows whose names contain one of these texts, as in "toy,attention '
                        'full,start-up"')
    parser.add_argument("--peers", metavar="LIST", default=",".join(PEERS),
                        help="default: " + ",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=0, help="default: 7")
    parser.add_argument("--threads", type=int, default=2, help="of each contestant; default: 2")
    parser.add_argument("--build", default=ROOT / "build", help="softback's build; default: build")
    parser.add_argument("--list", action="store_true", help="only lists the rows")
    for library in "torch", "jax", "ctranslate2":
        parser.add_argument(f"--{library}-python", metavar="PATH",
                            help=f"a Python that has {library}, instead of a new environment")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 7)
    options.peers = [name for name in options.peers.split(",") if name]
    for name in options.peers:
        if name not in PEERS:
            parser.error(f'--peers: "{name}" is none of {", ".join(PEERS)}')
    return options


def main():
    options = options_of()
    texts = [text for text in options.only.split(",") if text]
    pythons = {library: getattr(options, library + "_python")
               for library in ("torch", "jax", "ctranslate2")
               if getattr(options, library + "_python")}
    try:
        contestants = Contestants([] if options.list else options.peers, options.build,
                                  options.threads, pythons)
    except Failure as failure:
        sys.exit(f"compare.py: {failure}")
    rows = all_rows(contestants.program, options.quick)
    chosen = [row for row in rows if not texts or any(text in row.name for text in texts)]
    if not chosen and "start-up" not in texts:
        sys.exit(f'compare.py: no row\'s name contains any of "{options.only}"; --list shows them')
    if options.list:
        print("\n".join(row.name for row in chosen))
        return
    comparison = Comparison(contestants, rows, chosen, options)
    results, start_up = comparison.run()
    report = compare_report.report(comparison, results, start_up, sys.argv[1:])
    compare_report.write(report, compare_report.markdown(report))


if __name__ == "__main__":
    main()
