"""The cost of a call in Python above that in C, and of a training loop: python call_cost.py C_PROGRAM."""
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


def main(program):
    x = sb.full((4, 4), 0.5, requires_grad=True)
    w, b = sb.full((4, 4), 0.25), sb.full((4,), 0.125)
    calls = {"add": lambda: sb.add(x, x), "softmax": lambda: sb.softmax(x),
             "matmul": lambda: sb.matmul(x, w), "linear": lambda: sb.linear(x, w, b)}
    in_c = dict(line.split() for line in subprocess.check_output([program], text=True).splitlines())
    worst = 0
    for name, call in calls.items():
        here, there = 1e9 * min(one_run(call) for _ in range(RUNS)), float(in_c[name])
        worst = max(worst, here - there)
        print(f"{name:8} C {there:6.0f} ns  Python {here:6.0f} ns  more {here - there:6.0f} ns")
    print(f"at most {worst:.0f} ns more")
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) > 2000)
