"""Random programs of ten lines: operations, indices, copies, threads, exceptions and garbage. A program may
end with an exception, but not with a signal.

    python random_programs.py COUNT [SEED [WORKERS [rich]]]

Rich programs each have shares of a batch, nested tapes, exact derivatives and exceptions of Python; others may have them.

Each worker runs many programs; after a crash another one goes on behind the program that crashed, which is
printed.
"""
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

UNARY = ("exp", "tanh", "sigmoid", "relu", "gelu", "softmax", "log_softmax", "logsumexp", "negate", "abs", "detach",
         "keep", "squeeze", "transpose", "numpy", "tolist", "item", "argmax", "min", "l2_normalize", "requires_grad_")
FUNCTIONS = ("np.exp({0})", "np.arctan({0})", "np.asarray({0})", "copy.copy({0})", "copy.deepcopy({0})",
             "pickle.loads(pickle.dumps({0}))", "sb.tensor({0})", "sb.from_dlpack({0})", "np.from_dlpack({0})",
             "sb.from_numpy({0}.numpy())", "{0}.cast({2!r})", "{0}.to('cpu')", "repr({0})", "{0}._repr_html_()",
             "{0}.reshape({1}, -1)", "{0}.reshape({1})", "{0}.permute({1}, 0)", "{0}.transpose({1}, -1)", "{0}.T",
             "{0}.sum({1})", "{0}.mean(({1}, 0), True)", "{0}.std({1})", "{0}.max({1})", "{0}.softmax({1})", "{0}.grad",
             "{0}.assign({1})", "{0}.backward()", "{0}.sum().backward()", "{0}.backward({0})", "{0}.topk({1})",
             "{0}.split({1}, [1, 2])", "{0}.expand(2, {1}, 3)", "{0}.dropout(0.5)", "{0}.clamp({1}, 2)", "{0}.pow({1})",
             "sb.layer_norm({0}, sb.ones(3))", "sb.gradcheck(lambda t: t * {0}, {0})", "sb.jvp(sb.exp, {0}, {0})",
             "sb.hvp(lambda t: (t * t).sum(), {0}, {0})", "sb.masked_softmax({0}, sb.mask_causal() & sb.mask_window({1}, 0))",
             "sb.masked_softmax({0}, sb.mask_lengths({0}))", "own({0})", "lying({0})", "failing({0})", "layer({0})",
             "layer({0}).sum().backward()", "adam.step()", "weights.clear()", "weights.clip(1.0)", "copy.copy(weights)",
             "weights.freeze('*', {1} > 0)", "weights.add('w{1}', ({1}, 2), 0.5)", "weights.get({1})", "weights.name({1})",
             "sb.randn({1}, 3)", "sb.zeros(({1}, {1}))", "sb.arange({1})", "sb.cross_entropy({0}, [0, {1}])",
             "sb.embedding({0}, [0, {1}])", "sb.gather({0}, [{1}, 0])", "data.next().get('source')", "sb.Adam(weights)",
             "sb.batch(source={0}, other={0})", "model.loss(data.next())", "model.loss(sb.batch(source={0}))",
             "{0}.sum(dim={1}, keepdim=True)", "{0}.mean(axis=({1}, 0), keepdims=True)", "{0}.softmax(dim={1}, axis=0)", "sb.zeros({1}, 3)",
             "sb.ones(2, {1}, dtype=np.float32)", "{0}.cast(np.dtype('float64'))", "sb.from_dlpack({0}.numpy()[::-1])", "next(turn[{1} % 2])",
             "turn.pop().close()", "model.translate('1 2')", "trainer.step().loss", "memoryview({0})", "len({0})", "list({0})")
