"""The worker of CTranslate2: greedy decoding with cache, in float32, or with --int8 in int8.

softback's weights become a Transformer of CTranslate2's specification: pre-norm, ReLU, a table of
positions.
"""
import os
import shutil
import sys
import tempfile
import time

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec
from safetensors.numpy import load_file

from protocol import serve, sinusoids

TYPE = "int8" if "--int8" in sys.argv else "float32"
THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))


def set_linear(spec, weights, name, parts):
    spec.weight = np.concatenate([weights[f"{name}.{part}.weight"] for part in parts])
    spec.bias = np.concatenate([weights[f"{name}.{part}.bias"] for part in parts])


def set_norm(spec, weights, name):
    spec.gamma, spec.beta = weights[name + ".weight"], weights[name + ".bias"]


def set_layer(spec, weights, name, crosses):
    attention = name + ".self_attention"
    set_norm(spec.self_attention.layer_norm, weights, name + ".self_norm")
    set_linear(spec.self_attention.linear[0], weights, attention, ["query", "key", "value"])
    set_linear(spec.self_attention.linear[1], weights, attention, ["output"])
    if crosses:
        attention = name + ".cross_attention"
        set_norm(spec.attention.layer_norm, weights, name + ".cross_norm")
        set_linear(spec.attention.linear[0], weights, attention, ["query"])
        set_linear(spec.attention.linear[1], weights, attention, ["key", "value"])
        set_linear(spec.attention.linear[2], weights, attention, ["output"])
    set_norm(spec.ffn.layer_norm, weights, name + ".feed_norm")
    set_linear(spec.ffn.linear_0, weights, name + ".feed_forward", ["up"])
    set_linear(spec.ffn.linear_1, weights, name + ".feed_forward", ["down"])


def specification(weights, sizes, symbols):
    spec = TransformerSpec.from_config((sizes["layers"], sizes["layers"]), sizes["heads"],
                                       pre_norm=True)
    table = sinusoids(sizes["source"] + sizes["target"] + 8, sizes["width"])
    for side, crosses in (spec.encoder, False), (spec.decoder, True):
        name = "decoder" if crosses else "encoder"
        embeddings = side.embeddings if crosses else side.embeddings[0]
        embeddings.weight = weights[name + ".embedding.weight"]
        side.position_encodings.encodings = table
        set_norm(side.layer_norm, weights, name + ".norm")
        for i in range(sizes["layers"]):
            set_layer(side.layer[i], weights, f"{name}.layers.{i}", crosses)
    spec.decoder.projection.weight = weights["output.weight"]
    spec.decoder.projection.bias = weights["output.bias"]
    spec.register_source_vocabulary(symbols)
    spec.register_target_vocabulary(symbols)
    return spec


class Decoding:
    def __init__(self, sizes, path):
        weights = load_file(path)
        symbols = ["<pad>", "<s>", "</s>", "<unk>"]
        symbols += [f"w{i}" for i in range(len(symbols), sizes["symbols"])]
        self.id = {symbol: i for i, symbol in enumerate(symbols)}
        self.source = [[symbols[i] for i in row] for row in weights["source"]]
        self.options = dict(beam_size=1, max_batch_size=0, return_scores=False,
                            min_decoding_length=sizes["target"],
                            max_decoding_length=sizes["target"])
        folder = tempfile.mkdtemp(prefix="ctranslate2-")
        try:
            spec = specification(weights, sizes, symbols)
            spec.validate()
            spec.optimize()
            spec.save(folder)
            self.translator = ctranslate2.Translator(folder, device="cpu", inter_threads=1,
                                                     intra_threads=THREADS, compute_type=TYPE)
        finally:
            shutil.rmtree(folder)

    def decode(self):
        return self.translator.translate_batch(self.source, **self.options)

    def step(self):
        begun = time.perf_counter()
        self.decode()
        return time.perf_counter() - begun

    def check(self):
        return [self.id[symbol] for result in self.decode() for symbol in result.hypotheses[0]]


def version():
    return {"version": f"CTranslate2 {ctranslate2.__version__}", "threads": THREADS,
            "products": TYPE}


serve(version, {"decoding": Decoding})
