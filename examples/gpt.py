"""gpt.c in Python, with the same numbers: `python gpt.py <README.md` learns to predict bytes, and writes
a text like that."""
import sys

import numpy as np
import softback as sb
from numpy.typing import NDArray

BYTES, WIDTH, LENGTH, BATCH, SHARES, STEPS, WRITTEN = 256, 64, 64, 16, 4, 600, 400
WINDOW = LENGTH + 1
Bytes = NDArray[np.int32]

weights = sb.Parameters(1)
embedding = sb.EmbeddingLayer(weights, "embedding", BYTES, width=WIDTH, heads=4)
first, second = (sb.DecoderLayer(weights, name, width=WIDTH, heads=4) for name in ("first", "second"))
norm, head = sb.NormLayer(weights, "norm", WIDTH), sb.OutputHead(weights, "head", WIDTH, BYTES)
adam = sb.Adam(weights, learning_rate=0.003)
causal = {"mask": sb.mask_causal()}


def gpt(text: sb.Tensor | Bytes) -> sb.Tensor:
    """bytes (B, L) -> (B, L, WIDTH), from which the head predicts the next byte at each place"""
    x = embedding(text)
    x = first(x, self_=causal)
    x = second(x, self_=causal)
    return norm(x)


def train(text: Bytes, n: int) -> None:
    for step in range(1, STEPS + 1):
        at = step * BATCH * WINDOW % n
        batch = text[at : at + BATCH * WINDOW].reshape(BATCH, WINDOW)

        def loss(first: int, count: int) -> sb.Tensor:
            """What some sequences of the batch add to its mean loss; threads share them."""
            bytes = sb.tensor(batch[first : first + count])
            return head.loss(gpt(bytes[:, :LENGTH]), bytes[:, 1:]) * (count / BATCH)

        mean = sb.backward_in_shares(weights, BATCH, SHARES, loss)
        adam.step()
        print(f"step {step}  loss {mean:.3f}", end="\r" if step % 100 else "\n")


def main() -> None:
    read = np.frombuffer(sys.stdin.buffer.read(1 << 20), "u1").astype("i4")
    # zeros before and after what is read
    text = np.concatenate([np.zeros(LENGTH, "i4"), read, np.zeros(BATCH * WINDOW, "i4")])
    n = LENGTH + len(read)
    train(text, n)
    random = sb.Random(1, "user")
    for n in range(n, n + WRITTEN):
        y = gpt(text[n - LENGTH : n].reshape(1, LENGTH))
        text[n] = sb.sample(head.logits(y[0, -1]), random)
    print(bytes(text[n - WRITTEN + 1 : n + 1].tolist()).decode(errors="replace"))


if __name__ == "__main__":
    main()
