"""Indices, reductions and functions of the names that NumPy and PyTorch have, with their gradients."""
import numpy as np
import pytest
import softback as sb

A = np.random.default_rng(1).normal(size=(4, 3, 2, 5))


def same(ours, theirs, *arrays, linear=True):
    """Values are NumPy's, and so is the gradient of linear functions, in exact differences."""
    xs = [sb.tensor(a, requires_grad=True) for a in arrays]
    with sb.Tape():
        y = ours(*xs)
        expected = theirs(*arrays)
        assert y.shape == np.shape(expected)
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12, atol=1e-12)
        if not y.size:
            return
        rng = np.random.default_rng(2)
        dy = rng.normal(size=y.shape)
        y.backward(dy)
    for x, a in zip(xs, arrays):
        v = rng.normal(size=a.shape)
        moved = [b + v if b is a else b for b in arrays]
        change = ((theirs(*moved) - expected) * dy).sum() if linear else None
        if linear:
            assert (x.grad.numpy() * v).sum() == pytest.approx(change, rel=1e-9)
    if not linear:
        assert sb.gradcheck(ours, *arrays)


INDICES = [np.s_[..., 0], np.s_[None], np.s_[::2], np.s_[::-1, 1:, None, 0], np.s_[1, ..., 2:4], np.s_[[0, 2]],
           np.s_[[0, -1, 0], [2, 1, 0]], np.s_[:, [2, 0]], np.s_[:, [0, 1], :, [1, 4]], np.s_[1, :, [0, 1, 1]],
           np.s_[[[0, 1], [3, 3]]], np.s_[:, :, [[0], [1]], [2, 3]], np.s_[..., [True, False, True, True, False]],
           np.s_[A > 0], np.s_[A[..., 0] > 0], np.s_[:, A[0, :, 0, 0] > 0, 1], np.s_[[]], np.s_[3:1], np.s_[...],
           np.s_[None, 1, None, ::2, ..., None], np.s_[-1, -1, -1, -1], np.s_[:, 1:2, ::-1, 4:0:-2], np.s_[()],
           np.s_[np.int64(1), np.array([1, 2]), None, 0], np.s_[:, None, [1, 0]], np.s_[[1], None, :, [0]]]


@pytest.mark.parametrize("index", INDICES, ids=lambda i: repr(i)[:30].replace("\n", ""))
def test_indices_are_those_of_numpy(index):
    same(lambda x: x[index], lambda a: a[index], A)


def test_tensors_are_indices_and_whole_numbers_have_them_too():
    x = sb.tensor(np.arange(6).reshape(2, 3))
    assert x[:, [2, 0]].tolist() == [[2, 0], [5, 3]] and x[::-1].tolist() == [[3, 4, 5], [0, 1, 2]]
    assert x[x > 2].tolist() == [3, 4, 5] and x[sb.tensor([1, 0]), sb.tensor([0, 1])].tolist() == [3, 1]
    assert list(range(x[0, 2])) == [0, 1] and [1, 2, 3][x[0, 1]] == 2 and int(x[1, 1]) == 4


def test_reductions_over_several_axes():
    for axis in (None, 1, -1, (0, 2), (-1, 1), (), (0, 1, 2, 3)):
        for keep in (False, True):
            same(lambda x: x.sum(axis, keep), lambda a: a.sum(axis, keepdims=keep), A)
            same(lambda x: sb.mean(x, axis, keep), lambda a: a.mean(axis, keepdims=keep), A)
            for ours, theirs in ((sb.max, np.max), (sb.min, np.min)):
                same(lambda x: ours(x, axis, keep), lambda a: theirs(a, axis, keepdims=keep), A[:2, :2], linear=False)
            if axis != ():
                same(lambda x: sb.std(x, axis, 0, keep), lambda a: a.std(axis, keepdims=keep), A, linear=False)
    same(lambda x: x.variance((0, 1)), lambda a: a.var((0, 1), ddof=1), A, linear=False)
    for f in (np.std, np.var, np.min):
        same(lambda x: f(x, axis=(0, 3), keepdims=True), lambda a: f(a, axis=(0, 3), keepdims=True), A, linear=False)
    with pytest.raises(sb.Error, match=r"sum: the axes \(0, 4\) of \(4, 3, 2, 5\) are not different ones of -4..3"):
        sb.sum(A, (0, 4))


