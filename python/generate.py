#!/usr/bin/env python3
"""Writes what the binding takes from the headers: _declarations.py, _functions.py, and the types in
__init__.pyi and _declarations.pyi.

    python/generate.py INCLUDE FOLDER [FILE...]

INCLUDE has softback.h: the source tree, or the folder of the installed headers. FOLDER gets a link to each FILE, too:
with those that are written by hand it is the package.
"""
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # a build leaves the source tree as it is
from generator import declarations, headers, stubs, wrappers  # noqa: E402


def main(include, folder, *by_hand):
    found = headers.read(Path(include).resolve())
    version = ".".join(re.findall(r"SB_VERSION_[A-Z]+ (\d+)", Path(include, "tensor/version.h").read_text()))
    code, stub = wrappers.write(found)
    made = {"_declarations.py": declarations.write(found, version), "_functions.py": code,
            "__init__.pyi": stub, "_declarations.pyi": stubs.declarations(found)}
    for name, text in made.items():
        Path(folder, name).write_text(text)
    for path in map(Path, by_hand):
        Path(folder, path.name).unlink(missing_ok=True)
        Path(folder, path.name).symlink_to(path.resolve())


main(*sys.argv[1:])
