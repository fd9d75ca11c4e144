#include "tests/support/examples.h"
#include "autograd/node.h"
#include <stdio.h>

void for_each_example(example_check *check)
{
    int examples = 0;
    for (int i = 0; operation_at(i); i++)
        for (int k = 0; k < operation_at(i)->count; k++) {
            const struct example *e = &operation_at(i)->examples[k];
            for (int s = 0; s < EXAMPLE_SHAPES && e->shapes[s]; s++, examples++)
                check(e, e->shapes[s]);
        }
    cr_expect(examples > 0, "there are no examples");
}

void for_each_example_once(example_check *check)
{
    for (int i = 0; operation_at(i); i++)
        for (int k = 0; k < operation_at(i)->count; k++)
            check(&operation_at(i)->examples[k], operation_at(i)->examples[k].shapes[0]);
}

/* The digit that stands only for the length of a row in an operation's examples. */
static const struct long_row {
    const char *operation;
    char digit;
} long_rows[] = {{"attention", '5'},  {"cross_entropy", '5'}, {"l2_normalize", '5'},
                 {"layer_norm", '5'}, {"log_softmax", '5'},   {"logsumexp", '5'},
                 {"reduce", '5'},     {"rms_norm", '5'},      {"softmax", '7'}};

/* Replaces each size of this one digit by a length of four digits or fewer. Returns whether there
   is one. */
static bool lengthen(const char *shapes, char digit, int length, char *text)
{
    bool found = false;
    while (*shapes) {
        const size_t digits = strspn(shapes, "0123456789"), n = digits ? digits : 1;
        const bool row = digits == 1 && *shapes == digit;
        text += row ? sprintf(text, "%d", length) : sprintf(text, "%.*s", (int)n, shapes);
        found |= row;
        shapes += n;
    }
    return found;
}

static int long_examples(const struct operation *operation, char digit, int length,
                         example_check *check)
{
    int count = 0;
    for (int k = 0; k < operation->count; k++)
        for (int s = 0; s < EXAMPLE_SHAPES && operation->examples[k].shapes[s]; s++) {
            char shapes[256];
            if (!lengthen(operation->examples[k].shapes[s], digit, length, shapes))
                continue;
            check(&operation->examples[k], shapes);
            count++;
        }
    return count;
}

void for_each_long_example(int length, example_check *check)
{
    const bool square = length <= 1030; /* attention has a number for each pair */
    for (size_t r = square ? 0 : 1; r < sizeof long_rows / sizeof *long_rows; r++) {
        int examples = 0;
        for (int i = 0; operation_at(i); i++)
            if (strcmp(operation_at(i)->name, long_rows[r].operation) == 0)
                examples = long_examples(operation_at(i), long_rows[r].digit, length, check);
        cr_expect(examples > 0, "%s has no examples of rows", long_rows[r].operation);
    }
}

struct inputs inputs_new(const char *shapes, sb_dtype dtype, uint64_t seed)
{
    struct inputs in = {0};
    in.n = example_inputs(shapes, dtype, seed, in.x);
    cr_assert(in.n > 0, "%s: %s", shapes, sb_error());
    for (int i = 0; i < in.n; i++)
        KEPT(in.x[i]);
    return in;
}

struct inputs inputs_widened(const struct inputs *from)
{
    struct inputs in = {.n = from->n};
    for (int i = 0; i < in.n; i++) {
        const sb_tensor *x = from->x[i];
        sb_dtype dtype = sb_dtype_is_real(x->dtype) ? SB_F64 : x->dtype;
        in.x[i] = KEPT(sb_tensor_from_doubles(dtype, x->rank, x->dim, numbers_of(x)));
        if (x->requires_grad)
            sb_tensor_requires_grad(in.x[i]);
    }
    return in;
}

static void results_add(struct results *o, const sb_tensor *t)
{
    int64_t n = t ? tensor_size(t) : 0;
    o->size[o->parts] = n;
    o->value[o->parts] = KEPT(malloc((size_t)(n + 1) * sizeof(double)));
    o->ok = (!t || sb_tensor_read(t, o->value[o->parts])) && o->ok;
    o->parts++;
}

