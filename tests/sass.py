#!/usr/bin/env python3
"""What nvcc made of the kernels, read from their machine code:

    python3 tests/sass.py [FOLDER]            a table of the kernels that a build folder has, for sm_90
    python3 tests/sass.py --check [FOLDER]    fails where a kernel has grown
    python3 tests/sass.py --write [FOLDER]    writes the ceilings of its files, tests/sass.tsv

No kernel but sin and cos may use local memory (LDL or STL), whatever the compiler. Its registers and
the instructions of its inner loop may not exceed their ceilings, which hold for the version of nvcc
that the file names; with another version they are not checked, nor in a file that has no ceilings. A
number that falls is written with the change that lowers it.

Columns: HMMA, tensor-core products; the bits of the widest load from and store to global memory;
registers, static shared memory and instructions; "loop", the instructions of the inner loop, the
longest of those that contain no other, or of kernels that load tiles and multiply them on tensor
cores (LDGSTS and HMMA in one loop) the shortest way through that loop with all loads and products of a
tile; "warps", how many of a multiprocessor's 64 the registers allow.

cuobjdump comes with the CUDA toolkit, and with PyPI's triton where a toolkit has none.
"""
import argparse
import concurrent.futures
import glob
import heapq
import os
import re
import shutil
import subprocess
import sys

CEILINGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sass.tsv")
LIMITED = "registers", "loop"
# CUDA's sin and cos (the 12th and 13th elementwise function) reduce large arguments in an array.
CIRCULAR = re.compile(r"elementwise (values|slopes)<.*, 1[23]>")
COLUMNS = "registers", "loop", "instructions", "HMMA", "load", "store", "shared", "warps"


def tool(name):
    """The path of one of the toolkit's programs; "" if there is none."""
    places = ["/usr/local/cuda/bin"]
    for folder in sys.path + glob.glob(os.path.join(sys.prefix, "lib/python*/site-packages")):
        places.append(os.path.join(folder, "triton/backends/nvidia/bin"))
    return shutil.which(name) or next(
        (os.path.join(p, name) for p in places if os.access(os.path.join(p, name), os.X_OK)), "")


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True,
                          universal_newlines=True).stdout


def readable(names):
    """Kernel names without parameters and namespaces."""
    plain = subprocess.run(["c++filt"], input="\n".join(names), stdout=subprocess.PIPE, check=True,
                           universal_newlines=True).stdout.splitlines()
    short = {}
    for name, text in zip(names, plain):
        text = re.sub(r"\(anonymous namespace\)::|_GLOBAL__N__\w+::", "", text)
        text = text.replace("__nv_bfloat16", "bf16").removeprefix("void ")
        short[name] = without_parameters(re.sub(r"\([\w: ]+\)(?=-?\d)", "", text)) # (bool)1 is 1
    return short


def without_parameters(text):
    depth = 0
    for at, letter in enumerate(text):
        if letter == "(" and depth == 0:
            return text[:at]
        depth += (letter == "<") - (letter == ">")
    return text


