"""Structs of the library that read well."""
import ctypes


class Structure(ctypes.Structure):
    kinds = {}  # the C type of each field

    def __repr__(self):
        fields = ((name, getattr(self, name)) for name, *_ in self._fields_)
        shown = (f"{name}={text.decode() if isinstance(text, bytes) else text!r}"
                 for name, text in fields)
        return f"{type(self).__name__.removeprefix('sb_')}({', '.join(shown)})"
