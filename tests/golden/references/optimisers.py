"""Steps of torch.optim with given gradients, on two parameters w (3, 4) and v (5)."""

import torch

STEPS = 8


def add(r):
    start = {"w": r.normal(3, 4), "v": r.normal(5)}
    gradients = {"w": r.normal(STEPS, 3, 4), "v": 0.1 * r.normal(STEPS, 5)}
    gradients = {key: t.float().double() for key, t in gradients.items()}
    for key in start:
        r.put(f"start.{key}", start[key])
        r.put(f"gradients.{key}", gradients[key])

    def steps(make, dtype, clip):
        p = {key: t.to(dtype).clone().requires_grad_() for key, t in start.items()}
        optimiser = make(list(p.values()))
        after = []
        for step in range(STEPS):
            for key in p:
                p[key].grad = gradients[key][step].to(dtype).clone()
            if clip:
                torch.nn.utils.clip_grad_norm_(p.values(), clip)
            optimiser.step()
            after.append({key: t.detach().clone() for key, t in p.items()})
        return {key: torch.stack([a[key] for a in after]) for key in p}

    def case(name, optimiser, clip=None, **options):
        exact, single = [steps(lambda p: optimiser(p, **options), dtype, clip)
                         for dtype in (torch.float64, torch.float32)]
        for key in exact:
            r.expect(f"optimiser/{name}.{key}", exact[key], single[key])

    SGD, Adam, AdamW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
    case("sgd", SGD, lr=0.1)
    case("sgd_decay", SGD, lr=0.1, weight_decay=0.2)
    case("momentum", SGD, lr=0.1, momentum=0.9)
    case("momentum_decay", SGD, lr=0.1, momentum=0.9, weight_decay=0.2)
    case("nesterov", SGD, lr=0.1, momentum=0.8, nesterov=True)
    case("nesterov_decay_clip", SGD, 1.5, lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.2)
    case("adam", Adam, lr=0.01, betas=(0.9, 0.999), eps=1e-8)
    case("adam_usual", Adam, lr=0.001, betas=(0.9, 0.98), eps=1e-9)
    case("adam_decay", Adam, lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2)
    case("adam_clip", Adam, 1.5, lr=0.01, betas=(0.9, 0.98), eps=0.1)
    case("adamw", AdamW, lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.2)
    case("adamw_clip", AdamW, 2.5, lr=0.01, betas=(0.9, 0.98), eps=0.1, weight_decay=0.2)