class Kernel:
    """The instructions of one kernel: addresses and texts."""

    def __init__(self):
        self.code, self.registers, self.shared = [], 0, 0

    def next(self):
        """For each instruction the indices of those that may follow."""
        index = {address: i for i, (address, _) in enumerate(self.code)}
        for i, (_, text) in enumerate(self.code):
            target = re.search(r"\bBRA\b.*?(0x[0-9a-f]+)$", text)
            ends = re.search(r"\b(BRA|EXIT|RET)\b", text)
            conditional = text[0] == "@" or re.search(r"\bBRA(\.\w+)* !?U?P\d", text)
            yield ([index[int(target.group(1), 16)]] if target else []) + (
                [i + 1] if (not ends or conditional) and i + 1 < len(self.code) else [])

    def loops(self):
        """First and last instruction of each loop: a branch back to it, or to itself."""
        for i, targets in enumerate(self.next()):
            for first in targets:
                if first < i:
                    yield first, i

    def opcodes(self, first, last):
        return [opcode(text).split(".")[0] for _, text in self.code[first:last + 1]]

    def inner_loop(self):
        loops = list(self.loops())
        tiles = [a for a in loops if {"HMMA", "LDGSTS"} <= set(self.opcodes(*a))]
        if tiles:
            return self.shortest_way(*min(tiles, key=lambda a: a[1] - a[0]))
        inner = [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
        return max((last + 1 - first for first, last in inner), default=0)

    def shortest_way(self, first, last):
        """The least instructions from the first to the last that include as many HMMA and LDGSTS as
        a way without inner loops can."""
        ops, follow = self.opcodes(first, last), list(self.next())[first:last + 1]
        follow = [[n - first for n in targets if first <= n <= last] for targets in follow]
        most = [0] * len(ops), [0] * len(ops)
        for i, op in enumerate(ops):
            for count, wanted in zip(most, ("HMMA", "LDGSTS")):
                count[i] += op == wanted
                for n in follow[i]:
                    count[n] = max(count[n], count[i]) if n > i else count[n]
        todo, seen = [(1, 0, 0, 0)], set()
        while todo:
            length, i, products, loads = heapq.heappop(todo)
            if (i, products, loads) in seen:
                continue
            seen.add((i, products, loads))
            products = min(products + (ops[i] == "HMMA"), most[0][-1])
            loads = min(loads + (ops[i] == "LDGSTS"), most[1][-1])
            if i == len(ops) - 1 and (products, loads) == (most[0][-1], most[1][-1]):
                return length
            for n in follow[i] if i < len(ops) - 1 else []:
                heapq.heappush(todo, (length + 1, n, products, loads))
        return last + 1 - first

    def count(self, *opcodes):
        return sum(opcode(text).split(".")[0] in opcodes for _, text in self.code)

    def widest(self, *opcodes):
        return max((width(text) for _, text in self.code if opcode(text).split(".")[0] in opcodes),
                   default=0)

    def numbers(self):
        held = -(-max(self.registers, 1) // 8) * 8 * 32
        return {"registers": self.registers, "loop": self.inner_loop(),
                "instructions": sum(opcode(text) != "NOP" for _, text in self.code),
                "HMMA": self.count("HMMA"), "load": self.widest("LDG", "LDGSTS"),
                "store": self.widest("STG"), "shared": self.shared,
                "warps": min(64, 65536 // held)}


def opcode(text):
    return re.sub(r"^@!?U?P\w+ ", "", text).split(" ")[0]


def width(text):
    """Bits of a load or store: LDG.E.128, LDG.E.U16, LDG.E."""
    sizes = [int(n) for n in re.findall(r"\.[US]?(8|16|64|128)\b", opcode(text))]
    return sizes[-1] if sizes else 32


def kernels_of(cuobjdump, path):
    kernels, now = {}, None
    for line in output_of(cuobjdump, "-arch", "sm_90", "-sass", path).splitlines():
        function = re.match(r"\s*Function : (\S+)", line)
        code = re.match(r"\s*/\*([0-9a-f]+)\*/\s+(.*?) ;", line)
        if function:
            now = kernels.setdefault(function.group(1), Kernel())
        elif code and now:
            now.code.append((int(code.group(1), 16), code.group(2)))
    name = None
    for line in output_of(cuobjdump, "-arch", "sm_90", "-res-usage", path).splitlines():
        function = re.match(r"\s*Function (\S+):", line)
        name = function.group(1) if function else name
        usage = re.search(r"REG:(\d+).*SHARED:(\d+)", line)
        if usage and name in kernels:
            kernels[name].registers, kernels[name].shared = map(int, usage.groups())
    return kernels


def all_kernels(cuobjdump, paths):
    """(file, kernel): its numbers, and the problems of all kernels."""
    table, spills = {}, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        read = list(pool.map(lambda path: kernels_of(cuobjdump, path), sorted(paths)))
    for path, kernels in zip(sorted(paths), read):
        short = readable(list(kernels))
        file = os.path.splitext(os.path.basename(path))[0]
        for name, kernel in kernels.items():
            key = f"{file} {short[name]}"
            assert key not in table, key
            table[key] = kernel.numbers()
            spilled = kernel.count("LDL", "STL")
            if spilled and not CIRCULAR.fullmatch(key):
                spills.append(f"{key}: {spilled} instructions load or store local memory, not 0")
    return table, spills


def print_table(table):
    print("".join(f"{column:>13}" for column in COLUMNS) + "  kernel")
    for key, numbers in sorted(table.items()):
        print("".join(f"{numbers[column]:>13}" for column in COLUMNS) + "  " + key)


def nvcc_version():
    nvcc = tool("nvcc")
    return re.search(r"V(\d+\.\d+)", output_of(nvcc, "--version")).group(1) if nvcc else "none"


def read_ceilings():
    with open(CEILINGS, encoding="utf-8") as file:
        version = file.readline().split()[-1]
        rows = [line.rstrip("\n").split("\t") for line in file if line[0] != "#"]
    return version, {row[0]: dict(zip(LIMITED, map(int, row[1:]))) for row in rows}


def grown(table):
    version, ceilings = read_ceilings()
    if version != nvcc_version():
        print(f"the ceilings are for nvcc {version}, this is {nvcc_version()}: only spills count")
        return
    files = {key.split()[0] for key in ceilings}
    unknown = sorted({key.split()[0] for key in table} - files)
    if unknown:
        print("no ceilings for", ", ".join(unknown))
    for key, numbers in sorted(table.items()):
        if key.split()[0] in unknown:
            continue
        if key not in ceilings:
            yield f"{key}: is not in tests/sass.tsv; write it with --write"
            continue
        for what in LIMITED:
            if numbers[what] > ceilings[key][what]:
                yield f"{key}: {what} {numbers[what]}, not {ceilings[key][what]}"


def write_ceilings(table):
    """Those of other files stay."""
    version, kept = read_ceilings() if os.path.exists(CEILINGS) else ("", {})
    files = {key.split()[0] for key in table}
    if version == nvcc_version():
        table = {**{k: v for k, v in kept.items() if k.split()[0] not in files}, **table}
    with open(CEILINGS, "w", encoding="utf-8") as file:
        file.write(f"# sm_90, nvcc {nvcc_version()}\n")
        file.write("# file and kernel, " + ", ".join(LIMITED) + " (tests/sass.py)\n")
        for key, numbers in sorted(table.items()):
            file.write("\t".join([key] + [str(numbers[what]) for what in LIMITED]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail where a kernel has grown")
    parser.add_argument("--write", action="store_true", help="write the ceilings")
    parser.add_argument("folder", nargs="?", default="build", help="a build folder [build]")
    given = parser.parse_args()
    cuobjdump = tool("cuobjdump")
    if not cuobjdump or not shutil.which("c++filt"):
        print("sass.py: needs cuobjdump (CUDA toolkit, or PyPI's triton) and c++filt")
        return 77
    objects = glob.glob(os.path.join(given.folder, "cuda", "*.o"))
    if not objects:
        print(f"sass.py: {given.folder} has no kernels by nvcc")
        return 77
    table, problems = all_kernels(cuobjdump, objects)
    if given.write:
        write_ceilings(table)
    if not given.check:
        print_table(table)
    else:
        problems += grown(table)
    for problem in problems:
        print(problem)
    print(f"{len(table)} kernels, {len(problems)} problems")
    return 1 if problems or not table else 0


if __name__ == "__main__":
    sys.exit(main())
