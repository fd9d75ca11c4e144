"""The same program as gpt.c in Python, with the same numbers: a GPT with its own training loop learns
sums, such as "7+5=12 3+4=07 ", and writes new ones."""
import sys

import numpy as np
import softback as sb

LETTERS, WIDTH, LENGTH, BATCH, STEPS = 128, 64, 32, 32, 600
SUM, ROWS, SUMS = 7, 128 * 7, 40

random = sb.random_new(1, "user")


def one_sum():
    a, b = sb.random_below(random, 10), sb.random_below(random, 10)
    return f"{a}+{b}={a + b:02} "


text = "".join(one_sum() for _ in range(ROWS * (LENGTH + 1) // SUM))
rows = sb.tensor(np.array([ord(letter) for letter in text]).reshape(ROWS, LENGTH + 1))

weights = sb.Parameters(1)
gpt = sb.Decoder(weights, "gpt", LETTERS, crosses=False, width=WIDTH, decoder_layers=2)
head = sb.OutputHead(weights, "output", WIDTH, LETTERS)
adam = sb.Adam(weights, learning_rate=0.003)


def train():
    for step in range(1, STEPS + 1):
        with sb.Tape():
            first = step * BATCH % ROWS
            batch = rows[first : first + BATCH]
            y = gpt(batch[:, :LENGTH])
            loss = head.loss(y, batch[:, 1:])
            loss.backward()
            adam.step()
            if step % 100 == 0:
                print(f"step {step}  loss {loss.item():.3f}")


def next_letter(written):
    """Draws the letter that follows LENGTH others by its probability."""
    y = gpt(np.array([[ord(letter) for letter in written[-LENGTH:]]], "i4"))
    return chr(sb.sample(head.logits(y[0, -1]), random))


def main():
    train()
    written = text
    for _ in range(SUMS * SUM):
        written += next_letter(written)
    written = written[len(text):]
    right = 0
    for i in range(0, len(written), SUM):
        try:
            a, rest = written[i : i + SUM].split("+")
            b, c = rest.split("=")
            right += int(a) + int(b) == int(c)
        except ValueError:
            pass  # not a sum
    print(f"{written}\n{right} of {SUMS} sums are right")
    return 0 if right >= 0.7 * SUMS else 1


if __name__ == "__main__":
    sys.exit(main())
