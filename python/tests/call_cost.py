"""What Python costs: a call and a toy training loop beside those of C (wanted: at most 2 us more, and
at least 0.9 of the speed). The least processor time of many runs, since other processes may compute meanwhile.

    OMP_NUM_THREADS=1 python call_cost.py PROGRAM     with PROGRAM made of call_cost.c
"""
import subprocess
import sys
import time

import softback as sb

RUNS, TAPES, CALLS = 300, 2, 100


def one_run(call):
    began = time.thread_time()
    for _ in range(TAPES):
        with sb.Tape():
            for _ in range(CALLS):
                call()
    return (time.thread_time() - began) / (TAPES * CALLS)


def least_step():
    """The same network and steps as in call_cost.c."""
    weights = sb.Parameters(1)
    hidden, last = sb.LinearLayer(weights, "hidden", 128, 256), sb.LinearLayer(weights, "last", 256, 10)
    adam, x, targets = sb.Adam(weights), sb.full((256, 128), 0.5), sb.tensor([i % 10 for i in range(256)])
    least = 1
    for _ in range(2000):
        began = time.thread_time()
        with sb.Tape():
            loss = sb.cross_entropy(last(hidden(x, "relu")), targets)
            loss.backward()
            adam.step()
        least = min(least, time.thread_time() - began)
    return least


def main(program):
    x = sb.full((4, 4), 0.5, requires_grad=True)
    w, b = sb.full((4, 4), 0.25), sb.full((4,), 0.125)
    calls = {"add": lambda: sb.add(x, x), "softmax": lambda: sb.softmax(x),
             "matmul": lambda: sb.matmul(x, w), "linear": lambda: sb.linear(x, w, b)}
    in_c = dict(line.split() for line in subprocess.check_output([program], text=True).splitlines())
    least, worst = dict.fromkeys(calls, 1), 0
    for _ in range(RUNS):  # in turns, so that no slow while falls on one of them alone
        least = {name: min(least[name], one_run(call)) for name, call in calls.items()}
    for name in calls:
        here, there = 1e9 * least[name], float(in_c[name])
        worst = max(worst, here - there)
        print(f"{name:8} C {there:6.0f} ns  Python {here:6.0f} ns  more {here - there:6.0f} ns")
    step, share = 1e9 * least_step(), float(in_c["step"])
    print(f"at most {worst:.0f} ns more; a training step in C {share / 1000:.0f} us, in Python "
          f"{step / 1000:.0f} us: {share / step:.2f} of its speed")


if __name__ == "__main__":
    main(sys.argv[1])
