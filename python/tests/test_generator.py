"""What the generator makes of headers: the layout of structs, and the defaults and comments of options."""
import ast
import re
import sys
from pathlib import Path

import numpy as np
import softback as sb

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from generator import declarations, headers  # noqa: E402

STUB = ast.parse((Path(sb.__file__).parent / "__init__.pyi").read_text())


def defaults(name, owner=STUB):
    """The options of a function in the stub, as they are when none is given."""
    node = next(node for node in owner.body if getattr(node, "name", "") == name)
    return {a.arg: ast.literal_eval(d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults)}


def test_arrays_of_pointers_have_their_size(tmp_path):
    (tmp_path / "softback.h").write_text("/* A header. */\ntypedef struct {\n    const char *names[3];\n    char text[8];\n"
                                         "    void *places[2];\n    int64_t n;\n} sb_made;\n")
    found = headers.read(tmp_path)
    assert [declarations.ctype(found, v) for v in found.structs["sb_made"]] == ["c_char_p * 3", "c_char * 8", "c_void_p * 2", "c_int64"]


def test_the_stub_has_each_default():
    missing = [node.name for node in ast.walk(STUB) if isinstance(node, ast.FunctionDef)
               for d in [*node.args.defaults, *node.args.kw_defaults] if isinstance(d, ast.Constant) and d.value is ...]
    assert missing == []
    given = defaults("attention")
    assert (given["temperature"], given["layout"], given["scale"], given["weights"]) == (1, "length_first", None, False)
    assert defaults("rotary_scaled")["low_factor"] == 1 and defaults("rotary_scaled")["high_factor"] == 4
    adam = defaults("adam", next(node for node in STUB.body if getattr(node, "name", "") == "Optimiser"))
    assert (adam["beta1"], adam["beta2"], adam["epsilon"], adam["learning_rate"]) == (0.9, 0.98, 1e-9, None)


def test_a_default_that_is_given_changes_nothing():
    q, k, v = (np.random.default_rng(i).normal(size=(2, 5, 4, 8)).astype("f4") for i in range(3))
    assert sb.attention(q, k, v).tolist() == sb.attention(q, k, v, **defaults("attention")).tolist()
    x = q.reshape(2, 5, 32)
    assert sb.unfold(x, 2).tolist() == sb.unfold(x, 2, **defaults("unfold")).tolist()
    assert sb.rotary_scaled(q).tolist() == sb.rotary_scaled(q, **defaults("rotary_scaled")).tolist()
    ids = np.arange(10, dtype="i4").reshape(2, 5)
    assert sb.cross_entropy(x, ids).item() == sb.cross_entropy(x, ids, **defaults("cross_entropy")).item()
    layer = next(node for node in STUB.body if getattr(node, "name", "") == "EncoderLayer")
    first, second = (sb.EncoderLayer(sb.Parameters(1), "layer", **given)(np.tile(x, 4))
                     for given in ({}, defaults("__init__", layer)))
    assert first.tolist() == second.tolist()


def test_comments_speak_python():
    assert "Returns   y; with weights=True the pair (y, weights)" in sb.attention.__doc__
    assert "weights=False: with True the call also returns the attention weights (B, H, Lq, Lk)" in sb.attention.__doc__
    assert "Returns   (y, indices)" in sb.topk.__doc__ and 'with "none"' in sb.mean_squared_error.__doc__
    for name in sb.__all__ if hasattr(sb, "__all__") else dir(sb):
        doc = getattr(getattr(sb, name), "__doc__", None) or ""
        assert "NULL" not in doc and "SB_REDUCE" not in doc, name


def test_comments_stand_alone():
    """Each is read without the one before it in the header."""
    functions = [node for node in ast.walk(ast.parse(Path(sb._functions.__file__).read_text())) if isinstance(node, ast.FunctionDef)]
    docs = [(node.name, ast.get_docstring(node) or "") for node in functions]
    assert not [name for name, doc in docs if "default default" in doc or re.match("(The same|As a|Of a) ", doc)]
    assert "segments=None: embeddings: number of segments (BERT's token types); default: none" in sb.Seq2Seq.__init__.__doc__
    assert "positions_longest=512: number of positions" in sb.Seq2Seq.__init__.__doc__
