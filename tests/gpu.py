#!/usr/bin/env python3
"""Builds for the GPU of this machine, runs the suite and the benchmark on it, and writes a report:

    python3 tests/gpu.py [--seconds N]        ./run gpu does the same

Needs nvcc, a C compiler, Meson and Ninja; if PyTorch is installed it compares with it, and
compute-sanitizer looks for wrong accesses and races. Nothing is installed. All parts together end
within N seconds [530]; a part that fails is reported, and the others still run. The report,
tests/bench/results/<device>.md, is rewritten after every part. The exit status is 0 if the build,
the suite and the benchmark succeeded.

With SOFTBACK_CUDA=emulated everything runs on the emulated device, at tiny sizes.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build", "gpu")
EMULATED = os.environ.get("SOFTBACK_CUDA") == "emulated"
SECONDS = 530  # the sum of the limits below
CHECKED = {  # by compute-sanitizer: tests with small shapes
    "memcheck": ["devices/cuda_gives_the_same_bits_again"],
    "racecheck": ["attention/a_single_key_*", "attention/gradients_agree_with_differences",
                  "attention_tiled/huge_scores_stay_finite"],
}


def output_of(*command):
    """The output of a command, or "" if it cannot be run."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=60, universal_newlines=True)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def nvidia(query):
    if not shutil.which("nvidia-smi"):
        return ""
    lines = output_of("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader").splitlines()
    return lines[0].strip() if lines else ""


class Machine:
    def __init__(self):
        self.name = "emulated" if EMULATED else nvidia("name") or "unknown GPU"
        capability = nvidia("compute_cap").replace(".", "")
        self.architectures = capability if re.fullmatch(r"\d{2,3}", capability) else "80,90"
        # As in the build.
        self.nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        self.torch = output_of(sys.executable, "-c", "import torch; print(torch.__version__)")
        self.cores = os.cpu_count() or 1

    def lines(self):
        compiler = output_of("cc", "--version").splitlines()
        yield "device", self.name
        yield "memory, driver", nvidia("memory.total,driver_version")
        yield "compiled for", "the emulator" if EMULATED else self.architectures
        yield "nvcc", (output_of(self.nvcc, "--version").splitlines() or [""])[-1]
        yield "C compiler", compiler[0] if compiler else ""
        yield "Meson, Ninja", f"{output_of('meson', '--version')}, {output_of('ninja', '--version')}"
        yield "Python, PyTorch", f"{sys.version.split()[0]}, {self.torch or 'none'}"
        yield "cores", str(self.cores)
        yield "date", time.strftime("%Y-%m-%d")


class Report:
    """Parts with their outcomes, and the text of each."""

    def __init__(self, machine, seconds):
        name = re.sub(r"[^a-z0-9]+", "-", machine.name.lower()).strip("-")
        self.path = os.path.join(BUILD if EMULATED else os.path.join(ROOT, "tests/bench/results"),
                                 name + ".md")
        self.machine = list(machine.lines())
        self.title = machine.name
        self.factor = seconds / SECONDS
        self.end = time.monotonic() + seconds
        self.parts, self.sections = [], []

    def left(self):
        """Seconds, on the scale of the limits."""
        return (self.end - time.monotonic()) / self.factor

    def run(self, name, limit, command, environment=None, keep=0):
        """Runs a part within a limit, leaving `keep` seconds for later parts. Returns whether it
        succeeded and its output."""
        limit = min(limit, self.left() - keep) * self.factor
        shown = " ".join(os.path.relpath(word, ROOT) if word.startswith(ROOT) else word
                         for word in command)
        if limit < 5:
            self.part(name, shown, 0, "no time was left")
            return False, ""
        print(f"== {name}: {shown}", flush=True)
        begun = time.monotonic()
        outcome, text = finish(command, limit, dict(os.environ, **(environment or {})))
        self.part(name, shown, time.monotonic() - begun, outcome)
        return outcome == "succeeded", text

    def part(self, name, shown, seconds, outcome):
        self.parts.append((name, f"`{shown}`".replace("|", "\\|"), f"{seconds:.0f} s", outcome))
        print(f"   {outcome} ({seconds:.0f} s)", flush=True)
        self.write()

    def section(self, title, text):
        self.sections.append(f"## {title}\n\n{text.strip()}\n")
        self.write()

    def text(self):
        head = f"# softback on {self.title}\n\n" + table(("", ""), [m for m in self.machine if m[1]])
        parts = "## Parts\n\n" + table(("part", "command", "time", "outcome"), self.parts)
        return "\n".join([head, parts] + self.sections)

    def write(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.text())


