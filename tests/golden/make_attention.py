#!/usr/bin/env python3
"""Writes attention.safetensors: attention and its gradients of PyTorch, in float64.

Made with PyTorch 2.15 (torch.nn.functional.scaled_dot_product_attention, on the CPU) and
safetensors 0.8. Each case has q, k, v in PyTorch's order (batch, heads, length, size), perhaps a
bias or a boolean "allowed", the gradient dy of the result, the result y, and the gradients dq, dk,
dv and dbias.
"""

import pathlib

import torch
from safetensors.torch import save_file

torch.manual_seed(20)
tensors = {}


def case(name, B, H, G, Lq, Lk, D, Dv, bias=None, allowed=None, causal=False, scale=None):
    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float64)

    leaves = {"q": draw(B, H, Lq, D), "k": draw(B, G, Lk, D), "v": draw(B, G, Lk, Dv)}
    if bias:
        leaves["bias"] = draw(*bias)
    for leaf in leaves.values():
        leaf.requires_grad_(True)
    y = torch.nn.functional.scaled_dot_product_attention(
        leaves["q"], leaves["k"], leaves["v"],
        attn_mask=leaves["bias"] if bias else allowed, is_causal=causal, scale=scale,
        enable_gqa=H != G)
    dy = draw(*y.shape)
    y.backward(dy)
    kept = dict(leaves, y=y, dy=dy)
    kept.update({"d" + leaf: t.grad for leaf, t in leaves.items()})
    if allowed is not None:
        kept["allowed"] = allowed
    tensors.update({f"{name}.{key}": t.detach().contiguous() for key, t in kept.items()})


case("plain", 2, 2, 2, 3, 5, 4, 3)
case("causal", 1, 2, 2, 6, 6, 8, 4, causal=True)
case("groups", 2, 4, 2, 3, 4, 2, 2, scale=0.3)
case("bias", 2, 2, 2, 4, 3, 5, 2, bias=(1, 2, 4, 3))
pairs = torch.rand(2, 1, 4, 7) < 0.6
pairs[..., 0] = True
case("allowed", 2, 2, 2, 4, 7, 3, 3, allowed=pairs)
save_file(tensors, pathlib.Path(__file__).parent / "attention.safetensors")
