"""Structs of the library; convert.py lets their fields read as Python's values."""
import ctypes


class Handle:
    """The type of a parameter that is an object of this struct of C, and whether the function may change it."""

    def __init__(self, name, changes=True):
        self.name, self.changes = name, changes

    def from_param(self, x):
        if x is not None and getattr(x, "c_name", None) != self.name:
            raise TypeError(f"{type(x).__name__} was given where a {self.name} is expected")
        return None if x is None else ctypes.c_void_p(x._c)


class Structure(ctypes.Structure):
    forms = {}  # of a field: the function of convert.py that makes it, and that function's first argument
    _as_parameter_, _c = property(ctypes.byref), property(ctypes.addressof)

    def __reduce__(self):
        """Numbers are copied and pickled by value; what points to memory of the library cannot be."""
        try:
            return super().__reduce__()
        except ValueError:
            raise TypeError(f"a {type(self).__name__} can be neither copied nor pickled; Parameters can") from None

    def __repr__(self):
        fields = [(name, getattr(self, name)) for name, _ in self._fields_]
        shown = (f"{name}={getattr(x, 'title', repr(x))}" for name, x in fields)
        return f"{type(self).__name__.removeprefix('sb_')}({', '.join(shown)})"
