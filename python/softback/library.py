"""The shared library, with the types of its functions, and the error that they raise."""
import ctypes
import os
from pathlib import Path
from types import SimpleNamespace

from ._declarations import FUNCTIONS, VERSION


class Error(RuntimeError):
    """A failure of the library: one sentence with the value, what was expected, and what to do."""


def find():
    """The library's path: SOFTBACK_LIBRARY, or the one that was installed with this package."""
    folder = Path(__file__).resolve().parents[1] / ".softback.mesonpy.libs"
    for path in [os.environ.get("SOFTBACK_LIBRARY"), *folder.glob("libsoftback.*")]:
        if path:
            return str(path)
    raise Error(f"no libsoftback in {folder}; install the package with pip, or set SOFTBACK_LIBRARY to "
                "the file that Meson built")


def load(path):
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # waiting threads leave the processor to others
    library, functions = ctypes.CDLL(path), SimpleNamespace()
    for name, (result, *parameters) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
        if result is ctypes.c_char_p:
            function.errcheck = lambda made, *_: made and made.decode()
        setattr(functions, name, function)
    found = functions.sb_version()
    if found != VERSION:
        raise Error(f"{path} is softback {found}, but this package was made for {VERSION}")
    return functions


path = find()
c = load(path)