def test_arguments_have_the_names_of_pytorch_and_numpy_too():
    x = sb.tensor(A)
    for other in ({"dim": 1, "keepdim": True}, {"axis": 1, "keepdims": True}, {"dim": (1,), "keep": True}):
        for name in ("sum", "mean", "max", "min", "variance", "std"):
            assert getattr(x, name)(**other).tolist() == getattr(sb, name)(A, 1, keep=True).tolist()
    assert sb.tensor([[1, 2]]).sum(dim=0, keepdim=True).tolist() == [[1, 2]]
    for name in ("softmax", "log_softmax", "logsumexp", "l2_normalize", "argmax"):
        assert getattr(x, name)(dim=1).tolist() == getattr(sb, name)(A, axis=1).tolist()
    assert sb.stack([x, x], dim=1).shape == (4, 2, 3, 2, 5) and sb.concatenate([x, x], dim=1).shape == (4, 6, 2, 5)
    assert [p.shape for p in x.split(dim=1, lengths=[1, 2])] == [(4, 1, 2, 5), (4, 2, 2, 5)] and x[:, :1].squeeze(dim=1).shape == (4, 2, 5)
    assert x.transpose(dim0=0, dim1=-1).shape == x.transpose(axis_a=0, axis_b=-1).shape == (5, 3, 2, 4)
    for function, wrong, said in ((sb.sum, {"dim": 0, "axis": 0}, "sum: dim and axis"), (x.std, {"keepdim": 1, "keep": 1}, "std: keepdim and keep"),
                                  (x.max, {"keepdim": True, "keepdims": True}, "max: keepdims? and keep"), (sb.softmax, {"axis": 0, "dim": 0}, "softmax: dim and axis")):
        with pytest.raises(sb.Error, match=said + " are one argument; give it once"):
            function(A, **wrong) if function in (sb.sum, sb.softmax) else function(**wrong)


def test_errors_call_a_function_by_its_public_name():
    x, weights = sb.tensor(A), sb.Parameters(1)
    for name in ("sum", "min", "softmax", "logsumexp", "transpose", "squeeze", "argmax", "abs", "add", "layer_norm", "arange", "zeros", "einsum"):
        with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'wrong'"):
            getattr(sb, name)(*[x] * (name != "zeros"), wrong=1)
        assert (getattr(sb, name).__name__, getattr(sb, name).__qualname__) == (name, name)
    for method, name in ((weights.items, "Parameters.items"), (sb.Vocabulary(["ab"], units="characters").encode, "Vocabulary.encode")):
        with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'wrong'"):
            method(wrong=1)


def test_shapes_are_given_in_either_way():
    same(lambda x: x.reshape(6, -1), lambda a: a.reshape(6, -1), A)
    same(lambda x: x.reshape((6, -1)).T, lambda a: a.reshape(6, -1).T, A)
    same(lambda x: x.permute(2, 0, 3, 1), lambda a: a.transpose(2, 0, 3, 1), A)
    same(lambda x: x.transpose(), lambda a: a.transpose(), A)
    same(lambda x: x[:, :1, :1].squeeze(), lambda a: a[:, :1, :1].squeeze(), A)
    same(lambda x: x[:, :1].squeeze(1), lambda a: a[:, :1].squeeze(1), A)
    same(np.transpose, np.transpose, A)
    with pytest.raises(sb.Error, match="squeeze: the axes 0 of"):
        sb.tensor(A).squeeze(0)
    for axis in (-1, 1):
        y = np.exp(A) / np.exp(A).sum(axis, keepdims=True)
        same(lambda x: x.softmax(axis), lambda _: y, A, linear=False)
    same(lambda x: sb.log_softmax(x, axis=0), lambda a: a - np.log(np.exp(a).sum(0)), A, linear=False)


@pytest.mark.parametrize("equation, shapes", [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]),
    ("ii->i", [(3, 3)]), ("ii", [(3, 3)]), ("i,j->ij", [(2,), (3,)]), ("i,i", [(3,), (3,)]), ("bhqd,bhkd->bhqk", [(2, 2, 3, 4)] * 2),
    ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]), ("ab,bc,cd->da", [(2, 3), (3, 4), (4, 5)]), ("ij,ij->i", [(2, 3)] * 2),
    ("ijk,k", [(2, 3, 4), (4,)]), ("i...->...", [(2, 3, 4)]), ("ba,cd->abc", [(2, 3), (4, 5)]), ("iij,jk->ik", [(3, 3, 2), (2, 4)])])
def test_einsum_is_numpy_s(equation, shapes):
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=s) for s in shapes]
    same(lambda *x: sb.einsum(equation, *x), lambda *a: np.einsum(equation, *a), *arrays)
    same(lambda *x: np.einsum(equation, *x), lambda *a: np.einsum(equation, *a), *arrays)


def test_einsum_says_what_is_wrong():
    for equation, said in (("ij,jk->ik", "2 operands, but 1"), ("ijk->i", "names 3 axes of"), ("ii->i", "i is 2 and 3"),
                           ("ij->ik", "the output must have"), ("i1->i", "names 2 axes")):
        with pytest.raises(sb.Error, match=said):
            sb.einsum(equation, np.ones((2, 3)))


def test_whole_numbers_and_lists_take_the_dtype_of_the_tensor():
    x = sb.tensor([1.0, 2.0], dtype="f64")
    assert (x + np.arange(2)).tolist() == [1, 3] == ([0, 1] + x).tolist() and (x * [0.5, 2]).tolist() == [0.5, 4]


