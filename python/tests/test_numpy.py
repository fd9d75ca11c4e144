"""Tensors among NumPy's functions, and their copies: no gradient is lost in silence, no memory is shared."""
import copy
import gc
import pickle

import numpy as np
import pytest
import softback as sb

COPIES = (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)))


def gradient(f):
    x = sb.tensor([1.0, 2.0], dtype="f64", requires_grad=True)
    with sb.Tape():
        f(x).sum().backward()
    return x.grad.numpy()


def test_functions_of_numpy_keep_the_gradient():
    x = np.array([1.0, 2.0])
    for f, expected in ((lambda x: x * np.exp(x), (1 + x) * np.exp(x)), (np.square, 2 * x),
                        (lambda x: np.ones(2) * x, [1, 1]), (lambda x: np.add(x, x), [2, 2]),
                        (lambda x: np.mean(x, axis=0, keepdims=True), [0.5, 0.5]),
                        (lambda x: np.where(x > 1, x, 3 * x), [3, 1]), (lambda x: np.stack([x, x]), [2, 2]),
                        (lambda x: np.abs(-x), [1, 1]), (lambda x: 2.0**x, np.log(2) * 2**x),
                        (lambda x: x * np.sign(x), [1, 1]), (lambda x: np.concatenate([x, x]), [2, 2])):
        np.testing.assert_allclose(gradient(f), expected, rtol=1e-14)


def in_place(x):
    array = np.zeros(2)
    array += x
    return array


def test_what_would_lose_the_gradient_is_refused():
    for f in (np.arctan, np.asarray, np.median, np.linalg.norm, np.from_dlpack, in_place, sb.tensor,
              lambda x: sb.tensor([x[0], x[1]]), lambda x: np.percentile(x, 5), lambda x: np.add(x, 1, out=np.zeros(2)),
              lambda x: (-2.0) ** x, *COPIES):
        with pytest.raises(TypeError, match=r"lose the gradient of this f64 .*: write x.detach\(\)|sb.exp"):
            gradient(lambda x: f(x * 2))
    np.testing.assert_allclose(gradient(lambda x: x * np.arctan(x.detach())), np.arctan([1, 2]))


def test_numpy_s_other_arguments_are_not_taken_for_axes_that_are_kept():
    a, b = np.arange(12.0).reshape(2, 3, 2), np.arange(12.0).reshape(2, 2, 3)
    for f in (np.sum, np.mean, np.max, np.min, np.var, np.std):
        np.testing.assert_allclose(f(sb.tensor(a), axis=1, keepdims=True), f(a, axis=1, keepdims=True))
        with pytest.raises(TypeError, match=rf"np.{f.__name__}\(\) takes .* positional"):
            f(sb.tensor(a), 1, np.float64)
    assert np.dot(sb.tensor(a), b[0]).tolist() == np.dot(a, b[0]).tolist()
    for other in (b, b[0, :, 0]):
        with pytest.raises(sb.Error, match="names 2 axes"):
            np.dot(sb.tensor(a), other)


def test_values_are_taken_where_no_gradient_is_lost():
    x = sb.tensor([1.0, 4.0], requires_grad=True)
    assert np.arctan(x).dtype == "f4" and np.asarray(x).tolist() == [1, 4] and np.median(x) == 2.5
    with sb.Tape():
        y = x * 2
        with sb.Tape(record=False):
            assert np.median(y) == 5
        assert np.isfinite(y).all() and (np.zeros(2) < y).all() and np.shape(y) == (2,) and np.ndim(y) == 1
    assert np.arctan(y).shape == (2,)


