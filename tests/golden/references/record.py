"""Cases of a theme, and their file.

A case "group/case" has the tensors

    group/case.0, .1, ...       the inputs, by number (operations) or by name (layers, models)
    group/case.y, .dy           the result, and its given gradient
    group/case.d.0, ...         the gradients of inputs and weights that have one
    group/case.y~, .d.0~, ...   the largest error of PyTorch's own float32 results
"""

import copy
import zlib

import torch
from safetensors.torch import save_file


class Constant:
    """A real input without a gradient."""

    def __init__(self, value):
        self.value = value


class Record:
    def __init__(self, theme):
        self.tensors = {}
        self.random = torch.Generator().manual_seed(zlib.crc32(theme.encode()))

    def normal(self, *shape):
        return torch.randn(shape, generator=self.random).double()

    def uniform(self, low, high, *shape):
        return (low + (high - low) * torch.rand(shape, generator=self.random)).double()

    def ids(self, V, *shape):
        return torch.randint(V, shape, generator=self.random)

    @staticmethod
    def leaf(t, dtype):
        """A leaf of the dtype; ids, lengths and booleans unchanged."""
        return t.detach().to(dtype).requires_grad_() if t.is_floating_point() else t

    def put(self, name, tensor):
        """Reals that float32 represents exactly are stored in it: inputs, weights, some results."""
        tensor = tensor.detach()
        if tensor.dtype == torch.int64:
            tensor = tensor.int()
        if tensor.dtype == torch.float64 and torch.equal(tensor.float().double(), tensor):
            tensor = tensor.float()
        assert name not in self.tensors, name
        self.tensors[name] = tensor.clone().contiguous()

    def expect(self, name, exact, single):
        self.put(name, exact)
        if exact.is_floating_point():
            self.tensors[name + "~"] = (single.double() - exact).abs().max().detach()

    def case(self, name, function, *inputs):
        """An operation: float64 inputs are leaves, unless they are Constant."""
        constant = [isinstance(x, Constant) for x in inputs]
        inputs = [x.value if isinstance(x, Constant) else x for x in inputs]
        dy = None
        results = []
        for dtype in torch.float64, torch.float32:
            x = [self.leaf(t, dtype) if not fixed else t.to(dtype)
                 for t, fixed in zip(inputs, constant)]
            y = function(*x)
            if y.requires_grad:
                dy = self.normal(*y.shape) if dy is None else dy
                y.backward(dy.to(dtype))
            results.append((y, {i: t.grad for i, t in enumerate(x) if t.grad is not None}))
        for i, t in enumerate(inputs):
            self.put(f"{name}.{i}", t)
        (y, exact), (y_single, single) = results
        self.expect(f"{name}.y", y, y_single)
        if dy is not None:
            self.put(f"{name}.dy", dy)
        for i in exact:
            self.expect(f"{name}.d.{i}", exact[i], single[i])

    @staticmethod
    def run(module, forward, names, inputs, dy, dtype):
        """y and the gradients of real inputs and of weights."""
        m = copy.deepcopy(module).to(dtype)
        x = {key: Record.leaf(t, dtype) for key, t in inputs.items()}
        y = forward(m, x)
        y.backward(dy.to(dtype))
        gradients = {key: t.grad for key, t in x.items() if t.grad is not None}
        weights = dict(m.named_parameters())
        for own, (theirs, rows) in names(m).items():
            gradients[own] = weights[theirs].grad[rows]
        return y, gradients

    def module(self, name, module, forward, names, **inputs):
        """A layer or model with float64 weights: forward(module, inputs) gives y; names(module)
        gives softback's names of its weights, each with PyTorch's name and its rows. Real
        inputs are leaves."""
        dy = self.normal(*forward(module, inputs).shape)
        y, exact = self.run(module, forward, names, inputs, dy, torch.float64)
        y_single, single = self.run(module, forward, names, inputs, dy, torch.float32)
        for key, t in inputs.items():
            self.put(f"{name}.{key}", t)
        self.weights(name, module, names)
        self.expect(f"{name}.y", y, y_single)
        self.put(f"{name}.dy", dy)
        for key in exact:
            self.expect(f"{name}.d.{key}", exact[key], single[key])

    def measure_again(self, name, single):
        """Another float32 result of PyTorch for an existing entry: the largest error counts."""
        error = (single.double() - self.tensors[name].double()).abs().max()
        self.tensors[name + "~"] = self.tensors[name + "~"].maximum(error.detach())

    def weights(self, name, module, names):
        weights = dict(module.named_parameters())
        for own, (theirs, rows) in names(module).items():
            self.put(f"{name}.{own}", weights[theirs][rows])

    def draw_weights(self, module):
        """Float64 weights of a useful size for all parameters, none of them 0 or 1."""
        module.double()
        for key, p in module.named_parameters():
            mean = 1 if "norm" in key and key.endswith("weight") else 0
            deviation = p.shape[-1] ** -0.5 if p.dim() > 1 else 0.2
            p.data = (mean + deviation * self.normal(*p.shape)).float().double()
        return module

    def save(self, path):
        save_file(self.tensors, path)
