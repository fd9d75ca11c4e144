"""Functions of single elements, the larger or smaller of two, variance, the largest of a row, and
windows of sequences."""

import torch
import torch.nn.functional as F


def add(r):
    functions = {"abs": torch.abs, "sin": torch.sin, "cos": torch.cos, "expm1": torch.expm1,
                 "erf": torch.erf, "clamp": lambda x: x.clamp(-0.75, 1.25),
                 "pow_3": lambda x: x ** 3}
    for name, function in functions.items():
        r.case(f"functions/{name}", function, r.uniform(-5, 5, 3, 21))
    r.case("functions/log1p", torch.log1p, r.uniform(-0.9, 5, 3, 21))
    r.case("functions/pow_half", lambda x: x ** 2.5, r.uniform(0.1, 5, 3, 21))
    r.case("functions/maximum", torch.maximum, r.normal(2, 3, 4), r.normal(3, 1))
    r.case("functions/minimum", torch.minimum, r.normal(3, 1), r.normal(2, 3, 4))
    equal = r.normal(7)
    r.case("functions/maximum_equal", torch.maximum, equal, equal.clone())
    r.case("functions/variance", lambda x: x.var(-1), r.normal(3, 5, 7))
    r.case("functions/variance_first", lambda x: x.var(0, correction=0, keepdim=True),
           r.normal(3, 5))
    r.case("functions/topk", lambda x: x.topk(3).values, r.normal(4, 9))
    for name, stride, dilation, padding in ("unfold", 1, 1, 0), ("unfold_far", 2, 3, 4):
        # their channels are in the middle, and each has its width elements side by side
        r.case(f"functions/{name}", lambda x, d=dilation, p=padding, s=stride: F.unfold(
            x.mT[..., None], (3, 1), (d, 1), (p, 0), (s, 1)).unflatten(1, (4, 3)).permute(
                0, 3, 2, 1).flatten(2), r.normal(2, 7, 4))
    r.case("functions/convolution", lambda x, w, b: F.conv1d(
        x.mT, w.unflatten(1, (3, 4)).mT, b, stride=2, padding=1).mT,
        r.normal(2, 7, 4), r.normal(5, 12), r.normal(5))
