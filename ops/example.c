#include "ops/example.h"
#include "tensor/random.h"
#include "tensor/shape.h"

#define DECLARE(op) extern const struct operation op##_operation;
#define POINTER(op) &op##_operation,
OPERATIONS(DECLARE)

const struct operation *operation_at(int i)
{
    static const struct operation *const all[] = {OPERATIONS(POINTER) NULL};
    int count = (int)(sizeof all / sizeof all[0]) - 1;
    return i >= 0 && i < count ? all[i] : NULL;
}

const struct example *example_at(int i)
{
    const struct operation *operation;
    for (int o = 0; (operation = operation_at(o)); o++) {
        if (i < operation->count)
            return &operation->examples[i];
        i -= operation->count;
    }
    return NULL;
}

struct description {
    sb_dtype dtype;
    char kind; /* ' ', '+', 'i', 'b', 'c' */
    bool constant;
    int64_t limit;
    int rank;
    int64_t dim[SB_MAX_RANK];
};

/* The digits at *at, which moves behind them. Not strtol: the live page's module has no part of
   libc that multiplies numbers of 128 bits. */
static int64_t example_number(const char **at)
{
    int64_t number = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        number = 10 * number + (**at - '0');
    return number;
}

/* Reads one tensor's description and returns where the next one begins. */
static const char *example_read_description(const char *at, sb_dtype real, struct description *d)
{
    *d = (struct description){.dtype = real, .kind = ' '};
    for (;; at++) {
        if (*at == '=')
            d->constant = true;
        else if (*at == '+')
            d->kind = '+';
        else
            break;
    }
    if (*at == 'i' || *at == 'b' || *at == 'c') {
        d->kind = *at;
        d->dtype = *at == 'i' ? SB_I32 : *at == 'b' ? SB_BOOL : real;
        at++;
        d->limit = example_number(&at);
        at++; /* past the colon */
    }
    if (*at == '.')
        at++;
    for (; *at >= '0' && *at <= '9'; at += *at == 'x')
        d->dim[d->rank++] = example_number(&at);
    while (*at == ' ')
        at++;
    return at;
}

static double example_value(const struct description *d, sb_random *random)
{
    double u = sb_random_uniform(random);
    switch (d->kind) {
    case '+':
        return 0.5 + 2 * u;
    case 'i':
        return (double)(int64_t)(u * (double)d->limit);
    case 'b':
        return u < 0.75;
    case 'c':
        return (double)d->limit;
    default:
        return 4 * u - 2;
    }
}

static sb_tensor *example_make(const struct description *d, sb_random *random)
{
    sb_tensor *t = sb_tensor_zeros(d->dtype, d->rank, d->dim);
    for (int64_t i = 0, n = sb_tensor_size(t); i < n; i++)
        sb_tensor_set(t, i, example_value(d, random));
    if (t && !d->constant && sb_dtype_is_real(d->dtype))
        sb_tensor_requires_grad(t);
    return t;
}

int example_inputs(const char *shapes, sb_dtype dtype, uint64_t seed, sb_tensor *x[EXAMPLE_INPUTS])
{
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    int n = 0;
    for (const char *at = shapes; *at && n < EXAMPLE_INPUTS; n++) {
        struct description d;
        at = example_read_description(at, dtype, &d);
        x[n] = example_make(&d, &random);
        if (!x[n]) {
            while (n > 0)
                sb_tensor_release(x[--n]);
            return -1;
        }
    }
    return n;
}
