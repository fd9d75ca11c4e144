/*
 * Some three hundred calls that a caller may get wrong, and the sentence that each one gets.
 *
 * The sentences stand in golden/errors.txt, to be read as a caller would. Each call runs on a tape
 * of its own, with arguments that are shared by all: so a call that damaged one would break those
 * that follow.  SOFTBACK_GOLDEN=write writes the file anew.
 */
#include "tests/support/errors.h"
#include "tests/support/test.h"
#include <stdio.h>

static struct errors_fixture fixture_new(void)
{
    struct errors_fixture f = {0};
    f.x = test_leaf(SB_F32, 1, SB_SHAPE(2, 3));
    f.y = test_leaf(SB_F32, 2, SB_SHAPE(3, 4));
    f.v3 = test_leaf(SB_F32, 3, SB_SHAPE(3));
    f.v4 = test_leaf(SB_F32, 4, SB_SHAPE(4));
    f.d = test_leaf(SB_F64, 5, SB_SHAPE(2, 3));
    f.s = sb_scalar(SB_F32, 1.5);
    f.e = sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3));
    f.e0 = sb_tensor_zeros(SB_F32, SB_SHAPE(2, 0));
    f.i2 = sb_tensor_from(SB_I32, SB_SHAPE(2), (int32_t[]){1, 2});
    f.i9 = sb_tensor_from(SB_I32, SB_SHAPE(2), (int32_t[]){1, 9});
    f.in = sb_tensor_from(SB_I32, SB_SHAPE(2), (int32_t[]){-1, -1});
    f.i22 = sb_tensor_zeros(SB_I32, SB_SHAPE(2, 2));
    f.b = sb_tensor_full(SB_BOOL, SB_SHAPE(2, 3), 1);
    f.q = test_leaf(SB_F32, 6, SB_SHAPE(2, 5, 4, 6));
    f.k = test_leaf(SB_F32, 7, SB_SHAPE(2, 7, 4, 6));
    f.k3 = test_leaf(SB_F32, 8, SB_SHAPE(2, 7, 3, 6));
    f.kd = test_leaf(SB_F32, 9, SB_SHAPE(2, 7, 4, 5));
    f.kb = test_leaf(SB_F32, 10, SB_SHAPE(3, 7, 4, 6));
    f.kl = test_leaf(SB_F32, 11, SB_SHAPE(2, 8, 4, 6));
    f.len = sb_tensor_from(SB_I32, SB_SHAPE(2), (int32_t[]){5, 7});
    f.len9 = sb_tensor_from(SB_I32, SB_SHAPE(2), (int32_t[]){5, 9});
    f.set = sb_parameters_new(1);
    sb_parameters_add(f.set, "w", SB_SHAPE(2, 2), (sb_initial){SB_INITIAL_XAVIER, 0});
    return f;
}

static void fixture_free(struct errors_fixture *f)
{
    sb_tensor *all[] = {f->x,  f->y,  f->v3, f->v4, f->d,   f->s,   f->e,
                        f->e0, f->i2, f->i9, f->in, f->i22, f->b,   f->q,
                        f->k,  f->k3, f->kd, f->kb, f->kl,  f->len, f->len9};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sb_tensor_release(all[i]);
    sb_parameters_free(f->set);
}

/* A result of this tape whose data backward has let go. */
static sb_tensor *make_gone(struct errors_fixture *f)
{
    sb_tensor *gone = sb_tanh(f->x);
    cr_assert(sb_backward(sb_sum(gone, SB_ALL, false)), "%s", sb_error());
    sb_clear_grad(f->x);
    return gone;
}

/* Makes a call that must fail; false if it does not. */
static bool fails(struct errors_fixture *f, int number, const struct bad_call *call)
{
    struct bad_call same;
    sb_tape tape;
    if (call->on_tape) {
        sb_tape_begin(&tape, SB_RECORD);
        f->gone = call->wants_gone ? make_gone(f) : NULL;
    }
    bool refused = !bad_call(f, number, true, &same);
    if (call->on_tape)
        sb_tape_end(&tape);
    return refused;
}

CPU_CLAIM(errors, each_bad_call_gets_its_sentence)
{
    struct errors_fixture f = fixture_new();
    const char *mode = getenv("SOFTBACK_GOLDEN");
    bool writes = mode && strcmp(mode, "write") == 0;
    FILE *golden = fopen(test_path("golden/errors.txt"), writes ? "w" : "r");
    cr_assert(golden != NULL);
    char expected[4096], got[4096];
    struct bad_call call;
    int count = 0;
    for (bad_call(&f, 0, false, &call); call.text; bad_call(&f, ++count, false, &call)) {
        int64_t live = live_blocks();
        cr_expect(fails(&f, count, &call), "%s does not fail", call.text);
        cr_expect(live_blocks() == live, "%s leaks", call.text);
        snprintf(got, sizeof got, "%s\n    %s\n", call.text, sb_error());
        if (writes) {
            fputs(got, golden);
            continue;
        }
        size_t n = strlen(got);
        cr_assert(fread(expected, 1, n, golden) == n, "golden/errors.txt ends before %s",
                  call.text);
        expected[n] = '\0';
        cr_assert(strcmp(expected, got) == 0, "expected:\n%s\ngot:\n%s", expected, got);
    }
    cr_expect(writes || fgetc(golden) == EOF);
    fclose(golden);
    cr_expect(count >= 300, "only %d bad calls", count);
    sb_tape tape; /* the arguments are still good */
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(sb_backward(sb_sum(sb_matmul(f.x, f.y), SB_ALL, false)), "%s", sb_error());
    sb_tape_end(&tape);
    fixture_free(&f);
}
