#include "tests/support/errors.h"
#include "tests/support/test.h"

sb_tensor *zeros(sb_dtype dtype, int rank, const int64_t *dim)
{
    return sb_tape_own(sb_tensor_zeros(dtype, rank, dim));
}

sb_tensor *ids(int rank, const int64_t *dim, const int32_t *values)
{
    return sb_tape_own(sb_tensor_from(SB_I32, rank, dim, values));
}

static void open_arguments(struct errors *f)
{
    f->x = test_leaf(SB_F32, 1, SB_SHAPE(2, 3));
    f->y = test_leaf(SB_F32, 2, SB_SHAPE(3, 4));
    f->v3 = test_leaf(SB_F32, 3, SB_SHAPE(3));
    f->v4 = test_leaf(SB_F32, 4, SB_SHAPE(4));
    f->d = test_leaf(SB_F64, 5, SB_SHAPE(2, 3));
    f->s = KEPT(sb_tensor_scalar(SB_F32, 1.5));
    f->e = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3)));
    f->e0 = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(2, 0)));
    f->i2 = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(2), (int32_t[]){1, 2}));
    f->i9 = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(2), (int32_t[]){1, 9}));
    f->in = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(2), (int32_t[]){-1, -1}));
    f->i22 = KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(2, 2)));
    f->b = KEPT(sb_tensor_full(SB_BOOL, SB_SHAPE(2, 3), 1));
    f->q = test_leaf(SB_F32, 6, SB_SHAPE(2, 5, 4, 6));
    f->k = test_leaf(SB_F32, 7, SB_SHAPE(2, 7, 4, 6));
    f->k3 = test_leaf(SB_F32, 8, SB_SHAPE(2, 7, 3, 6));
    f->kd = test_leaf(SB_F32, 9, SB_SHAPE(2, 7, 4, 5));
    f->kb = test_leaf(SB_F32, 10, SB_SHAPE(3, 7, 4, 6));
    f->kl = test_leaf(SB_F32, 11, SB_SHAPE(2, 8, 4, 6));
    f->len = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(2), (int32_t[]){5, 7}));
    f->len9 = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(2), (int32_t[]){5, 9}));
    f->set = KEPT(sb_parameters_new(1));
    sb_parameters_add(f->set, "w", SB_SHAPE(2, 2), (sb_initial){SB_INITIAL_XAVIER, 0});
}

void errors_open(struct errors *f, const char *file)
{
    const char *mode = getenv("SOFTBACK_GOLDEN");
    char path[64];
    *f = (struct errors){.file = file, .writes = mode && strcmp(mode, "write") == 0};
    snprintf(path, sizeof path, "golden/%s.txt", file);
    f->golden = fopen(test_path(path), f->writes ? "w" : "r");
    cr_assert(f->golden != NULL, "no %s", path);
    open_arguments(f);
}

void errors_close(struct errors *f)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(sb_backward(sb_sum(sb_matmul(f->x, f->y), SB_ALL, false)), "%s", sb_error());
    sb_tape_end(&tape);
    cr_expect(sb_parameters_count(f->set) == 1, "a call that fails has added a parameter");
    cr_expect(f->writes || fgetc(f->golden) == EOF);
    fclose(f->golden);
}

/* A result of this tape whose data backward has freed. */
static sb_tensor *make_freed(struct errors *f)
{
    sb_tensor *freed = sb_tanh(f->x);
    MUST(sb_backward(sb_sum(freed, SB_ALL, false)));
    sb_tensor_clear_grad(f->x);
    return freed;
}

bool errors_begin(struct errors *f, const char *text, enum errors_tape on)
{
    f->text = text;
    f->on = on;
    f->live = live_blocks();
    if (on != NO_TAPE)
        sb_tape_begin(&f->tape, SB_RECORD);
    f->freed = on == AFTER_BACKWARD ? make_freed(f) : NULL;
    return true;
}

static void compare(struct errors *f, const char *got)
{
    char expected[4096];
    const size_t n = strlen(got);
    cr_assert(fread(expected, 1, n, f->golden) == n, "golden/%s.txt ends before %s", f->file,
              f->text);
    expected[n] = '\0';
    cr_assert(strcmp(expected, got) == 0, "expected:\n%s\ngot:\n%s", expected, got);
}

void errors_check(struct errors *f, bool succeeded)
{
    char got[4096];
    if (f->on != NO_TAPE)
        sb_tape_end(&f->tape);
    cr_expect(!succeeded, "%s does not fail", f->text);
    cr_expect(live_blocks() == f->live, "%s leaks", f->text);
    snprintf(got, sizeof got, "%s\n    %s\n", f->text, sb_error());
    if (f->writes)
        fputs(got, f->golden);
    else
        compare(f, got);
}
