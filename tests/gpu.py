#!/usr/bin/env python3
"""Builds for the GPU of this machine, runs the suite and the benchmark on it, and writes a report:

    ./run gpu [--out FOLDER] [--only suite|bench|peers] [--filter PATTERN] [--seconds N]

Needs nvcc, a C compiler, Meson and Ninja; if PyTorch is installed it compares with it, and
compute-sanitizer looks for wrong accesses and races. Nothing is installed. All parts together end
within N seconds [480]; a part that fails is reported, and the others still run. The exit status is 0
if the build and the parts that were asked for succeeded.

FOLDER [build/gpu/results] receives report.md and a log of each part, <number>-<part>.log. Logs are
written while parts run, and the report before and after each of them, so that a run that is cut off
leaves all that it had measured. Without --out, a complete report of a real device is also copied to
tests/bench/results/<device>.md. The last lines printed are a summary, of at most 60 lines.

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
sys.path.append(os.path.join(ROOT, "tests", "bench"))
import gpu_model # in tests/bench

BUILD = os.path.join(ROOT, "build", "gpu")
EMULATED = os.environ.get("SOFTBACK_CUDA") == "emulated"
SECONDS = 480
FAILURE = re.compile(r"\[FAIL\]|\d+ passed, \d+ failed|FAILED: |.*\berror: ")  # lines of a log
ONLY = "suite", "bench", "peers"
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
    """Parts with their outcomes, and the text of each; a log of each part."""

    def __init__(self, machine, seconds, folder):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.path = folder, os.path.join(folder, "report.md")
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
        self.part(name, shown, 0, "is running")
        if limit < 5:
            self.parts.pop()
            self.part(name, shown, 0, "no time was left")
            return False, ""
        log = self.log(name)
        print(f"== {name}: {shown}\n   {os.path.relpath(log)}", flush=True)
        begun = time.monotonic()
        outcome, text = finish(command, limit, dict(os.environ, **(environment or {})), log)
        seconds = time.monotonic() - begun
        self.parts.pop()
        self.part(name, shown, seconds, outcome)
        if outcome == "interrupted":
            raise KeyboardInterrupt
        print(f"   {outcome} ({seconds:.0f} s)", flush=True)
        return outcome == "succeeded", text

    def log(self, name):
        words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        return os.path.join(self.folder, f"{len(self.parts)}-{words}.log")

    def part(self, name, shown, seconds, outcome):
        self.parts.append((name, f"`{shown}`".replace("|", "\\|"), f"{seconds:.0f} s", outcome))
        self.write()

    def summary(self):
        """At most 60 lines: the parts, what failed, and where the rest is."""
        lines = [f"{seconds:>6}  {name}: {outcome}" for name, _, seconds, outcome in self.parts]
        logs = sorted(f for f in os.listdir(self.folder) if f.endswith(".log"))
        for log in logs:
            with open(os.path.join(self.folder, log), encoding="utf-8", errors="replace") as file:
                lines += [line.rstrip()[:150] for line in file if FAILURE.match(line)]
        if len(lines) > 58:
            lines = lines[:57] + [f"({len(lines) - 57} lines more)"]
        return "\n".join(lines + [f"The report is {os.path.relpath(self.path)}, with logs beside it."])

    def section(self, title, text):
        self.sections.append(f"## {title}\n\n{text.strip()}\n")
        self.write()

    def text(self):
        head = f"# softback on {self.title}\n\n" + table(("", ""), [m for m in self.machine if m[1]])
        parts = "## Parts\n\n" + table(("part", "command", "time", "outcome"), self.parts)
        return "\n".join([head, parts] + self.sections)

    def write(self):
        """Replaces the report, so that there is a whole one at any time."""
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            file.write(self.text())
        os.replace(self.path + ".new", self.path)


def finish(command, limit, environment, log):
    """The outcome of a command and its output, also if it ran out of time."""
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
        if process.poll() is None:  # the suite prints the results so far
            process.terminate()
            try:
                process.wait(timeout=5)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                pass
        try:  # and processes that it left running
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            pass
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


LIBRARIES = "libcublas", "libcublasLt"


def find_wheels(folders=None):
    """The headers and libraries of NVIDIA's Python packages, as far as there are any."""
    found = {}
    for folder in folders or sys.path:
        for at, _, files in os.walk(os.path.join(folder, "nvidia")):
            if "cublas_v2.h" in files and "cublasLt.h" in files:
                found["include"] = at
            for file in files:
                name = re.fullmatch(r"(libcublas(?:Lt)?)\.so\.\d+", file)
                if name:
                    found[name.group(1)] = os.path.join(at, file)
    return found