def finish(command, limit, environment):
    """The outcome of a command and its output, also if it ran out of time."""
    log = os.path.join(BUILD, "part.log")
    os.makedirs(BUILD, exist_ok=True)
    with open(log, "wb") as file:
        try:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            return f"cannot be run: {error.strerror}", ""
        try:
            code = process.wait(timeout=limit)
            outcome = "succeeded" if code == 0 else f"failed with {code}"
        except subprocess.TimeoutExpired:
            outcome = f"stopped after {limit:.0f} s"
        except KeyboardInterrupt:
            outcome = "interrupted"
        try:  # and processes that it left running
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            pass
        if outcome == "interrupted":
            sys.exit("gpu: interrupted")
    with open(log, encoding="utf-8", errors="replace") as file:
        return outcome, file.read()


def table(head, rows):
    lines = ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head)] + list(rows)]
    return "\n".join(lines) + "\n"


def block(text, most=60):
    """The end of a text, verbatim."""
    lines = text.rstrip().splitlines()
    cut = [f"({len(lines) - most} lines before)"] if len(lines) > most else []
    return "```text\n" + "\n".join(cut + lines[-most:]) + "\n```"


def blas_environment(machine):
    """The cuBLAS of the Python packages, if nvcc has none."""
    source = os.path.join(BUILD, "blas.cu")
    os.makedirs(BUILD, exist_ok=True)
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <cublas_v2.h>\nint size() { return (int)cublasGetCudartVersion(); }\n")
    command = [machine.nvcc, "-shared", "-Xcompiler", "-fPIC", source, "-lcublas", "-o",
               os.path.join(BUILD, "blas.so")]
    if output_of("sh", "-c", '"$@" >&2 && echo works', "sh", *command):
        return {}
    found = {}
    for folder in sys.path:
        for at, _, files in os.walk(os.path.join(folder, "nvidia")):
            for file in files:
                if file == "cublas_v2.h":
                    found["include"] = at
                if re.fullmatch(r"libcublas\.so\.\d+", file):
                    found["library"] = os.path.join(at, file)
    if len(found) < 2:
        return {}
    links = os.path.join(BUILD, "blas")
    os.makedirs(links, exist_ok=True)
    for name in "libcublas.so", os.path.basename(found["library"]):
        if not os.path.lexists(os.path.join(links, name)):
            os.symlink(found["library"], os.path.join(links, name))
    folders = os.pathsep.join([links, os.path.dirname(found["library"])])

    def before(variable, path):
        return os.pathsep.join(filter(None, [path, os.environ.get(variable)]))

    return {"CPATH": before("CPATH", found["include"]),
            "LIBRARY_PATH": before("LIBRARY_PATH", folders),
            "LD_LIBRARY_PATH": before("LD_LIBRARY_PATH", folders)}


def build(report, machine):
    options = ["-Dbuildtype=release", "-Dwerror=false", "-Dtests=enabled"]
    options += (["-Dcuda=disabled", "-Demulator=enabled"] if EMULATED else
                ["-Dcuda=enabled", "-Demulator=disabled",
                 f"-Dgpu_architectures={machine.architectures}"])
    again = ["--reconfigure"] if os.path.exists(os.path.join(BUILD, "build.ninja")) else []
    environment = {} if EMULATED else blas_environment(machine)
    os.environ.update(environment)
    ok, text = report.run("set-up", 60, ["meson", "setup", *again, BUILD, *options])
    if ok:
        ok, text = report.run("build", 270, ["ninja", "-C", BUILD, "-k", "0"])
    if not ok:
        report.section("The build", block(text))
    return ok


def device_works(report):
    """The later parts need a device."""
    command = [os.path.join(BUILD, "softback"), "bench", "--device", "cuda", "--quick"]
    ok, text = report.run("the device", 60, command)
    report.section("The device", block(text))
    return ok


def suite(report, name, limit, filters, keep):
    """Part of the suite on the device."""
    environment = {"SOFTBACK_TEST_DEVICE": "cuda", "OMP_WAIT_POLICY": "passive",
                   "OMP_NUM_THREADS": "2"}
    command = [os.path.join(BUILD, "softback-tests"), "--jobs", str(min(os.cpu_count() or 1, 32))]
    seconds = max(5, int(report.factor * (min(limit, report.left() - keep) - 10)))
    if "Criterion" not in output_of(command[0], "--version"):  # the plain runner stops by itself
        command += ["--limit", "600" if EMULATED else "60", "--seconds", str(seconds)]
    ok, text = report.run(name, limit, command + [f"--filter={f}" for f in filters], environment,
                          keep)
    report.section(name[0].upper() + name[1:], block(text, 200 if not ok else 20))
    return ok


