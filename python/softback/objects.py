"""What the library's objects have in common in Python."""
from .tensors import check


class Object:
    """An object of the library. It is freed when nothing in Python uses it, after what depends on it."""

    _free = None  # the function of C that frees it
    _c, owned, kept = None, False, ()

    def __init__(self, *_, **__):
        ways = [n for n, f in vars(type(self)).items() if isinstance(f, staticmethod)]
        raise TypeError(f"{type(self).__name__}: make one with {', '.join(ways)}")

    def _take(self, pointer, kept, owned=True):
        self._c = self._as_parameter_ = check(pointer)
        self.owned, self.kept = owned, kept  # `kept` must not be freed before this object

    def __del__(self):
        if self.owned and type(self)._free:
            type(self)._free(self)

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} can be neither copied nor pickled" + (
            ": save it to a file, and load that" if hasattr(self, "save") else ""))

    def __repr__(self):
        """A model shows its parameters."""
        table = repr(self.parameters()) if hasattr(self, "parameters") else ""
        return f"<softback {type(self).__name__}>" + table.replace("<softback Parameters>", "")


def adopt(kind, pointer, kept, owned=True):
    """An object of what C has made, or lends."""
    made = object.__new__(kind)
    made._take(pointer, kept, owned)
    return made
