"""Bad arguments are refused with a sentence: none reaches C as another value, or as memory."""
import ctypes
import os
import signal

import numpy as np
import pytest
import softback as sb


def refused(message, f, *arguments, **options):
    with pytest.raises(sb.Error, match=message):
        f(*arguments, **options)


def test_whole_numbers_are_those_of_c_s_types():
    x, weights = sb.ones((2, 3)), sb.Parameters(1)
    refused("a size is 0x10000000000000003, which is not in -9223372036854775808..9", sb.zeros, 2**64 + 3)
    refused("axis_a is 0x100000000, which is not in -2147483648..2147483647", sb.transpose, x, 2**32, 1)
    refused("seed is -0x1, which is not in 0..18446744073709551615", sb.Parameters, -1)
    refused("seed is 1.5, which is not a whole number", sb.Parameters, 1.5)
    refused("gradcheck: directions is 0x100000002, which is not", sb.gradcheck, sb.exp, np.ones(2), directions=2**32 + 2)
    refused("items is 0x8000000000000000, which is not", sb.batch, 2**63, source=[1])
    refused("device is 0x1fffffffff, which is not", x.to, f"cuda:{2**37 - 1}")
    assert sb.zeros((np.int64(2), True)).shape == (2, 1) and len(sb.Parameters(2**64 - 1)) == 0


@pytest.mark.filterwarnings("ignore:invalid value")  # of NumPy
def test_whole_numbers_are_made_of_real_ones_that_fit():
    for wrong in (np.nan, np.inf, 2.0**31, -1e20):
        refused("do not fit into i32", sb.tensor, [0, wrong], dtype="i32")
        refused("do not fit into i32", sb.tensor([1, 2]).assign, [0, wrong])
    assert sb.tensor([1.75, -1.75, 2**31 - 1.0], dtype="i32").tolist() == [1, -1, 2**31 - 1]


def test_a_tensor_is_no_number():
    x = sb.ones((2,))
    refused(r"factor is f32 \(2\) \[1 1\], which is not a number; x.item\(\)", x.scale, x)
    refused("value is '1', which is not a number", sb.full, 2, "1")
    refused("dropout is f32", sb.attention, x, x, x, dropout=x)
    assert x.scale(np.float32(2)).tolist() == [2, 2]


def test_handles_are_checked():
    weights, x = sb.Parameters(1), sb.ones((1, 3))
    layer = sb.LinearLayer(weights, "layer", 3, 2)
    for wrong in (5, "world", x, weights):
        refused(r"was given where a pointer sb_communicator \* is expected", layer.join, x, wrong)
        refused(r"was given where a pointer sb_communicator \* is expected", sb.FeedForward, weights, "f", ranks=wrong)
    for method in (sb.Parameters.count, sb.LinearLayer.__call__, sb.Seq2Seq.source, sb.KVCache.length):
        for wrong in (5, "a", x, sb.Data.task("copy", 1), object()):
            with pytest.raises((ctypes.ArgumentError, sb.Error)):
                method(wrong, *[x] * (method is sb.LinearLayer.__call__))
    refused("a random stream", sb.sample, x, 5)
    refused("logits", sb.sample, 1.0, sb.Random(1))
    for function in (lambda: x._c, print, 5, None):
        refused("Mask: make one with sb.mask_causal", sb.Mask, function)


def test_a_nul_is_refused_where_c_would_end_the_text():
    letters = sb.Vocabulary(["ab"], units="characters")
    refused("the text has a NUL at byte 2, where C would end it", letters.encode, "ab\0cd")
    refused("path has a NUL at byte 4", sb.Parameters(1).save, "a.st\0b")
    refused("text 1 has a NUL at byte 0", sb.bleu_corpus, ["a", "\0"], ["a", "b"])
    refused("text has a NUL at byte 2", sb.Documents().add, "text", "ab\0cd\n", "lines")


def test_read_only_memory_stays_what_it_is():
    frozen = np.ones(3)
    frozen.flags.writeable = False
    refused("from_dlpack: this ndarray is read-only; sb.tensor", sb.from_dlpack, frozen)
    sb.detach(frozen).assign(5)
    assert frozen.tolist() == [1, 1, 1]


class Producer:
    """An array of a library whose DLPack has no version, and so no word for read-only."""

    def __init__(self, array):
        self.array, self.__dlpack_device__ = array, array.__dlpack_device__

    def __dlpack__(self, *, stream=None):
        return self.array.__dlpack__()


def test_from_dlpack_shares_what_can_be_shared():
    a = np.arange(6, dtype="f4").reshape(2, 3)
    for producer in (a, Producer(a), sb.from_numpy(a)):
        x = sb.from_dlpack(producer)
        x.assign(x.numpy() + 1)
        assert np.array_equal(x.numpy(), a)
    assert a[0, 0] == 3
    for other in (a.T, a[::-1], a[:, ::2]):
        for function, producer in ((sb.from_dlpack, other), (sb.from_dlpack, Producer(other)), (sb.from_numpy, other)):
            refused(rf"{function.__name__}: an array with the strides \({other.strides[0]}, -?[0-9]+\) cannot be shared; it must be contiguous .*; sb.tensor\(array\) copies it", function, producer)
        assert sb.tensor(other).tolist() == other.tolist()
    refused("from_dlpack: an array of int64 cannot be shared", sb.from_dlpack, np.ones(2, "i8"))
    refused("from_dlpack: this ndarray has no memory for DLPack .*byte order.*; sb.tensor copies it", sb.from_dlpack, np.ones(2, ">f4"))


def test_a_batch_has_at_most_eight_parts():
    parts = {f"part{i}": [1, 2] for i in range(9)}
    refused(r"batch: 9 parts are not in 1..8", sb.batch, **parts)
    refused("batch: 0 parts", sb.batch)
    refused("batch: a part is a number", sb.batch, source=1)
    parts.popitem()
    assert sb.batch(**parts).get("part7").tolist() == [1, 2]


def test_objects_are_made_and_freed_by_the_library_alone():
    assert not hasattr(sb.Parameters, "free") and not hasattr(sb.Parameters, "take")
    assert not hasattr(sb.Trainer, "batch")  # the source's, which another next() frees


def test_a_forked_child_has_threads_of_its_own():
    sb.set_threads(2)
    x = sb.tensor(np.full((300, 300), 0.01, "f4"))
    expected = (x @ x).exp().softmax().sum().item()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # should it hang
        sb.set_threads(3)
        os._exit((x @ x).exp().softmax().sum().item() != expected or sb.threads() != 3)
    assert os.waitpid(child, 0)[1] == 0


def test_messages_keep_the_words_of_a_user():
    """Only C's own names are said in Python's words."""
    with pytest.raises(sb.Error, match="cannot open \"sb_nothing/SB_RECORDS/sb_x.safetensors\""):
        sb.load("sb_nothing/SB_RECORDS/sb_x.safetensors")
