"""Values and gradients through Python are PyTorch's, as those of C are: the cases of the tests
tests/ops/test_operations.c and tests/*/test_references.c, in the same groups."""
import numpy as np
import pytest
import softback as sb
from reference import References

OPERATIONS = {
    "arithmetic": {
        "add": lambda a, b, *_: a + b, "add_broadcast": lambda a, b, *_: a + b,
        "subtract": lambda a, b, *_: a - b, "multiply": lambda a, b, *_: a * b,
        "divide": lambda a, b, *_: a / b, "where": lambda q, a, b, *_: sb.where(q, a, b)},
    "elementwise": {
        "negate": lambda x, *_: -x, "scale": lambda x, *_: -1.7 * x, "exp": lambda x, *_: x.exp(),
        "tanh": lambda x, *_: x.tanh(), "sigmoid": lambda x, *_: x.sigmoid(), "relu": lambda x, *_: x.relu(),
        "gelu": lambda x, *_: x.gelu(), "gelu_tanh": lambda x, *_: x.gelu_tanh(),
        "silu": lambda x, *_: x.silu(), "sqrt": lambda x, *_: x.sqrt(), "log": lambda x, *_: x.log(),
        "cast": lambda x, *_: x.cast("f32").cast(x.dtype)},
    "products": {
        "matmul": lambda a, b, *_: a @ b, "matmul_long": lambda a, b, *_: a @ b,
        "matmul_broadcast": lambda a, b, *_: a @ b,
        "matmul_nt": lambda a, b, *_: sb.matmul_nt(a, b), "matmul_tn": lambda a, b, *_: sb.matmul_tn(a, b),
        "linear": lambda x, w, b, *_: sb.linear(x, w, b),
        "linear_without_bias": lambda x, w, *_: sb.linear(x, w), **{
            f"linear_{name}": lambda x, w, b, *_, name=name: sb.linear_activation(x, w, b, name)
            for name in ("relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid")}},
    "shapes": {
        "reshape": lambda x, *_: x.reshape((4, -1)), "permute": lambda x, *_: x.permute((2, 0, 3, 1)),
        "transpose": lambda x, *_: x.transpose(0, 2), "slice": lambda x, *_: x[:, 1:3],
        "concatenate": lambda *x: sb.concatenate(x[:3], 1), "stack": lambda *x: sb.stack(x[:2], 1),
        "split": lambda x, *_: sb.concatenate([x[:, 3:6], x[:, 1:3], x[:, 0:1]], 1),
        "expand": lambda x, *_: x.expand((2, 3, 4))},
    "reductions": {
        "sum": lambda x, *_: x.sum(), "sum_axis": lambda x, *_: x.sum(1),
        "sum_last": lambda x, *_: x.sum(-1, keep=True), "mean": lambda x, *_: x.mean(),
        "mean_axis": lambda x, *_: x.mean(0, True), "max": lambda x, *_: x.max(),
        "max_axis": lambda x, *_: x.max(1), "max_first": lambda x, *_: x.max(0, True),
        "argmax": lambda x, *_: x.argmax(-1)},
    "norms": {
        "layer_norm": lambda x, g, b, *_: sb.layer_norm(x, g, b),
        "layer_norm_without_bias": lambda x, g, *_: sb.layer_norm(x, g),
        "layer_norm_epsilon": lambda x, g, b, *_: sb.layer_norm(x, g, b, epsilon=0.3),
        "layer_norm_far_mean": lambda x, g, b, *_: sb.layer_norm(x, g, b),
        "residual_layer_norm": lambda x, r, g, b, *_: sb.stack(
            sb.residual_layer_norm(x, r, 0, g, b, None), 0),
        "rms_norm": lambda x, g, *_: sb.rms_norm(x, g),
        "rms_norm_epsilon": lambda x, g, *_: sb.rms_norm(x, g, epsilon=0.3),
        "l2_normalize": lambda x, *_: x.l2_normalize()},
    "lookup": {"embedding": lambda t, i, *_: sb.embedding(t, i), "gather": lambda x, i, *_: sb.gather(x, i)},
    "softmax": {
        "softmax": lambda x, *_: x.softmax(), "log_softmax": lambda x, *_: x.log_softmax(),
        "logsumexp": lambda x, *_: x.logsumexp(),
        "allowed": lambda x, m, *_: sb.masked_softmax(x, sb.mask_allow(m)),
        "blocked": lambda x, m, *_: sb.masked_softmax(x, sb.mask_block(m)),
        "causal": lambda x, *_: sb.masked_softmax(x, sb.mask_causal()),
        "causal_last": lambda x, *_: sb.masked_softmax(x, sb.mask_causal_last()),
        "lengths": lambda x, n, *_: sb.masked_softmax(x, sb.mask_lengths(n)),
        "window": lambda x, *_: sb.masked_softmax(x, sb.mask_window(2, 1)),
        "two_masks_and_temperature": lambda x, n, *_: sb.masked_softmax(
            x, sb.mask_causal() & sb.mask_lengths(n), temperature=0.7)},
    "positions": {
        "sinusoidal": lambda x, *_: x * sb.sinusoidal(x.dtype, 3, 6, 10),
        "rotary": lambda x, *_: x.rotary(), "rotary_later": lambda x, *_: x.rotary(5, 100),
        "alibi": lambda x, *_: x + sb.alibi(x.dtype, 4, 3, 5),
        "relative_bias": lambda x, *_: sb.relative_bias(x, 4, 6)},
}

