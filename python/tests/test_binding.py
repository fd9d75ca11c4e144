"""What Python adds: arguments by name, operations of one's own, training, decoding, and drawings."""
import ast
import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import softback as sb
from softback._declarations import FUNCTIONS

ROOT, PACKAGE = Path(__file__).resolve().parents[2], Path(sb.__file__).parent


def refused(message, f, *arguments, **options):
    with pytest.raises(sb.Error, match=message):
        f(*arguments, **options)


# ---- arguments ----


def test_wrong_options_are_named_with_the_nearest_right_one():
    x = sb.zeros((2, 3))
    refused('cross_entropy: there is no option "label_smothing"; did you mean "label_smoothing"?',
            sb.cross_entropy, x, [0, 1], label_smothing=0.1)
    refused('adam_new: there is no option "lr"; did you mean "learning_rate"', sb.Adam, sb.Parameters(1), lr=1)
    refused('"men" is no reduction; did you mean "mean"?', sb.cross_entropy, x, [0, 1], reduction="men")
    refused('there is no option "widht"; did you mean "width"?', sb.Seq2Seq, sb.Parameters(1),
            sb.Data.task("copy", 1), widht=4)
    refused("attention: dropout is 'much', which is not a number", sb.attention, x, x, x,
            dropout="much")
    refused("5 was given where a text such as \"ij,jk->ik\" is expected", sb.einsum, 5)
    refused("tensor: an array of object has no dtype", sb.squeeze, None)
    refused("tensor: an array of object has no dtype", sb.transpose, None)
    refused("from_dlpack: this int has no memory for DLPack .*; sb.tensor copies it", sb.from_dlpack, 5)
    refused('"florat" is no dtype; there are f32', sb.zeros, 2, dtype="florat")
    refused('there is no option "cuda_graph"; did you mean "graphs"', sb.Trainer, *small(), cuda_graph="off")
    refused("<softback Data> was given where Parameters is expected", sb.Seq2Seq, sb.Data.task("copy", 1), None)
    refused("<softback Parameters> was given where a model is expected", sb.Trainer, sb.Parameters(1), None)
    refused("6 was given where a dict of options for task_options is expected", sb.Data.task_with, "copy", 6)
    refused(r"was given where a mask \(sb.mask_allow", sb.masked_softmax, x, [[True]])


def test_a_zero_is_zero_and_a_default_is_none():
    constant = sb.ones((1, 4))
    assert sb.layer_norm(constant, np.ones(4, "f4")).tolist() == [[0, 0, 0, 0]]
    assert np.isnan(sb.layer_norm(constant, np.ones(4, "f4"), epsilon=0).numpy()).all()


def test_data_is_converted_or_refused():
    assert sb.tensor([1, 2]).dtype == "i32" and sb.tensor(1.5).dtype == "f32"
    assert sb.tensor(np.ones(2)).dtype == "f64" and sb.tensor([True]).dtype == "bool"
    assert sb.tensor([1, 2], dtype="f64").tolist() == [1, 2]
    assert sb.tensor([1.0], dtype="bf16").dtype == "bf16"
    refused("do not fit into i32", sb.tensor, [2**31])
    refused("has no dtype of softback", sb.tensor, ["a"])
    refused("NumPy has no bf16", sb.tensor([1.0], "bf16").numpy)
    assert sb.softmax([[1.0, 1.0]]).tolist() == [[0.5, 0.5]]
    assert sb.tensor(np.zeros((0, 3))).numpy().shape == (0, 3)
    assert sb.from_numpy(np.zeros((0, 3))).shape == (0, 3)


