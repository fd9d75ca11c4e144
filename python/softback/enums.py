"""The names of enums' members: "mean" for SB_REDUCE_MEAN."""
import difflib

from ._declarations import ENUMS
from .library import Error


def nearest(word, words):
    close = difflib.get_close_matches(str(word), words, 1, 0.5)
    return f'did you mean "{close[0]}"?' if close else f"there are {', '.join(words)}"


def choice(enum, name):
    """The number of a member."""
    if name not in ENUMS[enum]:
        raise Error(f'"{name}" is not a {enum[3:].replace("_", " ")}; {nearest(name, list(ENUMS[enum]))}')
    return ENUMS[enum][name]


def name_of(enum, number):
    return next(name for name, value in ENUMS[enum].items() if value == number)
