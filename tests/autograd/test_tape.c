/* The tape, and backward. */
#include "tests/support/sample.h"
#include <pthread.h>
#include <stdio.h>

TEST(tape, the_tape_frees_its_tensors)
{
    sb_tensor *a = KEPT(leaf(3));
    int64_t live = live_blocks();
    for (sb_mode mode = SB_RECORD; mode <= SB_NO_RECORD; mode++) {
        sb_tape tape;
        sb_tape_begin(&tape, mode);
        cr_assert(total(times(pass(a, NO_FAULT), a)));
        cr_expect(live_blocks() > live);
        cr_expect(sb_tape_end(&tape));
        cr_expect(live_blocks() == live);
    }
}

TEST(tape, every_handle_lives_until_the_tape_ends)
{
    sb_tensor *a = KEPT(leaf(3));
    TAPE(SB_RECORD);
    sb_tensor *y = times(a, a);
    cr_assert(sb_backward(total(y)));
    cr_expect(sb_tensor_rank(y) == 1 && sb_tensor_dim(y, 0) == 2);
}

TEST(tape, a_retained_tensor_becomes_a_constant)
{
    sb_tensor *a = KEPT(leaf(3));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = KEPT(sb_tensor_retain(times(a, a)));
    cr_expect(y->requires_grad);
    sb_tape_end(&tape);
    cr_expect(every(y, 9) && !y->requires_grad);
    sb_tape_begin(&tape, SB_RECORD);
    cr_assert(sb_backward(total(times(y, a))));
    sb_tape_end(&tape);
    cr_expect(!sb_tensor_grad(y) && every(sb_tensor_grad(a), 9));
    cr_expect(sb_tensor_requires_grad(y) == y, "it may become a leaf");
}

TEST(tape, a_failed_tape_keeps_its_first_message)
{
    sb_tensor *a = KEPT(leaf(3));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = times(a, a);
    cr_expect(!sb_fail("first: it broke"));
    cr_expect(!times(a, y) && !sb_fail("second") && !sb_backward(total(y)));
    REFUSED("first: it broke", sb_tensor_zeros((sb_dtype)99, SB_SCALAR));
    cr_expect(sb_tensor_get(y, 0) == 9, "what was made before is still usable");
    REFUSED("first: it broke", sb_tape_end(&tape));
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(sb_backward(total(times(a, a))), "the next tape has not failed");
    cr_expect(sb_tape_end(&tape));
}

CPU_TEST(tape, a_failed_constructor_fails_the_tape)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(!sb_tensor_zeros(SB_F32, SB_SHAPE(2, -3)));
    REFUSED("tensor: dimension 1 of (2, -3) is negative", sb_tape_end(&tape));
}

TEST(tape, the_message_for_a_null_argument_has_its_cause)
{
    sb_tensor *missing = sb_tensor_zeros(SB_F32, 7, NULL), *a = KEPT(leaf(3));
    REFUSED_ON_TAPE(SB_RECORD, "times: b is NULL, because tensor: rank 7 is not in 0..6",
                    times(a, missing));
    FAILED_TAPE(SB_RECORD); /* the failure before this tape does not matter */
    cr_expect(!times(a, NULL));
    cr_expect(strcmp(sb_error(), "times: b is NULL") == 0, "%s", sb_error());
}

TEST(tape, backward_does_not_enter_an_outer_tape)
{
    sb_tensor *a = KEPT(leaf(3)), *b = KEPT(leaf(5));
    sb_tape outer, inner;
    sb_tape_begin(&outer, SB_RECORD);
    sb_tensor *y = times(a, a);
    sb_tape_begin(&inner, SB_RECORD);
    MUST(sb_backward(total(times(y, b))));
    cr_expect(sb_tape_end(&inner));
    cr_expect(every(sb_tensor_grad(b), 9) && !sb_tensor_grad(a) && !sb_tensor_grad(y));
    cr_assert(sb_backward(total(y)), "the outer tape is unchanged");
    cr_expect(sb_tape_end(&outer));
    cr_expect(every(sb_tensor_grad(a), 6) && every(sb_tensor_grad(b), 9));
}

