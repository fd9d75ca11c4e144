"""Models of Hugging Face's transformers: folders that pretrained/make.py made, and what transformers computes with them."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import softback as sb
from softback.families import FAMILIES, IGNORED
from softback.show import program

UNPACKED = tempfile.TemporaryDirectory()
FOLDERS = Path(shutil.copytree(Path(__file__).parent / "pretrained", UNPACKED.name, dirs_exist_ok=True))
shutil.unpack_archive(FOLDERS / "folders.zip", FOLDERS)
NAMES = sorted(path.name for path in FOLDERS.iterdir() if path.is_dir())
OF = dict.fromkeys(("gpt2", "llama", "mistral", "qwen2", "qwen3", "smollm3", "phi3", "gptneox", "opt"), "lm") | dict.fromkeys(
    ("marian", "bart", "mbart", "t5", "mt5"), "pairs") | dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert"), "texts")
WRITERS = [name for name in NAMES if OF[name.split("_")[0]] != "texts"]


def expected(name, what):
    file = sb.SafeTensors(FOLDERS / "expected.safetensors")
    found = f"{name}.{what}"
    return file.tensor(found).numpy() if file.find(found) >= 0 else None


def texts(name):
    ids, lengths = expected(name, "ids"), expected(name, "lengths")
    return [row[:n].tolist() for row, n in zip(ids, [ids.shape[1]] * len(ids) if lengths is None else lengths)]


def logits(model, name):
    kind = OF[name.split("_")[0]]
    others = {"lm": [], "pairs": [expected(name, "target")], "texts": [expected(name, "segments")]}[kind]
    if kind != "texts":
        return model.logits(texts(name), *map(list, others))
    y = model.hidden_states(texts(name), *others)[0] if name.endswith("_model") else model.logits(texts(name), *others)
    real = np.arange(y.shape[1]) < expected(name, "lengths")[:, None]
    return y * real[..., None] if y.ndim == 3 else y


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_gradients_are_those_of_transformers(name):
    model = sb.from_pretrained(FOLDERS / name)
    with sb.Tape():
        y = logits(model, name).keep()
        loss = (y * np.cos(np.arange(y.size)).reshape(y.shape).astype("f4")).sum()
        if (pooled := expected(name, "pooled")) is not None:
            p = model.hidden(model.hidden_states(texts(name), expected(name, "segments"))[0][:, 0], "tanh").keep()
            loss = loss + p.sum()
        loss.backward()
    assert pooled is None or np.abs(p.numpy() - pooled).max() < 1e-5
    want = expected(name, "logits")
    assert np.abs(y.numpy() - want).max() < 1e-5 * np.abs(want).max()
    got = model.as_theirs(lambda ours: np.zeros(t.shape) if (t := model.weights[ours]).grad is None else t.grad.numpy())
    flat, at = expected(name, "gradient"), 0
    for theirs in sorted(got):
        want = flat[at: at + got[theirs].size].reshape(got[theirs].shape)
        at += want.size
        least = 1e-2 * np.abs(flat).max()  # the bias of a key has a gradient of 0 but for rounding
        assert np.abs(got[theirs] - want).max() < 1e-4 * max(np.abs(want).max(), least), theirs
    assert at == flat.size


@pytest.mark.parametrize("name", WRITERS)
def test_greedy_and_beam_are_those_of_generate(name):
    model = sb.from_pretrained(FOLDERS / name)
    prompts = [ids[:3] if OF[name.split("_")[0]] == "lm" else ids for ids in texts(name)]
    for what, options in (("greedy", {}), ("beam", dict(beam_width=3)), ("early", dict(beam_width=3, beam_rule="early", length_penalty=0.5))):
        want = [[int(i) for i in row if i >= 0] for row in expected(name, what)]
        want = [row[: min([row.index(end) for end in model.ends if end in row], default=len(row))] for row in want]
        assert model.generate(prompts, longest=9, **options) == want, what
        assert model.generate(prompts[0], longest=9, **options) == want[0]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_back_is_what_was_read(name, tmp_path):
    model = sb.from_pretrained(FOLDERS / name)
    model.save_pretrained(tmp_path / "copy")
    model.save_pretrained(tmp_path / "copy")  # over itself
    files = [sb.SafeTensors(path) for path in sorted((FOLDERS / name).glob("*.safetensors"))]
    copy = sb.SafeTensors(tmp_path / "copy" / "model.safetensors")
    for file in files:
        for i in range(file.count()):
            assert np.array_equal(file.tensor(file.name(i)).doubles(), copy.tensor(file.name(i)).doubles()), file.name(i)
    assert copy.count() == sum(file.count() for file in files) and copy.metadata("format") == "pt"
    old, new = (json.loads((folder / "config.json").read_text()) for folder in (FOLDERS / name, tmp_path / "copy"))
    assert new == old | {"dtype": "float32"}
    again = sb.from_pretrained(tmp_path / "copy")
    assert np.array_equal(logits(again, name).numpy(), logits(model, name).numpy())


@pytest.mark.parametrize("name", ("gpt2", "t5", "bert"))
def test_the_program_reads_ids(name, tmp_path):
    model = sb.from_pretrained(FOLDERS / name)
    path, rows = tmp_path / "model.safetensors", texts(name)
    model.save(path)
    line = " ".join(map(str, rows[0]))
    command = {"lm": ["generate", "--greedy", "--length", "6"], "pairs": ["translate"], "texts": ["classify"]}[OF[name]]
    done = subprocess.run([program(), command[0], path, line, *command[1:]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if OF[name] == "texts":
        assert done.stdout.split()[0] == model.classify(rows[0])[0]
    elif OF[name] == "pairs":
        longest = 2 * len(rows[0]) + 50
        assert done.stdout.split() == [str(i) for i in model.translate(rows[0], longest=longest)]
    else:
        assert done.stdout.split()[-6:] == [str(i) for i in model.generate(rows[0], longest=6)]
    bad = subprocess.run([program(), command[0], path, "4 x"], capture_output=True, text=True)
    assert bad.returncode and '"x" is no id; a text of this vocabulary has numbers below' in bad.stderr


def test_training_freezing_lora_and_data():
    for name, data in (("gpt2", [[4, 5, 6, 7, 4, 5, 6, 7]]), ("marian", [([4, 5, 6, 0], [5, 6, 0])]), ("roberta", [([0, 4, 5, 2], "good"), ([0, 6, 2], "bad")])):
        model = sb.from_pretrained(FOLDERS / name, lora={"rank": 2}, dropout=0.1)
        before = {n: t.numpy().copy() for n, t in model.weights.items()}
        sb.Trainer(model, model.data(data), learning_rate=0.01).train(3, progress=False)
        changed = {n for n, t in model.weights.items() if not np.array_equal(t.numpy(), before[n])}
        head = {"hidden.weight", "hidden.bias", "output.weight", "output.bias"} if name == "roberta" else set()
        assert head < changed and all(n.endswith(("lora_a", "lora_b")) for n in changed - head)
        with pytest.raises(sb.Error, match="is an adapter"):
            model.save_pretrained("nowhere")
        y = logits(model, name).numpy()
        model.weights.lora_merge()
        assert np.abs(logits(model, name).numpy() - y).max() < 1e-5
    model = sb.from_pretrained(FOLDERS / "llama")
    model.weights.freeze("decoder.*", True)
    adam, losses = sb.Adam(model.weights, learning_rate=0.05), []
    for _ in range(5):
        with sb.Tape():
            loss = model.loss([[4, 5, 6, 7], [5, 6, 7]])
            loss.backward()
            losses.append(loss.item())
            adam.step()
    assert losses[-1] < losses[0] and model.weights.trainable() == model.weights["output.weight"].size


HEADED = ("bert_tokens", "bert_number", "roberta_number", "distilbert_tokens", "electra")


@pytest.mark.parametrize("name", HEADED)
def test_a_head_of_labels_trains_beside_adapters(name):
    """What is new in a model to be tuned; a head for masked symbols is not."""
    model, random = sb.from_pretrained(FOLDERS / name, lora={"rank": 2}), np.random.default_rng(1)
    masked = sb.from_pretrained(FOLDERS / "roberta_masked", lora={"rank": 2})
    assert all(n.endswith(("lora_a", "lora_b")) for n, t in masked.weights.items() if t.requires_grad)
    assert {n for n, t in model.weights.items() if t.requires_grad and "lora" not in n} == {n for n in model.weights if n.startswith(("hidden.", "output."))}
    labels = [[1, "good", 0, -100, 2, 0], [2, 0, 1, 1]] if "tokens" in name else [[0.5], [-2.0]] if "number" in name else ["bad", 1]
    optimiser, losses = sb.Adam(model.weights, learning_rate=0.02), []
    for _ in range(30):
        with sb.Tape():
            loss = model.loss(texts(name), labels)
            loss.backward()
            losses.append(loss.item())
            optimiser.step()
    assert losses[-1] < 0.5 * losses[0], losses


@pytest.mark.parametrize("name", ("bert_model", "bert_masked", "roberta_masked", "electra_model", "distilbert_tokens", "xlm-roberta", "bert"))
@pytest.mark.parametrize("labels", (["pos", "mid", "neg"], ["score"]))
def test_labels_give_an_encoder_a_new_head(name, labels, tmp_path):
    model, old = sb.from_pretrained(FOLDERS / name, labels=labels, lora={"rank": 2}), sb.from_pretrained(FOLDERS / name)
    assert np.array_equal(model.hidden_states(texts(name))[0].numpy(), old.hidden_states(texts(name))[0].numpy())
    assert model.labels == labels and model.logits(texts(name)).shape == (2, len(labels)) and 0 < np.abs(model.weights["output.weight"].numpy()).max() < 0.1
    if name in ("bert_model", "bert"):  # which has a pooler
        assert np.array_equal(model.weights["hidden.weight"].numpy(), old.weights["hidden.weight"].numpy())
    assert all(model.weights[n].requires_grad for n in ("hidden.weight", "output.weight", "output.bias"))
    model.save_pretrained(tmp_path)
    again, file, prefix = sb.from_pretrained(tmp_path), sb.SafeTensors(tmp_path / "model.safetensors"), model.family.prefix
    base = [file.name(i).startswith(prefix) for i in range(file.count())]  # as transformers' classifiers have them
    assert 2 <= base.count(False) <= 4 and again.labels == labels and np.array_equal(again.logits(texts(name)).numpy(), model.logits(texts(name)).numpy())
    if len(labels) == 3:
        assert model.classify(texts(name)[0])[0] in labels
        sb.Trainer(model, model.data([(texts(name)[0], "neg"), (texts(name)[1], "pos")]), learning_rate=0.02).train(60, progress=False)
        assert [label for label, _ in model.classify(texts(name))] == ["neg", "pos"]


def test_embeddings_are_of_the_real_positions():
    model = sb.from_pretrained(FOLDERS / "bert_model")
    y, real = model.hidden_states(texts("bert_model"))
    assert y.shape == (2, 6, 8) and real.tolist() == [[True] * 6, [True] * 4 + [False] * 2]
    alone = [model.hidden_states([ids])[0].numpy()[0] for ids in texts("bert_model")]
    assert np.abs(y.numpy()[1, :4] - alone[1]).max() < 1e-6
    means = np.array([one.mean(0) for one in alone])
    assert np.abs(model.encode(texts("bert_model")) - means).max() < 1e-6 and np.abs(model.encode(texts("bert_model")[1]) - means[1]).max() < 1e-6
    unit = model.encode(texts("bert_model"), normalise=True)
    assert np.abs(unit - means / np.linalg.norm(means, axis=1, keepdims=True)).max() < 1e-6 and unit.dtype == np.float32
    assert np.abs(model.encode(texts("bert_model"), "first") - [one[0] for one in alone]).max() < 1e-6
    x = expected("bert_model", "segments")
    y = model.hidden_states(texts("bert_model"), x)[0].numpy()[:, 0]
    assert np.abs(np.tanh(y @ model.weights["hidden.weight"].numpy().T + model.weights["hidden.bias"].numpy()) - expected("bert_model", "pooled")).max() < 1e-5
    many = [texts("bert_model")[i % 2][: 2 + i % 3] for i in range(70)]  # more than are computed together
    assert np.abs(model.encode(many) - [model.encode(ids) for ids in many]).max() < 1e-6 and model.encode([]).shape == (0, 8)
    with sb.Tape():
        model.hidden_states(texts("bert_model"))[0].sum().backward()
    assert model.weights["encoder.embedding.weight"].grad is not None and sb.from_pretrained(FOLDERS / "bert").encode([4, 5]).shape == (8,)


def sentences_of(folder, modules=("Transformer", "Pooling", "Normalize"), **modes):
    """As sentence-transformers writes a folder."""
    paths = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    (folder / "modules.json").write_text(json.dumps([
        {"idx": i, "name": str(i), "path": paths.get(name, "x"), "type": f"sentence_transformers.models.{name}"} for i, name in enumerate(modules)]))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {"word_embedding_dimension": 8, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False, "include_prompt": True} | modes
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 5, "do_lower_case": False}))


def test_a_folder_of_sentence_transformers_says_how_to_embed(tmp_path):
    folder, plain, ids = folder_with(tmp_path, "bert_model", architectures=["BertForMaskedLM"]), sb.from_pretrained(FOLDERS / "bert_model"), texts("bert_model")
    sentences_of(folder)
    model, cut = sb.from_pretrained(folder), [ids[0][:4] + ids[0][-1:], ids[1]]
    assert np.array_equal(model.encode(ids), plain.encode(cut, normalise=True)) and np.array_equal(model.encode(ids, normalise=False), plain.encode(cut))
    model.save_pretrained(tmp_path / "copy")
    assert np.array_equal(sb.from_pretrained(tmp_path / "copy").encode(ids), model.encode(ids))
    for modes in (dict(pooling_mode_cls_token=True), dict(pooling_mode="cls")):  # of older and newer versions
        sentences_of(folder, modules=("Transformer", "Pooling"), pooling_mode_mean_tokens=False, **modes)
        assert np.array_equal(sb.from_pretrained(folder).encode(ids), plain.encode(cut, "first"))
    (folder / "sentence_bert_config.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 5}')
    assert np.array_equal(sb.from_pretrained(folder).encode(ids), plain.encode(cut, "first"))
    for change, message in (
            (dict(pooling_mode_max_tokens=True), "1_Pooling/config.json: the pooling is pooling_mode_mean_tokens and pooling_mode_max_tokens, none of mean, "),
            (dict(pooling_mode_mean_tokens=False), "the pooling is None"), (dict(modules=("Transformer", "Dense")), "modules.json has a module 'Dense'")):
        sentences_of(folder, **change)
        with pytest.raises(sb.Error, match=message):
            sb.from_pretrained(folder)
    assert sb.from_pretrained(folder, ignore=["Dense"]).encode(ids).shape == (2, 8)
    (folder / "modules.json").write_text('[{"type": "Pooling", "path": "../x"}]')
    with pytest.raises(sb.Error, match="modules.json: '../x' is no name of a folder"):
        sb.from_pretrained(folder)


def test_positions_have_labels_or_symbols(tmp_path):
    model = sb.from_pretrained(FOLDERS / "bert_tokens")
    assert model.labels == ["bad", "good", "neutral"]
    ids, y = texts("bert_tokens")[0], model.logits(texts("bert_tokens")).numpy()[0]
    p = np.exp(y) / np.exp(y).sum(-1, keepdims=True)
    made = model.classify(ids)
    assert [label for label, _ in made] == [model.labels[k] for k in p.argmax(-1)] and np.allclose([x for _, x in made], p.max(-1), atol=1e-6)
    assert [len(one) for one in model.classify(texts("bert_tokens"))] == [6, 4]
    masked = sb.from_pretrained(FOLDERS / "bert_masked")
    assert [int(symbol) for symbol, _ in masked.classify(ids)] == masked.logits([ids])[0].numpy().argmax(-1).tolist()
    want = -np.log(np.take_along_axis(p, np.array([[0], [1], [2], [0], [1], [2]]), 1))[[1, 4]].mean()
    assert abs(model.loss([ids], [[-100, "good", -1, -100, 1, -100]]).item() - want) < 1e-5
    other = model.loss([ids[:1]], [[2]]).item()  # beside a longer text, of which padding is no part
    assert abs(model.loss([ids, ids[:1]], [[-100, "good", -1, -100, 1, -100], [2]]).item() - (2 * want + other) / 3) < 1e-5
    for name, labels, message in (("bert_tokens", [[0, 1]], "a text has 6 positions, but 2 labels"), ("bert_tokens", [["x"] * 6], "there is no label 'x'; there are bad, good, neutral"),
                                  ("bert_tokens", [[0] * 6] * 2, "1 texts were given, but labels of 2"), ("bert_model", [0], "BertModel has no head"),
                                  ("bert", ["x"], "there is no label 'x'"), ("bert_masked", [["x"] * 6], "there is no label 'x'; there are ids")):
        with pytest.raises(sb.Error, match=message):
            sb.from_pretrained(FOLDERS / name).loss([ids], labels)
    with pytest.raises(sb.Error, match="BertForSequenceClassification has numbers, not labels: logits gives them"):
        sb.from_pretrained(FOLDERS / "bert_number").classify(ids)
    with pytest.raises(sb.Error, match="BertForTokenClassification has no trainer and no file of softback's own: take steps with an optimiser"):
        model.save(tmp_path / "x")
    with pytest.raises(sb.Error, match="there is no pooling 'max'"):
        model.encode([ids], "max")


def test_heads_of_pretraining_are_left_out(tmp_path):
    folder = folder_with(tmp_path, "electra", architectures=["ElectraForPreTraining"])
    base = {name: x for name, x in tensors_of("electra").items() if name.startswith("electra.")}
    write(folder / "model.safetensors", base | {"discriminator_predictions.dense.weight": np.zeros((8, 8), "f4")})
    model = sb.from_pretrained(folder)
    assert np.array_equal(model.encode(texts("electra")), sb.from_pretrained(FOLDERS / "electra").encode(texts("electra"))) and model.output is None
    model.save_pretrained(tmp_path / "copy")
    assert json.loads((tmp_path / "copy" / "config.json").read_text())["architectures"] == ["ElectraModel"]
    write(folder / "model.safetensors", base | {"electra.surprise": np.zeros(8, "f4")})
    with pytest.raises(sb.Error, match="a tensor 'electra.surprise', which softback's model does not have"):
        sb.from_pretrained(folder)
    write(folder / "model.safetensors", {name: x for name, x in tensors_of("bert_model").items() if "pooler" not in name})
    shutil.copy(FOLDERS / "bert_model" / "config.json", folder)
    assert sb.from_pretrained(folder).hidden is None  # add_pooling_layer=False
    with pytest.raises(sb.Error, match="there is no pooling 'pooler'"):
        sb.from_pretrained(folder).encode([[4]], "pooler")


ON_DEVICE = """
import sys
import numpy as np
import softback as sb
try:
    sb.use_device(sys.argv[2])
