"""Structs of the library; convert.py lets their fields read as Python's values."""
import ctypes


class Structure(ctypes.Structure):
    forms = {}  # of a field: the function of convert.py that makes it, and that function's first argument
    _as_parameter_, _c = property(ctypes.byref), property(ctypes.addressof)

    def __repr__(self):
        fields = [(name, getattr(self, name)) for name, _ in self._fields_]
        shown = (f"{name}={getattr(x, 'title', repr(x))}" for name, x in fields)
        return f"{type(self).__name__.removeprefix('sb_')}({', '.join(shown)})"