LOSSES = {f"{targets}_{reduction}{smoothed}{weighted}":
          lambda x, t, w=None, *_, reduction=reduction, weighted=weighted, smoothed=smoothed:
          sb.cross_entropy(x, t, reduction=reduction, class_weight=w if weighted else None,
                           label_smoothing=(0.3 if weighted else 0.1) if smoothed else None)
          for targets in ("ids", "probabilities") for reduction in ("mean", "sum", "none")
          for smoothed in ("", "_smoothed") for weighted in ("", "_weighted")}
LOSSES |= {
    "linear": lambda x, w, b, t, *_: sb.linear_cross_entropy(x, w, b, t),
    "linear_sum_smoothed": lambda x, w, b, t, *_: sb.linear_cross_entropy(
        x, w, b, t, reduction="sum", label_smoothing=0.1),
    "linear_none_weighted": lambda x, w, b, t, c, *_: sb.linear_cross_entropy(
        x, w, b, t, reduction="none", class_weight=c),
    "linear_smoothed_weighted": lambda x, w, b, t, c, *_: sb.linear_cross_entropy(
        x, w, b, t, label_smoothing=0.1, class_weight=c),
    **{f"squared_{r}": lambda x, t, *_, r=r: sb.mean_squared_error(x, t, r) for r in ("mean", "sum", "none")}}
OPERATIONS["losses"] = LOSSES
SMALL = {"functions": {
    "abs": lambda x, *_: x.abs(), "sin": lambda x, *_: x.sin(), "cos": lambda x, *_: x.cos(), "expm1": lambda x, *_: x.expm1(),
    "log1p": lambda x, *_: x.log1p(), "erf": lambda x, *_: x.erf(), "clamp": lambda x, *_: x.clamp(-0.75, 1.25),
    "pow_3": lambda x, *_: x ** 3, "pow_half": lambda x, *_: x ** 2.5, "maximum": lambda a, b, *_: sb.maximum(a, b),
    "minimum": lambda a, b, *_: sb.minimum(a, b), "maximum_equal": lambda a, b, *_: sb.maximum(a, b),
    "variance": lambda x, *_: x.variance(-1, 1), "variance_first": lambda x, *_: x.variance(0, 0, True),
    "topk": lambda x, *_: x.topk(3)[0], "unfold": lambda x, *_: sb.unfold(x, 3),
    "unfold_far": lambda x, *_: sb.unfold(x, 3, stride=2, dilation=3, left=4, right=4),
    "convolution": lambda x, w, b, *_: sb.linear(sb.unfold(x, 3, stride=2, left=1, right=1), w, b)}}


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("file, group", [("operations", group) for group in OPERATIONS] + [("small_operations", "functions")])
def test_operations_are_as_in_pytorch(file, group, dtype):
    references, functions = References(file), (OPERATIONS | SMALL)[group]
    assert references.cases(group) == set(functions)
    for name, f in functions.items():
        references.compare(f"{group}/{name}", f, dtype)


def attend(**options):
    return lambda q, k, v, *_: sb.attention(q, k, v, **{"layout": "heads_first"} | options)


def attend_with(option, **options):
    """An option from the fourth input."""
    return lambda q, k, v, x, *_: sb.attention(
        q, k, v, **{"layout": "heads_first", option[0]: option[1](x)} | options)