TEST(tape, a_tape_that_does_not_record_owns_and_gives_constants)
{
    sb_tensor *a = KEPT(leaf(3));
    sb_tape outer, inner;
    sb_tape_begin(&outer, SB_RECORD);
    sb_tape_begin(&inner, SB_NO_RECORD);
    sb_tensor *y = times(a, a);
    cr_expect(every(y, 9) && !y->requires_grad);
    y = sb_tape_end_keep(&inner, y);
    cr_expect(every(y, 9));
    cr_assert(sb_backward(total(times(y, a))));
    cr_expect(sb_tape_end(&outer));
    cr_expect(every(sb_tensor_grad(a), 9));
}

TEST(tape, end_keep_gives_a_constant_to_the_outer_tape)
{
    sb_tensor *a = KEPT(leaf(3));
    sb_tape outer, inner;
    sb_tape_begin(&outer, SB_RECORD);
    sb_tape_begin(&inner, SB_RECORD);
    sb_tensor *kept = times(a, a), *y = sb_tape_end_keep(&inner, kept);
    cr_expect(y == kept && every(y, 9) && !y->requires_grad);
    cr_expect(tape_open()->serial == outer.serial);
    cr_expect(sb_tape_end(&outer));
}

TEST(tape, end_keep_of_a_failed_tape_fails_the_outer_one)
{
    sb_tensor *a = KEPT(leaf(3));
    for (int missing = 0; missing < 2; missing++) {
        sb_tape outer, inner;
        sb_tape_begin(&outer, SB_RECORD);
        sb_tape_begin(&inner, SB_RECORD);
        sb_tensor *y = times(a, a);
        if (!missing)
            sb_fail("mask: it broke");
        REFUSED(missing ? "tape_end_keep: y is NULL" : "mask: it broke",
                sb_tape_end_keep(&inner, missing ? NULL : y));
        cr_expect(!times(a, a), "NULL for a failed result was accepted as an omitted argument");
        REFUSED(missing ? "tape_end_keep: y is NULL" : "mask: it broke", sb_tape_end(&outer));
    }
    sb_tape alone;
    sb_tape_begin(&alone, SB_RECORD);
    cr_expect(!sb_tape_end_keep(&alone, times(a, a)), "there is no outer tape");
    EXPECT_ERROR("tape_end_keep");
}

TEST(tape, a_failed_inner_tape_does_not_fail_the_outer_one)
{
    sb_tensor *a = KEPT(leaf(3));
    sb_tape outer, inner;
    sb_tape_begin(&outer, SB_RECORD);
    sb_tape_begin(&inner, SB_RECORD);
    sb_fail("inner: it broke");
    cr_expect(!sb_tape_end(&inner));
    cr_expect(sb_backward(total(times(a, a))));
    cr_expect(sb_tape_end(&outer));
}

TEST(tape, closing_the_outer_tape_first_is_reported)
{
    sb_tensor *a = KEPT(leaf(3));
    sb_tape outer, inner, innermost;
    sb_tape_begin(&outer, SB_RECORD);
    sb_tape_begin(&inner, SB_RECORD);
    cr_assert(times(a, a));
    REFUSED("tape_end: 1 tape opened inside this one was never closed", sb_tape_end(&outer));
    cr_expect(tape_open() == NULL);
    REFUSED("tape_end: this tape is not open", sb_tape_end(&inner));
    sb_tape_begin(&outer, SB_RECORD);
    sb_tape_begin(&inner, SB_RECORD);
    sb_tape_begin(&innermost, SB_RECORD);
    sb_fail("deep: it broke");
    REFUSED("2 tapes opened inside this one were never closed; before that: deep: it broke",
            sb_tape_end(&outer));
    cr_expect(!sb_tape_end(NULL));
}

static void returns_without_closing(void)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
}

CPU_TEST(tape, the_outer_tape_reports_an_inner_one_that_was_never_closed)
{
    sb_tape outer;
    sb_tape_begin(&outer, SB_RECORD);
    returns_without_closing();
    REFUSED("never closed", sb_tape_end(&outer));
    cr_expect(tape_open() == NULL);
}

