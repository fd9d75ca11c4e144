"""Losses of 50 training steps in float64, without dropout, over ten batches in turn."""

import torch

from .layers import names
from .models import Seq2seq, batch

STEPS, BATCHES = 50, 10


def train(r, name, model, names, batches, steps, make, rate=lambda step: 1.0, clip=None,
          label_smoothing=0.0):
    """Draws the weights, trains, and stores both weights and losses."""
    r.draw_weights(model)
    r.weights(name, model, names)
    optimiser = make(model.parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda done: rate(done + 1))
    losses = []
    for step in range(steps):
        loss = model.loss(**batches[step % len(batches)], label_smoothing=label_smoothing)
        optimiser.zero_grad()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimiser.step()
        schedule.step()
        losses.append(loss.detach())
    print(f"{name}: loss {losses[0]:.3f} .. {losses[-1]:.3f}")
    r.put(f"losses.{name}", torch.stack(losses))


def add(r):
    batches = [batch(r, 4, 5) for _ in range(BATCHES)]
    for i, one in enumerate(batches):
        for key, t in one.items():
            r.put(f"batch.{i}.{key}", t)

    def case(name, model, make, **options):
        train(r, name, model, names, batches, STEPS, make, **options)

    case("pre", Seq2seq(True), lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.9, 0.98), eps=1e-9))
    case("post", Seq2seq(False, tied=True),
         lambda p: torch.optim.AdamW(p, lr=0.02, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.01),
         rate=lambda step: min(step / 10, (10 / step) ** 0.5), clip=1.0, label_smoothing=0.1)
    case("momentum", Seq2seq(True, tied=True, shared=True, activation="gelu"),
         lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
         clip=0.5)
