#!/usr/bin/env python3
"""Writes what the binding takes from the headers: softback/_*.py and _*.pyi.

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
    objects = {f.name.rpartition("_")[0] for f in found.functions.values()
               if f.name.endswith(("_free", "_release", "_close", "_init"))} - {"sb_tensor", "sb_model"}
    objects = [name for name in [*found.opaque, *found.structs] if name in objects]
    code, stub, left = wrappers.write_operations(found, objects)
    objects_code, objects_stub, more_left = wrappers.write_objects(found, objects)
    return {"_declarations.py": declarations.write(found, ".".join(version)),
            "_operations.py": code, "_operations.pyi": stub,
            "_objects.py": objects_code, "_objects.pyi": objects_stub}, left + more_left


def main(arguments):
    check = "--check" in arguments
    places = [Path(a).resolve() for a in arguments if a != "--check"]
    made, left = files(places[0] if places else HERE.parent)
    changed = [name for name, text in made.items() if not (HERE / "softback" / name).exists()
               or (HERE / "softback" / name).read_text() != text]
    for name in changed if not check else []:
        (HERE / "softback" / name).write_text(made[name])
    for name in changed:
        print(f"python/softback/{name}: " + ("differs from the headers; run python/generate.py" if check
                                             else "written"))
    print(f"without a Python form: {' '.join(left)}")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