TEST(tape, opening_the_same_tape_twice_is_reported)
{
    sb_tensor *a = KEPT(leaf(3));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = times(a, a);
    sb_tape_begin(&tape, SB_RECORD);
    EXPECT_ERROR("tape_begin: this tape is open already");
    cr_expect(!times(a, a));
    cr_expect(!sb_tape_end(&tape));
    cr_expect(every(y, 9) && times(a, a), "the tape works after it was opened twice");
    cr_expect(sb_tape_end(&tape));
    cr_expect(!sb_tape_end(&tape));
}

TEST(tape, the_65th_tape_is_refused)
{
    sb_tape tape[65];
    sb_tensor *a = KEPT(leaf(3));
    for (int i = 0; i < 64; i++)
        sb_tape_begin(&tape[i], SB_RECORD);
    cr_expect(times(a, a) != NULL);
    sb_tape_begin(&tape[64], SB_RECORD);
    EXPECT_ERROR("tape_begin: 64 tapes are open already");
    cr_expect(!times(a, a));
    cr_expect(!sb_tape_end(&tape[64]));
    cr_expect(!sb_tape_end(&tape[63]), "the innermost is marked as failed");
    for (int i = 62; i >= 0; i--)
        cr_expect(sb_tape_end(&tape[i]));
}

CPU_TEST(tape, a_wrong_mode_and_a_null_tape_are_reported)
{
    sb_tape tape;
    sb_tape_begin(&tape, (sb_mode)7);
    EXPECT_ERROR("tape_begin: 7 is not a mode");
    cr_expect(!sb_tape_end(&tape));
    sb_tape_begin(NULL, SB_RECORD);
    EXPECT_ERROR("tape_begin: tape is NULL");
}

CPU_TEST(tape, an_inner_tape_inherits_the_random_stream)
{
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN), other = random;
    sb_tape outer, inner;
    sb_tape_begin(&outer, SB_RECORD);
    cr_expect(tape_open()->random == NULL);
    sb_tape_random(&outer, &random);
    sb_tape_begin(&inner, SB_RECORD);
    cr_expect(tape_open()->random == &random);
    sb_tape_random(&inner, &other);
    cr_expect(tape_open()->random == &other);
    sb_tape_end(&inner);
    cr_expect(tape_open()->random == &random);
    sb_tape_random(&inner, &other);
    EXPECT_ERROR("tape_random: this tape is not open");
    cr_expect(!sb_tape_end(&outer));
}

struct worker {
    pthread_t thread;
    sb_tensor *shared;
    double value;
    bool ok;
};

static void *train(void *worker_)
{
    struct worker *worker = worker_;
    sb_tensor *a = leaf(worker->value);
    worker->ok = true;
    for (int i = 0; i < 200 && worker->ok; i++) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        worker->ok = sb_backward(total(times(times(a, a), worker->shared)));
        worker->ok =
            sb_tape_end(&tape) && worker->ok && every(sb_tensor_grad(a), 14 * worker->value);
        sb_tensor_clear_grad(a);
    }
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_fail("thread %g: it broke", worker->value);
    sb_tape_end(&tape);
    char expected[40];
    snprintf(expected, sizeof expected, "thread %g: it broke", worker->value);
    worker->ok = worker->ok && strcmp(sb_error(), expected) == 0;
    sb_tensor_release(a);
    return NULL;
}

