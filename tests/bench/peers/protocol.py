"""What the peers' workers share: the protocol of program/bench/worker.c.

A line "open KIND KEY=NUMBER ... file=FILE" makes a job from FILE, which softback has exported. A job has check(), the numbers that every library must get, and step(), which returns its
seconds.
"""
import json
import os
import sys

import numpy as np


def sizes_of(words):
    """The numbers of a line's words, and its file."""
    pairs = dict(word.split("=", 1) for word in words)
    path = pairs.pop("file")
    return {key: float(value) if key == "dropout" else int(value)
            for key, value in pairs.items()}, path


def measure(x):
    """sqrt(sum of (1 + i mod 7) x_i^2), as in job_add_measure."""
    x = np.asarray(x, dtype=np.float32).reshape(-1)
    total = 0.0
    for i in range(7):
        part = x[i::7].astype(np.float64)
        total += (1 + i) * float(part @ part)
    return total ** 0.5


def sinusoids(length, width):
    """The table of sb_sinusoidal: sine and cosine alternate."""
    angle = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(length, width).astype(np.float32)


def serve(version, kinds):
    """Answers lines until the input ends. The output of libraries goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(value):
        print(json.dumps(value), file=answers, flush=True)

    answer({"ready": True})
    job = None
    for line in sys.stdin:
        command, *words = line.split()
        try:
            if command == "machine":
                answer(version())
            elif command == "open":
                job = None
                sizes, path = sizes_of(words[1:])
                job = kinds[words[0]](sizes, path)
                answer({})
            elif command == "check":
                answer({"numbers": [float(x) for x in job.check()]})
            elif command == "steps":
                answer({"seconds": [job.step() for _ in range(int(words[0]))]})
            else:
                answer({"error": f"{command} is no command"})
        except Exception as error:  # a failure of a library is reported and does not end the run
            answer({"error": f"{type(error).__name__}: {error}".splitlines()[0]})