def itself(x):
    return x


CAUSAL = sb.mask_causal()
ATTENTION = {
    "plain": attend(), "one_head": attend(layout="length_first"),
    "length_first": attend(layout="length_first"), "long": attend(), "scale": attend(scale=0.3),
    "temperature": attend(temperature=1.7), "groups": attend(), "one_group": attend(mask=CAUSAL),
    "causal": attend(mask=CAUSAL), "causal_last": attend(mask=sb.mask_causal_last()),
    "window": attend(mask=sb.mask_window(1, 3)), "lengths": attend_with(("mask", sb.mask_lengths)),
    "lengths_and_causal": attend_with(("mask", lambda n: sb.mask_lengths(n) & CAUSAL)),
    "allowed": attend_with(("mask", sb.mask_allow)), "blocked": attend_with(("mask", sb.mask_block)),
    "bias": attend_with(("bias", itself)), "bias_broadcast": attend_with(("bias", itself)),
    "bias_and_causal": attend_with(("bias", itself), mask=CAUSAL),
    "log_temperature": attend_with(("log_temperature", itself)),
    "log_temperatures": attend_with(("log_temperature", itself)),
    "balanced": attend(score="balanced"), "cosine": attend(score="cosine"),
    "cosine_scale": attend(score="cosine", scale=8),
    "weights": lambda *x: attend(mask=CAUSAL, weights=True)(*x)[1],
    "allowed_pairs": attend_with(("mask", sb.mask_allow)),
    "allowed_heads": attend_with(("mask", sb.mask_allow)),
    "bias_of_keys": attend_with(("bias", itself)), "causal_tall": attend(mask=CAUSAL),
    "tiles": attend_with(("bias", itself), scale=0.8), "tiles_causal": attend(mask=CAUSAL)}


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_attention_is_as_in_pytorch(dtype):
    references = References("attention")
    assert references.cases("attention") == set(ATTENTION)
    for name, f in ATTENTION.items():
        references.compare(f"attention/{name}", f, dtype)


def mask_of(lengths, causal):
    masks = ([sb.mask_lengths(lengths)] if lengths is not None else []) + ([CAUSAL] if causal else [])
    return masks[0] & masks[1] if len(masks) == 2 else masks[0] if masks else None


LAYERS = {
    "multi_head_attention": {"self": {}, "cross_lengths": {}, "self_causal_lengths": {}, "bias": {}},
    **{kind: {f"{place}_{name}": {"norm_place": place, "activation": "gelu" if name == "gelu" else "relu"}
              for place in ("pre", "post") for name in names}
       for kind, names in {"encoder_layer": ("gelu", "lengths", "causal_lengths"),
                           "decoder_layer": ("gelu", "causal_lengths")}.items()}}


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("kind", LAYERS)
def test_layers_are_as_in_pytorch(kind, dtype):
    references = References("layers")
    assert references.cases(kind) == set(LAYERS[kind])
    for name, options in LAYERS[kind].items():
        compare_layer(references, kind, f"{kind}/{name}", options, dtype, "causal" in name)


def compare_layer(references, kind, path, options, dtype, causal):
    weights = sb.Parameters.of(dtype, 1)
    options = {"width": 8, "heads": 2, "feed_forward": 12} | options
    made = {"multi_head_attention": lambda: sb.MultiHeadAttention(weights, "", rotary=False, **options),
            "encoder_layer": lambda: sb.EncoderLayer(weights, "", **options),
            "decoder_layer": lambda: sb.DecoderLayer(weights, "", crosses=True, **options)}[kind]()
    references.read_weights(path, weights)
    x, memory, bias, lengths, memory_lengths = (
        references.input(path, last, dtype) for last in ("x", "memory", "bias", "lengths", "memory_lengths"))
    mask = mask_of(lengths, causal)
    with sb.Tape():
        if kind == "multi_head_attention":
            y = made(x, x if memory is None else memory, mask=mask, bias=bias)
        elif kind == "encoder_layer":
            y = made(x, mask=mask)
        else:
            y = made(x, memory, {"mask": mask}, {"mask": mask_of(memory_lengths, False)})
        y.keep().backward(references.read(path + ".dy", dtype))
    references.expect(path + ".y", y)
    for last, t in (("x", x), ("memory", memory), ("bias", bias)):
        if t is not None and f"{path}.d.{last}" in references.names:
            references.expect(f"{path}.d.{last}", t.grad)
    references.expect_weights(path, weights)


