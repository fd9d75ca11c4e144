"""Lines that type checkers accept, in strict mode."""
import numpy as np
import softback as sb

x = sb.tensor([1.0, 2.0], requires_grad=True)
a = np.ones((2, 3), dtype=np.float64)
y: sb.Tensor = x + 1
y = 2 * x
y = x - a
y = 1 - x
y = x / 2
y = 2 / x
y = x @ x
y = -x
y = x**2
y = 2**x
y = abs(x)
y = x.exp()
y = x.sum()
y = x.sum((0, 1), True)
y = sb.mean(a, axis=1, keep=True)
y = sb.mean(a, dim=1, keepdim=True) + x.std(axis=0, keepdims=True)
y = x.softmax(-1) + x.softmax(dim=0)
y = sb.stack([x, x], dim=0).transpose(dim0=0, dim1=1)
y = x.reshape(2, 3)
y = x.reshape((2, -1)).T
y = x[0]
y = x[..., 0]
y = x[None, ::2, [0, 1]]
y = x[x > 0]
y = sb.where(x > 0, x, 0.0)
y = sb.einsum("ij,jk->ik", a, x)
y = sb.concatenate([x, x], 0)
y = sb.cross_entropy(a, [0, 1], label_smoothing=0.1, reduction="mean")
y = sb.masked_softmax(x, sb.mask_causal() & sb.mask_window(1, 0))
y = sb.attention(x, x, x, mask=sb.mask_causal(), softcap=None)
y, shares = sb.attention(x, x, x, weights=True)
y, ids = x.topk(2)
parts: list[sb.Tensor] = x.split(0, [1, 1])
y = sb.zeros((2, 3), dtype="bf16").cast("f32").to("cpu")
y = sb.randn(2, 3, random=sb.Random(1)).requires_grad_()
y = sb.arange(3)
y = sb.zeros(2, 3, dtype="float32") + sb.ones(2, 3, dtype=np.float32).cast(np.dtype("float64"))
shape: tuple[int, ...] = x.shape
loss: float = x.sum().item()
text: str = f"{x.sum():.2f}"
wanted: bool = x.requires_grad
gradient: sb.Tensor | None = x.grad
array = x.numpy() + 1
rows = [row.item() for row in x]
with sb.Tape(random=sb.Random(3, "train")) as tape:
    x.sum().backward()
weights = sb.Parameters(1)
count: int = len(weights)
every: list[str] = [name for name in weights]
w: sb.Tensor = weights.add("w", (2, 2), {"kind": "normal", "value": 0.1})
w = weights["w"]
norm: float = weights.clip(1.0)
names = [name for name, _ in weights.items()]
weights.save("weights.safetensors", "first.*")
layer = sb.LinearLayer(weights, "layer", 3, 2)
y = layer(a)
y = layer.weight
adam = sb.AdamW(weights, learning_rate=0.1, schedule={"kind": "cosine", "rate": 0.1, "steps": 10})
adam.step()
data = sb.Data.task("copy", 1)
model = sb.Seq2Seq(weights, data, width=16, heads=2, dropout=0.1, norm_place="post")
trainer = sb.Trainer(model, data, learning_rate=0.1, average_decay=0.9)
loss = trainer.train(3, progress=lambda step, trained: trained.loss > 0).loss
logits, maps = model.logits(data.next(), weights=True)
y = maps["cross"][0]
outputs: list[str] = model.translate_texts(["a b", "c"], beam_width=3)
vocabulary = sb.Vocabulary(["ab"], units="characters")
symbols: list[int] = vocabulary.encode("ab")
passed = bool(sb.gradcheck(lambda t: t * t, a))
value, tangent = sb.jvp(sb.exp, a, a)
score: float = sb.bleu_corpus(["a"], ["a"]).score
