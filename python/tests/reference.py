"""The stored results of PyTorch (tests/golden/references_*.safetensors), and their limits."""
from pathlib import Path

import numpy as np
import softback as sb

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"


class References:
    def __init__(self, theme):
        self.file = sb.SafeTensors(str(GOLDEN / f"references_{theme}.safetensors"))
        self.names = [self.file.name(i) for i in range(self.file.count())]

    def cases(self, group):
        return {n.split("/")[1].rsplit(".", 1)[0] for n in self.names
                if n.startswith(group + "/") and n.endswith(".y")}

    def read(self, name, dtype=None, gradient=None):
        """The tensor, its reals in a dtype; a leaf where the file has the gradient. None: no such one."""
        if name not in self.names:
            return None
        array = self.file.tensor(name).numpy()
        kind = dtype if array.dtype.kind == "f" else None
        return sb.tensor(array, dtype=kind, requires_grad=gradient in self.names)

    def input(self, path, last, dtype):
        return self.read(f"{path}.{last}", dtype, f"{path}.d.{last}")

    def expect(self, name, got, largest=0.0):
        """In float64 to 1e-10; in float32 to twice PyTorch's own error, or 8 ulp of the largest."""
        expected = self.file.tensor(name).numpy()
        scale = max(largest, np.abs(expected).max(initial=0))
        limit = 1e-10 * scale
        if got.dtype == "f32":
            limit = max(2 * self.file.tensor(name + "~").item(), 8 * 2.0**-23 * scale)
        assert got.shape == expected.shape, name
        assert np.abs(got.numpy().astype("f8") - expected).max(initial=0) <= limit, name

    def read_weights(self, path, weights):
        for name, w in weights.items():
            w.assign(self.file.tensor(f"{path}.{name}").numpy())

    def expect_weights(self, path, weights):
        """A key's bias has no gradient but for rounding: it is measured by the largest of all."""
        largest = max(np.abs(self.file.tensor(f"{path}.d.{name}").numpy()).max()
                      for name, _ in weights.items())
        for name, w in weights.items():
            self.expect(f"{path}.d.{name}", w.grad, largest if "key.bias" in name else 0)

    def compare(self, path, f, dtype):
        """The value of f and the gradients of its inputs."""
        x = [self.input(path, str(i), dtype) for i in range(8)]
        dy = self.read(path + ".dy", dtype)
        with sb.Tape():
            y = f(*x).keep()
            if dy is not None:
                y.backward(dy)
        self.expect(path + ".y", y)
        for i, t in enumerate(x):
            if f"{path}.d.{i}" in self.names:
                self.expect(f"{path}.d.{i}", t.grad)
