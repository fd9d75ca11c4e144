"""The contestants of tests/bench/compare.py: their installation, and their processes, which keep a
model and measure a few steps when asked."""
import json
import os
import pathlib
import select
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "build" / "bench"  # ignored by git

TITLES = {
    "softback": "softback",
    "softback_bf16": "softback, bf16",
    "torch": "PyTorch as shipped",
    "tuned": "PyTorch tuned",
    "bf16": "PyTorch tuned, bf16 autocast",
    "compiled": "PyTorch tuned, torch.compile",
    "jax": "JAX jit",
    "ctranslate2": "CTranslate2 float32",
    "softback_int8": "softback, int8",
    "ctranslate2_int8": "CTranslate2 int8",
}
PEERS = [name for name in TITLES if name != "softback"]

# worker, its options (of softback: words of its jobs), and whether it is "tuned" (Contestants.tune)
WORKERS = {
    "softback_bf16": ("softback", ["bf16=1"], False),
    "torch": ("torch", [], False),
    "tuned": ("torch", ["--fused"], True),
    "bf16": ("torch", ["--fused", "--bf16"], True),
    "compiled": ("torch", ["--fused", "--compile"], True),
    "jax": ("jax", [], False),
    "ctranslate2": ("ctranslate2", [], False),
    "softback_int8": ("softback", ["int8=1"], False),
    "ctranslate2_int8": ("ctranslate2", ["--int8"], False),
}
PACKAGES = {name: [name, "numpy", "safetensors"] for name in ("torch", "jax", "ctranslate2")}


class Failure(Exception):
    """The failure of a contestant, in one sentence."""


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        last = done.stdout.strip().splitlines()[-1:] or ["no message"]
        raise Failure(f"{' '.join(map(str, command[:4]))} ...: {last[0]}")
    return done.stdout


class Worker:
    """A process that answers lines with lines of JSON."""

    def __init__(self, name, command, environment, cpus, log):
        begun = time.perf_counter()
        self.name, self.log, self.words = name, log, []  # words are added to the lines of its jobs
        try:
            with open(log, "w") as errors:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                    text=True, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        except OSError as error:
            raise Failure(str(error)) from error
        self.answer()
        self.start_up = time.perf_counter() - begun
        self.ready_memory = self.peak_memory()

    def answer(self, limit=1200):
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            if not ready:
                self.process.kill()
            how = f"ended with code {self.process.wait()}" if ready else f"was silent for {limit} s"
            said = pathlib.Path(self.log).read_text(errors="replace").strip().splitlines()
            raise Failure(how + (f": {said[-1]}" if said else ""))
        try:
            value = json.loads(line)
        except ValueError:
            value = {"error": f"answered {line.strip()[:80]}"}
        if "error" in value:
            raise Failure(value["error"])
        return value

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # answer reports how it ended
        return self.answer()

    def open(self, row, *words):
        self.ask(" ".join(["open", row.line(), *self.words, *words]))

    def peak_memory(self):
        """The most resident memory so far, in bytes."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return 1024 * int(line.split()[1])
        return 0

    def page_faults(self):
        """The minor page faults so far, of all threads: new memory from the system."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        return int(stat.rsplit(")", 1)[1].split()[7])  # the name before may contain anything

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(30)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def choose_cpus(count):
    """This number of processors, of different cores if possible."""
    usable, first, others, cores = sorted(os.sched_getaffinity(0)), [], [], set()
    for cpu in usable:
        path = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = path.read_text() if path.exists() else cpu
        (others if core in cores else first).append(cpu)
        cores.add(core)
    return set((first + others)[:count])


class Contestants:
    """Makes workers. A peer that cannot be installed or tuned is in left_out, with the reason."""

    def __init__(self, names, build, threads, pythons):
        self.build, self.threads, self.pythons = pathlib.Path(build).resolve(), threads, pythons
        self.program = self.build / "softback"
        self.cpus = choose_cpus(threads)
        self.left_out, self.preload, self.names = {}, None, ["softback"]
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.build_softback()
        for name in names:
            try:
                self.install(WORKERS[name][0])
                if WORKERS[name][2]:
                    self.tune()
                self.names.append(name)
            except (Failure, OSError) as error:
                self.left_out[name] = str(error)

    def build_softback(self):
        if not (self.build / "build.ninja").exists():
            run("meson", "setup", self.build, ROOT)
        run("ninja", "-C", self.build, "softback")

    def install(self, library):
        if library in self.pythons or library == "softback":
            return
        python = FOLDER / library / "bin" / "python"
        if not (FOLDER / library / "complete").exists():
            print(f"installing {library} ...", file=sys.stderr)
            run(sys.executable, "-m", "venv", FOLDER / library)
            run(python, "-m", "pip", "install", "-q", *PACKAGES[library])
            (FOLDER / library / "complete").touch()
        self.pythons[library] = python

    def tune(self):
        """tcmalloc, and a setting of MKL, which otherwise uses AVX2 on processors of AMD."""
        if self.preload:
            return
        known = [line.split()[-1] for line in run("/sbin/ldconfig", "-p").splitlines()
                 if "libtcmalloc_minimal.so.4 " in line]
        if not known:
            raise Failure("libtcmalloc_minimal.so.4 is missing (Debian: libtcmalloc-minimal4)")
        source, library = FOLDER / "mkl.c", FOLDER / "libmkl.so"
        source.write_text("int mkl_serv_intel_cpu_true(void) { return 1; }\n")
        run("cc", "-shared", "-fPIC", "-o", library, source)
        self.preload = f"{known[0]}:{library}"

    def worker(self, name):
        environment = dict(os.environ, OMP_NUM_THREADS=str(self.threads), JAX_PLATFORMS="cpu",
                           PYTHONDONTWRITEBYTECODE="1",
                           TORCHINDUCTOR_CACHE_DIR=str(FOLDER / "inductor"))
        for variable in "OPENBLAS_CORETYPE", "LD_PRELOAD":
            environment.pop(variable, None)
        library, options, tuned = WORKERS.get(name, ("softback", [], False))
        if library == "softback":
            command = [self.program, "bench", "--worker"]
        else:
            command = [self.pythons[library], HERE / "peers" / f"{library}_worker.py", *options]
        if tuned:
            environment["LD_PRELOAD"] = self.preload
        worker = Worker(name, command, environment, self.cpus, FOLDER / f"{name}.log")
        worker.words = options if library == "softback" else []
        return worker

    def size(self, name):
        """Bytes of the installed files."""
        if name not in WORKERS or WORKERS[name][0] == "softback":
            installed = json.loads(run("meson", "introspect", "--installed", self.build))
            return sum(os.path.getsize(path) for path in installed if os.path.isfile(path))
        python = self.pythons[WORKERS[name][0]]
        folder = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        total = 0
        for place, folders, files in os.walk(folder):
            if place == folder:  # the packages of every environment are no part of the library
                folders[:] = [name for name in folders
                              if not name.startswith(("pip", "setuptools", "_distutils"))]
            total += sum(os.lstat(os.path.join(place, file)).st_size for file in files)
        return total