CPU_TEST(tape, each_thread_has_its_own_tape_and_message)
{
    sb_tensor *shared = KEPT(sb_tensor_full(SB_F64, SB_SHAPE(2), 7));
    struct worker worker[4];
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    for (int i = 0; i < 4; i++) {
        worker[i] = (struct worker){.shared = shared, .value = i + 1};
        cr_assert(pthread_create(&worker[i].thread, NULL, train, &worker[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(worker[i].thread, NULL);
        cr_expect(worker[i].ok, "thread %d", i);
    }
    cr_expect(sb_tape_end(&tape), "another thread's failure fails this tape");
    cr_expect(shared->refs == 1);
}

struct visitor {
    pthread_t thread;
    sb_tensor *theirs; /* made on the main thread's open tape */
    uint64_t serial;
    bool wants_grad;
};

static void *visit(void *visitor_)
{
    struct visitor *visitor = visitor_;
    sb_tape tape;
    do { /* the serial numbers of both tapes must differ */
        sb_tape_begin(&tape, SB_RECORD);
        visitor->wants_grad |= tape_wants_grad(tape_open(), visitor->theirs);
        sb_tape_end(&tape);
    } while (tape.serial < visitor->serial);
    return NULL;
}

TEST(tape, a_tensor_of_another_threads_tape_is_a_constant)
{
    sb_tensor *a = KEPT(leaf(3));
    TAPE(SB_RECORD);
    struct visitor visitor = {.theirs = times(a, a), .serial = tape.serial};
    cr_assert(pthread_create(&visitor.thread, NULL, visit, &visitor) == 0);
    pthread_join(visitor.thread, NULL);
    cr_expect(!visitor.wants_grad);
}

/* ---- backward ---- */

TEST(backward, it_gives_the_gradient_of_each_leaf)
{
    sb_tensor *a = KEPT(leaf(3)), *b = KEPT(leaf(5)),
              *c = KEPT(sb_tensor_full(SB_F64, SB_SHAPE(2), 7));
    TAPE(SB_RECORD);
    MUST(sb_backward(total(times(times(a, b), times(a, c)))));
    cr_expect(every(sb_tensor_grad(a), 2 * 3 * 5 * 7) && every(sb_tensor_grad(b), 3 * 3 * 7));
    cr_expect(!sb_tensor_grad(c), "a constant has a gradient");
}

TEST(backward, an_input_used_twice_in_one_operation_gets_both_parts)
{
    sb_tensor *a = KEPT(leaf(3));
    TAPE(SB_RECORD);
    cr_assert(sb_backward(total(times(a, a))));
    cr_expect(every(sb_tensor_grad(a), 6));
}

TEST(backward, gradients_add_up_over_tapes_until_they_are_cleared)
{
    sb_tensor *a = KEPT(leaf(3));
    for (int step = 1; step <= 3; step++) {
        TAPE(SB_RECORD);
        cr_assert(sb_backward(total(times(a, a))));
        cr_expect(every(sb_tensor_grad(a), 6 * step));
    }
    sb_tensor_clear_grad(a);
    cr_expect(!sb_tensor_grad(a));
    TAPE(SB_RECORD);
    cr_assert(sb_backward(total(times(a, a))));
    cr_expect(every(sb_tensor_grad(a), 6));
}

TEST(backward, backward_from_starts_with_the_given_gradient)
{
    sb_tensor *a = KEPT(leaf(3)),
              *dy = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(2), (double[]){2, -1}));
    TAPE(SB_RECORD);
    cr_assert(sb_backward_from(times(a, a), dy));
    cr_expect(sb_tensor_get(sb_tensor_grad(a), 0) == 12 &&
              sb_tensor_get(sb_tensor_grad(a), 1) == -6);
}

/* reshape forwards its gradient, and times then adds to it. */
TEST(backward, backward_from_leaves_the_given_gradient_as_it_was)
{
    sb_tensor *a = KEPT(leaf(3)),
              *dy = sb_tensor_from_doubles(SB_F64, SB_SHAPE(2), (double[]){2, -1});
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *b = times(a, a);
    times(b, b); /* no path to the loss */
    cr_assert(sb_backward_from(sb_reshape(b, SB_SHAPE(2)), dy));
    sb_tape_end(&tape);
    cr_expect(sb_tensor_get(dy, 0) == 2 && sb_tensor_get(dy, 1) == -1 && !sb_tensor_grad(dy));
    cr_expect(sb_tensor_get(sb_tensor_grad(a), 0) == 12 &&
              sb_tensor_get(sb_tensor_grad(a), 1) == -6);
    sb_tensor_release(dy);
    cr_expect(sb_tensor_get(sb_tensor_grad(a), 0) == 12);
}

TEST(backward, backward_of_a_leaf_adds_to_its_gradient)
{
    sb_tensor *a = KEPT(sb_tensor_requires_grad(sb_tensor_scalar(SB_F64, 3))),
              *dy = KEPT(sb_tensor_scalar(SB_F64, 5));
    double expected = 0;
    for (int step = 0; step < 2; step++) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        cr_assert(sb_backward(a));
        cr_expect(sb_tape_end(&tape) && sb_tensor_value(sb_tensor_grad(a)) == (expected += 1));
        sb_tape_begin(&tape, SB_RECORD);
        cr_assert(sb_backward_from(a, dy));
        cr_expect(sb_tape_end(&tape) && sb_tensor_value(sb_tensor_grad(a)) == (expected += 5));
    }
    cr_expect(sb_tensor_value(a) == 3);
}

