#!/usr/bin/env python3
"""Writes what the binding takes from the headers: _declarations.py, _functions.py, and the types in
__init__.pyi and _declarations.pyi.

    python/generate.py [INCLUDE [FOLDER]]

INCLUDE has softback.h, as installed, or the source tree; FOLDER is python/softback.
"""
import re
import sys
from pathlib import Path

from generator import declarations, headers, stubs, wrappers

HERE = Path(__file__).resolve().parent


def main(include=HERE.parent, folder=HERE / "softback"):
    found = headers.read(Path(include).resolve())
    version = ".".join(re.findall(r"SB_VERSION_[A-Z]+ (\d+)", Path(include, "tensor/version.h").read_text()))
    code, stub = wrappers.write(found)
    made = {"_declarations.py": declarations.write(found, version), "_functions.py": code,
            "__init__.pyi": stub, "_declarations.pyi": stubs.declarations(found)}
    for name, text in made.items():
        Path(folder, name).write_text(text)
    called = "".join([code, *(path.read_text() for path in (HERE / "softback").glob("[a-z]*.py"))])
    print("without a Python form:", *(f for f in found.functions if not re.search(rf"c\.{f}\b", called)))


main(*sys.argv[1:])
