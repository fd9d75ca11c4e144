"""What the generated classes do not have: training with a progress line, files of any model, decoding."""
import sys
import time
from pathlib import Path
from tempfile import NamedTemporaryFile

from . import _functions
from ._declarations import *
from .convert import adopt, check, expect, instance, model, options, retry, source, tensor, value
from .library import Error, c, nearest, text, whole
from .tensors import Tensor, result, tensor as copied, tensor_of

MODELS = {"seq2seq": _functions.Seq2Seq, "language_model": _functions.LanguageModel, "classifier": _functions.Classifier}


def load(path):
    """The model of a file, of any kind of the library; its weights are model.weights."""
    weights, read = _functions.Parameters(), sb_model()
    check(c.sb_model_load(read, None, weights, text(path, "path")))
    loaded = adopt(MODELS[sb_model_kind.from_address(read.kind).name], read.self, [weights])
    loaded.weights = weights
    return loaded


def sample(logits, random, **option):
    """Draws a symbol from each row of logits (n, V) or (V). Options: temperature, top_k, top_p."""
    rows = tensor_of(logits)
    ids = (c_int32 * max(rows.size // max((rows.shape or (1,))[-1], 1), 1))()
    expect(isinstance(random, sb_random), random, "a random stream (sb.Random)")
    check(c.sb_sample(rows, options(sb_decoding_options, option, "sample"), random, ids))
    return list(ids) if len(rows.shape) > 1 else ids[0]


def encode(vocabulary, string):
    """The ids of a text."""
    count, unknown = c_int64(), sb_unknown()
    found = check(c.sb_vocabulary_encode(vocabulary, text(string, "the text"), byref(count), unknown))
    ids = cast(found, POINTER(c_int32))[: count.value]
    c.sb_free(found)
    return ids


def batch(items=None, targets=1, **parts):
    """A batch of named tensors, for a model's loss: batch(source=ids, source_lengths=..., ...). Arrays are copied to the device in use."""
    struct, tensors = sb_batch(parts=len(parts)), {n: t if isinstance(t, Tensor) else copied(t) for n, t in parts.items()}
    if not 1 <= len(parts) <= len(struct.part):
        raise Error(f"batch: {len(parts)} parts are not in 1..{len(struct.part)}")
    if not all(t.shape for t in tensors.values()):
        raise Error("batch: a part is a number; its first axis must count the items")
    for place, (name, t) in zip(struct.part, tensors.items()):
        place.name, place.t = name.encode(), t._c
    items = next(iter(tensors.values())).shape[0] if items is None else items
    struct.items, struct.targets = whole(c_int64, items, "items"), whole(c_int64, targets, "targets")
    return adopt(_functions.Batch, struct._c, [struct, tensors], owned=False)


def evaluate(of, data, pairs=None, **option):
    """The mean loss over an epoch of the data, and the error on held-out pairs; options of decoding."""
    decoding, result, held = options(sb_decoding_options, option, "evaluate"), sb_evaluation(), None
    instance(_functions.Pairs, pairs)
    if pairs is not None:
        labelled = isinstance(of, _functions.Classifier)
        held = sb_held_labelled(pairs=pairs._c) if labelled else sb_held_pairs(pairs=pairs._c, options=decoding._c)
    check(c.sb_evaluate(model(of), source(data), held, None, result))
    return result


def line(steps):
    """The usual progress: one line that is written again, at most ten times a second."""
    began = shown = time.monotonic()

    def show(step, trained):
        nonlocal shown
        now = time.monotonic()
        if now - shown > 0.1 or step == steps:
            shown, rate = now, step / max(now - began, 1e-9)
            print(f"\r{step}/{steps} |{'#' * (30 * step // steps):30}| loss {trained.loss:.4f}  "
                  f"{f'{rate:.1f} steps/s' if rate >= 1 else f'{1 / rate:.1f} s/step'}  {(steps - step) / rate:.0f} s left ",
                  end="" if step < steps else "\n", file=sys.stderr, flush=True)

    return show


def train(trainer, steps, progress=True):
    """Takes steps; returns what the last one did. `progress` is called with (step, trained) after each,
    and ends training by returning False; True is a line on standard error, None is silent."""
    progress = line(steps) if progress is True else progress
    trained = None
    for step in range(1, steps + 1):
        trained = trainer.step()
        if progress and progress(step, trained) is False:
            break
    return trained


def named(parameters):
    """(name, tensor) of each parameter."""
    return [(parameters.name(i), parameters.get(i)) for i in range(parameters.count())]


def encoder_forward(encoder, ids, lengths=None, weights=False):
    """ids (B, L) of i32, lengths (B) of i32 -> the memory (B, L, C). With weights=True: (memory, a list
    of the attention weights (B, H, L, L) of each layer)."""
    if not weights:
        return forward(encoder, ids, lengths)
    maps = (c_void_p * encoder.layers())()
    y = c.sb_encoder_forward(encoder, tensor_of(ids), tensor(lengths), maps)
    return (result(y), list(map(result, maps))) if y else retry(encoder_forward, encoder, ids, lengths, weights)


def seq2seq_logits(model, batch, weights=False):
    """The logits (B, Lt, V) of the symbol after each one of target_in. With weights=True: (logits,
    {"encoder": [...], "self": [...], "cross": [...]}), the attention weights of each layer."""
    if not weights:
        return logits(model, batch)
    sizes = model.options_of().transformer
    made = {"encoder": (c_void_p * sizes.encoder_layers)(), "self": (c_void_p * sizes.decoder_layers)(), "cross": (c_void_p * sizes.decoder_layers)()}
    encoder, *decoder = map(addressof, made.values())
    struct = sb_seq2seq_weights(encoder, sb_decoder_weights(*decoder))
    y = c.sb_seq2seq_logits(model, batch, struct)
    if not y:
        return retry(seq2seq_logits, model, batch, weights)
    return result(y), {name: list(map(result, maps)) for name, maps in made.items()}


forward, logits = _functions.Encoder.__call__, _functions.Seq2Seq.logits


def table(parameters):
    """Names, dtypes and shapes, and which are frozen."""
    items = named(parameters)
    width = max([0, *(len(name) for name, _ in items)])
    return "\n".join(["<softback Parameters>", *(
        f"{name:{width}}  {t.title}{'' if t.requires_grad else '  frozen'}" for name, t in items), f"{parameters.size():,} values in {len(items)} tensors"])


def parameter(parameters, name):
    """The one of this name."""
    if name not in parameters:
        raise KeyError(f'there is no parameter "{name}"; {nearest(name, list(parameters))}')
    return parameters.find(name)


def parameters_of(dtype, items, adapters=None):
    """The parameters of a copy or a pickle."""
    made = _functions.Parameters.of(dtype)
    for name, t in items:
        made.add(name, t.shape, 0.0).assign(t)
        made.freeze(name, not t.requires_grad)
    if adapters:
        with NamedTemporaryFile() as file:
            Path(file.name).write_bytes(adapters)
            made.load(file.name, ADAPTERS)
    return made


ADAPTERS = "*.lora_a"  # which a file stores with their scales


def parts(parameters):
    """What a copy is made of: values; groups and the rule for adapters stay with the original."""
    with NamedTemporaryFile() as file:
        if any(name.endswith(ADAPTERS[1:]) for name in parameters):
            parameters.save(file.name, ADAPTERS)
        return parameters_of, (parameters.dtype(), named(parameters), Path(file.name).read_bytes())


for owner, methods in {_functions.Trainer: {"train": train}, _functions.Vocabulary: {"encode": encode}, _functions.Parameters: {
        "__reduce__": parts, "__iter__": lambda parameters: (name for name, _ in named(parameters)), "__getitem__": parameter,
        "__len__": _functions.Parameters.count, "items": named, "__repr__": table},
        _functions.Encoder: {"__call__": encoder_forward}, _functions.Seq2Seq: {"logits": seq2seq_logits}}.items():
    for name, method in methods.items():
        method.__qualname__ = f"{owner.__name__}.{name}"  # as errors call it
        setattr(owner, name, method)