TEST(backward, a_flat_gradient_is_overwritten_in_place)
{
    sb_tensor *a = KEPT(leaf(3)), *flat = KEPT(sb_tensor_full(SB_F64, SB_SHAPE(4), 9));
    a->grad = tensor_view("test", flat, 2, 1, (int64_t[]){2});
    for (int step = 1; step <= 2; step++) {
        TAPE(SB_RECORD);
        cr_assert(sb_backward(total(times(a, a))));
        cr_expect(sb_tensor_get(flat, 1) == 9 && sb_tensor_get(flat, 2) == 6 &&
                  sb_tensor_get(flat, 3) == 6);
        sb_tensor_clear_grad(a);
        cr_expect(!sb_tensor_grad(a) && a->grad, "a flat gradient becomes stale and stays");
    }
}

/* Writes to a leaf that `times` has read; each is seen, through a view of it too. */
static void write_one(sb_tensor *a)
{
    sb_tensor_set(a, 1, 4);
}

static void write_all(sb_tensor *a)
{
    sb_tensor_write(a, (const double[]){4, 4});
}

static void write_a_view(sb_tensor *a)
{
    sb_tensor_set(sb_reshape(a, SB_SHAPE(2, 1)), 0, 4);
}

TEST(backward, a_leaf_that_was_written_after_forward_is_refused_and_named)
{
    void (*const writes[])(sb_tensor *) = {write_one, write_all, write_a_view};
    for (int i = 0; i < 3; i++) {
        sb_tensor *a = KEPT(leaf(3)), *b = KEPT(leaf(5));
        sb_tape tape;
        sb_tensor_set(a, 0, 3); /* before forward: of no consequence */
        sb_tape_begin(&tape, SB_RECORD);
        sb_tensor *y = total(times(b, a));
        writes[i](a);
        REFUSED("backward: times: its input b (2) was written after forward had read it",
                sb_backward(y));
        cr_expect(!sb_tape_end(&tape) && !sb_tensor_grad(a) && !sb_tensor_grad(b));
        sb_tape_begin(&tape, SB_RECORD);
        cr_expect(sb_backward(total(times(b, a))), "%s", sb_error());
        cr_expect(sb_tape_end(&tape));
    }
}

TEST(backward, a_write_that_no_gradient_depends_on_is_allowed)
{
    sb_tensor *a = KEPT(leaf(3)), *b = KEPT(leaf(5));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = total(times(a, a));
    times(b, b); /* not on the way to y */
    sb_tensor_set(b, 0, 1);
    cr_expect(sb_backward(y), "%s", sb_error());
    cr_expect(sb_tape_end(&tape) && every(sb_tensor_grad(a), 6));
}

TEST(backward, a_leaf_may_be_released_before_backward)
{
    sb_tensor *a = leaf(3), *b = KEPT(leaf(5));
    TAPE(SB_RECORD);
    sb_tensor *y = times(a, b);
    sb_tensor_release(a);
    cr_assert(sb_backward(total(y)));
    cr_expect(every(sb_tensor_grad(b), 3));
}