ADAM = dict(learning_rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8)
OPTIMISERS = {
    "sgd": (sb.SGD, dict(learning_rate=0.1)),
    "sgd_decay": (sb.SGD, dict(learning_rate=0.1, weight_decay=0.2)),
    "momentum": (sb.SGD, dict(learning_rate=0.1, momentum=0.9)),
    "momentum_decay": (sb.SGD, dict(learning_rate=0.1, momentum=0.9, weight_decay=0.2)),
    "nesterov": (sb.SGD, dict(learning_rate=0.1, momentum=0.8, nesterov=True)),
    "nesterov_decay_clip": (sb.SGD, dict(learning_rate=0.1, momentum=0.8, nesterov=True, weight_decay=0.2,
                                         clip=1.5)),
    "adam": (sb.Adam, ADAM), "adam_usual": (sb.Adam, {}),
    "adam_decay": (sb.Adam, dict(learning_rate=0.01, beta1=0.8, beta2=0.95, epsilon=1e-3, weight_decay=0.2)),
    "adam_clip": (sb.Adam, ADAM | dict(beta2=0.98, epsilon=0.1, clip=1.5)),
    "adamw": (sb.AdamW, ADAM | dict(weight_decay=0.2, decay_all=True)),
    "adamw_clip": (sb.AdamW, ADAM | dict(beta2=0.98, epsilon=0.1, weight_decay=0.2, decay_all=True,
                                  clip=2.5))}


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_are_as_in_pytorch(name, dtype):
    references, (new, options) = References("optimisers"), OPTIMISERS[name]
    weights = sb.Parameters.of(dtype, 1)
    weights.add("w", (3, 4), 0.0)
    weights.add("v", (5,), 0.0)
    references.read_weights("start", weights)
    optimiser = new(weights, **options)
    after = {"w": [], "v": []}
    for step in range(8):
        for key, w in weights.items():
            with sb.Tape():
                w.backward(references.read(f"gradients.{key}", dtype)[step])
        optimiser.step()
        for key, w in weights.items():
            after[key].append(sb.tensor(w))
    for key, states in after.items():
        references.expect(f"optimiser/{name}.{key}", sb.stack(states, 0))


TINY = dict(width=8, heads=2, feed_forward=12, encoder_layers=2, decoder_layers=2)
MODELS = {
    "pre": dict(norm_place="pre", label_smoothing=0.1), "post": dict(norm_place="post", label_smoothing=0.1),
    "pre_tied": dict(norm_place="pre", label_smoothing=0.1, tie_embeddings=True),
    "post_tied_shared_gelu": dict(norm_place="post", activation="gelu", tie_embeddings=True,
                                  share_embeddings=True, label_smoothing=0.1)}
PARTS = ("source", "source_lengths", "target_in", "target_out")


def model_of(weights, options):
    """A model for as many symbols as the references have."""
    letters = sb.Vocabulary(["abcdefg"], units="characters")
    return sb.Seq2Seq.for_(weights, letters, letters, **TINY, **options)


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", MODELS)
def test_models_are_as_in_pytorch(name, dtype):
    references, weights = References("models"), sb.Parameters.of(dtype, 1)
    model, path = model_of(weights, MODELS[name]), f"model/{name}"
    references.read_weights(path, weights)
    batch = sb.batch(**{part: references.read(f"{path}.{part}") for part in PARTS})
    with sb.Tape():
        references.expect(path + ".logits", model.logits(batch))
        loss = model.loss(batch).keep()
        loss.backward(references.read(path + ".dy", dtype))
    references.expect(path + ".y", loss)
    references.expect_weights(path, weights)


RECIPES = {
    "pre": (dict(norm_place="pre"), sb.Adam, dict(learning_rate=0.01, beta1=0.9, beta2=0.98, epsilon=1e-9)),
    "post": (dict(norm_place="post", tie_embeddings=True, label_smoothing=0.1), sb.AdamW,
             dict(schedule=dict(kind="inverse_root", rate=0.02, warmup=10), beta1=0.9, beta2=0.98,
                  epsilon=1e-8, weight_decay=0.01, decay_all=True, clip=1)),
    "momentum": (dict(norm_place="pre", activation="gelu", tie_embeddings=True, share_embeddings=True), sb.SGD,
                 dict(learning_rate=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3, clip=0.5))}


