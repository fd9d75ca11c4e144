"""The worker of PyTorch: torch_worker.py [--fused] [--bf16] [--compile]

Without options it is PyTorch in eager mode. --fused uses the fused Adam, --bf16 autocasts training
to bf16, --compile compiles the model.
"""
import contextlib
import os
import sys
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from protocol import measure, serve
from torch_models import LanguageModel, Seq2seq

FUSED, BF16, COMPILE = (option in sys.argv for option in ("--fused", "--bf16", "--compile"))
BATCHES, CHECKED_STEPS = 4, 3


def timed(function):
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def new_adam(parameters):
    """softback's defaults."""
    more = dict(fused=True) if FUSED else {}
    return torch.optim.Adam(parameters, lr=1e-3, betas=(0.9, 0.98), eps=1e-9, **more)


class Training:
    def __init__(self, sizes, path, make, names):
        held = load_file(path)
        self.batches = [[held.pop(f"batch.{b}.{name}").long() for name in names]
                        for b in range(BATCHES)]
        self.model = make(held, sizes)
        self.adam = new_adam(self.model.parameters())
        self.run = torch.compile(self.model) if COMPILE else self.model
        self.steps = 0

    def train(self):
        batch = self.batches[self.steps % BATCHES]
        self.steps += 1
        self.adam.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16) if BF16 else contextlib.nullcontext():
            loss = self.run(*batch)
        loss.backward()
        self.adam.step()
        return loss.item()

    def step(self):
        return timed(self.train)

    def check(self):
        return [self.train() for _ in range(CHECKED_STEPS)]


def seq2seq(sizes, path):
    return Training(sizes, path, Seq2seq, ["source", "target_in", "target_out"])


def language_model(sizes, path):
    """Each symbol is predicted from those before it, the first from "begin"."""
    return Training(sizes, path, LanguageModel, ["target_in", "target_out"])


class Operation:
    """y = f(x...), and backward from dy, or from y if it is a loss."""

    def __init__(self, f, inputs, dy=None, turned=False):
        self.f, self.inputs, self.turned = f, [x.requires_grad_() for x in inputs], turned
        self.dy = dy

    def run(self):
        for x in self.inputs:
            x.grad = None
        y = self.f(*self.inputs)
        y.backward(self.dy)
        return y

    def step(self):
        return timed(self.run)

    def check(self):
        """In softback's order of elements, with heads after positions."""
        results = [self.run().detach()] + [x.grad for x in self.inputs]
        return [measure((x.transpose(1, 2) if self.turned else x).contiguous().numpy())
                for x in results]


def attention(sizes, path):
    """In PyTorch's order of axes, (B, H, L, D)."""
    held = {name: x.transpose(1, 2).contiguous() for name, x in load_file(path).items()}
    causal = bool(sizes.get("causal"))
    return Operation(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
                     [held["q"], held["k"], held["v"]], held["dy"], turned=True)


def softmax(sizes, path):
    held = load_file(path)
    return Operation(lambda x: F.softmax(x, -1), [held["x"]], held["dy"])


def layer_norm(sizes, path):
    held = load_file(path)
    return Operation(lambda x, gain, bias: F.layer_norm(x, gain.shape, gain, bias),
                     [held["x"], held["gain"], held["bias"]], held["dy"])


def cross_entropy(sizes, path):
    held = load_file(path)
    ids = held["ids"].long()
    return Operation(lambda x: F.cross_entropy(x, ids), [held["x"]])


class Adam:
    def __init__(self, sizes, path):
        held = load_file(path)
        self.gradients = [held["gradient.0"], held["gradient.1"]]
        self.w = torch.zeros(sizes["size"], requires_grad=True)
        self.w.grad = torch.empty_like(self.w)
        self.adam = new_adam([self.w])
        self.steps = 0

    def step(self):
        """The gradient is copied before the clock runs, as in softback."""
        self.w.grad.copy_(self.gradients[self.steps % 2])
        self.steps += 1
        return timed(self.adam.step)

    def check(self):
        for _ in range(CHECKED_STEPS):
            self.step()
        return [measure(self.w.detach().numpy())]


def version():
    return {"version": f"PyTorch {torch.__version__}", "threads": torch.get_num_threads(),
            "products": torch.backends.cpu.get_cpu_capability()}


torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
torch.manual_seed(1)
serve(version, {"seq2seq": seq2seq, "language_model": language_model, "attention": attention,
                "softmax": softmax, "layer_norm": layer_norm, "cross_entropy": cross_entropy,
                "adam": Adam})