def blas_environment(machine):
    """The cuBLAS of the Python packages, if nvcc has none."""
    source = os.path.join(BUILD, "blas.cu")
    os.makedirs(BUILD, exist_ok=True)
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <cublasLt.h>\n#include <cublas_v2.h>\n"
                   "size_t size() { return cublasGetCudartVersion() + cublasLtGetVersion(); }\n")
    command = [machine.nvcc, "-shared", "-Xcompiler", "-fPIC", source, "-lcublas", "-lcublasLt",
               "-Xlinker", "-z,defs", "-o", os.path.join(BUILD, "blas.so")]
    if output_of("sh", "-c", '"$@" >&2 && echo works', "sh", *command):
        return {}
    found = find_wheels()
    if len(found) < 3:
        return {}
    links = os.path.join(BUILD, "blas")
    os.makedirs(links, exist_ok=True)
    for library in LIBRARIES:
        for name in library + ".so", os.path.basename(found[library]):
            if not os.path.lexists(os.path.join(links, name)):
                os.symlink(found[library], os.path.join(links, name))
    folders = os.pathsep.join([links, os.path.dirname(found["libcublas"])])

    def before(variable, path):
        return os.pathsep.join(filter(None, [path, os.environ.get(variable)]))

    return {"CPATH": before("CPATH", found["include"]),
            "LIBRARY_PATH": before("LIBRARY_PATH", folders),
            "LD_LIBRARY_PATH": before("LD_LIBRARY_PATH", folders)}


def build(report, machine):
    options = ["-Dbuildtype=release", "-Dwerror=false", "-Dtests=enabled", "-Dcriterion=disabled"]
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
    """Part of the suite on the device: few processes, each of one suite, since opening the device
    takes longer than most tests."""
    environment = {"SOFTBACK_TEST_DEVICE": "cuda", "OMP_WAIT_POLICY": "passive",
                   "OMP_NUM_THREADS": "2"}
    seconds = max(5, int(report.factor * (min(limit, report.left() - keep) - 10)))
    jobs = max(1, min((os.cpu_count() or 1) // 2, 4))  # they take turns on the device
    command = [os.path.join(BUILD, "softback-tests"), "--by-suite", "--jobs", str(jobs),
               "--limit", "600" if EMULATED else "60", "--seconds", str(seconds)]
    ok, text = report.run(name, limit, command + [f"--filter={f}" for f in filters], environment,
                          keep)
    report.section(name[0].upper() + name[1:], block(text, 200 if not ok else 20))
    return ok


def bench(report, limit, keep):
    command = [os.path.join(BUILD, "softback"), "bench", "--device", "cuda", "--tabs"]
    ok, text = report.run("benchmark", limit, command, keep=keep)
    rows = rows_of(text)
    device = gpu_model.device_named(report.title)
    predicted = gpu_model.predictions(device) if device else {}
    shown = [key + (milliseconds(row), per_second(row), share(row),
                    f"{row[0] / predicted[key]:.2f}" if key in predicted else "")
             for key, row in rows.items()]
    report.section("Benchmark", "`softback bench --device cuda`; a share is relative to a large "
                   "copy, or product by cuBLAS, in the same run, the last column to the time that "
                   "tests/bench/gpu_model.py predicts.\n\n" +
                   table(("", "", "", "ms", "rate", "share", "of predicted"), shown))
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
    command = [sys.executable, os.path.join(ROOT, "tests/bench/gpu.py"), "--build", BUILD]
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


def parts(report, machine, only, filters):
    """Runs the parts that are wanted; returns whether those that must succeed did."""
    if not (build(report, machine) and device_works(report)):
        return False
    ok, rows = True, {}
    if "suite" in only:
        first = filters or ["devices/*", "replay/*"]
        ok = suite(report, "the suite: " + ("filtered" if filters else "devices"), 100, first, 150)
    if "bench" in only or "peers" in only:
        measured, rows = bench(report, 90, 100)
        ok = ok and measured
    if "suite" in only and not filters:
        ok = suite(report, "the suite: the rest", 240, ["!(devices|replay)/*"], 60) and ok
    if "peers" in only and machine.torch:
        pytorch(report, 90, rows, 0)
    for tool in CHECKED if "suite" in only and not filters else ():
        if shutil.which("compute-sanitizer") and not EMULATED and report.left() > 15:
            sanitizer(report, tool, 60)
    return ok


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", help="the folder of the report and the logs [build/gpu/results]")
    parser.add_argument("--only", choices=ONLY, action="append",
                        help="only this part; may be given several times")
    parser.add_argument("--filter", action="append", default=[],
                        help="only tests whose suite/name matches; may be given several times")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="the time limit of all parts")
    return parser.parse_args()


def main():
    given = arguments()
    only = given.only or (["suite"] if given.filter else ONLY)
    machine = Machine()
    print(f"softback on {machine.name}: build, {', '.join(only)}: at most {given.seconds / 60:.0f} "
          f"minutes on {machine.cores} cores", flush=True)
    report = Report(machine, given.seconds, given.out or os.path.join(BUILD, "results"))
    os.environ.pop("OPENBLAS_CORETYPE", None)
    os.environ["SOFTBACK_CUDA"] = ("emulated" if EMULATED else
                                   os.path.join(BUILD, "libsoftback_cuda.so"))

    def stop(*_):
        raise KeyboardInterrupt

    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, stop)
    try:
        ok = parts(report, machine, only, given.filter)
    except KeyboardInterrupt:
        print("\ncut off\n" + report.summary())
        return 1
    if ok and set(only) == set(ONLY) and not given.out and not EMULATED:
        name = re.sub(r"[^a-z0-9]+", "-", machine.name.lower()).strip("-")
        shutil.copy(report.path, os.path.join(ROOT, "tests/bench/results", name + ".md"))
    print("\n" + report.summary() + ("\nall succeeded" if ok else "\nsomething failed"))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
