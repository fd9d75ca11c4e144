"""The worker of JAX: encoder-decoders; a whole training step is compiled."""
import functools
import math
import sys
import time

import jax
import jax.numpy as jnp
from safetensors.numpy import load_file

from protocol import serve, sinusoids

BATCHES, CHECKED_STEPS = 4, 3
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.98, 1e-9  # softback's defaults


class Layers:
    """softback's encoder-decoder as functions of its weights. Each dropout has its own key."""

    def __init__(self, sizes, weights, key):
        self.sizes, self.w, self.key, self.draws = sizes, weights, key, 0

    def dropped(self, x):
        p = self.sizes["dropout"]
        if p == 0:
            return x
        self.draws += 1
        kept = jax.random.bernoulli(jax.random.fold_in(self.key, self.draws), 1 - p, x.shape)
        return jnp.where(kept, x / (1 - p), 0)

    def linear(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def norm(self, name, x):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return ((x - mean) * jax.lax.rsqrt(variance + 1e-5) * self.w[name + ".weight"]
                + self.w[name + ".bias"])

    def heads(self, x):
        """(B, L, C) -> (B, L, H, D)"""
        return x.reshape(*x.shape[:2], self.sizes["heads"], -1)

    def attention(self, name, x, memory, causal):
        if memory is None:
            q, k, v = jnp.split(self.linear(name + ".packed", x), 3, -1)
        else:
            q = self.linear(name + ".query", x)
            k, v = jnp.split(self.linear(name + ".packed", memory), 2, -1)
        q, k, v = self.heads(q), self.heads(k), self.heads(v)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        if causal:
            seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
            scores = jnp.where(seen, scores, -jnp.inf)
        weights = self.dropped(jax.nn.softmax(scores))
        y = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)
        return self.linear(name + ".output", y)

    def layer(self, name, x, memory, causal):
        h = self.norm(name + ".self_norm", x)
        x = x + self.dropped(self.attention(name + ".self_attention", h, None, causal))
        if memory is not None:
            h = self.norm(name + ".cross_norm", x)
            x = x + self.dropped(self.attention(name + ".cross_attention", h, memory, False))
        h = jax.nn.relu(self.linear(name + ".feed_forward.up",
                                    self.norm(name + ".feed_norm", x)))
        return x + self.dropped(self.linear(name + ".feed_forward.down", h))

    def stack(self, name, ids, memory, causal):
        C = self.sizes["width"]
        x = self.w[name + ".embedding.weight"][ids] * math.sqrt(C) + sinusoids(ids.shape[1], C)
        x = self.dropped(x)
        for i in range(self.sizes["layers"]):
            x = self.layer(f"{name}.layers.{i}", x, memory, causal)
        return self.norm(name + ".norm", x)

    def loss(self, source, target_in, target_out):
        memory = self.stack("encoder", source, None, False)
        y = self.stack("decoder", target_in, memory, True)
        table = self.w.get("output.weight", self.w["decoder.embedding.weight"])
        log_p = jax.nn.log_softmax(y @ table.T + self.w["output.bias"])
        return -jnp.take_along_axis(log_p, target_out[..., None], -1).mean()


def pack(weights, name, parts):
    """Joins projections of the same x into one product."""
    for kind in "weight", "bias":
        weights[f"{name}.packed.{kind}"] = jnp.concatenate(
            [weights.pop(f"{name}.{part}.{kind}") for part in parts])


class Seq2seq:
    def __init__(self, sizes, path):
        held = {name: jnp.asarray(x) for name, x in load_file(path).items()}
        names = "source", "target_in", "target_out"
        self.batches = [[held.pop(f"batch.{b}.{name}") for name in names] for b in range(BATCHES)]
        for i in range(sizes["layers"]):
            for side in "encoder", "decoder":
                pack(held, f"{side}.layers.{i}.self_attention", ["query", "key", "value"])
            pack(held, f"decoder.layers.{i}.cross_attention", ["key", "value"])
        self.weights = held
        self.m, self.v = (jax.tree.map(jnp.zeros_like, held) for _ in range(2))
        self.key, self.steps = jax.random.key(1), 0
        self.update = jax.jit(functools.partial(update, sizes), donate_argnums=(0, 1, 2))

    def train(self):
        batch = self.batches[self.steps % BATCHES]
        self.weights, self.m, self.v, loss = self.update(self.weights, self.m, self.v, self.steps,
                                                         self.key, batch)
        self.steps += 1
        jax.block_until_ready((self.weights, loss))
        return float(loss)

    def step(self):
        begun = time.perf_counter()
        self.train()
        return time.perf_counter() - begun

    def check(self):
        return [self.train() for _ in range(CHECKED_STEPS)]


def update(sizes, weights, m, v, steps, key, batch):
    """One step of training with Adam."""
    key = jax.random.fold_in(key, steps)
    loss, gradient = jax.value_and_grad(lambda w: Layers(sizes, w, key).loss(*batch))(weights)
    t = steps + 1.0
    m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, gradient)
    v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, gradient)
    rate, correction = RATE / (1 - BETA1 ** t), 1 - BETA2 ** t
    weights = jax.tree.map(
        lambda w, m, v: w - rate * m / (jnp.sqrt(v / correction) + EPSILON), weights, m, v)
    return weights, m, v, loss


def version():
    return {"version": f"JAX {jax.__version__}", "threads": len(jax.devices()),
            "products": jax.devices()[0].platform}


if jax.default_backend() != "cpu":
    sys.exit("jax_worker.py: JAX_PLATFORMS must be cpu")
serve(version, {"seq2seq": Seq2seq})
