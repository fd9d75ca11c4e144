"""Memory is shared both ways, and nothing is freed too early or too late."""
import contextlib
import gc
import os
import resource
import signal
import sys
import threading
import time

import numpy as np
import pytest
import softback as sb
from conftest import LONG


def test_from_numpy_and_numpy_share_memory():
    array = np.arange(6.0).reshape(2, 3)
    x = sb.from_numpy(array)
    array[1, 2] = 50
    assert x[1, 2].item() == 50
    x.numpy()[0, 0] = -1
    assert array[0, 0] == -1
    assert x.numpy().ctypes.data == array.ctypes.data


def test_a_tensor_keeps_the_array_that_it_shares():
    array = np.full((1000,), 7.0)
    x = sb.from_numpy(array)
    del array
    gc.collect()
    np.full((1000,), 3.0)
    assert x.sum().item() == 7000


def test_a_recorded_operation_keeps_the_array_that_it_shares():
    w = sb.tensor(np.ones(1000), requires_grad=True)
    with sb.Tape():
        y = (w * sb.from_numpy(np.full(1000, 3.0))).sum()
        gc.collect()
        [np.full(1000, 5.0) for _ in range(10)]
        y.backward()
    assert (w.grad.numpy() == 3).all()


def test_a_result_that_is_its_argument_and_a_layer_keep_an_array():
    """Without a stream or a probability dropout returns its input, and a head keeps the weight that it is tied to."""
    outside = sb.dropout(np.full(1000, 7.0), 0.5)
    with sb.Tape():
        inside = sb.dropout(np.full(1000, 7.0), 0)
    head = sb.OutputHead(sb.Parameters(), "head", 1000, 1, False, np.full((1, 1000), 7, "f4"))
    gc.collect()
    [np.full(1000, value, dtype) for value in range(20) for dtype in ("f4", "f8")]
    assert outside.sum().item() == inside.sum().item() == head.logits(np.ones((1, 1000), "f4")).item() == 7000


def test_arrays_given_to_backward_and_returned_from_functions_live_long_enough():
    x = sb.tensor(np.zeros(1000), requires_grad=True)
    with sb.Tape():
        x.exp().backward(np.full(1000, 3.0))
    assert (x.grad.numpy() == 3).all()
    assert sb.gradcheck(lambda x: np.ones(1000), x)  # a constant: no gradient


def test_what_cannot_be_shared_is_refused_with_the_remedy():
    for array in (np.ones((4, 4))[:, ::2], np.ones(3, "f2"), np.ones(3, "i8")):
        with pytest.raises(sb.Error, match=r"sb.tensor\(array\) copies it"):
            sb.from_numpy(array)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(sb.Error, match="is not a writable array; sb.tensor copies"):
        sb.from_numpy(frozen)


def test_numpy_views_outlive_tensor_and_tape():
    with sb.Tape():
        view = sb.tensor(np.full((100, 100), 2.0)).exp().numpy()
    gc.collect()
    [sb.zeros(100, 100, dtype="f64") for _ in range(5)]
    assert (view == np.exp(2.0)).all()


def test_a_view_keeps_the_value_that_backward_frees():
    x = sb.tensor(np.linspace(0, 1, 2500).reshape(50, 50), requires_grad=True)
    with sb.Tape():
        y = x.exp()
        view, loss = y.numpy(), (y * y).sum()
        loss.backward()
        [sb.ones(50, 50, dtype="f64") for _ in range(5)]
        np.testing.assert_allclose(view, np.exp(x.numpy()))
    np.testing.assert_allclose(view, np.exp(x.numpy()))


def test_a_view_of_attention_weights_is_not_reused_by_backward():
    q = sb.tensor(np.random.default_rng(1).normal(size=(1, 6, 2, 4)), requires_grad=True)
    with sb.Tape():
        y, weights = sb.attention(q, q, q, weights=True)
        view, before = weights.numpy(), weights.numpy().copy()
        y.sum().backward()
    assert (view == before).all()