WHOLE = [lambda a, b: a + b, lambda a, b: 1 + a, lambda a, b: a - 1, lambda a, b: 2 * a, lambda a, b: a / 2, lambda a, b: -a,
         lambda a, b: a**2, lambda a, b: 2**a, lambda a, b: a @ b, lambda a, b: abs(a - b), lambda a, b: a + 0.5,
         lambda a, b: a + [1, 2, 3], lambda a, b: np.array([4, 5, 6]) - a, lambda a, b: np.sqrt(a), lambda a, b: np.add(a, b),
         lambda a, b: np.floor_divide(b, 2), lambda a, b: np.sum(a), lambda a, b: np.mean(a), lambda a, b: np.max(a),
         lambda a, b: np.where(a > 1, a, b), lambda a, b: np.clip(a, 0, 1), lambda a, b: np.stack([a, b]),
         lambda a, b: np.add.reduce(a), lambda a, b: a[::-1] * a[[0, 2, 1]], lambda a, b: (a == b) + a]


@pytest.mark.parametrize("f", WHOLE)
def test_whole_numbers_compute_as_in_numpy(f):
    a, b = np.array([0, 1, 2], dtype="i4"), np.array([3, 0, 1], dtype="i4")
    expected, ours = f(a, b), (sb.tensor(a), sb.tensor(b))
    with sb.Tape():
        inside = f(*ours)
    for made in inside, f(*ours):
        assert np.shape(made) == np.shape(expected)
        np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-15)
    assert (sb.tensor([True, False]) * 3).tolist() == [3, 0]


def test_whole_numbers_beside_real_ones_keep_the_gradient():
    i = sb.arange(1, 3)
    for f in (lambda x: x * i, lambda x: i * x, lambda x: np.multiply(i, x), lambda x: x * np.square(i) / i,
              lambda x: x + x * (i - 1)):
        assert gradient(f).tolist() == [1, 2]
    y = sb.arange(3) + 1
    assert isinstance(y, sb.Tensor) and y.dtype == "i32" and sb.embedding(sb.ones((4, 2)), y).shape == (3, 2)


A = np.array([0.5, 1.0, 2.0])
BESIDE = [lambda x: x * A, lambda x: A * x, lambda x: x - A.tolist(), lambda x: x / A, lambda x: x[None] @ np.eye(3), lambda x: np.ones((2, 3)) @ x[:, None], lambda x: np.multiply(A, x),
          lambda x: x * (A > 1), lambda x: np.array([True, False, True]) * x, lambda x: x * sb.tensor([True, False, True]),
          lambda x: sb.tensor([1, 0, 2]) * x, lambda x: sb.multiply(sb.tensor([1, 0, 2]), x), lambda x: x + np.bool_(True),
          lambda x: x * np.float64(0.1), lambda x: x / np.array(2.0), lambda x: np.maximum(x, A), lambda x: np.where(A > 1, x, A),
          lambda x: sb.where(A > 1, A, x), lambda x: np.stack([A, x]), lambda x: np.concatenate([x, A]), lambda x: sb.einsum("i,i->", x, A),
          lambda x: sb.layer_norm(x, A, A), lambda x: sb.linear(x[None], np.ones((2, 3)), np.ones(2)), lambda x: sb.linear(np.ones((2, 3)), x[None]),
          lambda x: sb.mean_squared_error(x, A), lambda x: sb.mean_squared_error(x, [1, 2, 3]), lambda x: sb.residual_dropout(x, A, 0.0),
          lambda x: sb.attention(x[None, None], np.ones((1, 2, 3)), np.ones((1, 2, 3))), lambda x: x * np.arange(3),
          lambda x: x * np.asarray(A, "f4"), lambda x: x * np.asarray(A, "f2")]