sb_random example_stream;

void example_begin(sb_tape *tape, sb_mode mode)
{
    sb_tape_begin(tape, mode);
    example_stream = sb_random_new(11, SB_STREAM_TRAIN);
    sb_tape_random(tape, &example_stream);
}

/* 3/8, 4/8, ... 12/8, 3/8, ... */
static sb_tensor *gradient_for(const sb_tensor *y)
{
    const int64_t n = tensor_size(y);
    double *numbers = KEPT(malloc((size_t)(n + 1) * sizeof *numbers));
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (3 + (double)(i % 10)) / 8;
    return owned(y->dtype, y->rank, y->dim, numbers);
}

struct results example_run(const struct example *e, const struct inputs *in, sb_mode mode)
{
    struct results o = {0};
    sb_tape tape;
    example_begin(&tape, mode);
    sb_tensor *y = e->run(NULL, in->x);
    o.ok = y != NULL;
    o.real = y && sb_dtype_is_real(y->dtype);
    if (y && y->requires_grad) {
        sb_tensor *dy = gradient_for(y);
        o.ok = dy && sb_backward_from(y, dy);
    }
    if (o.ok)
        results_add(&o, y);
    for (int i = 0; i < in->n; i++) {
        if (o.ok)
            results_add(&o, sb_tensor_grad(in->x[i]));
        sb_tensor_clear_grad(in->x[i]);
    }
    o.ok = sb_tape_end(&tape) && o.ok;
    return o;
}

struct results example_must_run(const struct example *e, const char *shapes,
                                const struct inputs *in)
{
    struct results o = example_run(e, in, SB_RECORD);
    cr_assert(o.ok, "%s %s: %s", e->name, shapes, sb_error());
    return o;
}

static bool wants_gradient(const struct example *e, const struct inputs *in)
{
    sb_tape tape;
    example_begin(&tape, SB_RECORD);
    const sb_tensor *y = e->run(NULL, in->x);
    bool wants = y && y->requires_grad;
    cr_expect(sb_tape_end(&tape), "%s: %s", e->name, sb_error());
    return wants;
}

static sb_tensor *apply(void *example, sb_tensor *const x[])
{
    return ((const struct example *)example)->run(NULL, x);
}

void example_expect_gradients(const struct example *e, const char *shapes, const struct inputs *in)
{
    sb_gradcheck_options options = {.random = &example_stream};
    example_stream = sb_random_new(11, SB_STREAM_TRAIN);
    for (int m = SB_GRADCHECK_AUTOMATIC; m <= SB_GRADCHECK_DIFFERENCES; m += 2) {
        options.method = (sb_gradcheck_method)m;
        cr_expect(sb_gradcheck(apply, (void *)(uintptr_t)e, in->x, in->n, &options, NULL),
                  "%s %s: %s", e->name, shapes, sb_error());
    }
}

void example_gradients_agree(const struct example *e, const char *shapes)
{
    for (uint64_t seed = 1; seed <= (test_long() ? 5 : 1); seed++) {
        struct inputs in = inputs_new(shapes, SB_F64, seed);
        if (wants_gradient(e, &in))
            example_expect_gradients(e, shapes, &in);
    }
}

bool results_same_bits(const struct results *a, const struct results *b)
{
    for (int i = 0; i < a->parts; i++)
        if (a->size[i] != b->size[i] ||
            memcmp(a->value[i], b->value[i], (size_t)a->size[i] * sizeof(double)) != 0)
            return false;
    return a->parts == b->parts;
}

static double largest(int64_t n, const double *a)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(a[i]));
    return most;
}

double results_relative(const struct results *a, const struct results *b)
{
    double worst = 0;
    for (int i = 0; i < b->parts; i++) {
        if (a->size[i] != b->size[i])
            return INFINITY;
        double scale = largest(b->size[i], b->value[i]);
        double relative = test_relative_arrays(b->size[i], a->value[i], b->value[i]);
        worst = fmax(worst, scale < 1 ? relative * scale : relative);
    }
    return worst;
}