TEST(backward, it_frees_intermediate_data_and_reading_it_fails)
{
    sb_tensor *a = KEPT(leaf(3));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = times(a, a), *loss = total(y);
    cr_expect(sb_tensor_get(y, 0) == 9);
    cr_assert(sb_backward(loss));
    cr_expect(sb_tensor_value(loss) == 18, "the argument of backward keeps its value");
    cr_expect(!sb_tensor_grad(y) && !sb_tensor_grad(loss));
    cr_expect(isnan(sb_tensor_get(y, 0)));
    EXPECT_ERROR("get: times output (2): freed by backward; call sb_keep() before sb_backward()");
    cr_expect(!sb_tape_end(&tape), "reading it fails the tape");
    sb_tape_begin(&tape, SB_RECORD);
    y = times(a, a);
    cr_assert(sb_backward(total(y)));
    REFUSED("times: times output (2): freed by backward", times(a, y));
    sb_tape_end(&tape);
}

TEST(backward, keep_keeps_value_and_gradient)
{
    sb_tensor *a = leaf(3);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_keep(times(a, a)), *z = sb_keep(times(y, a)), *loss = sb_keep(total(z));
    sb_tensor_retain(y);
    cr_assert(sb_backward(loss));
    cr_expect(every(y, 9) && every(sb_tensor_grad(y), 3));
    cr_expect(every(z, 27) && every(sb_tensor_grad(z), 1));
    cr_expect(sb_tensor_value(sb_tensor_grad(loss)) == 1);
    cr_expect(sb_tape_end(&tape));
    cr_expect(every(y, 9) && every(sb_tensor_grad(y), 3), "a retained tensor outlives its tape");
    sb_tensor_release(y);
    sb_tensor_release(a);
    REFUSED("keep: t is NULL", sb_keep(NULL));
}

/* Without reuse of freed blocks, the bytes in use fall from the loss on: each step of backward
   frees an output and its gradient, and allocates one gradient. */
TEST(backward, memory_peaks_at_the_loss_and_falls_from_there)
{
    enum { DEPTH = 8, SIZE = 1 << 14 };
    const int64_t one = SIZE * sizeof(double), slack = 4096;
    sb_tensor *a = KEPT(sb_tensor_requires_grad(sb_tensor_full(SB_F64, SB_SHAPE(SIZE), 1)));
    int64_t before = memory_in_use().live_bytes;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = a;
    for (int i = 0; i < DEPTH; i++)
        y = pass(y, NO_FAULT);
    sb_tensor *loss = total(y);
    int64_t at_loss = memory_in_use().live_bytes;
    cr_expect(at_loss >= before + DEPTH * one);
    backwards = 0;
    sb_device_reset_peak(sb_device_in_use());
    cr_assert(sb_backward(loss));
    cr_expect(backwards == DEPTH + 1);
    cr_expect(memory_in_use().peak_bytes <= at_loss + 2 * one + slack);
    for (int i = 2; i < backwards; i++)
        cr_expect(live_at[i] <= live_at[i - 1] - one, "step %d: %lld bytes after %lld", i,
                  (long long)live_at[i], (long long)live_at[i - 1]);
    int64_t after = memory_in_use().live_bytes;
    cr_expect(after <= before + one + DEPTH * slack, "only the leaf's gradient is left");
    sb_tape_end(&tape);
    cr_expect(memory_in_use().live_bytes <= before + one + slack);
}

TEST(backward, invalid_calls_are_refused)
{
    sb_tensor *a = KEPT(leaf(3));
    REFUSED_ON_TAPE(SB_RECORD, "backward: loss is NULL", sb_backward(NULL));
    REFUSED_ON_TAPE(SB_RECORD, "backward: the loss is (2), not one number",
                    sb_backward(times(a, a)));
    REFUSED_ON_TAPE(SB_NO_RECORD, "backward: the open tape does not record", sb_backward(total(a)));
    REFUSED_ON_TAPE(SB_RECORD, "backward_from: dy is NULL", sb_backward_from(times(a, a), NULL));
    REFUSED_ON_TAPE(SB_RECORD,
                    on_device("backward_from: y is (2) of f64 on cpu, dy is () of f64 on cpu"),
                    sb_backward_from(times(a, a), sb_tape_own(sb_tensor_scalar(SB_F64, 1))));
    REFUSED_ON_TAPE(
        SB_RECORD, "dy is (2) of f32",
        sb_backward_from(times(a, a), sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2)))));
    TAPE(SB_RECORD);
    sb_tensor *loss = total(a);
    REFUSED_ON_TAPE(SB_RECORD, "backward: the argument, of shape (), was made on another tape",
                    sb_backward(loss));
    cr_expect(!sb_tensor_grad(a));
}

