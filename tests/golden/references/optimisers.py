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
    groups(r)


GROUP_STEPS = 50


def groups(r):
    """50 steps of AdamW with groups of their own rate and decay; `late` has a gradient at every
    third step alone, and rates change after half of the steps."""
    shapes = {"norm.gain": (5,), "encoder.weight": (4, 3), "encoder.bias": (4,), "late": (2, 2),
              "head.weight": (3, 4)}
    start = {key: r.normal(*shape) for key, shape in shapes.items()}
    gradients = {key: r.normal(GROUP_STEPS, *shape) for key, shape in shapes.items()}
    options = {"norm.gain": {"weight_decay": 0.0}, "encoder.weight": {"lr": 0.001},
               "encoder.bias": {"lr": 0.001, "weight_decay": 0.0},
               "late": {"weight_decay": 0.5}, "head.weight": {"lr": 0.02, "weight_decay": 0.1}}
    p = {key: t.clone().requires_grad_() for key, t in start.items()}
    optimiser = torch.optim.AdamW([{"params": [p[key]], **options[key]} for key in p], lr=0.01,
                                  betas=(0.9, 0.98), eps=1e-8, weight_decay=0.2)
    for step in range(GROUP_STEPS):
        for key in p:
            has = key != "late" or step % 3 == 0
            p[key].grad = gradients[key][step].clone() if has else None
        if step == GROUP_STEPS // 2:
            for group in optimiser.param_groups:
                group["lr"] /= 4
        optimiser.step()
    for key in start:
        r.put(f"groups.start.{key}", start[key])
        r.put(f"groups.gradients.{key}", gradients[key])
        r.put(f"groups.after.{key}", p[key])
