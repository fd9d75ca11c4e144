"""The reports of tests/bench/compare.py: tables to read, JSON for programs."""
import datetime
import json
import os
import pathlib
import re
import sys

from compare_peers import FOLDER, TITLES


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def report(comparison, results, start_up, arguments):
    contestants = comparison.contestants
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "command": command("compare.py", arguments),
        "threads": contestants.threads,
        "waiting": {name: os.environ[name] for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
                    if name in os.environ},
        "quick": comparison.options.quick,
        "rounds": comparison.options.rounds,
        "contestants": comparison.machine,
        "left_out": contestants.left_out,
        "rows": results,
        "start_up": start_up,
        "rates": comparison.known_rates,
    }


def command(program, arguments):
    """Without the paths of this machine."""
    words, rest = [f"python3 tests/bench/{program}"], iter(arguments)
    for word in rest:
        if re.fullmatch(r"--build|--\w+-python", word):
            next(rest, None)
        elif not re.match(r"--build=|--\w+-python=", word):
            words.append(word if re.fullmatch(r"[\w./,=+-]+", word) else f'"{word}"')
    return " ".join(words)


def time(seconds):
    for unit, size in ("s", 1), ("ms", 1e-3), ("µs", 1e-6):
        if seconds >= size or unit == "µs":
            value = seconds / size
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def rate(row, seconds):
    """The rate: tokens, bytes or operations a second."""
    if row["tokens"]:
        return f"{row['tokens'] / seconds:,.0f} tokens/s"
    return (f"{row['bytes'] / seconds / 1e9:.3g} GB/s" if row["bytes"]
            else f"{row['flop'] / seconds / 1e9:.3g} GFLOP/s")


def table(head, lines):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(line) + " |" for line in lines), ""]


def cell(row, name):
    """A peer's time, and its ratio to softback's."""
    if name in row["failed"]:
        return "failed"
    if name not in row["seconds"]:
        return "–"
    return f"{time(row['seconds'][name])}, **{row['ratio'][name]:.2f}**"


def row_table(rows, peers):
    head = ["row", "softback", "rate", "share of peak"] + [TITLES[name] for name in peers]
    lines = []
    for row in rows:
        ours = row["seconds"]["softback"]
        lines.append([row["name"], time(ours), rate(row, ours),
                      f"{100 * row['share']['softback']:.0f} % of {row['limit']['kind']}",
                      *(cell(row, name) for name in peers)])
    return table(head, lines)


def bound_table(rows):
    parts = ["products", "attention", "passes", "adam", "dropout"]
    lines = [[row["name"], time(row["bound"]["seconds"]),
              f"{row['seconds']['softback'] / row['bound']['seconds']:.2f}",
              *(time(row["bound"]["parts"][part]) if row["bound"]["parts"][part] else "–"
                for part in parts)]
             for row in rows]
    return table(["row", "bound", "softback / bound", *parts], lines)


def beyond_ready(row, name):
    """Bytes at the peak, without those of the process before it opened the row."""
    memory = row["memory"][name]
    return max(memory["peak"] - memory["ready"], 1)


def memory_cell(row, name):
    """The peak without the start, with it, and the ratio of the first to softback's."""
    if name not in row["memory"]:
        return "–"
    beyond = beyond_ready(row, name)
    text = f"{beyond / 1e6:.0f} ({row['memory'][name]['peak'] / 1e6:.0f})"
    if name == "softback":
        return text
    return f"{text}, **{beyond / beyond_ready(row, 'softback'):.1f}**"


def memory_table(rows, names):
    lines = [[row["name"], *(memory_cell(row, name) for name in names)] for row in rows]
    return table(["row"] + [TITLES[name] for name in names], lines)


def fault_table(rows, names):
    lines = [[row["name"], *(f"{row['faults'][name]:,.0f}" if name in row["faults"] else "–"
                             for name in names)] for row in rows]
    return table(["row"] + [TITLES[name] for name in names], lines)


def agreement(rows, name):
    found = [row["difference"][name] for row in rows if row["difference"].get(name) is not None]
    return f"; differs from softback by at most {max(found):.0e}" if found else ""


def count(number, noun):
    return f"{number} {noun}{'s' if number != 1 else ''}"


def markdown(report):
    rows = [row for row in report["rows"] if "seconds" in row]
    names = [name for name in TITLES if any(name in row["seconds"] for row in rows)]
    peers = [name for name in TITLES if name != "softback" and
             any(name in row["seconds"] or name in row["failed"] for row in rows)]
    text = [f"# softback and its peers, {report['date']}", "",
            f"{report['processor']}, {count(report['threads'], 'thread')} each. "
            f"`{' '.join([*map('='.join, report['waiting'].items()), report['command']])}`", ""]
    if report["quick"]:
        text += ["Sizes are tiny: this is a test, no measurement.", ""]
    text += [f"- {TITLES[name]}: {machine['version']}, {machine['products']}"
             + (f", {machine['kernels']} kernels" if "kernels" in machine else "")
             + agreement(rows, name) for name, machine in report["contestants"].items()]
    text += [f"- {TITLES[name]} is skipped: {reason}"
             for name, reason in report["left_out"].items()]
    text += [f"- {row['name']}: {TITLES[name]}: {reason}" for row in report["rows"]
             for name, reason in row["failed"].items()]
    text += ["", "Times are medians of "
             f"{count(report['rounds'], 'round')} in turns. **Bold** is the median "
             "ratio to softback's time in the same round: above 1, softback is faster. The peaks "
             "are multiply-adds in registers and a copy of the row's working set, measured in "
             "every round.", ""]
    text += row_table(rows, peers)
    bounded = [row for row in rows if "bound" in row]
    if bounded:
        text += ["## Bounds of training steps", "",
                 "Every part at the best rate measured for such a part in this run "
                 "(compare_rows.py).", "", *bound_table(bounded)]
    if rows:
        text += ["## Peak memory", "", "Resident, in MB, of a process that measures this row only: "
                 "beyond what it held when it was ready, its imports, and in brackets with that. "
                 "**Bold** is how many times softback's the first is.", "",
                 *memory_table(rows, names),
                 "## Page faults", "", "Minor ones for each 100 steps after the third: memory that "
                 "the system newly allocated.", "", *fault_table(rows, names)]
    if report["start_up"]:
        text += ["## Start-up and size", "", *table(
            ["", "ready after", "memory then", "installed files"],
            [[TITLES[name], time(found["seconds"]), f"{found['memory'] / 1e6:.0f} MB",
              f"{found['size'] / 1e6:,.1f} MB"] for name, found in report["start_up"].items()])]
    return "\n".join(text)


def write(report, text, kind=""):
    """Prints the text, and writes it, and the report as JSON below build/bench."""
    print(text)
    slug = re.sub(r"[^a-z0-9]+", "-", report["processor"].lower()).strip("-")
    name = "quick" if report["quick"] else f"{report['date']}-{slug}"
    name = f"{name}-{kind}" if kind else name
    page = (FOLDER if report["quick"] else pathlib.Path(__file__).parent / "results") / f"{name}.md"
    numbers = FOLDER / f"{name}.json"
    for path, content in ((page, text), (numbers, json.dumps(report, indent=1) + "\n")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    print(f"written to {page} and {numbers}", file=sys.stderr)
