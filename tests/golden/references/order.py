"""The same model with its width, heads, hidden units and sequences in another order: every sum has
the same terms, rounded differently. Many gradients of a model are small because terms cancel; then
a single float32 result is a poor estimate of PyTorch's error, and the largest of several is used."""

import copy

import torch

from .layers import C, HEADS, HIDDEN


class Order:
    def __init__(self, r, sentences):
        def shuffle(n):
            return torch.randperm(n, generator=r.random)

        size = C // HEADS
        heads = (shuffle(HEADS)[:, None] * size + shuffle(size)).flatten()
        projections = torch.cat([heads, C + heads, 2 * C + heads])
        self.sentences, self.width, hidden = shuffle(sentences), shuffle(C), shuffle(HIDDEN)
        self.axes = {"embedding.weight": (None, self.width),
                     "in_proj_weight": (projections, self.width), "in_proj_bias": (projections,),
                     "out_proj.weight": (self.width, heads),
                     "linear1.weight": (hidden, self.width), "linear1.bias": (hidden,),
                     "linear2.weight": (self.width, hidden),
                     "output.weight": (None, self.width), "output.bias": (None,)}

    def axes_of(self, name):
        """The order of each axis of a weight, None where it stays; norms and biases have width."""
        return next((axes for end, axes in self.axes.items() if name.endswith(end)), (self.width,))

    @staticmethod
    def take(t, axes):
        for axis, order in enumerate(axes):
            t = t if order is None else t.index_select(axis, order)
        return t

    def put_back(self, t, name):
        return self.take(t, [None if o is None else o.argsort() for o in self.axes_of(name)])

    def run(self, model, forward, names, inputs, dy):
        """y, and the gradients of all weights in their usual order, in float32."""
        m = copy.deepcopy(model).float()
        m.encoder.width = m.decoder.width = self.width
        for name, p in m.named_parameters():
            p.data = self.take(p.data, self.axes_of(name))
        y = forward(m, {key: t[self.sentences] for key, t in inputs.items()})
        y.backward(dy.float())
        gradients = {name: self.put_back(p.grad, name) for name, p in m.named_parameters()}
        return y, {own: gradients[theirs][rows] for own, (theirs, rows) in names(m).items()}