TEST(backward, it_runs_once)
{
    sb_tensor *a = KEPT(leaf(3));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *loss = total(times(a, a));
    cr_assert(sb_backward(loss));
    REFUSED("backward: it ran already on this tape", sb_backward(loss));
    cr_expect(!sb_tape_end(&tape));
    cr_expect(every(sb_tensor_grad(a), 6), "the first gradient stays");
}

TEST(backward, a_failure_leaves_no_partial_gradient)
{
    static const struct {
        enum fault fault;
        const char *message;
    } faults[] = {{RETURNS_FALSE, "pass: backward failed"},
                  {EXPLAINS, "pass: a planned failure"},
                  {FAILS_SILENTLY, "tensor_data: t is NULL"},
                  {LEAVES_A_TAPE_OPEN, "never closed; before that: pass: backward failed"}};
    for (int i = 0; i < 4; i++) {
        sb_tensor *early = KEPT(leaf(3)), *late = KEPT(leaf(5));
        for (int step = 0; step < 2; step++) { /* without an existing gradient, and with one */
            sb_tape tape;
            sb_tape_begin(&tape, SB_RECORD);
            sb_tensor *y = pass(times(early, early), faults[i].fault);
            cr_expect(!sb_backward(total(times(y, late))));
            REFUSED(faults[i].message, sb_tape_end(&tape));
            cr_expect(!sb_tensor_grad(early) && !sb_tensor_grad(late), "fault %d leaves a gradient",
                      i);
            sb_tape_begin(&tape, SB_RECORD);
            cr_assert(sb_backward(total(times(early, late))));
            cr_expect(sb_tape_end(&tape));
            cr_expect(every(sb_tensor_grad(early), 5) && every(sb_tensor_grad(late), 3));
        }
    }
}

static bool step(void *leaves)
{
    sb_tensor **a = leaves;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = times(pass(times(a[0], a[1]), NO_FAULT), a[2]);
    sb_tape_own(sb_tensor_zeros(SB_F64, SB_SHAPE(2)));
    bool ok = sb_backward(total(y));
    ok = sb_tape_end(&tape) && ok;
    cr_expect(ok || (!sb_tensor_grad(a[0]) && !sb_tensor_grad(a[1]) && !sb_tensor_grad(a[2])));
    cr_expect(!ok || (every(sb_tensor_grad(a[0]), 15) && every(sb_tensor_grad(a[2]), 6)));
    for (int i = 0; i < 3; i++)
        sb_tensor_clear_grad(a[i]);
    return ok;
}

TEST(backward, each_allocation_of_a_step_may_fail)
{
    sb_tensor *a[] = {leaf(2), leaf(3), leaf(5)};
    cr_expect(test_each_allocation_fails(step, a) > 20);
    release_all(3, a);
}

static void expect_nonfinite(const char *expected)
{
    char *text = sb_tape_find_nonfinite();
    cr_expect(expected ? text && strcmp(text, expected) == 0 : !text, "found %s", text);
    sb_free(text);
}

