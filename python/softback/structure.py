"""Structs of the library whose fields read as Python's values: text, lists, names of enums, tensors."""
import ctypes

READERS = {}  # of a form: the function that reads such a field


class Structure(ctypes.Structure):
    forms = {}  # of a field: the function of convert.py that makes it, and that function's first argument
    _as_parameter_, _c = property(ctypes.byref), property(ctypes.addressof)

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, ctypes.Array):
            return list(value)
        form, *first = type(self).forms.get(name, [None])
        return READERS[form](*first, value) if form in READERS else value

    def __repr__(self):
        fields = (f"{name}={getattr(self, name)!r}" for name, *_ in self._fields_)
        return f"{type(self).__name__.removeprefix('sb_')}({', '.join(fields)})"
