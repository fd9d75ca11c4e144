"""How things show themselves in a notebook, with the library's own drawings; and `softback explain`."""
import html
import json
import os
import subprocess
import sys
from pathlib import Path

from .library import Error, c, path
from .tensors import DTYPES, Mask, Tensor, tensor, text_of as owned_text


def program():
    """The path of the program softback, which is beside the library."""
    found = os.environ.get("SOFTBACK_PROGRAM") or str(Path(path).resolve().with_name("softback"))
    if not os.access(found, os.X_OK) or Path(found).is_dir():
        raise Error(f"there is no program {found}: it needs Jansson when softback is built")
    return found


def main():
    """The command softback."""
    os.execv(program(), [program(), *sys.argv[1:]])


class Page(str):
    """A page of `softback explain`: its text, and as `data` its numbers."""

    def __new__(cls, arguments):
        done = subprocess.run([program(), "explain", *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise Error(done.stderr.strip())
        page = super().__new__(cls, done.stdout)
        page.arguments = arguments
        return page

    @property
    def data(self):
        return json.loads(Page([*self.arguments, "--json"]))

    __repr__ = str.__str__

    def _repr_html_(self):
        return f"<pre>{html.escape(self)}</pre>"

    def _repr_svg_(self):
        return str(self) if self.lstrip().startswith("<svg") else None


def explain(topic=None, **options):
    """The page of a topic or an operation, as `softback explain` prints it: explain("softmax",
    scores=[2, 1, 0.1]). Without a topic, the list of topics."""
    given = [topic] if topic else []
    for name, value in options.items():
        given.append("--" + name.replace("_", "-"))
        if value is not True:
            given.append(",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
    return Page(given)


def tensor_html(x):
    """The library's text, and its drawing where the numbers are few."""
    try:
        drawn = owned_text(c.sb_tensor_draw(x._c)) if x.dtype in DTYPES and 0 < x.size <= 4096 else ""
    except Error:
        drawn = ""  # backward has freed the data
    return f"<div>{x.title}</div>{drawn}" if drawn else f"<pre>{html.escape(repr(x))}</pre>"


def mask_html(mask):
    return tensor_html(tensor([[letter == "#" for letter in line] for line in repr(mask).split()]))


Tensor._repr_html_ = tensor_html
Mask._repr_html_ = mask_html