BINARY = ("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} @ {1}", "{0} @ {1}.T", "{0} ** {1}", "{0} > {1}",
          "sb.where({0} > 0, {0}, {1})", "sb.concatenate([{0}, {1}], 0)", "sb.stack([{0}, {1}], -1)", "sb.linear({0}, {1})",
          "np.maximum({0}, {1})", "sb.einsum('ij,kj->ik', {0}, {1})", "sb.einsum('...i,...i', {0}, {1})", "{0}[{1}]",
          "{0}[{1} > 0]", "sb.attention({0}[None, :, None], {1}[None, :, None], {1}[None, :, None])", "2 * {0} + {1}",
          "{0}.assign({1})", "{0}.backward({1})", "sb.mean_squared_error({0}, {1})", "sb.maximum({0}, {1})", "own({0} * {1})")
INDICES = ("0", "-1", "5", "...", "None", "::2", "::-1", "1:", "[0, 1]", "[0, -1, 0]", "[]", "[True, False]", "..., 0",
           "None, ..., None", "0, 1", ":, [1, 0]", "[0, 1], [1, 0]", ":, ::2", "2**70", "1.5", "'a'", "0:0")
STATEMENTS = ("gc.collect()", "del {0}", "x.clear()", "threads(lambda: {1})", "1 / 0", "raise KeyError({0})", "{0}.keep()",
              "kept.append({0}.numpy())", "{0}.numpy()[...] = 2", "sb.set_threads({2})", "del weights", "del layer",
              "del model, data", "weights.lora(rank=1)", "del {0}.grad", "{0}.requires_grad = {2}", "shares(lambda: {1}, {2})",
              "shares(lambda: {1}, 3)", "shares(lambda: shares(lambda: {1}, 2), 3)", "shares(lambda: threads(lambda: {1}), 2)",
              "sb.hvp(lambda t: ({1}, (t * t).sum())[1], {0}, {0})", "sb.jvp(lambda t: ({1}, t * t)[1], np.ones(2), np.ones(2))",
              "shares(lambda: sb.hvp(lambda t: ({1}, (t * t).sum())[1], np.ones(2), np.ones(2)), 4)", "shares(lambda: fork(lambda: {1}), 3)",
              "sb.gradcheck(lambda t: ({1}, t * t)[1], np.ones(2))", "sb.hvp(lambda t: (shares(lambda: {1}, 2), t.sum())[1], {0}, {0})",
              "shares(lambda: 1 / 0, 3)", "shares(lambda: own({0} * {0}).sum().backward(), 3)", "shares(lambda: failing({0}).sum().backward(), 3)")