TEST(backward, the_first_value_that_is_not_finite_is_found)
{
    sb_tensor *a = KEPT(leaf(1e200)), *b = KEPT(leaf(2)), *bad = KEPT(leaf(2));
    sb_tensor_set(bad, 1, NAN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = times(b, b);
    expect_nonfinite(NULL);
    sb_tensor *huge = times(a, a); /* finite from finite until here */
    times(huge, y);
    expect_nonfinite("times output (2)");
    sb_tape_end(&tape);
    sb_tape_begin(&tape, SB_RECORD);
    times(times(b, bad), y = times(b, b));
    expect_nonfinite("times input b (2)");
    cr_assert(sb_backward(total(times(y, bad))));
    expect_nonfinite(NULL); /* the loss keeps its value, but its inputs are freed */
    sb_tape_end(&tape);
}

TEST(backward, after_the_first_step_no_memory_is_requested_from_the_system)
{
    sb_tensor *a[] = {leaf(2), leaf(3), leaf(5)};
    cr_assert(step(a));
    int64_t calls = memory_in_use().system_calls;
    for (int i = 0; i < 5; i++)
        cr_assert(step(a));
    cr_expect(!POOL_CACHES || memory_in_use().system_calls == calls);
    release_all(3, a);
}

/* Backward of another thread, and what it said. */
struct other {
    sb_tensor *leaf;
    bool ok;
    char message[200];
};

static void *run_other(void *context)
{
    struct other *other = context;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    other->ok = sb_backward(total(times(other->leaf, other->leaf)));
    snprintf(other->message, sizeof other->message, "%s", sb_error());
    sb_tape_end(&tape);
    return NULL;
}

/* y = x; its backward, which adds dy, lets the other thread run meanwhile. */
static struct other *meanwhile;
static bool interrupted_backward(sb_node *node)
{
    pthread_t thread;
    sb_tensor *dx = sb_node_dx(node, 0);
    cr_assert(pthread_create(&thread, NULL, run_other, meanwhile) == 0);
    pthread_join(thread, NULL);
    for (int64_t i = 0; i < sb_tensor_size(dx); i++)
        sb_tensor_set(dx, i, sb_tensor_get(dx, i) + sb_tensor_get(sb_node_dy(node, 0), i));
    return true;
}

static const sb_operation interrupted = {"interrupted", "x", interrupted_backward, false, false};

static sb_tensor *interrupt(sb_tensor *x)
{
    sb_node *node = sb_node_new(&interrupted, 1, &x, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++)
        sb_tensor_set(y, i, sb_tensor_get(x, i));
    return y;
}

static void run_both(sb_tensor *a, struct other *other)
{
    meanwhile = other;
    TAPE(SB_RECORD);
    MUST(sb_backward(total(times(a, interrupt(a)))));
}

CPU_TEST(claims, two_threads_do_not_add_to_one_leaf_at_the_same_time)
{
    sb_tensor *a = KEPT(leaf(3)), *b = KEPT(leaf(5));
    struct other other = {.leaf = a};
    run_both(a, &other);
    cr_expect(!other.ok && strstr(other.message, "backward: another thread computes the gradient "
                                                 "of a leaf (2); run one backward after the other"),
              "%s", other.message);
    cr_expect(every(sb_tensor_grad(a), 6), "the other's gradient is in it");
    other = (struct other){.leaf = b}; /* a leaf of its own */
    run_both(a, &other);
    cr_expect(other.ok && every(sb_tensor_grad(b), 10), "%s", other.message);
    cr_expect(every(sb_tensor_grad(a), 12));
    other.leaf = a; /* and afterwards the same */
    run_other(&other);
    cr_expect(other.ok && every(sb_tensor_grad(a), 18), "%s", other.message);
}

static sb_tensor *square(void *context, sb_tensor *const x[])
{
    sb_tensor *leaf_of_it = *(sb_tensor **)context;
    return times(x[0], leaf_of_it);
}

/* Recomputation runs backward on an inner tape, also for leaves that only the inner one reaches. */
CPU_TEST(claims, an_inner_tape_shares_the_leaves_of_the_outer_one)
{
    sb_tensor *a = leaf(3), *b = leaf(5);
    TAPE(SB_RECORD);
    sb_tensor *y = sb_recompute(square, &a, sizeof a, 1, &a);
    y = sb_recompute(square, &b, sizeof b, 1, &y);
    MUST(sb_backward(total(times(y, a))));
    cr_expect(every(sb_tensor_grad(a), 3 * 9 * 5) && every(sb_tensor_grad(b), 27));
    cr_expect(a->claimed == 0 && b->claimed == 0);
    sb_tensor_release(a);
    sb_tensor_release(b);
}