@pytest.mark.parametrize("f", BESIDE)
@pytest.mark.parametrize("dtype", ("f32", "f64", "bf16"))
def test_arrays_take_the_dtype_of_a_tensor_beside_them(dtype, f):
    x = sb.tensor([1.0, 2.0, 3.0], dtype=dtype, requires_grad=True)
    with sb.Tape():
        made = f(x)
        assert made.dtype == dtype or dtype == "bf16" and made.shape == ()  # a loss, which is f32
        made.sum().backward()
    assert x.grad.dtype == dtype and (dtype != "f64" or sb.gradcheck(f, x))
    expected = f(sb.tensor([1.0, 2.0, 3.0], dtype="f64")).numpy()
    np.testing.assert_allclose(f(x.detach()).cast("f64").numpy(), expected, rtol={"f64": 0, "f32": 1e-6, "bf16": 3e-2}[dtype], atol=1e-6)


def test_precision_is_not_lost_in_silence():
    for f in (lambda x, y: x * y, lambda x, y: np.add(x, y), sb.matmul, lambda x, y: sb.stack([x, y], 0)):
        with pytest.raises(sb.Error, match="dtypes differ"):
            f(sb.ones((2, 2)), sb.ones((2, 2), dtype="f64"))
    x = sb.ones((3,))
    assert (x - sb.tensor([1, 0]).mean()).tolist() == (x * (sb.tensor([1, 1, 1]) / 2)).tolist() == [0.5] * 3


def test_arrays_without_a_tensor_keep_their_precision():
    third = np.array([1.0]) / 3
    for f in (sb.add, sb.multiply, sb.subtract, sb.maximum, sb.mean_squared_error):
        for given in (third, [1.0]), ([1.0], third), ([1], third), (third, [1]), (third, third.astype("f4")):
            assert f(*given).dtype == "f64"
        assert f([1], [2.5]).dtype == f(third.astype("f4"), [1]).dtype == "f32"
    with pytest.raises(sb.Error, match="a is of i32; it must be f32"):
        sb.where([True, False], sb.tensor([1, 2]), 2.5)
    assert sb.where([True, False], [1, 2], [3, 4]).tolist() == [1, 4]


def test_an_array_that_an_operation_gives_back_is_alive():
    """dropout without a stream is the identity: its result is what was made of the array."""
    with sb.Tape(record=False):
        made = [sb.dropout(np.full(8, i), 0.5) for i in range(20)] + [sb.dropout([float(i)] * 8, 0.5) for i in range(20)]
    assert [y[0].item() for y in made] == [*range(20)] * 2


def test_layers_and_backward_take_arrays_of_any_real_dtype():
    for dtype in ("f32", "f64"):
        weights = sb.Parameters.of(dtype, 1)
        layer, normal, x = sb.LinearLayer(weights, "layer", 3, 2), sb.NormLayer(weights, "norm", 3), np.arange(6).reshape(2, 3)
        expected = layer(sb.tensor(x, dtype=dtype))
        for given in (x, x.tolist(), x.astype("f4"), x.astype("f8"), x.astype("f2")):
            assert np.array_equal(layer(given).numpy(), expected.numpy()) and normal(given).dtype == dtype
        with sb.Tape():
            layer(x).backward(np.ones((2, 2)))
        assert weights["layer.weight"].grad.tolist() == [[3, 5, 7]] * 2


def test_sums_of_whole_numbers():
    a = np.array([[3, 0, 1], [2, 2, 2**30]])
    for array in (a, a > 1):
        x = sb.tensor(array)
        for axis in (None, 0, -1, (0, 1)):
            for name in ("sum", "mean", "max", "min"):
                made, expected = getattr(x, name)(axis, True), getattr(np, name)(array, axis=axis, keepdims=True)
                assert made.dtype == ("f32" if name == "mean" else "i32" if array is a or name == "sum" else "bool"), name
                assert np.array_equal(made.numpy(), expected.astype("f4") if name == "mean" else expected), name
    assert sb.sum([1, 2, 3]).item() == 6 and (sb.tensor([1, 2]) > 1).sum() == 1 and sb.tensor([1, 2]).std().item() == pytest.approx(0.5**0.5)
    with pytest.raises(sb.Error, match="do not fit into i32"):
        sb.sum(np.full(4, 2**30))


