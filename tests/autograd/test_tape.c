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
    cr_expect(!sb_tensor_zeros((sb_dtype)99, SB_SCALAR));
    EXPECT_ERROR("first: it broke");
    cr_expect(sb_tensor_get(y, 0) == 9, "what was made before is still usable");
    cr_expect(!sb_tape_end(&tape));
    EXPECT_ERROR("first: it broke");
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(sb_backward(total(times(a, a))), "the next tape has not failed");
    cr_expect(sb_tape_end(&tape));
}

CPU_TEST(tape, a_failed_constructor_fails_the_tape)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(!sb_tensor_zeros(SB_F32, SB_SHAPE(2, -3)));
    cr_expect(!sb_tape_end(&tape));
    EXPECT_ERROR("tensor: dimension 1 of (2, -3) is negative");
}

TEST(tape, the_message_for_a_null_argument_has_its_cause)
{
    sb_tensor *missing = sb_tensor_zeros(SB_F32, 7, NULL), *a = KEPT(leaf(3));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(!times(a, missing));
    EXPECT_ERROR("times: b is NULL, because tensor: rank 7 is not in 0..6");
    cr_expect(!sb_tape_end(&tape));
    sb_tape_begin(&tape, SB_RECORD); /* the failure before this tape does not matter */
    cr_expect(!times(a, NULL));
    cr_expect(strcmp(sb_error(), "times: b is NULL") == 0, "%s", sb_error());
    sb_tape_end(&tape);
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
        cr_expect(!sb_tape_end_keep(&inner, missing ? NULL : y));
        EXPECT_ERROR(missing ? "tape_end_keep: y is NULL" : "mask: it broke");
        cr_expect(!times(a, a), "NULL for a failed result was accepted as an omitted argument");
        cr_expect(!sb_tape_end(&outer));
        EXPECT_ERROR(missing ? "tape_end_keep: y is NULL" : "mask: it broke");
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
    cr_expect(!sb_tape_end(&outer));
    EXPECT_ERROR("tape_end: 1 tape opened inside this one was never closed");
    cr_expect(tape_open() == NULL);
    cr_expect(!sb_tape_end(&inner));
    EXPECT_ERROR("tape_end: this tape is not open");
    sb_tape_begin(&outer, SB_RECORD);
    sb_tape_begin(&inner, SB_RECORD);
    sb_tape_begin(&innermost, SB_RECORD);
    sb_fail("deep: it broke");
    cr_expect(!sb_tape_end(&outer));
    EXPECT_ERROR("2 tapes opened inside this one were never closed; before that: deep: it broke");
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
    cr_expect(!sb_tape_end(&outer));
    EXPECT_ERROR("never closed");
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