except sb.Error as error:
    sys.exit(f"no device: {error}")
ids = [[1, 4, 5, 2], [1, 2]]
for name, call in {
        "gpt2": lambda m: (m.logits(ids[:1]), m.loss(ids)), "t5": lambda m: (m.logits(ids, ids), m.loss(ids, ids)),
        "bert": lambda m: (m.logits(ids), m.loss(ids, ["bad", 1]), m.encode(ids)), "bert_model": lambda m: (m.encode(ids), m.encode(ids, "pooler")),
        "bert_tokens": lambda m: (m.loss(ids, [["bad", 1, 2, -1], [0, 1]]), [p for _, p in m.classify(ids[0])]),
        "bert_number": lambda m: m.loss(ids, [0.5, 1.0]), "phi3": lambda m: m.loss(ids)}.items():
    model = sb.from_pretrained(f"{sys.argv[1]}/{name}")
    for made in call(model) if isinstance(call(model), tuple) else [call(model)]:
        print(name, *np.round(np.ravel(made.doubles() if isinstance(made, sb.Tensor) else made), 3) + 0.0)
"""


def test_a_device_computes_the_same():
    runs = [subprocess.run([sys.executable, "-c", ON_DEVICE, str(FOLDERS), device], capture_output=True, text=True, env=os.environ | {"SOFTBACK_CUDA": "emulated"})
            for device in ("cpu", "cuda")]
    if "no device" in runs[1].stderr:
        pytest.skip("built without the emulated device")
    one, two = ([line.split() for line in run.stdout.splitlines()] for run in runs)
    assert len(one) == len(two) == 13 and not runs[1].returncode, runs[1].stderr
    for (name, *a), (_, *b) in zip(one, two):
        assert np.abs(np.array(a, float) - np.array(b, float)).max() < 2e-3, name


def test_names_of_the_first_files_of_bert(tmp_path):
    """bert-base-uncased has gamma and beta, a pooler and a head for pairs of sentences, which the masked model lacks."""
    folder = folder_with(tmp_path, "bert_masked")
    tensors = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x for name, x in tensors_of("bert_masked").items()}
    more = {"bert.pooler.dense.weight": np.zeros((8, 8), "f4"), "cls.seq_relationship.bias": np.zeros(2, "f4"), "cls.predictions.decoder.bias": tensors["cls.predictions.bias"]}
    write(folder / "model.safetensors", tensors | more)
    assert np.array_equal(logits(sb.from_pretrained(folder), "bert_masked").numpy(), logits(sb.from_pretrained(FOLDERS / "bert_masked"), "bert_masked").numpy())


def test_derivatives_of_weights_are_exact():
    model = sb.from_pretrained(FOLDERS / "mistral", dtype="f64")
    weights = [t for _, t in model.weights.items()]
    assert sb.gradcheck(lambda *_: model.loss([[4, 5, 6]]), *weights, second_order=True)
    v = [np.ones(t.shape) for t in weights]
    products = sb.hvp(lambda *_: model.loss([[4, 5, 6]]), weights, v)
    assert [p.shape for p in products] == [t.shape for t in weights] and all(np.isfinite(p.numpy()).all() for p in products)
    bart = sb.from_pretrained(FOLDERS / "bart", dtype="f64")
    assert sb.gradcheck(lambda *_: bart.loss([[4, 5, 2]], [[5, 2]]), *[t for _, t in bart.weights.items()])


def test_attention_has_a_row_for_each_query():
    model = sb.from_pretrained(FOLDERS / "gpt2")
    shown = model.attention([4, 5, 6])
    assert [w.shape for w in shown.weights["self"]] == [(2, 3, 3)] * 2 and "<svg" in shown._repr_html_()
    assert np.allclose(shown.weights["self"][0].sum(-1), 1)
    y, maps = model.logits([[4, 5, 6]], weights=True)
    assert np.allclose(y.numpy(), model.logits([[4, 5, 6]]).numpy(), atol=1e-6) and np.array_equal(maps[0].numpy()[0], shown.weights["self"][0])
    cross = sb.from_pretrained(FOLDERS / "t5").attention([4, 5, 6, 1], [5, 6])
    assert cross.weights["cross"][0].shape == (2, 3, 4) and repr(cross).count("layers of") == 3
    assert sb.from_pretrained(FOLDERS / "bert").attention([1, 4, 2]).weights["self"][0].shape == (2, 3, 3)


def test_a_tokenizer_comes_along():
    pytest.importorskip("tokenizers", reason="pip could not install tokenizers")
    model = sb.from_pretrained(FOLDERS / "gpt2")
    assert model.ids("the cat sees a dog") == [4, 6, 8, 5, 7]
    assert model.generate("the cat", longest=4).split() and model.attention("the cat").queries["self"] == ["the", "cat"]
    assert model.loss(["the cat sees a dog", "the dog"]).item() > 0
    bert = sb.from_pretrained(FOLDERS / "bert")
    assert bert.ids("a dog") == [1, 5, 7, 2] and bert.classify("a dog") == bert.classify([[1, 5, 7, 2]])[0]
    assert [label for label, _ in bert.classify(["a dog", "the cat"])][0] in bert.labels


PADDING = {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
TRUNCATION = {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}


@pytest.mark.parametrize("padding, truncation", (
    (PADDING, None), (PADDING | {"direction": "Left"}, None), (PADDING | {"strategy": "BatchLongest", "pad_to_multiple_of": 6}, None),
    (PADDING | {"strategy": {"Fixed": 3}}, TRUNCATION), (None, TRUNCATION | {"direction": "Left"})))
def test_a_text_has_the_ids_of_its_words_alone(padding, truncation, tmp_path):
    """Folders of sentence-transformers have padding and truncation, which transformers does not use unless it is asked for."""
    pytest.importorskip("tokenizers", reason="pip could not install tokenizers")
    folder, plain = folder_with(tmp_path, "bert"), sb.from_pretrained(FOLDERS / "bert")
    made = json.loads((folder / "tokenizer.json").read_text()) | {"padding": padding, "truncation": truncation}
    (folder / "tokenizer.json").write_text(json.dumps(made))
    model, given = sb.from_pretrained(folder), ["the cat sees a dog", "the dog sleeps"]
    assert [model.ids(text) for text in given] == [plain.ids(text) for text in given] == [[1, 4, 6, 8, 5, 7, 2], [1, 4, 7, 14, 2]]
    assert model.tokenizer.encode("a dog", False) == [5, 7]
    assert np.array_equal(model.logits(given).numpy(), plain.logits(given).numpy()) and model.classify(given) == plain.classify(given)


def test_a_tokenizer_that_cannot_be_read_is_named(tmp_path):
    folder = folder_with(tmp_path, "gpt2")
    (folder / "tokenizer.json").write_text("[" * 10000)
    try:
        assert "needs the package tokenizers" in sb.from_pretrained(folder).why
    except sb.Error as error:
        assert "its tokenizer cannot be read" in str(error)


PUBLIC = {  # fields that the configs of well-known models have, which are of older versions
    "gpt2": "n_ctx task_specific_params summary_first_dropout attn_pdrop", "llama": "rope_scaling rope_theta torch_dtype",
    "marian": "_num_labels add_bias_logits bad_words_ids classif_dropout max_length normalize_before num_beams static_position_embeddings",
    "bart": "force_bos_token_to_be_generated gradient_checkpointing extra_pos_embeddings no_repeat_ngram_size prefix",
    "t5": "output_past n_positions dense_act_fn is_gated_act", "bert": "gradient_checkpointing finetuning_task pruned_heads directionality pooler_fc_size pooler_type",
    "xlm-roberta": "output_past position_embedding_type", "camembert": "output_past classifier_dropout", "opt": "prefix init_std layerdrop _remove_final_layer_norm",
    "electra": "embedding_size summary_last_dropout summary_use_proj", "mbart": "add_final_layer_norm normalize_embedding extra_pos_embeddings max_length",
    "phi3": "auto_map embd_pdrop original_max_position_embeddings rope_scaling", "gpt_neox": "rotary_emb_base rotary_pct hidden_dropout rope_scaling",
    "distilbert": "tie_weights_ output_past sinusoidal_pos_embds finetuning_task", "roberta": "gradient_checkpointing problem_type"}


@pytest.mark.parametrize("kind", PUBLIC)
def test_fields_of_well_known_models_are_known(kind):
    known = {*next(iter(FAMILIES[kind].values())).fields, *IGNORED}
    assert not [name for name in PUBLIC[kind].split() if name not in known and not name.endswith(("dropout", "drop"))]


def test_pieces_come_along():
    pytest.importorskip("sentencepiece", reason="pip could not install sentencepiece")
    for name in ("t5", "marian"):
        model = sb.from_pretrained(FOLDERS / name)
        ids = model.ids("abc cab")
        assert ids[-1] in model.ends and model.tokenizer.decode(ids) == "abc cab"
        assert isinstance(model.translate(["abc", "cab"], longest=5)[1], str)


def write(path, tensors):
    """A safetensors file of float32 arrays."""
    header, at = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(np.ascontiguousarray(a, "f4").tobytes() for a in tensors.values()))


def tensors_of(name):
    files = [sb.SafeTensors(path) for path in sorted((FOLDERS / name).glob("*.safetensors"))]
    return {file.name(i): file.tensor(file.name(i)).numpy() for file in files for i in range(file.count())}


def test_files_of_other_versions_are_read(tmp_path):
    """Names without the prefix, buffers, and tables that are tied and written twice."""
    folder = folder_with(tmp_path, "gpt2")
    (folder / "model.safetensors.index.json").unlink()
    tensors = {name.removeprefix("transformer."): array for name, array in tensors_of("gpt2").items()}
    causal = {"h.0.attn.bias": np.ones((1, 1, 4, 4), "f4"), "h.0.attn.masked_bias": np.zeros(1, "f4")}
    write(folder / "model.safetensors", tensors | causal | {"lm_head.weight": tensors["wte.weight"]})
    want = logits(sb.from_pretrained(FOLDERS / "gpt2"), "gpt2").numpy()
    assert np.array_equal(logits(sb.from_pretrained(folder), "gpt2").numpy(), want)
    write(folder / "model.safetensors", tensors | {"lm_head.weight": tensors["wte.weight"] + 1})
    with pytest.raises(sb.Error, match="lm_head.weight is not the table of embeddings, with which config.json ties it"):
        sb.from_pretrained(folder)
    write(folder / "model.safetensors", tensors | {"surprise": np.zeros(3, "f4")})
    with pytest.raises(sb.Error, match="a tensor 'surprise', which softback's model does not have"):
        sb.from_pretrained(folder)
    folder = folder_with(tmp_path, "marian")
    tensors = tensors_of("marian")
    shared = tensors["model.shared.weight"]
    write(folder / "model.safetensors", tensors | {f"model.{s}.embed_tokens.weight": shared for s in ("encoder", "decoder")} | {
        f"model.{s}.embed_positions.weight": np.zeros((14, 8), "f4") for s in ("encoder", "decoder")})
    assert np.array_equal(logits(sb.from_pretrained(folder), "marian").numpy(), logits(sb.from_pretrained(FOLDERS / "marian"), "marian").numpy())


def test_labels_stand_in_their_order(tmp_path):
    """softback sorts labels; logits are in the order of id2label, and written back so."""
    folder = folder_with(tmp_path, "bert", id2label={"0": "z", "1": "a", "2": "m"})
    model, plain = sb.from_pretrained(folder), sb.from_pretrained(FOLDERS / "bert")
    assert model.labels == ["z", "a", "m"] and np.array_equal(logits(model, "bert").numpy(), logits(plain, "bert").numpy())
    best = {"bad": "z", "good": "a", "neutral": "m"}[plain.classify(texts("bert")[0])[0]]
    assert model.classify(texts("bert")[0])[0] == best
    assert abs(model.loss(texts("bert"), ["z", 1]).item() - plain.loss(texts("bert"), ["bad", "good"]).item()) < 1e-6
    model.save_pretrained(tmp_path / "copy")
    assert np.array_equal(sb.SafeTensors(tmp_path / "copy" / "model.safetensors").tensor("classifier.weight").numpy(), tensors_of("bert")["classifier.weight"])


def test_generation_config_of_public_marians(tmp_path):
    """Padding is never chosen, and the probabilities of the others sum to 1."""
    folder = folder_with(tmp_path, "marian")
    given = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps(given | {"bad_words_ids": [[17]], "renormalize_logits": True, "num_beams": 3, "max_length": 10}))
    model = sb.from_pretrained(folder)
    want = [[int(i) for i in row if i >= 0] for row in expected("marian", "public")]
    assert model.translate(texts("marian")) == [row[: row.index(0)] if 0 in row else row for row in want]


def folder_with(tmp_path, name, **config):
    made = tmp_path / "hostile"
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(FOLDERS / name, made)
    for path in made.iterdir():
        path.chmod(0o644)
    (made / "config.json").write_text(json.dumps(json.loads((made / "config.json").read_text()) | config))
    return made


YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4}
REFUSED = (
    ("llama", {"rope_parameters": YARN}, "rope_type 'yarn', which softback does not compute"),
    ("llama", {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope_type 'dynamic'"),
    ("llama", {"rope_parameters": {"rope_type": {"name": "yarn"}}}, "rope_type \"{'name': 'yarn'}\", which softback does not compute"),
    ("llama", {"rope_parameters": {"rope_type": "linear", "factor": -1.0}}, "rope_parameters.factor is '-1.0', not a positive number"),
    ("llama", {"attention_bias": True}, "attention_bias is True and mlp_bias False; softback computes both or neither"),
    ("mistral", {"sliding_window": 16}, "sliding_window is 16, which softback does not compute"),
    ("qwen2", {"use_sliding_window": True}, "use_sliding_window True, which softback does not compute"),
    ("qwen3", {"layer_types": ["sliding_attention"]}, "layer_types"),
    ("llama", {"logit_soft_cap": 30}, "the field 'logit_soft_cap' (30), which softback does not know; if it changes no numbers"),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx True"),
    ("gpt2", {"activation_function": "mish"}, "activation_function is 'mish', none of relu"),
    ("gpt2", {"model_type": "gptj"}, "the model_type is 'gptj', none of gpt2"),
    ("gpt2", {"architectures": ["GPT2ForTokenClassification"]}, "not GPT2LMHeadModel"),
    ("gpt2", {"n_embd": "8"}, "n_embd is '8', not a whole number"),
    ("gpt2", {"n_embd": True}, "n_embd is 'True'"),
    ("gpt2", {"n_embd": 10 ** 30}, "n_embd is"),
    ("gpt2", {"n_embd": 16}, "is (18, 8), but config.json makes it (18, 16)"),
    ("gpt2", {"vocab_size": 1 << 24}, "a vocabulary of 16777216 x 8 is more than the files have"),
    ("gpt2", {"n_layer": 10 ** 6}, "1000000 layers are more than the files have tensors"),
    ("gpt2", {"n_layer": 3}, "the files have no tensor transformer.h.2."),
    ("gpt2", {"n_layer": 1}, "a tensor 'transformer.h.1."),
    ("gpt2", {"layer_norm_epsilon": -1}, "layer_norm_epsilon is '-1', not a positive number"),
    ("bart", {"decoder_attention_heads": 4}, "encoder and decoder have different heads"),
    ("bart", {"normalize_before": True}, "normalize_before True"),
    ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key'"),
    ("bert", {"problem_type": "multi_label_classification"}, "problem_type is 'multi_label_classification'; softback computes single_label"),
    ("roberta_model", {"pad_token_id": "1"}, "pad_token_id is '1', no id below 18"),
    ("bert_tokens", {"id2label": None, "num_labels": 1e9}, "num_labels is '1000000000.0', not a whole number in 1..65536"),
    ("electra", {"embedding_size": 4}, "embedding_size is 4, but the layers have the width 8; softback's are equal"),
    ("opt", {"word_embed_proj_dim": 4}, "embedding_size is 4, but the layers have the width 8"),
    ("opt", {"do_layer_norm_before": False}, "do_layer_norm_before False"),
    ("bert_masked", {"tie_word_embeddings": False}, "tie_word_embeddings False, which softback does not compute"),
    ("smollm3", {"no_rope_layers": [1, 0, 0]}, "no_rope_layers is [1, 0, 0], which softback does not compute; its layers without positions are at one interval"),
    ("smollm3", {"layer_types": [{}]}, "layer_types '{}', which softback does not compute"),
    ("phi3", {"sliding_window": 2047}, "sliding_window is 2047, which softback does not compute"),
    ("phi3", {"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, "rope_type 'longrope'"),
    ("phi3", {"partial_rotary_factor": 0.75, "rope_parameters": None}, "rotary positions turn 0.75 of each head (rotary_pct, partial_rotary_factor)"),
    ("phi3", {"num_key_value_heads": 1}, "qkv_proj.weight has 16 rows, but config.json makes it 12"),
    ("gptneox", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}, "rotary positions turn 0.25 of each head"),
    ("gptneox", {"use_parallel_residual": True}, "use_parallel_residual True, which softback does not compute"),
    ("llama", {"model_type": "olmo2"}, "the model_type is 'olmo2', none of gpt2, "),
    ("bert", {"architectures": ["BertForQuestionAnswering"]}, "the architecture is ['BertForQuestionAnswering'], not BertForSequenceClassification or BertModel or "),
    ("bert", {"id2label": {"0": "a", "2": "b", "1": 3}}, "id2label is no object"),
    ("t5", {"feed_forward_proj": "glu-gelu"}, "an activation or gated-ACTIVATION"),
)


@pytest.mark.parametrize("name, config, message", REFUSED)
def test_fields_that_would_change_numbers_are_refused_by_name(name, config, message, tmp_path):
    with pytest.raises(sb.Error) as refused:
        sb.from_pretrained(folder_with(tmp_path, name, **config))
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_a_field_may_be_ignored(tmp_path):
    assert sb.from_pretrained(folder_with(tmp_path, "llama", logit_soft_cap=30), ignore=["logit_soft_cap"]).vocabulary.size() == 18
    with pytest.raises(sb.Error, match="there is no option 'width'"):
        sb.from_pretrained(FOLDERS / "gpt2", width=3)
    with pytest.raises(sb.Error, match='dtype is bf16, but weights are f32 or f64; precision="bf16"'):
        sb.from_pretrained(FOLDERS / "gpt2", dtype="bf16")


def test_hostile_folders_get_one_sentence(tmp_path):
    def refused(change, message):
        folder = folder_with(tmp_path, "gpt2")
        change(folder)
        with pytest.raises(sb.Error) as error:
            sb.from_pretrained(folder)
        assert message in str(error.value) and len(str(error.value)) < 400, error.value

    def config(text):
        return lambda folder: (folder / "config.json").write_text(text)

    def index(**places):
        def change(folder):
            found = json.loads((folder / "model.safetensors.index.json").read_text())
            (folder / "model.safetensors.index.json").write_text(json.dumps(found | places))
        return change

    def link(name, target):
        def change(folder):
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(target)
        return change

    secret = tmp_path / "secret.safetensors"
    shutil.copy(FOLDERS / "expected.safetensors", secret)
    shard = "model-00001-of-00003.safetensors"
    refused(shutil.rmtree, "there is no such folder")
    refused(lambda folder: (folder / "config.json").unlink(), "config.json: No such file")
    refused(config('{"model_type": NaN}'), "NaN, which is no number of JSON")
    refused(config("[" * 1000000), "config.json is no JSON")
    refused(config("[]"), "config.json is list, not an object")
    refused(config('{"model_type": 1' + "0" * 5000 + "}"), "config.json is no JSON")
    refused(config('{"a": "' + "x" * (1 << 24) + '"}'), "config.json has more than")
    refused(config("\xff"), "config.json is")
    refused(lambda folder: (folder / shard).unlink(), f"there is no {shard}, which model.safetensors.index.json names")
    refused(lambda folder: (folder / shard).write_bytes(b"\0" * 64), "safetensors")
    refused(index(weight_map={}), "has no weight_map")
    refused(index(weight_map={"a": 3}), "has no weight_map")
    refused(index(weight_map={"a": "../secret.safetensors"}), "'../secret.safetensors' is no name of a file")
    refused(index(weight_map={"a": str(secret)}), "is no name of a file")
    refused(index(weight_map={"no": shard}), "names the tensor 'no', which no file has")
    refused(link(shard, secret), f"{shard} is a link that leaves the folder")
    refused(link("config.json", "/etc/passwd"), "config.json is a link that leaves the folder")
    refused(link(shard, "config.json"), "not a safetensors file")
    refused(lambda folder: (folder / "generation_config.json").write_text('{"eos_token_id": 99}'), "eos_token_id is '99', no id below 18")
    refused(lambda folder: [path.unlink() for path in folder.glob("*.safetensors*")], "there is no model.safetensors")
    refused(link("tokenizer.json", secret), "tokenizer.json is a link that leaves the folder")

    def empty(folder): # its transpose would have 2^40 rows
        for path in folder.glob("*.safetensors*"):
            path.unlink()
        header = b'{"a": {"dtype": "F32", "shape": [0, 1099511627776], "data_offsets": [0, 0]}}'
        (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    refused(empty, "the tensor 'a' is (0, 1099511627776): it has no numbers")


def test_the_hubs_cache_has_links_to_its_blobs(tmp_path):
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "1234"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for i, path in enumerate((FOLDERS / "qwen2").iterdir()):
        shutil.copy(path, blobs / str(i))
        (snapshot / path.name).symlink_to(Path("../../blobs") / str(i))
    assert np.array_equal(logits(sb.from_pretrained(snapshot), "qwen2").numpy(), logits(sb.from_pretrained(FOLDERS / "qwen2"), "qwen2").numpy())


def test_what_generate_does_not_compute_is_named(tmp_path):
    folder = folder_with(tmp_path, "bart_unusual")
    (folder / "generation_config.json").write_text(json.dumps({"no_repeat_ngram_size": 3, "num_beams": 2, "eos_token_id": 2, "decoder_start_token_id": 2}))
    model = sb.from_pretrained(folder)
    with pytest.raises(sb.Error, match='sets no_repeat_ngram_size to 3, which softback does not compute; generate without it: ignore=."no_repeat'):
        model.translate([4, 5, 2])
    assert model.translate([4, 5, 2], longest=5, ignore=["no_repeat_ngram_size"]) == model.translate([4, 5, 2], longest=5, beam_width=2, ignore=["no_repeat_ngram_size"])
    with pytest.raises(sb.Error, match="there is no tokenizer for a text"):
        model.loss(["a text"], [[2]])
    with pytest.raises(sb.Error, match="a text or its ids are expected"):
        model.loss([[1.5]], [[2]])