def follow(expected, optimiser, loss_of, limit=1e-9):
    """The loss before each step is within this share of PyTorch's in float64."""
    for step, wanted in enumerate(expected.numpy()):
        with sb.Tape():
            loss = loss_of(step)
            loss.backward()
            optimiser.step()
            assert abs(loss.item() - wanted) <= limit * wanted, step


@pytest.mark.parametrize("name", RECIPES)
def test_losses_of_training_follow_pytorch(name):
    references, weights = References("training"), sb.Parameters.of("f64", 1)
    options, new, recipe = RECIPES[name]
    model = model_of(weights, options)
    references.read_weights(name, weights)
    follow(references.file.tensor(f"losses.{name}"), new(weights, **recipe), lambda step: model.loss(
        sb.batch(**{part: references.read(f"batch.{step % 10}.{part}") for part in PARTS})))


LANGUAGE_RECIPES = {
    "adam": (dict(norm_place="pre"), sb.Adam,
             dict(learning_rate=0.001, beta1=0.9, beta2=0.98, epsilon=1e-9), {"f64": 1e-9, "f32": 1e-5}),
    "adamw": (dict(norm_place="post", activation="gelu", positions="learned", tie_embeddings=True,
                   label_smoothing=0.1), sb.AdamW,
              dict(schedule=dict(kind="inverse_root", rate=0.005, warmup=20), beta1=0.9, beta2=0.98,
                   epsilon=1e-8, weight_decay=0.01, decay_all=True, clip=1), {"f64": 1e-9})}


@pytest.mark.parametrize("name", LANGUAGE_RECIPES)
def test_losses_of_a_language_model_follow_pytorch(name):
    options, new, recipe, limits = LANGUAGE_RECIPES[name]
    letters = sb.Vocabulary(["abcdefghijklmnopqrstuvwxyz "], units="characters")
    for dtype, limit in limits.items():
        references, weights = References("language"), sb.Parameters.of(dtype, 1)
        model = sb.LanguageModel.for_(weights, letters, width=16, heads=2, feed_forward=32, decoder_layers=2,
                                      positions_longest=16, **options)
        references.read_weights(name, weights)
        follow(references.file.tensor(f"losses.{name}"), new(weights, **recipe), lambda step: model.window_loss(
            *(references.read(f"batch.{step % 6}.{part}") for part in ("input", "targets"))), limit)


PRODUCTS = {
    "attention": lambda q, k, v: sb.attention(q, k, v, layout="heads_first", mask=sb.mask_causal_last()),
    "layer_norm": lambda x, g, b: sb.layer_norm(x, g, b, 1e-5),
    "cross_entropy": lambda x, t: sb.cross_entropy(x, t, label_smoothing=0.1, reduction="none")}


@pytest.mark.parametrize("name", PRODUCTS)
def test_hessian_products_are_as_in_pytorch(name):
    references, path = References("second_order"), f"product/{name}"
    x = [references.read(f"{path}.{i}", "f64") for i in range(3) if f"{path}.{i}" in references.names]
    v = [references.read(f"{path}.v.{i}", "f64") for i in range(len(x))]
    w = references.read(path + ".w", "f64")
    products = sb.hvp(lambda *x: (w * PRODUCTS[name](*x) * PRODUCTS[name](*x)).sum(), x, v)
    for i, product in enumerate(products):
        if product is not None:
            expected = references.file.tensor(f"{path}.h.{i}").numpy()
            assert np.abs(product.numpy() - expected).max() <= 1e-10 * np.abs(expected).max()


def test_hessian_products_of_a_model_are_as_in_pytorch():
    """A key's bias has none but for rounding, so all are measured by the largest."""
    references, weights = References("second_order"), sb.Parameters.of("f64", 1)
    model = model_of(weights, dict(activation="gelu", label_smoothing=0.1))
    references.read_weights("model", weights)
    batch = sb.batch(**{part: references.read(f"model.{part}") for part in PARTS})
    names, x = zip(*weights.items())
    products = sb.hvp(lambda *_: model.loss(batch), x, [references.read(f"model.v.{n}", "f64") for n in names])
    expected = [references.file.tensor(f"model.h.{n}").numpy() for n in names]
    largest = max(np.abs(e).max() for e in expected)
    for name, product, wanted in zip(names, products, expected):
        assert np.abs(product.numpy() - wanted).max() <= 1e-10 * largest, name