def test_tensors_are_made_as_elsewhere():
    assert sb.arange(3).tolist() == [0, 1, 2] and sb.arange(3).dtype == "i32"
    assert sb.arange(1, 2, 0.25).tolist() == [1, 1.25, 1.5, 1.75] and sb.arange(2, dtype="f64").dtype == "f64"
    x = sb.randn(100, 100, random=sb.Random(1), requires_grad=True)
    assert abs(x.mean().item()) < 0.05 and abs(x.std().item() - 1) < 0.05 and x.requires_grad
    assert x.tolist() == sb.randn((100, 100), random=sb.Random(1)).tolist() != sb.randn(100, 100).tolist()
    y = sb.ones(2)
    assert not y.requires_grad and not x.detach().requires_grad
    y.requires_grad = True
    assert y.requires_grad and y.requires_grad_() is y
    with pytest.raises(sb.Error, match=r"x.detach\(\) is a constant"):
        y.requires_grad = False
    assert f"{y.sum():.2f} {y}" == "2.00 f32 (2) [1 1]" and sb.__version__ == sb.version()


def test_shapes_of_new_tensors_are_given_in_either_way():
    for make in (sb.zeros, sb.ones, sb.randn):
        assert make(3, 4).shape == make((3, 4)).shape == make([3, 4]).shape == (3, 4) and make(2).shape == (2,) and make().shape == ()
        assert make(3, 4, dtype="f64").dtype == "f64" and make(2, requires_grad=True).requires_grad
        with pytest.raises(sb.Error, match=r"\(3, 4\), 'f64' was given where whole numbers or one tuple of them are expected; what follows has names, such as dtype="):
            make((3, 4), "f64")
    with pytest.raises(sb.Error, match=r"\(2, 3\), 4 was given where"):
        sb.ones(24).reshape((2, 3), 4)


def test_dtypes_have_the_names_of_numpy_and_pytorch_too():
    class Torch:  # as torch.float32 shows itself
        def __str__(self):
            return "torch.float32"

    for given, own in (("float32", "f32"), (np.float32, "f32"), (np.dtype("float32"), "f32"), ("float64", "f64"), (np.float64, "f64"), (Torch(), "f32"),
                       ("int32", "i32"), (np.int32, "i32"), ("bfloat16", "bf16"), (bool, "bool"), (np.bool_, "bool"), (np.dtype("bool"), "bool"), ("f32", "f32")):
        made = [sb.tensor([0, 1], dtype=given), sb.ones(2, dtype=given), sb.full(2, 1, given), sb.arange(2, dtype=given), sb.ones(2).cast(given), sb.tensor(np.ones(2), given)]
        made += [sb.randn(2, dtype=given), sb.Parameters.of(given, 1).add("w", (2,), 0.5)] if own in ("f32", "f64") else []
        assert [x.dtype for x in made] == [own] * len(made)
    for wrong, said in (("int64", "int64"), (np.int64, "int64"), (np.float16, "float16"), (float, "float"), (5, "5"), ([], r"\[\]")):
        for make in (lambda: sb.ones(2, dtype=wrong), lambda: sb.tensor([1], dtype=wrong or (1,)), lambda: sb.ones(2).cast(wrong)):
            with pytest.raises(sb.Error, match=f'"({said}|.1,.)" is no dtype; (there are f32|did you mean)'):
                make()


def test_matplotlib_takes_tensors():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    x = sb.tensor([1.0, 3.0, 2.0], requires_grad=True)
    (line,) = pyplot.plot(x, x * 2)
    assert line.get_ydata().tolist() == [2, 6, 4]
    pyplot.imshow(sb.ones((2, 2)))
    pyplot.hist(x)
    pyplot.bar([0, 1, 2], x)
    pyplot.bar(sb.arange(3), x, width=0.5)
    pyplot.close("all")


def line(x, w, fails=None):
    """The loss of items of x, and whether one of them fails."""
    def loss(first, count):
        if fails is not None and first <= fails < first + count:
            raise ValueError(f"item {fails}")
        return (w["slope"] * w["slope"] * sb.dropout(sb.tensor(x[first:first + count]), 0.5)).sum()

    return loss


def test_shares_of_a_batch_have_the_gradient_of_the_whole():
    x, w = np.arange(1, 41, dtype="f8").reshape(20, 2), sb.Parameters.of("f64")
    w.add("slope", [1], 3.0)
    made = []
    for shares in (1, 4):
        w.clear()
        total = sb.backward_in_shares(w, 20, shares, line(x, w), sb.Random(7, "user"))
        made.append((total, w["slope"].grad.numpy()[0]))
    assert made[0] == made[1] and made[0][1] == made[0][0] * 2 / 3 > 0
    for _ in range(20):
        with pytest.raises(ValueError, match="item 13"):
            sb.backward_in_shares(w, 20, 4, line(x, w, 13))
    assert w["slope"].grad is None
    with pytest.raises(sb.Error, match="backward_in_shares: 21 shares of 20 items"):
        sb.backward_in_shares(w, 20, 21, line(x, w))
