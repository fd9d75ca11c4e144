#!/usr/bin/env python3
"""Writes what the binding takes from the headers: softback/_declarations.py, _functions.py, _functions.pyi.

    python/generate.py [--check] [INCLUDE]

INCLUDE has softback.h, as installed; the source tree otherwise. With --check it writes nothing, and exits
with 1 if a file differs from what it would write.
"""
import re
import sys
from pathlib import Path

from generator import declarations, headers, wrappers

HERE = Path(__file__).resolve().parent


def files(include):
    """The text of each file by its name, and the C functions that have no Python form."""
    found = headers.read(include)
    version = re.findall(r"SB_VERSION_[A-Z]+ (\d+)", (include / "tensor/version.h").read_text())
    freed = {f.rpartition("_")[0] for f in found.functions if re.search("_(free|release|close|init)$", f)}
    objects = [name for name in [*found.opaque, *found.structs]
               if name in freed - {"sb_tensor", "sb_model", "sb_communicator"}]
    code, stub, left = wrappers.write(found, objects)
    return {"_declarations.py": declarations.write(found, ".".join(version)),
            "_functions.py": code, "_functions.pyi": stub}, left


def main(arguments):
    places = [Path(a).resolve() for a in arguments if a != "--check"]
    made, left = files(places[0] if places else HERE.parent)
    changed = [path for path in made if not (HERE / "softback" / path).exists()
               or (HERE / "softback" / path).read_text() != made[path]]
    for path in changed:
        if "--check" not in arguments:
            (HERE / "softback" / path).write_text(made[path])
        print(f"python/softback/{path}: " + ("differs from the headers; run python/generate.py"
                                             if "--check" in arguments else "written"))
    print(f"without a Python form: {' '.join(left)}")
    return 1 if "--check" in arguments and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
