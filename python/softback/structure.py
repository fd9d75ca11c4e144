"""Structs of the library that read well."""
import ctypes


def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    return list(value) if isinstance(value, ctypes.Array) else value


class Structure(ctypes.Structure):
    kinds = {}  # the C type of each field

    def __repr__(self):
        fields = (f"{name}={plain(getattr(self, name))!r}" for name, *_ in self._fields_)
        return f"{type(self).__name__.removeprefix('sb_')}({', '.join(fields)})"