def test_backward_without_a_tape_is_one_clear_error():
    with pytest.raises(sb.Error, match="backward: no tape is open; record"):
        sb.ones((1,), requires_grad=True).backward()


def test_freed_data_is_one_clear_error():
    x = sb.tensor(np.ones((4, 4)), requires_grad=True)
    with sb.Tape():
        y = x.softmax()
        y.sum().backward()
        with pytest.raises(sb.Error, match=r"softmax output \(4, 4\): freed by backward; call keep\(\) before backward\(\)"):
            y.numpy()


def test_tensors_outlive_their_tape_as_constants():
    x = sb.tensor([1.0, 2.0], requires_grad=True)
    with sb.Tape():
        y = x.exp()
    assert y.tolist() == pytest.approx([2.7182817, 7.389056])
    with sb.Tape():
        with pytest.raises(sb.Error, match="depends on nothing that requires a gradient"):
            y.sum().backward()


def test_views_of_parameters_follow_training():
    weights = sb.Parameters(1)
    w = weights.add("w", (4,), 1.0)
    optimiser = sb.SGD(weights, learning_rate=0.5)
    view = w.numpy()
    with sb.Tape():
        w.sum().backward()
        optimiser.step()
    assert view.tolist() == [0.5] * 4 == w.tolist()
    del weights, optimiser, w
    gc.collect()
    assert view.tolist() == [0.5] * 4


def test_a_view_that_would_be_left_behind_is_one_clear_error():
    weights = sb.Parameters(1)
    view = weights.add("w", (4,), 1.0).numpy()
    with pytest.raises(sb.Error, match='"w" must move to a flat buffer, but an open tape or a view'):
        sb.SGD(weights)
    del view
    assert sb.SGD(weights)


def test_objects_keep_what_they_need():
    trainer = sb.Trainer(sb.Seq2Seq(sb.Parameters(1), sb.Data.task("copy", 1), width=16, heads=2),
                         sb.Data.task("copy", 2))
    gc.collect()
    assert trainer.step().loss > 0
    layer = sb.LinearLayer(sb.Parameters(1), "layer", 3, 2)
    gc.collect()
    assert layer(np.ones((1, 3), "f4")).shape == (1, 2)
    inner = sb.EncoderLayer(sb.Parameters(1), "layer", width=8, heads=2).self_attention.query
    gc.collect()
    [sb.ones((8, 8)) for _ in range(5)]
    assert 0 < np.abs(inner.weight.numpy()).max() < 1


def test_batches_outlive_their_turn():
    data = sb.Data.task("copy", 1)
    model = sb.Seq2Seq(sb.Parameters(1), data, width=16, heads=2, encoder_layers=1, decoder_layers=1)
    batches = [data.next() for _ in range(3)]
    losses = [model.loss(batch).item() for batch in batches]
    again = sb.Data.task("copy", 1)
    assert losses == [model.loss(again.next()).item() for _ in range(3)]
    assert batches[0].get("source").shape[0] == 64


def test_dlpack_both_ways():
    x = sb.tensor(np.arange(6.0).reshape(2, 3))
    array = np.from_dlpack(x)
    assert array.ctypes.data == x.numpy().ctypes.data
    source = np.arange(4.0)
    y = sb.from_dlpack(source)
    source[0] = 9
    assert y[0].item() == 9
    del source
    gc.collect()
    assert y.tolist() == [9, 1, 2, 3]


def test_pytorch_shares_memory_both_ways():
    torch = pytest.importorskip("torch")
    x = sb.tensor(np.ones((2, 3)))
    theirs = torch.from_dlpack(x)
    theirs[0, 0] = 5
    assert x[0, 0].item() == 5
    del x
    gc.collect()
    assert theirs.sum() == 10
    ours = sb.from_dlpack(torch.arange(4.0))
    gc.collect()
    assert ours.tolist() == [0, 1, 2, 3]