def test_functions_of_real_numbers_take_whole_ones():
    for name in ("softmax", "log_softmax", "logsumexp", "l2_normalize", "exp", "log", "sqrt", "tanh", "sigmoid", "relu", "gelu", "erf", "argmax"):
        f = getattr(sb, name)
        for given in ([1, 2, 3], np.array([1, 2, 3])):
            assert np.array_equal(f(given).numpy(), f([1.0, 2.0, 3.0]).numpy()), name
    assert sb.softmax([1, 2, 3]).dtype == "f32" and sb.cross_entropy([[1, 2]], [0]).dtype == "f32"
    with sb.Tape():
        assert sb.concatenate((x for x in (A, sb.ones((3,)))), 0).dtype == "f32"
    assert sb.reshape([1, 2, 3], 3, 1).dtype == "i32" and sb.concatenate([[1], [2]], 0).dtype == "i32"


def test_copies_have_memory_of_their_own():
    for duplicate in COPIES:
        for dtype in ("f32", "f64", "bf16", "i32", "bool"):
            x = sb.tensor([1, 0, 1], dtype=dtype)
            y = duplicate(x)
            x.assign(0)
            del x
            gc.collect()
            assert y.cast("f32").tolist() == [1, 0, 1] and y.dtype == dtype
        leaf = duplicate(sb.tensor([3.0], requires_grad=True))
        with sb.Tape():
            (leaf * leaf).sum().backward()
        assert leaf.grad.tolist() == [6]
        mask, random = duplicate(sb.mask_causal() & sb.mask_lengths([2])), sb.Random(1)
        assert repr(mask.show(3)) == "#..\n##.\n##.\n"
        assert sb.random_bits(duplicate(random)) == sb.random_bits(random)


def test_parameters_are_copied_by_value():
    for duplicate in COPIES:
        weights = sb.Parameters(1)
        sb.LinearLayer(weights, "layer", 3, 2)
        weights.freeze("*.bias", True)
        again, expected = duplicate(weights), weights.fingerprint()
        weights["layer.weight"].assign(0)
        del weights
        gc.collect()
        assert again.fingerprint() == expected and again.trainable() == 6
        assert len(duplicate(sb.Parameters.of("f64"))) == 0


def test_parameters_are_a_dictionary_of_names():
    weights = sb.Parameters(1)
    sb.LinearLayer(weights, "layer", 3, 2)
    assert list(weights) == ["layer.weight", "layer.bias"] and "layer.bias" in weights and "bias" not in weights
    assert [weights[name].shape for name in weights] == [(2, 3), (2,)]


def test_copies_of_parameters_merge_each_adapter_with_its_scale():
    for duplicate in COPIES:
        weights = sb.Parameters(1)
        for name, rank, alpha in (("a", 4, 8), ("b", 2, 1)):
            weights.lora(rank=rank, alpha=alpha, on=name)
            sb.LinearLayer(weights, name, 3, 2)
            weights[name + ".lora_b"].assign(np.arange(2 * rank).reshape(2, rank))
        again = duplicate(weights)
        for merged in (weights, again):
            merged.lora_merge()
        assert again.fingerprint() == weights.fingerprint()
        assert duplicate(again).lora_merge() is None


def test_what_cannot_be_copied_says_so():
    weights, data = sb.Parameters(1), sb.Data.task("copy", 1)
    model, layer = sb.Seq2Seq(weights, data, width=8, heads=2), sb.EncoderLayer(weights, "layer", width=8, heads=2)
    for x in (data, model, layer, layer.self_attention.query, sb.Adam(weights), sb.Trainer(model, data), data.next(),
              model.options_of(), model.as_model(), sb.KVCache(), sb.Tape(), model.source(), model.decoder()):
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"a {type(x).__name__} can be neither copied nor pickled"):
                duplicate(x)
    with pytest.raises(TypeError, match="save it to a file"):
        copy.copy(model)