def test_operators_and_indexing_are_those_of_numpy():
    a = np.random.default_rng(1).normal(size=(4, 3, 2))
    x = sb.tensor(a)
    for ours, theirs in ((x + 1, a + 1), (1 - x, 1 - a), (x * 2, a * 2), (2 / x, 2 / a), (-x, -a),
                         (x * x - x / 3, a * a - a / 3), (x[1], a[1]), (x[-1, 2], a[-1, 2]),
                         (x[1:3], a[1:3]), (x[:, 1:], a[:, 1:]), (x[2, :, 0], a[2, :, 0]),
                         (x @ x.transpose(1, 2), a @ a.swapaxes(1, 2)), (a + x, a + a), (x**2, a**2),
                         (abs(x), abs(a)), (np.float64(2) * x, 2 * a)):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-14)
    for ours, theirs in ((x > 0, a > 0), (x <= x, a <= a), (a[0] < x, a[0] < a), (x == a, a == a),
                         (x != 0, a != 0)):
        assert ours.dtype == bool and (ours == theirs).all()
    assert sb.where(x > 0, x, 0.0).numpy().min() == 0 and len({x, x}) == 1
    assert len(x) == 4 and float(x[0, 0, 0]) == a[0, 0, 0] and [r.shape for r in x] == [(3, 2)] * 4
    for wrong, said in ((4, "4 is not in -4..3, on axis 0 of"), ((0, [1, -4]), "-4 is not in -3..2, on axis 1"),
                        ((0, 0, 0, 0), "4 axes are named"), (1.5, "1.5 is no whole"), (True, r"True is one truth value, which picks no elements; x\[None\] adds"), ((..., ...), "at most once"),
                        (np.ones((4, 3, 3), bool), "boolean index did not match"), ([True, False], "boolean index did not"), ("a", "'a' is no whole")):
        with pytest.raises(IndexError, match=said):
            x[wrong]
    with pytest.raises(TypeError, match="sb.where, or write all with x.assign"):
        x[0] = 1


def test_results_that_c_writes_are_returned():
    x = sb.tensor(np.arange(6.0).reshape(1, 6))
    assert [part.tolist() for part in x.split(1, [1, 2, 3])] == [[[0]], [[1, 2]], [[3, 4, 5]]]
    y, total = sb.residual_layer_norm(x, x, 0, np.ones(6), None)
    assert total.tolist() == (x + x).tolist() and y.shape == (1, 6)
    y, weights = sb.attention(x, x, x, weights=True)
    assert weights.shape == (1, 1, 1, 1) and x.to("cpu").tolist() == x.tolist()
    assert "precision=[100.0" in repr(sb.bleu_corpus(["a b c d"], ["a b c d"]))
    refused("'gpu' is none of cpu, cuda, cuda:0, cuda:1, ...", x.to, "gpu")


# ---- derivatives ----


@sb.operation
def softplus(x):
    """ln(1 + e^x)"""
    return np.logaddexp(0, x), lambda dy: dy / (1 + np.exp(-x))


def test_an_operation_of_ones_own_is_one_of_the_library():
    x = sb.tensor(np.linspace(-2, 2, 12).reshape(3, 4), requires_grad=True)
    with sb.Tape():
        (softplus(x).softmax() * x).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    check = sb.gradcheck(lambda x: softplus(x) * softplus(x), x)
    assert check and check.method == "differences" and check.error < 1e-8
    assert softplus(np.zeros(2)).tolist() == pytest.approx([np.log(2)] * 2)