def test_an_exception_leaves_everything_usable():
    x = sb.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ZeroDivisionError):
        with sb.Tape():
            x.exp()
            with sb.Tape(record=False):
                1 / 0
    with pytest.raises(sb.Error, match="inner sizes 3 and 4 differ"):
        with sb.Tape():
            sb.matmul(sb.zeros((2, 3)), sb.zeros((4, 5)))
    with sb.Tape():
        x.exp().sum().backward()
    assert x.grad is not None


def test_a_mask_that_is_refused_leaves_attention_usable():
    with pytest.raises(sb.Error, match="lengths is"):
        sb.masked_softmax(np.zeros((3, 3)), sb.mask_lengths(3))
    assert sb.attention(*[np.ones((1, 2, 1, 4))] * 3).shape == (1, 2, 1, 4)


def test_the_error_comes_from_the_line_that_made_it():
    with pytest.raises(sb.Error) as caught:
        with sb.Tape():
            sb.zeros((2, 3)).exp()
            sb.zeros((2, 3)) @ sb.zeros((4, 5))  # this line
    here = [t for t in caught.traceback if str(t.path) == __file__]
    assert "this line" in str(here[-1].statement)


def test_threads_have_tapes_of_their_own():
    w = sb.tensor(np.full((64, 64), 0.01), requires_grad=True)
    results, failures = {}, []

    def work(number):
        try:
            for _ in range(50):
                x = sb.tensor(np.full((8, 64), float(number)), requires_grad=True)
                with sb.Tape(record=False):
                    (x @ w).softmax()
                with sb.Tape():
                    y = (x.exp() @ sb.detach(w)).sum()
                    y.backward()
                results[number] = x.grad.numpy()[0, 0]
        except sb.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert results[0] == pytest.approx(0.64) and results[1] == pytest.approx(0.64 * np.e)


def test_threads_share_data_and_a_trainer():
    data, switching = sb.Data.task("copy", 1), sys.getswitchinterval()
    model = sb.Seq2Seq(sb.Parameters(1), data, width=8, heads=2, encoder_layers=1, decoder_layers=1)
    trainer, shapes, steps = sb.Trainer(model, data), [], 200

    def work():
        for step in range(steps):
            shapes.append(data.next().get("source").shape[0])
            if step % 10 == 0:
                trainer.step()

    threads = [threading.Thread(target=work) for _ in (0, 1)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switching)
    assert shapes == [64] * (2 * steps) and trainer.steps() == 2 * steps // 10


def test_a_fork_waits_for_the_call_of_another_thread():
    data, ended, ways = sb.Data.task("copy", 1), threading.Event(), []

    def work():
        while not ended.is_set():
            data.next()

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(20):
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # ends one that waits for ever
            data.next()
            os._exit(0)
        ways.append(os.waitpid(child, 0)[1])
    ended.set()
    thread.join()
    assert ways == [0] * 20


def test_a_tape_of_another_thread_is_one_clear_error():
    errors = []
    tape = sb.Tape()
    tape.__enter__()

    def close():
        try:
            tape.__exit__(None, None, None)
        except sb.Error as error:
            errors.append(str(error))

    thread = threading.Thread(target=close)
    thread.start()
    thread.join()
    tape.__exit__(None, None, None)
    assert errors == ["tape_end: this tape is not open"]


def stepwise(weight, done):
    """A generator that opens a tape, waits, and runs backward."""
    with sb.Tape():
        x = weight * 3
        yield
        (x * weight).sum().backward()
        done.append(weight.grad.tolist())
        yield
    yield


def turns(order):
    """What generators a and b computed that go on in this order, and how the first one failed."""
    done = []
    made = {name: stepwise(sb.tensor([1.0, 2.0], requires_grad=True), done) for name in "ab"}
    try:
        for name in order:
            if name.islower():
                next(made[name])
            else:
                made[name.lower()].close()
    except sb.Error as error:
        return done, str(error)
    finally:
        for one in made.values():
            one.close()
    return done, ""


