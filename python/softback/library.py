"""The shared library: its functions, the names of its enums' members, and the error that they raise."""
import ctypes
import difflib
import numbers
import operator
import os
import re
import threading
from pathlib import Path
from types import SimpleNamespace

from ._declarations import ENUMS, FUNCTIONS, MEMBERS, VERSION, __file__ as made, sb_source


class Error(RuntimeError):
    """A failure of the library: one sentence with the value, what was expected, and what to do."""


def nearest(word, words):
    close = difflib.get_close_matches(str(word), words, 1, 0.5)
    return f'did you mean "{close[0]}"?' if close else f"there are {', '.join(words)}"


# Names of dtypes in NumPy and PyTorch.
DTYPES = {"float32": "f32", "float64": "f64", "double": "f64", "bfloat16": "bf16", "int32": "i32", "bool_": "bool"}


def dtype(x):
    """The name here of a dtype: of "float32", np.float32, np.dtype("float32"), torch.float32."""
    said = str(getattr(x, "name", getattr(x, "__name__", x))).removeprefix("torch.")
    return DTYPES.get(said, said)


def choice(enum, name):
    """The number of a member."""
    name = dtype(name) if enum == "sb_dtype" else str(name)
    if name not in ENUMS[enum]:
        raise Error(f'"{name}" is no {enum[3:].replace("_", " ")}; {nearest(name, list(ENUMS[enum]))}')
    return ENUMS[enum][name]


def whole(kind, x, name):
    """A whole number that this type of C holds."""
    bits = 8 * ctypes.sizeof(kind)
    low = -(1 << bits - 1) if kind(-1).value < 0 else 0
    if not hasattr(x, "__index__"):
        raise Error(f"{name} is {x!r}, which is not a whole number")
    number = operator.index(x)
    if not low <= number < low + (1 << bits):
        raise Error(f"{name} is {number:#x}, which is not in {low}..{low + (1 << bits) - 1}")
    return number


def real(x, name):
    """A real number of Python or NumPy."""
    if isinstance(x, numbers.Real):
        return float(x)
    raise Error(f"{name} is {x!r}, which is not a number" + "; x.item() is that of a tensor" * hasattr(x, "item"))


def text(x, name):
    """A text or a path for C, which ends at a NUL."""
    if not isinstance(x, (str, bytes, os.PathLike, type(None))):
        raise Error(f"{name} is {x!r}, which is not a text")
    made = None if x is None else os.fsencode(x)
    if made and b"\0" in made:
        raise Error(f"{name} has a NUL at byte {made.index(0)}, where C would end it; remove it")
    return made


def name_of(enum, number):
    return next(name for name, value in ENUMS[enum].items() if value == number)


def find():
    """The library's path: SOFTBACK_LIBRARY, or the one installed with this package, or that of its build folder."""
    above = Path(made).resolve().parents
    folders = above[1] / ".softback.mesonpy.libs", above[2]
    found = (folder / name for folder in folders for name in ("libsoftback.so", "libsoftback.dylib"))
    if path := os.environ.get("SOFTBACK_LIBRARY") or next(filter(Path.exists, found), None):
        return str(path)
    raise Error(f"no libsoftback in {folders[0]} or {folders[1]}; install softback with pip, or set SOFTBACK_LIBRARY to the file")


lock = threading.RLock()


def alone(function):
    """The function for one thread at a time. There is one lock, since objects change others: a trainer its data. Nobody holds it
    where functions of Python run on threads of C, which would wait for it."""
    def call(*arguments, lock=lock):
        with lock:
            return function(*arguments)

    call.__wrapped__ = function
    return call


def load(path):
    library, functions = ctypes.CDLL(path), SimpleNamespace()
    for name, (result, *parameters) in FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            raise Error(f"{path} has no {name}: this package was made from the headers of another library; build both again")
        function.restype, function.argtypes = result, parameters
        if result is ctypes.c_char_p:
            function.errcheck = lambda made, *_: made if made is None else made.decode()
        changes = name.startswith("sb_backward") or any(getattr(p, "changes", p is ctypes.POINTER(sb_source)) for p in parameters)
        setattr(functions, name, alone(function) if changes and name != "sb_backward_in_shares" else function)
    if functions.sb_version() != VERSION:
        raise Error(f"{path} is softback {functions.sb_version()}, but this package was made for {VERSION}")
    return functions


WORDS = MEMBERS | {name: name[3:] for name in FUNCTIONS} | {"SB_RECORD": "record=True", "SB_NO_RECORD": "record=False", "SB_ZERO": "0", "0 for the default": "None for the default"}


def spelled(text):
    """A message in the words of Python: C's sb_keep() is keep()."""
    return re.sub(r"\b(?:SB|sb)_\w+|\b0 for the default", lambda found: WORDS.get(found[0], found[0]), text)


path = find()
c = load(path)
c.sb_error = lambda error=c.sb_error: spelled(error())
os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