def test_its_mistakes_are_found():
    double = sb.operation(lambda x: (2 * x, lambda dy: dy))
    check = sb.gradcheck(double, np.ones((2, 3)))
    assert not check and "exactly 2.000 times too small" in check.mistake

    @sb.operation
    def both(a, b):
        return [a + b, a - b], lambda d, e: (d + e, d - e)

    assert sb.gradcheck(lambda a, b: sb.stack(both(a, b), 0), np.ones(3), np.zeros(3))
    x = sb.tensor([1.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match="forward_only has no backward"):
        with sb.Tape():
            forward_only(x).sum().backward()
    with pytest.raises(ZeroDivisionError):
        with sb.Tape():
            sb.operation(lambda x: (x, lambda dy: 1 / 0))(x).sum().backward()
    with sb.Tape():
        x.sum().backward()


def test_backward_returns_a_gradient_of_each_input_s_shape():
    x, y = (sb.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
    for wrong, said in ((lambda dy: (dy, dy * 1j), "an array of complex[0-9]* has no dtype"),
                        (lambda dy: (dy, dy.sum()), r"gradient of shape \(\) for input 1 of shape \(3,\)"),
                        (lambda dy: dy, "returned 1 gradients, but there are 2 inputs"),
                        (lambda dy: (dy, dy, dy), "returned 3 gradients, but there are 2 inputs"),
                        (lambda dy: [dy, dy], "returned 1 gradients"),
                        (lambda dy: (dy, dy[None]), r"shape \(1, 3\) for input 1 of shape \(3,\)")):
        product = sb.operation(lambda a, b: (a * b, wrong))
        with pytest.raises(sb.Error, match=said):
            with sb.Tape():
                product(x, y).sum().backward()
    with sb.Tape():
        sb.operation(lambda a, b: (4 * a, lambda dy: (4 * dy, None)))(x, y).sum().backward()
    assert x.grad.tolist() == [4, 4, 4] and copy.deepcopy(forward_only) is forward_only
    assert pickle.loads(pickle.dumps(forward_only)) is forward_only


@sb.operation
def forward_only(x):
    return x * 1


def test_gradcheck_is_exact_for_functions_of_the_library():
    rng = np.random.default_rng(1)
    q, k, v = (rng.normal(size=(2, 3, 2, 4)) for _ in range(3))
    check = sb.gradcheck(lambda q, k, v: sb.attention(q, k, v, mask=sb.mask_causal()), q, k, v)
    assert check and check.method == "exact" and check.error < 1e-12
    check = sb.gradcheck(lambda x, t: sb.cross_entropy(x, t), rng.normal(size=(3, 5)), [0, 4, 1],
                         second_order=True)
    assert check and check.symmetry < 1e-11
    assert not sb.gradcheck(lambda x: x * x.detach(), np.ones(3), method="differences")
    with pytest.raises(KeyError):
        sb.gradcheck(lambda x: {}["missing"], np.ones(3))


def test_functions_with_derivatives_may_read_values():
    x, v = np.array([1.0, -2.0]), np.ones(2)
    for f in (lambda x: sb.where(x > 0, x, -x), lambda x: x * np.sign(x), lambda x: x * sb.from_numpy(x.numpy() / abs(x.numpy()))):
        assert sb.jvp(f, x, v)[1].tolist() == [1, -1]
    assert sb.hvp(lambda x: (x[x > 0] * x[x > 0]).sum(), x, v).tolist() == [2, 0]
    assert sb.jvp(lambda x: -x if x[0] > 0 else x, x, v)[1].tolist() == [-1, -1]


def test_exact_products():
    x, v = np.array([0.5, 2.0]), np.array([1.0, -1.0])
    y, dy = sb.jvp(lambda x: x.exp(), x, v)
    np.testing.assert_allclose(dy.numpy(), np.exp(x) * v, rtol=1e-15)
    np.testing.assert_allclose(sb.hvp(lambda x: (x * x * x).sum(), x, v).numpy(), 6 * x * v, rtol=1e-15)
    with pytest.raises(sb.Error, match="would be a constant of it; second derivatives are those of hvp"):
        sb.jvp(lambda x: sb.jvp(lambda x: x * x, x, v)[1], x, v)


# ---- training ----


def test_layers_have_their_weights_as_attributes():
    weights = sb.Parameters(1)
    layer = sb.EncoderLayer(weights, "layer", width=8, heads=2)
    query = layer.self_attention.query.weight
    assert query.tolist() == weights["layer.self_attention.query.weight"].tolist() and len(weights) == 16
    assert layer.self_attention.heads == 2
    attention = sb.AdditiveAttention(weights, "additive", 8, 8, 4, True, 0)
    y, shares = attention(*[np.ones((1, 3, 8), "f4")] * 3)
    assert y.shape == (1, 3, 8) and shares.shape == (1, 1, 3, 3)
    with pytest.raises(AttributeError, match="has no attribute .weigth"):
        layer.weigth
    with pytest.raises(KeyError, match='"layer.feed_norm.wieght"; did you mean "layer.feed_norm.weight"'):
        weights["layer.feed_norm.wieght"]
    assert "query=linear_layer(weight=f32 (8, 8), bias=f32 (8,)," in repr(layer)


def test_weights_are_saved_and_loaded_by_their_names(tmp_path):
    def made(seed):
        weights = sb.Parameters(seed)
        return weights, sb.LinearLayer(weights, "first", 3, 4), sb.LinearLayer(weights, "last", 4, 2)

    weights, *_ = made(1)
    weights.save(tmp_path / "all.safetensors")
    weights.save(tmp_path / "first.safetensors", "first.*")
    again, *_ = made(2)
    again.load(tmp_path / "first.safetensors", "first.*")
    assert again["first.weight"].tolist() == weights["first.weight"].tolist()
    assert again.fingerprint() != weights.fingerprint()
    refused('missing in the file, first "last.weight"', again.load, tmp_path / "first.safetensors")
    again.load(tmp_path / "all.safetensors")
    assert again.fingerprint() == weights.fingerprint()


def test_groups_of_parameters():
    weights = sb.Parameters(1)
    sb.LinearLayer(weights, "layer", 2, 2)
    weights["layer.bias"].assign(1)
    weights.freeze("*.weight", True)
    weights.group("*.bias", dict(decay=0))
    adam = sb.AdamW(weights, learning_rate=0.1, weight_decay=0.5)
    before = weights["layer.weight"].tolist()
    with sb.Tape():
        (weights["layer.bias"] * 0).sum().backward()
        adam.step()
    assert weights["layer.bias"].tolist() == [1, 1] and weights["layer.weight"].tolist() == before
    refused('group: there is no option "deca"; did you mean "decay"?', weights.group, "*", dict(deca=1))


def small(task="reverse", **options):
    data = sb.Data.task(task, 1)
    return sb.Seq2Seq(sb.Parameters(1), data, width=16, heads=2, encoder_layers=1, decoder_layers=1,
                      **options), data


def test_a_checkpoint_resumes_with_the_same_bits(tmp_path):
    def trainer(seed):
        model, data = small(dropout=0.1)
        return model, sb.Trainer(model, data, seed=7, average_decay=0.9,
                                 optimiser=dict(schedule=dict(kind="cosine", rate=0.01, steps=20)))

    model, whole = trainer(1)
    steps = []
    whole.train(6, progress=lambda step, trained: steps.append((step, trained.loss)))
    assert [s for s, _ in steps] == [1, 2, 3, 4, 5, 6]
    _, first = trainer(1)
    assert first.train(6, progress=lambda step, _: step < 3).loss == steps[2][1]
    first.checkpoint_save(tmp_path / "half.safetensors")
    again, second = trainer(1)
    second.checkpoint_resume(tmp_path / "half.safetensors")
    assert second.train(3, progress=None).loss == steps[5][1]
    assert again.parameters().fingerprint() == model.parameters().fingerprint()


def test_progress_is_a_line(capsys):
    model, data = small()
    sb.Trainer(model, data).train(3)
    shown = capsys.readouterr().err
    assert "3/3 |##############################| loss" in shown and shown.endswith("\n") and "steps/s" in shown


def test_slow_steps_are_seconds_a_step(capsys, monkeypatch):
    now = iter((0.0, 40.0))
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    sb.Trainer(*small()).train(1)
    assert "  40.0 s/step  0 s left" in capsys.readouterr().err


def test_models_are_saved_loaded_and_decoded(tmp_path):
    model, data = small()
    model.save(tmp_path / "model.safetensors")
    loaded = sb.load(tmp_path / "model.safetensors")
    texts = ["1 2 3", "4"]
    assert isinstance(loaded, sb.Seq2Seq)
    assert loaded.translate_texts(texts, beam_width=3) == model.translate_texts(texts, beam_width=3)
    assert loaded.translate("1 2 3") == model.translate_texts(["1 2 3"])[0]
    decoded = sb.model_decode(loaded, texts, longest=4)
    assert len(decoded) == 2 and len(decoded[0].ids) <= 4 and decoded[0].log_probability < 0
    assert model.target().decode(decoded[0].ids) == model.translate("1 2 3", longest=4)
    assert sb.evaluate(model, evaluation_data(model)).loss > 0
    refused("no such file|cannot|open", sb.load, tmp_path / "none.safetensors")


def evaluation_data(model):
    pairs = sb.Pairs()
    for digits in ("1 2", "3 4 5"):
        pairs.add(digits, digits)
    return sb.Data(pairs, model.source(), model.target())


def test_attention_weights_of_models():
    model, data = small()
    batch = data.next()
    logits, weights = model.logits(batch, weights=True)
    assert logits.tolist() == model.logits(batch).tolist()
    assert {name: len(maps) for name, maps in weights.items()} == {"encoder": 1, "self": 1, "cross": 1}
    np.testing.assert_allclose(weights["cross"][0].sum(-1).numpy()[:, :, 0], 1, rtol=1e-5)
    encoder = sb.Encoder(sb.Parameters(1), "e", 9, width=8, heads=2, encoder_layers=2)
    with sb.Tape(record=False):
        memory, (first, second) = encoder([[1, 2, 3]], [3], weights=True)
    assert memory.tolist() == encoder([[1, 2, 3]], [3]).tolist() and first.shape == second.shape == (1, 2, 3, 3)


def test_language_models_and_classifiers(tmp_path):
    documents = sb.Documents()
    documents.add("text", "abab\nbaba\n", "lines")
    letters = sb.Vocabulary(["ab"], units="characters")
    language = sb.LanguageModel.for_(sb.Parameters(1), letters, width=8, heads=2, decoder_layers=1)
    sb.Trainer(language, sb.Windows(documents, letters)).train(2, progress=None)
    assert isinstance(language.continue_("ab", longest=4), str)
    pairs = sb.Pairs()
    for text, label in (("aab", "a"), ("bba", "b"), ("aaa", "a"), ("bbb", "b")):
        pairs.add(text, label)
    classifier = sb.Classifier.for_(sb.Parameters(1), letters, ["a", "b"], width=8, heads=2, encoder_layers=1)
    data = sb.Labelled(pairs, letters, sb.Labels(["a", "b"]))
    sb.Trainer(classifier, data, learning_rate=0.03).train(60, progress=None)
    assert [classifier.label(k.label) for k in classifier.classify(["aaa", "bbb"])] == ["a", "b"]
    assert sb.evaluate(classifier, data, pairs).error == 0
    assert letters.encode("ab") == [4, 5] and letters.decode([4, 5]) == "ab"


def test_labels_of_other_data_do_not_change_places():
    letters, pairs = sb.Vocabulary(["ab"], units="characters"), sb.Pairs()
    pairs.add("aab", "pos")
    model = sb.Classifier.for_(sb.Parameters(1), letters, ["mid", "neg", "pos"], width=8, heads=2, encoder_layers=1)
    wrong = sb.Labelled(pairs, letters, sb.Labels(["neg", "pos"]))
    for use in (sb.Trainer, sb.evaluate):
        with pytest.raises(sb.Error, match="the data have the labels neg, pos, in this order, but the model has mid, neg, pos"):
            use(model, wrong)
    right = sb.Labelled(pairs, letters, sb.Labels([model.label(i) for i in range(model.labels())]))
    sb.Trainer(model, right, learning_rate=0.03).train(40, progress=None)
    assert model.label(model.classify(["aab"])[0].label) == "pos" and sb.evaluate(model, right, pairs).error == 0


def test_a_plateau_counts_no_nan_as_the_best():
    weights = sb.Parameters(1)
    sb.LinearLayer(weights, "x", 1, 1)
    sgd = sb.SGD(weights, schedule=dict(kind="plateau", rate=1, patience=2))
    for loss in (float("nan"), 5, 4, 3, 2, 1):
        sgd.observe(loss)
    assert (sgd.plateau().best, sgd.plateau().reduced) == (1, 0)


def test_scores_and_samples():
    assert sb.bleu_corpus(["the cat sat on the mat"], ["the cat sat on the mat"]).score == pytest.approx(100)
    assert sb.edit_distance([1, 2, 3], [1, 3]) == 1
    random = sb.Random(1, "sample")
    draws = [sb.sample(np.array([0.0, 1.0], "f4"), random) for _ in range(200)]
    assert 100 < sum(draws) < 190
    assert sb.sample(np.array([[0.0, 9.0], [9.0, 0.0]], "f4"), random, temperature=0.01) == [1, 0]


def drop_without_a_stream(x):
    with sb.Tape():
        x.dropout(0.5)


def test_dropout_follows_the_tape_s_stream():
    x = sb.ones((1000,))
    with sb.Tape(random=sb.Random(3, "train")):
        first, second = x.dropout(0.5).numpy(), x.dropout(0.5).numpy()
    with sb.Tape(random=sb.Random(3, "train")):
        again = x.dropout(0.5).numpy()
    assert (first == again).all() and (first != second).any() and 400 < (first == 0).sum() < 600
    assert (x.dropout(0.5).numpy() == 1).all()
    with sb.Tape(record=False):
        assert (x.dropout(0.5).numpy() == 1).all()
    refused("the tape records and has no random stream; give it one", drop_without_a_stream, x)


# ---- what is shown ----


def test_things_draw_themselves():
    x = sb.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    assert repr(x).startswith("f64 (2, 3)")
    assert x._repr_html_().count("<rect") == 6
    assert sb.zeros((100, 100))._repr_html_().startswith("<pre>")
    mask = sb.mask_causal() & sb.mask_window(1, 0)
    assert repr(mask.show(3)) == "#..\n##.\n.##\n" and mask._repr_html_().count("more") == 10
    with sb.Tape() as tape:
        tape.draw(x.softmax().sum())
    assert tape._repr_svg_().startswith("<svg") and "softmax" in tape._repr_svg_()
    assert repr(sb.Parameters(1)) == "<softback Parameters>\n0 values in 0 tensors"
    weights = sb.Parameters(1)
    layer = sb.LinearLayer(weights, "layer", 3, 2)
    weights.freeze("*.bias", True)
    assert repr(weights).endswith("layer.weight  f32 (2, 3)\nlayer.bias    f32 (2,)  frozen\n8 values in 2 tensors")
    assert repr(small()[0]).startswith("<softback Seq2Seq>\nencoder.embedding.weight") and layer


def test_explain_returns_the_page():
    page = sb.explain("softmax", scores=[2, 1, 0.1], upstream=[1, 0, 0])
    assert "softmax" in str(page) and page.data and page._repr_html_().startswith("<pre>")
    refused('did you mean "softmax"', sb.explain, "softmx")


def test_docstrings_are_the_blocks_of_ops_h():
    assert "Backward  dx_i = y_i (dy_i - sum_j dy_j y_j)" in sb.softmax.__doc__
    assert "label_smoothing=0: e: targets become" in sb.cross_entropy.__doc__
    for name in [n for n, f in vars(sb).items() if n in vars(sb.Tensor)]:
        assert getattr(sb, name).__doc__, name
    assert sb.Parameters.__doc__.startswith("Parameters: a set of the named weights of a model")
    assert all(getattr(sb, name).__doc__ for name in sb._functions.__all__ if name[0].isupper())


def test_every_function_of_the_headers_is_declared():
    rooms = (ROOT / room for room in ("autograd", "models", "nn", "ops", "tensor"))
    headers = (path for room in rooms for path in room.rglob("*.h"))
    names = (re.findall(r"^SB_API[^;(]*?(\w+)\(", path.read_text(), re.M) for path in headers)
    assert set(sum(names, [])) == set(FUNCTIONS)


# Functions for a program in C, with what Python has instead: ranks, nodes of an operation, memory, lists of the library.
WITHOUT_A_FORM = """
    batch_new communicator_abort communicator_barrier communicator_broadcast communicator_close communicator_processors
    communicator_rank communicator_sent communicator_size communicator_split communicator_sum communicator_watch
    communicator_world decoder_state_reorder description_number description_ranks device_in_use documents_divide
    documents_texts dtype_bytes dtype_is_real dtype_name exchange_finish exchange_start kv_cache_reorder
    labelled_batch_new loaded_free mask_block_list model_build model_free node_fresh node_input node_save node_saved
    pairs_divide pairs_sources pairs_targets parameters_hvp parameters_jvp parameters_without_gradient piece_zigzag
    position_bias_forward random_shuffle recompute safetensors_metadata_pair safetensors_open_memory
    tape_begin_with tape_end_keep tape_find_nonfinite tape_own task_find tensor_dual_data
    tensor_from_doubles tensor_get tensor_print tensor_set tensor_tangent tensor_zeros trainer_batch trainer_new
    units_detect units_find vocabulary_retain window_batch_new"""


def test_every_function_has_a_form_in_python_or_is_listed():
    code = "".join(path.read_text() for path in PACKAGE.glob("*.py") if path.name != "_declarations.py")
    called = set(re.findall(r"c\.sb_(\w+)", code))
    assert {name[3:] for name in FUNCTIONS} - called == set(WITHOUT_A_FORM.split())


def test_the_stub_has_every_option():
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    heads = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
    options = [a.arg for a in heads["cross_entropy"].args.kwonlyargs]
    assert options == ["label_smoothing", "class_weight", "reduction"]
    assert set(sb._functions.__all__) <= {*heads, *(n.name for n in stub.body if isinstance(n, ast.ClassDef))}
