"""Hugging Face's models: folders as save_pretrained writes them, read with softback.from_pretrained."""
import html
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, addressof, byref, c_char_p, c_int64, c_void_p, cast
from functools import wraps
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from . import _functions as f
from ._declarations import sb_decoder_weights, sb_named_tensor
from .families import FAMILIES, IGNORED
from .functions import randn
from .library import Error, c, text as c_text
from .tensors import Tape, Tensor, check, opened, result, tensor, tensor_of
from .training import batch

INDEX, WEIGHTS, LONGEST_JSON = "model.safetensors.index.json", "model.safetensors", 1 << 24
OWN = ("dropout", "attention_dropout", "feed_forward_dropout", "label_smoothing", "precision", "recompute", "attention", "context")
TOKENIZERS = ("tokenizer.json", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model", "source.spm", "target.spm", "vocab.json", "merges.txt", "vocab.txt",
              "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "generation_config.json")
POOLINGS = {"mean": "mean", "cls": "first", "pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}  # of sentence-transformers, new and old
# What generation_config.json may have: names of ours, values that change nothing, and fields that are read below.
GENERATION = {"num_beams": "beam_width", "length_penalty": "length_penalty", "do_sample": "sample", "temperature": "temperature",
              "top_k": "top_k", "top_p": "top_p", "max_new_tokens": "longest", "renormalize_logits": "renormalise"}
NEUTRAL = {"min_length": 0, "min_new_tokens": 0, "no_repeat_ngram_size": 0, "encoder_no_repeat_ngram_size": 0, "repetition_penalty": 1,
           "encoder_repetition_penalty": 1, "num_beam_groups": 1, "diversity_penalty": 0, "num_return_sequences": 1, "typical_p": 1, "min_p": 0,
           "epsilon_cutoff": 0, "eta_cutoff": 0, "guidance_scale": 1, "remove_invalid_values": False}
FREE = set("""max_length early_stopping forced_eos_token_id bad_words_ids bos_token_id eos_token_id pad_token_id decoder_start_token_id use_cache
    transformers_version output_attentions output_hidden_states output_scores output_logits return_dict_in_generate _from_model_config
    cache_implementation _commit_hash""".split())


# ---- files ----

def required(right, message):
    if not right:
        raise Error(message)
    return True


def inside(folder, name):
    """The path of a file of the folder; links lead to its files, or to blobs, as in the hub's cache."""
    path = folder / name
    required(Path(name).name == name and name not in ("", ".", ".."), f"{str(name)[:100]!r} is no name of a file in the folder")
    if path.is_symlink():
        folders = folder.resolve(), *(parent / "blobs" for parent in list(folder.resolve().parents)[1:3])
        required(path.resolve().parent in folders, f"{name} is a link that leaves the folder")
    required(not path.exists() or path.is_file(), f"{name} is no file")
    return path


def read_json(folder, name, missing=None, kind=dict):
    """The object, or the list, of a JSON file, which may come from anywhere."""
    path = inside(folder, name)
    if not path.exists() and missing is not None:
        return missing
    try:
        with open(path, "rb") as file:
            raw = file.read(LONGEST_JSON + 1)
        required(len(raw) <= LONGEST_JSON, f"{name} has more than {LONGEST_JSON} bytes")
        made = json.loads(raw, parse_constant=lambda text: required(False, f"{name} has {text}, which is no number of JSON"))
    except OSError as error:
        raise Error(f"{name}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Error(f"{name} is no JSON: {str(error)[:80]}") from None
    return required(isinstance(made, kind), f"{name} is {type(made).__name__}, not {'a list' if kind is list else 'an object'}") and made


class Shards:
    """The tensors of a folder, in one file or several."""

    def __init__(self, folder):
        index = read_json(folder, INDEX, {})
        places = index.get("weight_map", {}) if index else None
        if index and (not isinstance(places, dict) or not places or not all(isinstance(p, str) for p in places.values())):
            raise Error(f"{INDEX} has no weight_map from names to files")
        names = sorted(set(places.values())) if index else [WEIGHTS]
        for name in names:
            required(inside(folder, name).exists(), f"there is no {name}" + (f", which {INDEX} names" if index else
                     f": the weights of a folder are in {WEIGHTS}, or in files that {INDEX} names"))
        self.files = {name: f.SafeTensors(folder / name) for name in names}
        self.place = {}
        for file_name, file in self.files.items():
            for i in range(file.count()):
                self.place[file.name(i)] = file, i
        for name in places or ():
            required(name in self.place, f"{INDEX} names the tensor {name[:100]!r}, which no file has")
        for name in self.place:
            required(0 not in self.shape(name), f"the tensor {name[:100]!r} is {tuple(self.shape(name))}: it has no numbers")
        self.elements = sum(int(np.prod(self.shape(name), dtype=object)) for name in self.place)

    def shape(self, name):
        file, i = self.place[name]
        return cast(c.sb_safetensors_shape(file, i), POINTER(c_int64))[: file.rank(i)] if file.rank(i) else []

    def array(self, name, turned=False):
        """A tensor as an array, or its transpose."""
        t = self.place[name][0].tensor(name)
        t = t if t.device == "cpu" else t.to("cpu")
        with Tape(record=False):
            return (f.transpose(t, 0, 1) if turned and t.ndim == 2 else t).numpy()

    def read(self, name, t):
        """Reads a tensor into a parameter of f32, with no copy in between."""
        file, i = self.place[name]
        if t.dtype != "f32" or file.dtype(i) not in ("F32", "F16", "BF16"):
            return written(self.array(name), t)
        fitting(tuple(self.shape(name)), t)
        file.read(name, t)


def fitting(shape, t):
    required(shape == t.shape, f"is {shape}, but config.json makes it {t.shape}")


def on_cpu(t):
    return (t if t.device == "cpu" else t.to("cpu")).numpy()


def written(array, t):
    """Copies an array into a parameter."""
    fitting(array.shape, t)
    if t.device == "cpu":
        np.copyto(t.numpy(), array)
    else:
        t.assign(array)


# ---- options ----

def configure(family, config, shards, ignore):
    """The options of ours that the fields of config.json give."""
    made = {}
    for name in config:
        if name not in family.fields and name not in IGNORED and name not in ignore and not re.search("(dropout|drop|dropout_prob|dropout_rate)$", name):
            raise Error(f"config.json has the field {name[:100]!r} ({str(config[name])[:60]}), which softback does not know; "
                        f"if it changes no numbers, pass ignore=[{name[:100]!r}]")
    for name, (default, read) in family.fields.items():
        if name not in ignore:
            made |= read(config.get(name, default), f"config.json: {name}") if name in config or default is not None else {}
    made = family.fixed | made
    made.pop("context_", None)
    for first, second in (("heads", "decoder_heads"), ("feed_forward", "decoder_feed_forward")):
        required(made.pop(second, made.get(first)) == made.get(first), f"config.json: encoder and decoder have different {first.replace('_', ' ')}; softback's are equal")
    if "attention_bias" in made:
        attention, mlp = made.pop("attention_bias"), made.pop("mlp_bias")
        required(attention == mlp, f"config.json: attention_bias is {attention} and mlp_bias {mlp}; softback computes both or neither")
        made["biases"] = "all" if attention else "none"
    part = made.pop("rotary_part", 1)
    required(part == 1, f"config.json: rotary positions turn {part} of each head (rotary_pct, partial_rotary_factor); softback's turn all")
    required(made.pop("sliding_window", None) is None, f"config.json: sliding_window is {config.get('sliding_window', 4096)}, which softback does not compute; "
             'if texts are shorter, pass ignore=["sliding_window"]')
    stored = made.pop("embedding_size", made["width"])
    required(stored == made["width"], f"config.json: embedding_size is {stored}, but the layers have the width {made['width']}; softback's are equal")
    if made.pop("roberta", False):
        made["position_offset"] = token(config, "pad_token_id", made["vocabulary"], 1) + 1
        made["positions_longest"] -= made["position_offset"]
    if family.kind == "seq2seq":
        made.setdefault("share_embeddings", True)
    if "feed_forward_proj" in family.fields:
        made.setdefault("decoder_layers", made["encoder_layers"])
        scaled = config["model_type"] == "t5" and config.get("scale_decoder_outputs", config.get("tie_word_embeddings", True))
        made |= {"output_scale": made["width"] ** -0.5} if scaled else {}
        made["tie_embeddings"] = "lm_head.weight" not in shards.place or scaled and made["tie_embeddings"]
    fits(made, shards)
    return made


def fits(made, shards):
    """Whether the sizes are those of so many weights: nothing larger than the files is allocated."""
    width, heads = made["width"], made["heads"] * made.get("head_size", max(made["width"] // made["heads"], 1))
    for what, n in (("vocabulary", made["vocabulary"]), ("vocabulary", made.get("decoder_vocabulary", 1)), ("feed-forward network", made.get("feed_forward", 1)),
                    ("attention", heads), ("table of positions", made.get("positions_longest", 1) if made.get("positions") == "learned" else 1), ("table of segments", made.get("segments", 1))):
        required(n * width <= shards.elements, f"config.json: a {what} of {n} x {width} is more than the files have, {shards.elements} numbers")
    layers = made.get("encoder_layers", 0) + made.get("decoder_layers", 0)
    required(layers <= len(shards.place), f"config.json: {layers} layers are more than the files have tensors, {len(shards.place)}")


def token(config, name, V, otherwise):
    """The id of a special symbol; of several the first."""
    id = config.get(name)
    id = id[0] if isinstance(id, list) and id else id
    if id is None or id == []:
        return otherwise
    if not isinstance(id, int) or isinstance(id, bool) or not -1 <= id < V:
        raise Error(f"config.json: {name} is {str(id)[:60]!r}, no id below {V}")
    return id


# ---- weights ----

def place_of(family, name, shards, new):
    """Their name of a parameter of ours, and what is done to it; of a new head the output is drawn, and what else the files lack."""
    pattern, numbers = re.sub(r"\.\d+\.", ".*.", name), re.findall(r"\.(\d+)\.", name)
    module, dot, leaf = pattern.rpartition(".")
    found, leaf = family.names.get(pattern) or family.names.get(module), "" if pattern in family.names else dot + leaf
    required(found, f"softback's parameter {name} has no name in {family.architecture}")
    names, _, how = found.partition("|")
    for theirs in names.split(" or "):
        theirs = (theirs.replace("*", numbers[0]) if numbers else theirs) + leaf
        old = re.sub(r"(?<=LayerNorm\.)bias$", "beta", re.sub(r"(?<=LayerNorm\.)weight$", "gamma", theirs))  # of 2018
        for own in (theirs, theirs.removeprefix(family.prefix), old, old.removeprefix(family.prefix)):
            if own in shards.place and not (new and name.startswith("output.")):
                return own, how
    required(new and name.startswith(("output.", "hidden.")), f"the files have no tensor {theirs}")
    return theirs, "new"


def laid_out(array, how, heads, back=False):
    """A tensor of theirs in our layout, or back: GPT-NeoX's queries, keys and values alternate by heads."""
    if how == "row":
        return array[None] if back else array.reshape(-1)
    if how == "heads":
        return array.reshape(*((3, heads) if back else (heads, 3)), -1).swapaxes(0, 1).reshape(array.shape)
    return array.T if how == "T" and back else array  # read transposed


def read_weights(model, shards, new, replaced):
    """Fills the parameters, a tensor of the files after the other, in two threads (of a device in one: its queue is the caller's), and
    notes in model.places where each is: (ours, theirs, how). `new`: its head is; `replaced`: the files may have another head."""
    family, order, tensors, groups = model.family, model.order, dict(model.weights.items()), {}
    places = [(name, *place_of(family, name, shards, new)) for name in tensors if not name.endswith((".lora_a", ".lora_b"))]
    for name, theirs, how in places:
        if how == "new":
            written(randn(*tensors[name].shape).numpy() * (0.02 if tensors[name].ndim > 1 else 0), tensors[name])
        else:
            groups.setdefault((theirs, how), []).append(name)

    def fill(group):
        (theirs, how), names = group
        rows = order if names[0].startswith("output.") else None
        try:
            if not how and len(names) == 1 and rows is None:
                return shards.read(theirs, tensors[names[0]])
            array, ends = laid_out(shards.array(theirs, how == "T"), how, model.heads), np.cumsum([tensors[name].shape[0] for name in names])
            required(len(names) == 1 or ends[-1] == len(array), f"has {len(array)} rows, but config.json makes it {ends[-1]}")
            for name, part in zip(names, np.split(array, ends[:-1])):
                written(part if rows is None else part[rows], tensors[name])
        except (Error, IndexError, ValueError) as error:
            raise Error(f"the tensor {theirs} {error}") from None

    with ThreadPoolExecutor(2 if all(t.device == "cpu" for t in tensors.values()) else 1) as threads:
        list(threads.map(fill, groups.items()))
    bare = not any(name.startswith(family.prefix) for name in shards.place)
    check_left_over(family, model.weights, shards, {theirs for theirs, _ in groups}, replaced and not bare)
    model.places = [(name, family.prefix + theirs if new and bare and how != "new" else theirs, how) for name, theirs, how in places]


def check_left_over(family, weights, shards, used, replaced):
    """Tensors that no parameter needs are buffers, copies of a table that is tied, or of a head that another replaces."""
    for name in sorted(set(shards.place) - used):
        full = name if name in family.tied or not family.prefix else family.prefix + name
        if full in family.tied:
            own = "decoder.embedding.weight" if "lm_head" in full and weights.find("decoder.embedding.weight") is not None else family.tied[full]
            required(np.array_equal(shards.array(name), weights[own].numpy()), f"the tensor {name} is not the table of embeddings, with which config.json ties it")
        elif not replaced or name.startswith(family.prefix):
            required(re.search(family.buffers, name), f"the files have a tensor {name[:100]!r}, which softback's model does not have")


# ---- tokenizers ----

class Tokenizer:
    """Texts to ids and back, by the package that reads the folder's tokenizer."""

    def __init__(self, folder, config):
        self.reads, self.writes = None, None
        self.ends = [token(config, "eos_token_id", 1 << 24, -1)] if config["model_type"] in ("t5", "mt5", "marian") else []
        self.begins = [token(config, "bos_token_id", 1 << 24, 1)] if config["model_type"] in ("llama", "mistral") else []
        if inside(folder, "tokenizer.json").exists():
            from tokenizers import Tokenizer as Whole
            self.whole = Whole.from_file(str(folder / "tokenizer.json"))
            self.whole.no_padding()  # the model would attend to it; transformers, too, pads and cuts only when it is asked to
            self.whole.no_truncation()
            return
        from sentencepiece import SentencePieceProcessor as Pieces
        self.whole, self.names = None, None
        one = next(name for name in ("spiece.model", "tokenizer.model", "source.spm") if inside(folder, name).exists())
        self.reads = self.writes = Pieces(model_file=str(folder / one))
        if one == "source.spm":
            self.writes = Pieces(model_file=str(inside(folder, "target.spm")))
            self.names = read_json(folder, "vocab.json")
            required(all(isinstance(id, int) for id in self.names.values()), "vocab.json has a name whose id is no number")
            self.texts = {id: name for name, id in self.names.items()}

    def encode(self, text, special=True):
        if self.whole:
            return self.whole.encode(text, add_special_tokens=special).ids
        ids = self.reads.encode(text) if self.names is None else [self.names.get(p, self.names.get("<unk>")) for p in self.reads.encode(text, out_type=str)]
        return (self.begins + ids + self.ends) if special else ids

    def decode(self, ids):
        if self.whole:
            return self.whole.decode(ids)
        if self.names is None:
            return self.writes.decode([i for i in ids if i < self.writes.get_piece_size() and i not in self.ends + self.begins])
        return self.writes.decode([self.texts[i] for i in ids if i in self.texts and i not in self.ends and self.texts[i] != "<pad>"])

    def symbol(self, id):
        if self.whole:
            return self.whole.decode([id], skip_special_tokens=False) or self.whole.id_to_token(id) or str(id)
        return (self.reads.id_to_piece(id) if self.names is None else self.texts.get(id, str(id))).replace("\u2581", " ")


def tokenizer_of(folder, config):
    """The tokenizer of a folder; None and why where there is none."""
    if not any(inside(folder, name).exists() for name in ("tokenizer.json", "spiece.model", "tokenizer.model", "source.spm")):
        return None, "the folder has no tokenizer.json and no model of sentencepiece"
    try:
        return Tokenizer(folder, config), None
    except ImportError as error:
        return None, f"its tokenizer needs the package {error.name}: pip install {error.name}"
    except Error:
        raise
    except Exception as error:  # of the package, for a file that it cannot read
        raise Error(f"its tokenizer cannot be read: {str(error)[:200]}") from None


# ---- models ----

class Attention:
    """The attention weights of a text: weights["self"][layer] is an array (heads, queries, keys)."""

    def __init__(self, weights, queries, keys):
        self.weights, self.queries, self.keys = weights, queries, keys

    def _repr_html_(self):
        """Each head of each layer as a picture: rows are queries, columns keys."""
        parts = []
        for kind, layers in self.weights.items():
            heads = "".join(f"<td>layer {i}, head {j}<br>{picture(head, self.queries[kind], self.keys[kind])}</td>" for i, layer in enumerate(layers) for j, head in enumerate(layer))
            parts.append(f"<p>{kind}, {len(layers)} layers of {len(layers[0])} heads</p><table><tr>{heads}</tr></table>")
        return "".join(parts)

    def __repr__(self):
        return "\n".join(f"{kind}: {len(layers)} layers of {layers[0].shape} (heads, queries, keys)" for kind, layers in self.weights.items())


def picture(weights, queries, keys, side=16):
    """The weights of a head as SVG, its queries on the left, its keys above; pointing at a field tells its number."""
    room = 7 * max(len(symbol) for symbol in [*queries, *keys]) + 6
    fields = [f'<rect x="{side * j}" y="{side * i}" width="{side}" height="{side}" fill="rgb({255 - int(w * 215)},{255 - int(w * 135)},255)"><title>{html.escape(f"{q} to {k}: {w:.3f}")}</title></rect>'
              for i, (q, row) in enumerate(zip(queries, weights)) for j, (k, w) in enumerate(zip(keys, row))]
    fields += [f'<text x="-4" y="{side * i + 12}" text-anchor="end">{html.escape(q)}</text>' for i, q in enumerate(queries)]
    fields += [f'<text transform="translate({side * j + 12},-4) rotate(-90)">{html.escape(k)}</text>' for j, k in enumerate(keys)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{room + side * len(keys)}" height="{room + side * len(queries)}" '
            f'font-size="11" fill="currentColor"><g transform="translate({room},{room})">{"".join(fields)}</g></svg>')


def on_tape(function):
    """Outside of any tape, on one of its own."""
    @wraps(function)
    def call(self, *given, **options):
        if opened.tapes:
            return function(self, *given, **options)
        with Tape(record=False):
            return function(self, *given, **options)

    return call


def with_maps(layers, call):
    """What a call of C returns that stores a map in each of these arrays: a tensor, and lists of them."""
    arrays = [(c_void_p * n)() for n in layers]
    y = result(check(call(*map(addressof, arrays))))
    return y, [list(map(result, array)) for array in arrays]


class Pretrained:
    """A model of Hugging Face's transformers. Its weights are model.weights, its config model.config, and model.model is
    softback's. Texts need the folder's tokenizer; ids as lists or arrays always work."""

    def __init__(self, folder, family, config, generation, weights, options, labels, sentences):
        self.folder, self.family, self.config, self.generation, self.weights, self.labels, self.sentences = folder, family, config, generation, weights, labels, sentences
        self.order, self.heads = None, options["heads"]
        both = config | {name: value for name, value in generation.items() if value is not None}
        V = options.pop("vocabulary")
        Vt = options.pop("decoder_vocabulary", V)
        end, pad = token(both, "eos_token_id", Vt, -1), token(both, "pad_token_id", Vt, -1)
        self.ends = set(both.get("eos_token_id") if isinstance(both.get("eos_token_id"), list) else [end])
        never = pad if generation.get("bad_words_ids") == [[pad]] else -1
        begin = {"seq2seq": ("decoder_start_token_id", pad), "language_model": ("bos_token_id", end)}.get(family.kind, ("cls_token_id", 0))
        self.begin = token(both, begin[0], Vt, begin[1])
        self.vocabulary = f.Vocabulary.of_ids(Vt, never, max(self.begin, 0), end)
        self.source = self.vocabulary if Vt == V and options.get("share_embeddings", True) else f.Vocabulary.of_ids(V, never, 0, -1)
        self.model = self.built(options)
        self.tokenizer, self.why = tokenizer_of(folder, config)

    def as_model(self):
        """The model for training and files."""
        required(hasattr(self.model, "as_model"), f"{self.family.architecture} has no trainer and no file of softback's own: take steps with "
                 "an optimiser after model.loss(...).backward(), and write with save_pretrained")
        return self.model.as_model()

    def parameters(self):
        """The weights."""
        return self.weights

    def save(self, path):
        """Writes softback's format; the program softback reads texts of ids with it."""
        if self.as_model():
            self.model.save(path)

    def __repr__(self):
        return f"<softback {self.family.architecture}>{repr(self.weights).replace('<softback Parameters>', '')}"

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} can be neither copied nor pickled: save it to a file, and load that")

    def ids(self, text, special=True):
        """The ids of a text; ids stay as they are."""
        if not isinstance(text, str):
            ids = np.asarray(text.numpy() if isinstance(text, Tensor) else text)
            required(ids.ndim == 1 and (ids.dtype.kind in "iu" or not ids.size), f"{str(text)[:60]!r} was given where a text or its ids are expected")
            return [int(i) for i in ids]
        required(self.tokenizer, f"there is no tokenizer for a text: {self.why}; give ids")
        return self.tokenizer.encode(text, special)

    def shown(self, ids, maps):
        """Attention weights with the symbols of their rows and columns."""
        named = {"self": self.symbols(ids)}
        return Attention({"self": [m.numpy()[0] for m in maps]}, named, named)

    def symbols(self, ids):
        """The text of each id."""
        return [self.tokenizer.symbol(i) if self.tokenizer else str(i) for i in ids]

    def rows(self, texts):
        """One or many texts, each a string or ids, as a list of ids; and whether there were many."""
        one = isinstance(texts, str) or len(texts) > 0 and np.ndim(texts[0]) == 0 and not isinstance(texts[0], str)
        return [self.ids(t) for t in ([texts] if one else texts)], not one

    def padded(self, texts):
        """Ids (B, L) of texts, and their lengths (B)."""
        rows, _ = self.rows(texts)
        made = np.zeros((len(rows), max(map(len, rows))), "i4")
        for row, ids in zip(made, rows):
            row[: len(ids)] = ids
        return made, np.array([len(ids) for ids in rows], "i4")

    def decoded(self, texts, options):
        """The outputs for texts, as generate of transformers makes them: ids, or texts where texts were given."""
        given = self.generate_options(options)
        rows, many = self.rows(texts)
        is_text = isinstance(texts, str) or many and all(isinstance(t, str) for t in texts)
        longest = given.pop("longest", None)
        total, prompt, forced = self.generation.get("max_length"), self.family.kind == "language_model", self.generation.get("forced_eos_token_id") is not None
        outputs = []
        for ids in rows:
            room = longest or isinstance(total, int) and total - (len(ids) if prompt else 1) or 2 * len(ids) + 50
            ends = {"force_end": True, "longest": room - 1} if forced else {"longest": room}
            if room < 1 or ends["longest"] == 0:
                outputs.append([])
                continue
            decode = self.model.continue_texts if prompt else self.model.decode_texts
            (made,) = decode([" ".join(map(str, ids))], **given, **ends)
            outputs.append(next((made.ids[:i] for i, id in enumerate(made.ids) if id in self.ends), made.ids))
        outputs = [self.tokenizer.decode(ids) for ids in outputs] if is_text else outputs
        return outputs if many else outputs[0]

    def generate_options(self, options):
        """The options of decoding, given or of generation_config.json."""
        ignore, made = options.pop("ignore", ()), {}
        for name, value in self.generation.items():
            ours = GENERATION.get(name)
            if value is None or name in ignore or ours in options:
                continue
            if ours:
                made[ours] = value
            elif name in NEUTRAL and value != NEUTRAL[name] or name not in NEUTRAL and name not in FREE:
                raise Error(f"generation_config.json sets {name} to {str(value)[:60]}, which softback does not compute; "
                            f'generate without it: ignore=["{name}"]')
        made |= options
        forced = self.generation.get("forced_eos_token_id")
        required(forced is None or forced in self.ends, f"generation_config.json sets forced_eos_token_id to {forced}, which is not eos_token_id")
        if not made.get("sample"):
            made = {n: x for n, x in made.items() if n not in ("temperature", "top_k", "top_p") or n in options}
        else:
            made = {"top_k": 50} | made
        if made.get("beam_width", 1) > 1:
            required(len(self.ends) == 1, f"a beam needs one eos_token_id, but there are {len(self.ends)}; pass beam_width=1")
            stops = self.generation.get("early_stopping") or False
            required(stops in (True, False), f"generation_config.json sets early_stopping to {stops!r}; true and false are known")
            made = {"beam_rule": "early" if stops else "generate", "length_penalty": 1} | made
        return made

    def as_theirs(self, array_of):
        """Arrays of our names as the tensors of the files."""
        parts = {}
        for name, theirs, how in self.places:
            array = array_of(name)
            parts.setdefault((theirs, how), []).append(array[np.argsort(self.order)] if self.order is not None and name.startswith("output.") else array)
        return {theirs: laid_out(some[0] if len(some) == 1 else np.concatenate(some), how, self.heads, True) for (theirs, how), some in parts.items()}

    def save_pretrained(self, folder):
        """Writes a folder that transformers loads, and from_pretrained: weights of float32, the config, the tokenizer."""
        adapters = [name for name, t in self.weights.items() if name.endswith(".lora_b") and t.numpy().any()]
        if adapters:
            raise Error(f"save_pretrained: {adapters[0]} is an adapter, which transformers' model does not have; model.weights.lora_merge() adds it to the weights")
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        kept = {name: tensor_of(np.ascontiguousarray(array, "f4")) for name, array in self.as_theirs(lambda name: on_cpu(self.weights[name])).items()}
        items = (sb_named_tensor * len(kept))()
        for item, (name, t) in zip(items, kept.items()):
            item.name, item.tensor = name.encode(), t._c
        metadata = (c_char_p * 2)(b"format", b"pt")
        check(c.sb_safetensors_save(c_text(folder / WEIGHTS, "folder"), len(kept), addressof(items), 1, addressof(metadata)))
        (folder / INDEX).unlink(missing_ok=True)
        dtype = {"torch_dtype": "float32"} if "torch_dtype" in self.config else {"dtype": "float32"}
        (folder / "config.json").write_text(json.dumps(self.config | dtype, indent=2) + "\n")
        for name in (*TOKENIZERS, *self.sentences.get("files", ())):
            if inside((self.folder / name).parent, Path(name).name).exists() and folder.resolve() != self.folder.resolve():
                (folder / name).parent.mkdir(exist_ok=True)
                shutil.copyfile(self.folder / name, folder / name)


class PretrainedLanguageModel(Pretrained):
    """GPT-2, GPT-NeoX, OPT, Llama, Mistral, Phi-3, Qwen2, Qwen3 and SmolLM3."""

    def built(self, options):
        return f.LanguageModel.for_(self.weights, self.vocabulary, running_text=True, **options)

    @on_tape
    def logits(self, ids, weights=False):
        """ids (B, L), or texts -> logits (B, L, V) of what follows each. With weights=True: (logits, a list of the attention
        weights (B, H, L, L) of each layer)."""
        ids = ids if isinstance(ids, Tensor) else tensor(self.padded(ids)[0])
        if not weights:
            return self.model.window_logits(ids)
        decoder = self.model.decoder()
        y, (maps,) = with_maps([decoder.layers()], lambda a: c.sb_decoder_forward(decoder, ids, None, None, sb_decoder_weights(a, None)))
        return self.model.output(y), maps

    @on_tape
    def loss(self, texts):
        """The mean cross entropy of each symbol but the first, given those before it."""
        ids, lengths = self.padded(texts)
        targets = np.where(np.arange(1, ids.shape[1]) < lengths[:, None], ids[:, 1:], -1).astype("i4")
        return self.model.window_loss(tensor(ids[:, :-1]), tensor(targets))

    def generate(self, prompt, **options):
        """What follows a prompt, or each of several. Options are those of decoding (longest, beam_width, sample, top_p, seed, ...);
        those not given are of generation_config.json."""
        return self.decoded(prompt, options)

    def attention(self, text):
        """The attention weights of a text, which a notebook shows."""
        ids = self.ids(text)
        return self.shown(ids, self.logits([ids], weights=True)[1])

    def data(self, texts, **options):
        """Windows of texts, for a trainer. Options: length, batch_windows, seed, ..."""
        documents = f.Documents()
        for i, text in enumerate(texts):
            documents.add(f"text {i}", " ".join(map(str, self.ids(text, False))), "files")
        return f.Windows(documents, self.vocabulary, **options)


class PretrainedSeq2Seq(Pretrained):
    """Marian, BART, mBART, T5 and mT5."""

    def built(self, options):
        return f.Seq2Seq.for_(self.weights, self.source, self.vocabulary, **options)

    def batch(self, sources, targets):
        """A batch of pairs. Targets have no first symbol, with which the decoder begins."""
        (source, lengths), (target, count) = self.padded(sources), self.padded(targets)
        before = np.concatenate([np.full((len(target), 1), self.begin, "i4"), target[:, :-1]], 1)
        after = np.where(np.arange(target.shape[1]) < count[:, None], target, -1).astype("i4")
        return batch(source=source, source_lengths=lengths, target_in=before, target_out=after, targets=int(count.sum()))

    @on_tape
    def logits(self, sources, target_in, weights=False):
        """Sources, and what the decoder reads, its first symbol included -> logits (B, Lt, V). With weights=True: (logits,
        {"encoder": [...], "self": [...], "cross": [...]})."""
        source, lengths = self.padded(sources)
        return self.model.logits(batch(source=source, source_lengths=lengths, target_in=self.padded(target_in)[0]), weights=weights)

    @on_tape
    def loss(self, sources, targets):
        """The mean cross entropy of the targets' symbols, the last of which should be the end."""
        return self.model.loss(self.batch(sources, targets))

    def translate(self, texts, **options):
        """The outputs for texts. Options as those of decoding; those not given are of generation_config.json."""
        return self.decoded(texts, options)

    generate = translate

    def attention(self, text, output=None):
        """The attention weights between a text and an output, that of translate unless given."""
        ids = self.ids(text)
        target = [self.begin, *(self.translate(ids) if output is None else self.ids(output))]
        _, maps = self.logits([ids], [target], weights=True)
        named = {"encoder": self.symbols(ids), "self": self.symbols(target), "cross": self.symbols(ids)}
        return Attention({kind: [m.numpy()[0] for m in maps[kind]] for kind in maps}, named | {"cross": named["self"]}, named)

    def data(self, pairs, **options):
        """Pairs of source and target, for a trainer. Options: batch_pairs, seed, ..."""
        made = f.Pairs()
        for pair in pairs:
            source, target = map(self.ids, pair)
            target = target[:-1] if target and target[-1] in self.ends else target  # a batch adds it
            made.add(" ".join(map(str, source)), " ".join(map(str, target)))
        return f.Data(made, self.source, self.vocabulary, **options)


def names_of_labels(config):
    """The names of the labels in their order."""
    count = config.get("num_labels", 2)
    required(isinstance(count, int) and 1 <= count <= 1 << 16, f"config.json: num_labels is {str(count)[:60]!r}, not a whole number in 1..65536")
    names = config.get("id2label") or {str(i): f"LABEL_{i}" for i in range(count)}
    required(isinstance(names, dict) and sorted(names) == sorted(map(str, range(len(names)))) and all(isinstance(n, str) for n in names.values()),
             "config.json: id2label is no object from 0, 1, ... to texts")
    return [names[str(i)] for i in range(len(names))]


def sentences(folder, ignore):
    """What the files of sentence-transformers say of embeddings: how to pool, whether to normalise, and how many symbols are read."""
    files, found = ["modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"], {"pooling": "mean", "normalise": False, "longest": 1 << 24}
    modules = read_json(folder, files[0], [], list)
    for module in modules:
        kind, path = (str(module.get(name, "")) if isinstance(module, dict) else "" for name in ("type", "path"))
        kind = kind.rpartition(".")[2]
        if kind == "Pooling":
            required(path == Path(path).name and not (folder / path).is_symlink(), f"modules.json: {path[:100]!r} is no name of a folder")
            files.append(f"{path}/config.json")
            given = read_json(folder / path, "config.json")
            given = [name for name, value in given.items() if name.startswith("pooling_mode_") and value] or [str(given.get("pooling_mode"))]
            required(len(given) == 1 and given[0] in POOLINGS, f"{files[-1]}: the pooling is {' and '.join(given)[:100]}, none of {', '.join(POOLINGS)}")
            found["pooling"] = POOLINGS[given[0]]
        found["normalise"] |= kind == "Normalize"
        required(kind in ("Transformer", "Pooling", "Normalize", *ignore), f"modules.json has a module {kind[:60]!r}, which softback does not compute; to leave it out, pass ignore=[{kind[:60]!r}]")
    for name, field in (("tokenizer_config.json", "model_max_length"), (files[1], "max_seq_length")) if modules else ():
        longest = read_json(folder, name, {}).get(field)
        found["longest"] = longest if isinstance(longest, int) and longest > 1 else found["longest"]
    return found | {"files": files if modules else []}


class PretrainedEncoder(Pretrained):
    """An encoder, such as BERT or RoBERTa, without a head, or with one for masked symbols, labels of positions, or numbers (regression).
    Segments (B, L) are 0, or 1 in the second text of a pair."""

    hidden = norm = output = None

    def built(self, options):
        V, C, names = self.vocabulary.size(), options["width"], self.family.names
        pooling, activation = options.pop("pooling", None), options.pop("hidden", None)
        self.pooled, self.activation = pooling == "first", activation or options["activation"]
        self.encoder = f.Encoder(self.weights, "encoder", V, **options)
        if "hidden" in names:
            self.hidden = f.LinearLayer(self.weights, "hidden", C, C)
        if "hidden_norm" in names:
            self.norm = f.NormLayer(self.weights, "hidden_norm", C)
            self.norm.epsilon = options["norm_epsilon"]
        if "output" in names:
            self.output = f.OutputHead(self.weights, "output", C, len(self.labels or ()) or V, True, None if self.labels else self.encoder.table())
        return self.encoder

    @on_tape
    def hidden_states(self, texts, segments=None):
        """Texts, or rows of ids -> the last layer's outputs (B, L, C), and an array (B, L) that is False where a row is padded."""
        ids, lengths = self.padded(texts)
        y = self.encoder.forward_segments(tensor(ids), None if segments is None else tensor(segments, "i32"), tensor(lengths))
        return y, np.arange(ids.shape[1]) < lengths[:, None]

    def encode(self, texts, pooling=None, normalise=None):
        """The embedding (C) of a text, or (N, C) of several: the "mean" of the outputs, the "first", or BERT's "pooler"; normalise:
        of length 1. Defaults: as sentence-transformers' files in the folder say, which also cut long texts; else the mean."""
        rows, many = self.rows(texts)
        pooling, normalise = self.sentences["pooling"] if pooling is None else pooling, self.sentences["normalise"] if normalise is None else normalise
        required(pooling in ("mean", "first") or pooling == "pooler" and self.hidden and not self.output, f"encode: there is no pooling {pooling!r}")
        longest, made = self.sentences["longest"], np.zeros((len(rows), self.encoder.table().shape[1]), "f8" if self.weights.dtype() == "f64" else "f4")
        rows = [ids[:longest - 1] + ids[-1:] if len(ids) > longest else ids for ids in rows]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for some in (order[i: i + 32] for i in range(0, len(rows), 32)):  # of about one length
            with Tape(record=False):
                y, real = self.hidden_states([rows[i] for i in some])
                y = on_cpu(y if pooling == "mean" else self.hidden(y[:, 0], self.activation) if pooling == "pooler" else y[:, 0])
            made[some] = (y * real[..., None]).sum(1) / real.sum(1, keepdims=True) if pooling == "mean" else y
        made = made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12) if normalise else made
        return made if many else made[0]

    def head(self, texts, segments):
        """What the output layer reads: (B, C) of numbers, else (B, L, C)."""
        required(self.output, f"{self.family.architecture} has no head: it has hidden_states and encode; labels=[...] of from_pretrained adds one")
        y = self.hidden_states(texts, segments)[0]
        y = y[:, 0] if self.pooled else y
        y = self.hidden(y, self.activation) if self.hidden else y
        return self.norm(y) if self.norm else y

    @on_tape
    def logits(self, texts, segments=None):
        """Texts -> logits (B, L, V) of symbols or labels, or numbers (B, n)."""
        return self.output.logits(self.head(texts, segments))

    @on_tape
    def loss(self, texts, labels, segments=None):
        """The mean squared error of numbers (B, n) or (B); else the mean cross entropy of labels, one for each position of a text:
        ids, names or numbers; negative ones are left out."""
        rows, _ = self.rows(texts)
        required(len(rows) == len(labels), f"{len(rows)} texts were given, but labels of {len(labels)}")
        y = self.head(rows, segments)
        if self.pooled:
            error = self.output.logits(y) - tensor(np.reshape(labels, (len(rows), -1)), y.dtype)
            return (error * error).mean()
        made = np.full(y.shape[:2], -1, "i4")
        for row, given, ids in zip(made, labels, rows):
            required(len(given) == len(ids), f"a text has {len(ids)} positions, but {len(given)} labels")
            row[: len(ids)] = self.numbers(given)
        return self.output.loss(y, tensor(made))

    def numbers(self, labels):
        """Numbers of labels, which are names or numbers."""
        for one in labels:
            required(not isinstance(one, str) or one in (self.labels or ()), f"there is no label {one!r}; there are {', '.join(self.labels or ()) or 'ids'}")
        return [self.labels.index(one) if isinstance(one, str) else int(one) for one in labels]

    def classify(self, texts):
        """The most probable label or symbol of each position of a text, or of several: lists of (label, probability)."""
        required(not self.pooled, f"{self.family.architecture} has numbers, not labels: logits gives them")
        rows, many = self.rows(texts)
        made = []
        for ids in rows:
            with Tape(record=False):
                p = on_cpu(f.softmax(self.logits([ids])[0]))
            best = p.argmax(-1).tolist()
            made.append(list(zip([self.labels[k] for k in best] if self.labels else self.symbols(best), p.max(-1).tolist())))
        return made if many else made[0]

    def attention(self, text):
        """The attention weights of a text, which a notebook shows."""
        ids = self.ids(text)
        with Tape(record=False):
            return self.shown(ids, self.encoder(tensor([ids]), tensor([len(ids)]), weights=True)[1])


class PretrainedClassifier(PretrainedEncoder):
    """An encoder with a head for the label of a text."""

    def built(self, options):
        self.order = np.array(sorted(range(len(self.labels)), key=lambda i: self.labels[i].encode()))  # softback sorts labels
        model = f.Classifier.for_(self.weights, self.vocabulary, self.labels, **options)
        self.encoder = model.encoder()
        return model

    def batch(self, texts, labels=None, segments=None):
        """A batch of texts, with their labels where they are given."""
        text, lengths = self.padded(texts)
        parts = dict(text=text, lengths=lengths) | ({} if segments is None else {"segments": np.asarray(segments, "i4")})
        if labels is not None:
            parts["label"] = self.numbers(labels)
        return batch(**parts, targets=len(text))

    def numbers(self, labels):
        """softback's numbers of labels, which are names or numbers of theirs."""
        ids = np.array(super().numbers(labels), int)
        required(((0 <= ids) & (ids < len(self.labels))).all(), f"labels are names, or numbers in 0..{len(self.labels) - 1}, not {ids.tolist()[:9]}")
        return np.argsort(self.order)[ids].astype("i4")

    @on_tape
    def logits(self, texts, segments=None):
        """Texts -> logits (B, labels), in the order of model.labels. Segments (B, L): 0, or 1 in the second text of a pair."""
        y = self.model.logits(self.batch(texts, segments=segments))
        return y if (np.diff(self.order) == 1).all() else y[:, np.argsort(self.order).tolist()]

    @on_tape
    def loss(self, texts, labels, segments=None):
        """The mean cross entropy of labels, which are names or numbers."""
        return f.cross_entropy(self.model.logits(self.batch(texts, segments=segments)), tensor(self.numbers(labels)))

    def classify(self, texts):
        """The label of a text, or of each of several, with its probability: (label, probability)."""
        rows, many = self.rows(texts)
        made = [(self.model.label(one.label), one.probability) for one in self.model.classify([" ".join(map(str, ids)) for ids in rows])]
        return made if many else made[0]

    def data(self, pairs, **options):
        """Pairs of text and label, for a trainer. Options: batch_pairs, seed, ..."""
        made = f.Pairs()
        for text, label in pairs:
            made.add(" ".join(map(str, self.ids(text))), label)
        return f.Labelled(made, self.vocabulary, f.Labels(self.labels), **options)


KINDS = {"language_model": PretrainedLanguageModel, "seq2seq": PretrainedSeq2Seq, "classifier": PretrainedClassifier, "encoder": PretrainedEncoder}


def from_pretrained(folder, dtype="f32", lora=None, ignore=(), labels=None, **options):
    """The model of a folder that save_pretrained of Hugging Face's transformers wrote; docs/python.md lists the families. dtype is
    that of the weights, "f32" or "f64" (exact derivatives); files have any of f32, f16, bf16. Dropout is 0 unless given as an
    option. lora={"rank": 8, "alpha": 16, "on": "*.query,*.value"} adds adapters and freezes the rest, but for a head of labels.
    labels=["bad", "good"] gives an encoder a new head for the label of a text (one label: for a number), whatever its own is. A
    field of config.json that softback does not know is refused by name, unless `ignore` has it.
    """
    folder = Path(folder)
    try:
        return opened_folder(folder, dtype, lora, ignore, labels, options)
    except Error as error:
        raise Error(f"from_pretrained: {folder}: {error}") from None


def family_of(folder, config, labels):
    """The family of a config. A folder of sentence-transformers has an encoder alone, whatever its config says, and so has a model
    ForPreTraining here."""
    kind, declared = config.get("model_type"), config.get("architectures")
    required(isinstance(kind, str) and kind in FAMILIES, f"config.json: the model_type is {str(kind)[:60]!r}, none of {', '.join(FAMILIES)}")
    known = FAMILIES[kind]
    first, bare = next(iter(known)), next((name for name, family in known.items() if name.endswith("Model") and family.kind == "encoder"), None)
    required(not labels or bare, f"labels are for encoders, such as bert, but the model_type is {kind!r}")
    if labels or bare and (inside(folder, "modules.json").exists() or declared == [first.replace("SequenceClassification", "PreTraining")]):
        return known[first if labels else bare]
    required(declared is None or declared in [[name] for name in known], f"config.json: the architecture is {str(declared)[:80]}, not {' or '.join(known)}{'; labels=[...] gives it another head' if bare else ''}")
    return known[declared[0] if declared else first]


def opened_folder(folder, dtype, lora, ignore, labels, options):
    required(folder.is_dir(), "there is no such folder")
    config = read_json(folder, "config.json")
    family = family_of(folder, config, labels)
    for name in options:
        required(name in OWN, f"there is no option {name!r}; config.json gives the sizes, and you may give {', '.join(OWN)}")
    if labels:
        required(isinstance(labels, (list, tuple)) and all(isinstance(name, str) for name in labels), f"labels is {str(labels)[:60]!r}, not a list of texts")
        config = config | {"id2label": dict(zip(map(str, range(len(labels))), labels)), "label2id": dict(zip(labels, range(len(labels)))), "problem_type": None}
    replaced = bool(labels) or config.get("architectures") not in (None, [family.architecture])
    config = config | {"architectures": [family.architecture]} if replaced else config
    names, kind = names_of_labels(config) if family.architecture.endswith("Classification") else None, family.kind
    if kind == "classifier":
        problem = config.get("problem_type") or ("regression" if len(names) == 1 else "single_label_classification")
        required(problem in ("single_label_classification", "regression"), f"config.json: problem_type is {problem!r}; softback computes single_label_classification and regression")
        kind = "encoder" if problem == "regression" else kind
    shards = Shards(folder)
    if "output" not in family.names and family.names.get("hidden", "").removeprefix(family.prefix) + ".weight" not in {name.removeprefix(family.prefix) for name in shards.place}:
        family = SimpleNamespace(**vars(family) | {"names": {ours: theirs for ours, theirs in family.names.items() if ours != "hidden"}})  # without a pooler
    made = configure(family, config, shards, ignore) | options
    generation = read_json(folder, "generation_config.json", {n: config[n] for n in (*GENERATION, *NEUTRAL, *FREE) if n in config})
    weights = f.Parameters.of(dtype)
    required(weights.dtype() != "bf16", 'dtype is bf16, but weights are f32 or f64; precision="bf16" computes in bf16')
    if lora:
        weights.lora(**lora)
    weights.draw(False)
    model = KINDS[kind](folder, family, config, generation, weights, made, names, sentences(folder, ignore) if kind in ("encoder", "classifier") else {})
    read_weights(model, shards, bool(labels), replaced)
    weights.draw(True)
    if lora:
        weights.lora_freeze()
    if lora and names:
        weights.freeze("hidden.*,output.*", False)
    return model
