"""What the library's objects and layers have in common in Python."""
import ctypes

from .tensors import check, found


class Object:
    """An object of the library. It is freed when nothing in Python uses it, after what depends on it."""

    free = None  # the function of C that frees it
    _c, owned, kept = None, False, ()

    def __init__(self, *_, **__):
        ways = [n for n, f in vars(type(self)).items() if isinstance(f, staticmethod)]
        raise TypeError(f"{type(self).__name__}: make one with {', '.join(ways)}")

    def take(self, pointer, kept):
        self._c = self._as_parameter_ = check(pointer)
        self.owned, self.kept = True, kept  # `kept` must not be freed before this object

    def __del__(self):
        if self.owned and type(self).free:
            type(self).free(self._c)

    def __repr__(self):
        return f"<softback {type(self).__name__}>"


class Layer(Object):
    """A layer: a struct, whose fields are attributes."""

    struct = None

    def prepare(self, kept):
        self.fields = self.struct()
        self._as_parameter_ = ctypes.byref(self.fields)
        self.kept = kept

    def __getattr__(self, name):
        if name.startswith("_") or name == "fields" or name not in self.struct.kinds:
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        value, kind = getattr(self.fields, name), self.struct.kinds[name]
        if kind == "sb_tensor *":
            return found(value)
        if hasattr(value, "kinds"):  # a layer in this one
            inner = object.__new__(Layer)
            inner.struct, inner.fields, inner.kept = type(value), value, [self]
            return inner
        return value