def threads(work):
    """Two threads that do the same."""
    import threading

    def run():
        try:
            work()
        except Exception:
            pass

    both = [threading.Thread(target=run) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(20)


def fork(work):
    """A child that does it, and ends."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            work()
        finally:
            os._exit(0)
    if os.waitpid(child, 0)[1]:
        os.kill(os.getpid(), signal.SIGABRT)


def expression(rng):
    tensor = lambda: f"x[{rng.randrange(6)}]"  # noqa: E731
    kind = rng.random()
    if kind < 0.2:
        return f"{tensor()}.{rng.choice(UNARY)}()"
    if kind < 0.55:
        return rng.choice(FUNCTIONS).format(tensor(), rng.choice((0, 1, 2, 3, -1, 6, 2**70)), rng.choice(("f32", "f64", "bf16", "i32", "bool")))
    if kind < 0.85:
        return rng.choice(BINARY).format(tensor(), tensor())
    return f"{tensor()}[{rng.choice(INDICES)}]"


RICH = (r"shares\(", r"(?m)^ +with sb\.Tape", r"(hvp|jvp|gradcheck)\(", r"1 / 0|raise KeyError|failing\(")


def program(seed, rich=False):
    """Ten lines: most of them make a tensor of others, on tapes or outside; some fail. A rich one has all of RICH."""
    rng = random.Random(seed)
    while True:
        text = "\n".join(drawn(rng))
        if not rich or all(re.search(part, text) for part in RICH):
            return text


def drawn(rng):
    lines, depth = [], 0
    for _ in range(10):
        kind, space = rng.random(), "    " * depth
        if kind < 0.15 and depth < 3:
            lines.append(f"{space}with sb.Tape({rng.choice(('', '', 'record=False', 'random=sb.Random(1)'))}):")
            depth += 1
            space = "    " * depth
        elif kind < 0.2 and depth:
            depth -= 1
            space = "    " * depth
        line = f"x[{rng.randrange(6)}] = {expression(rng)}"
        if rng.random() < 0.15:
            line = rng.choice(STATEMENTS).format(f"x[{rng.randrange(6)}]", expression(rng), rng.choice((1, 2, 0, 10**6)))
        lines.append(space + (line if rng.random() < 0.1 else f"with attempt: {line}"))
    return lines


class Attempt:
    """Most failures do not end a program."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, Exception)


def turn(sb):
    """A generator that opens tapes, and waits before backward."""
    while True:
        x = sb.ones(2, requires_grad=True)
        with sb.Tape():
            yield x
            (x * x).sum().backward()
        yield x.grad


def names():
    """What programs use; each has its own."""
    import copy
    import gc
    import pickle

    import numpy as np
    import softback as sb
    weights = sb.Parameters(1)
    layer, data = sb.LinearLayer(weights, "layer", 3, 2), sb.Data.task("copy", 1)
    model = sb.Seq2Seq(sb.Parameters(1), data, width=8, heads=2, encoder_layers=1, decoder_layers=1)
    sb.set_threads(3)

    def shares(body, n):
        return sb.backward_in_shares(weights, 6, n, lambda first, count: (body(), layer(sb.ones((count, 3))).sum())[1])

    a = np.linspace(-1, 2, 6, dtype="f4").reshape(2, 3)
    x = {0: sb.tensor(a, requires_grad=True), 1: sb.tensor(a, requires_grad=True), 2: sb.tensor(a), 3: sb.from_numpy(a),
         4: sb.ones((3,), requires_grad=True), 5: sb.tensor([1, 0])}
    return dict(copy=copy, gc=gc, pickle=pickle, np=np, sb=sb, weights=weights, layer=layer, data=data, model=model, x=x,
                adam=sb.Adam(weights), trainer=sb.Trainer(model, data, learning_rate=0.01), kept=[], attempt=Attempt(),
                threads=threads, fork=fork, shares=shares, turn=[turn(sb), turn(sb)], own=sb.operation(lambda t: (t * 2, lambda dy: 2 * dy)),
                lying=sb.operation(lambda t: (t * 2, lambda dy: dy.sum())),
                failing=sb.operation(lambda t: (t, lambda dy: 1 / 0)))


def work(first, end, step, rich, log):
    """The programs of one worker, each announced before it runs; what they print goes nowhere."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    for seed in range(first, end, step):
        log.seek(0)
        log.write(f"{seed:20}")
        log.flush()
        signal.alarm(60)  # a program that hangs is a crash
        try:
            exec(program(seed, rich), names())
        except Exception:
            pass


def run(count, seed=0, workers=2, rich=False):
    """The programs that crashed: [(seed, signal)]."""
    crashed, running = [], {}
    with tempfile.TemporaryDirectory() as folder:
        def start(worker, first):
            path = os.path.join(folder, f"{worker}.{first}")
            open(path, "w").close()
            arguments = [sys.executable, __file__, "--work", str(first), str(seed + count), str(workers), str(int(rich)), path]
            running[subprocess.Popen(arguments, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)] = worker, path

        for worker in range(workers):
            start(worker, seed + worker)
        while running:
            while not (ended := [process for process in running if process.poll() is not None]):
                time.sleep(0.05)
            process, code = ended[0], ended[0].returncode
            worker, path = running.pop(process)
            if code != 0:
                with open(path) as log:
                    last = int(log.read() or seed)
                crashed.append((last, code))
                print(f"program {last} ended with {code}:\n{program(last, rich)}\n", flush=True)
                start(worker, last + workers)
    return crashed


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        with open(sys.argv[6], "r+") as announced:
            work(*map(int, sys.argv[2:6]), announced)
    else:
        found = run(*map(int, sys.argv[1:4]), rich=sys.argv[4:] == ["rich"])
        print(f"{len(found)} of {sys.argv[1]} programs crashed")
        sys.exit(bool(found))