def test_generators_that_open_tapes_do_not_take_turns():
    right, sentence = [6.0, 12.0], "generators that each open a tape must not take turns: end one before the next opens its own"
    assert turns("aaabbb") == turns("abbbaa") == ([right, right], "")
    for order, done in (("aba", []), ("abba", [right]), ("aabba", [right, right]), ("abA", []), ("aabA", [right])):
        found, said = turns(order)
        assert found == done and said.endswith(sentence), order
    with sb.Tape():  # and the stack of tapes is right again
        x = sb.tensor([1.0], requires_grad=True)
        (x * x).sum().backward()
    assert x.grad.tolist() == [2]


def test_a_tape_is_not_closed_inside_a_function_that_the_library_calls():
    weights, one = sb.Parameters.of("f64"), np.ones(2)
    weights.add("w", (2,), 1.0)
    calls = (lambda body: sb.jvp(lambda t: (body(), t * t)[1], one, one), lambda body: sb.hvp(lambda t: (body(), (t * t).sum())[1], one, one),
             lambda body: sb.gradcheck(lambda t: (body(), t * t)[1], one),
             lambda body: sb.backward_in_shares(weights, 2, 1, lambda first, count: (body(), weights["w"].sum())[1]),  # on this thread
             lambda body: sb.operation(lambda t: (t * 2, lambda dy: (body(), 2 * dy)[1]))(x).sum().backward())
    for call in calls:
        x = sb.tensor([1.0, 2.0], requires_grad=True)
        waiting = stepwise(sb.tensor([1.0, 2.0], requires_grad=True), [])
        next(waiting)
        with pytest.raises(sb.Error, match="tape_end: the library calls this function, and the tape was opened outside of it"):
            call(waiting.close)
        with sb.Tape():
            (x * x).sum().backward()
        assert x.grad.tolist() == [2, 4] and not sb.tensors.opened.tapes


def test_a_manager_that_opens_a_tape_is_no_generator_that_takes_turns():
    @contextlib.contextmanager
    def opened():
        with sb.Tape() as tape:
            yield tape

    def work():
        x = sb.tensor([1.0, 2.0], requires_grad=True)
        with sb.Tape(), opened(), sb.Tape():
            (x * x).sum().backward()
        with opened(), opened(), contextlib.ExitStack() as stack:
            stack.enter_context(sb.Tape())
            stack.enter_context(opened())
            (x * x).sum().backward()
            assert sb.gradcheck(lambda t: t * t, np.ones(2))
            yield x.grad.tolist()

    assert list(work()) == [[4, 8]]


def test_a_tape_that_is_open_is_not_opened_again():
    with sb.Tape() as tape:
        with pytest.raises(sb.Error, match="tape: it is open already"):
            with tape:
                pass
    with tape:
        assert sb.ones((2,)).exp().shape == (2,)


def churn(steps):
    w = sb.tensor(np.ones((4, 4)), requires_grad=True)
    for step in range(steps):
        x = sb.from_numpy(np.full((4, 4), float(step)))
        with sb.Tape():
            y = sb.softmax(x * w)
            view = y.numpy()
            (y * y).sum().backward()
        assert view[0, 0] == 0.25
        if step % 1000 == 0:
            with pytest.raises(sb.Error):
                sb.masked_softmax(x @ sb.zeros((3, 3)), sb.mask_causal())


def test_threads_may_run_backward_into_the_same_weights():
    slowly = sb.operation(lambda x: (x + 0, lambda dy: (time.sleep(0.02), dy)[1]))
    w, errors = sb.tensor([1.0, 2.0], dtype="f64", requires_grad=True), []

    def work():
        try:
            for _ in range(5):
                with sb.Tape():
                    (slowly(w) * w).sum().backward()
        except sb.Error as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and w.grad.tolist() == [40, 80]


def test_many_steps_leak_nothing():
    steps = 100_000 if LONG else 20_000
    churn(steps // 10)  # allocators settle
    gc.collect()
    live, resident = sb.device_memory("cpu").live_bytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    churn(steps)
    gc.collect()
    assert sb.device_memory("cpu").live_bytes == live
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident < 2048  # KiB