def bench(report, limit, keep):
    command = [os.path.join(BUILD, "softback"), "bench", "--device", "cuda", "--tabs"]
    ok, text = report.run("benchmark", limit, command, keep=keep)
    rows = rows_of(text)
    shown = [(group, name, way, milliseconds(row), per_second(row), share(row))
             for (group, name, way), row in rows.items()]
    report.section("Benchmark", "`softback bench --device cuda`; a share is relative to a large "
                   "copy or product in the same run.\n\n" +
                   table(("", "", "", "ms", "rate", "share"), shown))
    if not ok:
        report.section("The end of the benchmark", block(text, 10))
    return ok, rows


def rows_of(text):
    """The rows of softback bench --tabs or of bench/gpu.py; the last one of equals."""
    rows = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) >= 5:
            unit, part, of = (fields[5:] + ["", "0", ""])[:3] if len(fields) >= 8 else ("", "0", "")
            rows[tuple(fields[:3])] = (float(fields[3]), float(fields[4]), unit, float(part), of)
    return rows


def milliseconds(row):
    return f"{1e3 * row[0]:.3f}" if row[0] > 0 else ""


def per_second(row):
    rate, prefix = row[1], ""
    for larger in "kMGTP":
        if rate >= 999.5:
            rate, prefix = rate / 1000, larger
    return f"{rate:.3g} {prefix}{row[2]}" if rate > 0 else ""


def share(row):
    return f"{row[3]:.1f} % of the {row[4]}" if row[4] else ""


# softback's variants of each dtype; the first is compared with PyTorch.
WAYS = {"f32": ["f32", "f32, tiled"], "bf16": ["bf16", "bf16, tiled"]}


def compare(rows, theirs):
    """softback and PyTorch; the ratio is to the faster of eager and graph."""
    lines = []
    for (group, name, way), row in rows.items():
        dtype = next((d for d, ways in WAYS.items() if way in ways), None)
        eager = theirs.get((group, name, f"{dtype} eager"))
        graph = theirs.get((group, name, f"{dtype} graph"))
        measured = [r[0] for r in (eager, graph) if r]
        if dtype and measured and row[0] > 0:
            lines.append((group, name, way, milliseconds(row), milliseconds(eager) if eager else "",
                          milliseconds(graph) if graph else "", f"{min(measured) / row[0]:.2f}",
                          share(row)))
        elif group == "limit" and (group, name, way) in theirs:
            other = theirs[group, name, way]
            lines.append((group, name, way, per_second(row), per_second(other[:2] + (row[2],)), "",
                          f"{row[1] / other[1]:.2f}", ""))
    return lines


def pytorch(report, limit, rows, keep):
    command = [sys.executable, os.path.join(ROOT, "tests/bench/gpu.py")]
    if EMULATED:
        command += ["--device", "cpu", "--quick"]
    _, text = report.run("PyTorch", limit, command, keep=keep)
    lines = compare(rows, rows_of(text))
    said = "\n".join(line for line in text.splitlines() if "\t" not in line)
    report.section("Compared with PyTorch", "Milliseconds (limits: rates); above a ratio of 1 softback "
                   "is faster than the faster of eager and graph.\n\n" +
                   table(("", "", "", "softback", "eager", "graph", "ratio", "softback's share"),
                         lines) + ("\n" + block(said, 20) if said else ""))


def sanitizer(report, tool, limit):
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9",
               os.path.join(BUILD, "softback-tests"), "--in-process"]
    _, text = report.run(tool, limit, command + [f"--filter={f}" for f in CHECKED[tool]],
                         {"SOFTBACK_TEST_DEVICE": "cuda", "OMP_NUM_THREADS": "4"})
    report.section(tool[0].upper() + tool[1:], block(text, 40))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=SECONDS, help="the time limit of all parts")
    seconds = parser.parse_args().seconds
    machine = Machine()
    report = Report(machine, seconds)
    os.environ.pop("OPENBLAS_CORETYPE", None)
    os.environ["SOFTBACK_CUDA"] = ("emulated" if EMULATED else
                                   os.path.join(BUILD, "libsoftback_cuda.so"))
    ok = build(report, machine) and device_works(report)
    if ok:
        ok = suite(report, "the suite: devices", 100, ["devices/*", "replay/*"], 150)
        measured, rows = bench(report, 90, 100)
        ok = suite(report, "the suite: the rest", 160, ["!(devices|replay)/*"], 60) and ok
        ok = ok and measured
        if machine.torch:
            pytorch(report, 90, rows, 0)
        for tool in CHECKED:
            if shutil.which("compute-sanitizer") and not EMULATED and report.left() > 15:
                sanitizer(report, tool, 60)
    report.write()
    print("\n" + report.text())
    print(f"The report is {os.path.relpath(report.path, ROOT)}; "
          f"{'all succeeded' if ok else 'something failed'}.")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
