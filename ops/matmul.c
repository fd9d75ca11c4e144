#include "ops/matmul.h"
#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "ops/runs.h"

KERNEL_ROWS(matmul);

struct kind {
    bool transpose_a, transpose_b;
};

/*
 * Merges the products along a batch axis of size n into one larger product where strides allow it:
 * when all share one b and the rows of a and of c are stacked, or when products a' b are summed,
 * which gives a longer inner axis. The strides rule out an axis in between.
 */
static bool matmul_fold(struct matmul_shape *s, int64_t n, int64_t a, int64_t b, int64_t c)
{
    bool stacked = !s->transpose_a && b == 0 && a == s->m * s->k && c == s->m * s->n;
    bool summed = s->transpose_a && c == 0 && a == s->k * s->m && b == s->k * s->n;
    if (!stacked && !summed)
        return false;
    *(stacked ? &s->m : &s->k) *= n;
    return true;
}

static void matmul_insert_axis(struct matmul_shape *s, int64_t n, int64_t a, int64_t b, int64_t c)
{
    int at = c != 0 ? 0 : s->kept;
    for (int i = s->axes; i > at; i--) {
        s->dim[i] = s->dim[i - 1];
        s->a[i] = s->a[i - 1];
        s->b[i] = s->b[i - 1];
        s->c[i] = s->c[i - 1];
    }
    s->dim[at] = n;
    s->a[at] = a;
    s->b[at] = b;
    s->c[at] = c;
    s->axes++;
    s->kept += c != 0;
}

/* The shape of c = op(a) op(b), with the batch axes `dim` that all three broadcast to. */
static struct matmul_shape matmul_plan(struct kind kind, const sb_tensor *a, const sb_tensor *b,
                                       const sb_tensor *c, int axes, const int64_t *dim)
{
    const int64_t *size_a = a->dim + a->rank - 2, *size_c = c->dim + c->rank - 2;
    struct matmul_shape s = {.transpose_a = kind.transpose_a,
                             .transpose_b = kind.transpose_b,
                             .tf32 = tape_open()->tf32,
                             .m = size_c[0],
                             .n = size_c[1],
                             .k = size_a[kind.transpose_a ? 0 : 1]};
    int64_t step_a[MATMUL_AXES], step_b[MATMUL_AXES], step_c[MATMUL_AXES];
    const int64_t m = s.m, n = s.n, k = s.k;
    shape_strides(a->rank - 2, a->dim, axes, dim, step_a);
    shape_strides(b->rank - 2, b->dim, axes, dim, step_b);
    shape_strides(c->rank - 2, c->dim, axes, dim, step_c);
    for (int i = axes - 1; i >= 0; i--) {
        int64_t to_a = step_a[i] * m * k, to_b = step_b[i] * k * n, to_c = step_c[i] * m * n;
        if (dim[i] != 1 && !matmul_fold(&s, dim[i], to_a, to_b, to_c))
            matmul_insert_axis(&s, dim[i], to_a, to_b, to_c);
    }
    return s;
}

static bool matmul_product(struct kind kind, const sb_tensor *a, const sb_tensor *b, int axes,
                           const int64_t *dim, bool by_row, bool fresh, sb_tensor *c)
{
    const struct matmul_kernels *k = kernel_row(&matmul_rows, c);
    if (tensor_size(a) == 0 || tensor_size(b) == 0 || shape_size(axes, dim) == 0)
        return !fresh || tensor_zero(c); /* an empty sum */
    struct matmul_shape shape = matmul_plan(kind, a, b, c, axes, dim);
    return k && (k->product(&shape, a->data, b->data, by_row, fresh, c->data) ||
                 sb_fail("matmul: out of memory"));
}

/*
 * matmul:    y = a b     da = dy b'    db = a' dy
 * matmul_nt: y = a b'    da = dy b     db = dy' a
 * matmul_tn: y = a' b    da = b dy'    db = a dy
 */
static bool matmul_backward(sb_node *node)
{
    const struct kind kind = *(const struct kind *)sb_node_options(node);
    const sb_tensor *a = node->in[0], *b = node->in[1], *dy = sb_node_dy(node, 0);
    sb_tensor *da = sb_node_dx(node, 0), *db = sb_node_dx(node, 1);
    const struct kind nn = {false, false}, nt = {false, true}, tn = {true, false};
    const bool fresh_a = sb_node_fresh(node, 0), fresh_b = sb_node_fresh(node, 1);
    const int axes = dy->rank - 2;
    if (kind.transpose_a)
        return (!da || matmul_product(nt, b, dy, axes, dy->dim, false, fresh_a, da)) &&
               (!db || matmul_product(nn, a, dy, axes, dy->dim, false, fresh_b, db));
    if (kind.transpose_b)
        return (!da || matmul_product(nn, dy, b, axes, dy->dim, false, fresh_a, da)) &&
               (!db || matmul_product(tn, dy, a, axes, dy->dim, false, fresh_b, db));
    return (!da || matmul_product(nt, dy, b, axes, dy->dim, false, fresh_a, da)) &&
           (!db || matmul_product(tn, a, dy, axes, dy->dim, false, fresh_b, db));
}

static const sb_operation matmul = {"matmul", "a b", matmul_backward, true, true};
static const sb_operation matmul_nt = {"matmul_nt", "a b", matmul_backward, true, true};
static const sb_operation matmul_tn = {"matmul_tn", "a b", matmul_backward, true, true};

/* Finds the shape of y; fails when a and b do not fit. */
static bool matmul_find_shape(const char *op, struct kind kind, const sb_tensor *a,
                              const sb_tensor *b, int *rank, int64_t *dim)
{
    if (a->rank < 2 || b->rank < 2)
        return sb_fail("%s: a is %s, b is %s: each needs at least two axes", op,
                       tensor_shape(a).text, tensor_shape(b).text);
    const int64_t *size_a = a->dim + a->rank - 2, *size_b = b->dim + b->rank - 2;
    int64_t inner_a = size_a[kind.transpose_a ? 0 : 1], inner_b = size_b[kind.transpose_b ? 1 : 0];
    if (inner_a != inner_b)
        return sb_fail("%s: a is %s, b is %s: inner sizes %lld and %lld differ", op,
                       tensor_shape(a).text, tensor_shape(b).text, (long long)inner_a,
                       (long long)inner_b);
    if (!shape_broadcast(a->rank - 2, a->dim, b->rank - 2, b->dim, rank, dim))
        return sb_fail("%s: a is %s, b is %s: batch axes do not broadcast", op,
                       tensor_shape(a).text, tensor_shape(b).text);
    dim[(*rank)++] = size_a[kind.transpose_a ? 1 : 0];
    dim[(*rank)++] = size_b[kind.transpose_b ? 0 : 1];
    return true;
}

static sb_tensor *run(const sb_operation *operation, struct kind kind, sb_tensor *a, sb_tensor *b)
{
    int rank;
    int64_t dim[SB_MAX_RANK];
    sb_node *node =
        call_begin(operation, &matmul_rows, 2, (sb_tensor *[]){a, b}, 1, &kind, sizeof kind);
    if (!node || !check_real(operation->name, "a", a) || !check_real(operation->name, "b", b) ||
        !matmul_find_shape(operation->name, kind, a, b, &rank, dim))
        return NULL;
    a = node->in[0];
    b = node->in[1];
    sb_tensor *y = sb_node_output(node, a->dtype, rank, dim);
    return call_end(
        node, y && matmul_product(kind, a, b, rank - 2, dim, context_by_row(y->device), true, y));
}

sb_tensor *sb_matmul(sb_tensor *a, sb_tensor *b)
{
    return run(&matmul, (struct kind){false, false}, a, b);
}

sb_tensor *sb_matmul_nt(sb_tensor *a, sb_tensor *b)
{
    return run(&matmul_nt, (struct kind){false, true}, a, b);
}

sb_tensor *sb_matmul_tn(sb_tensor *a, sb_tensor *b)
{
    return run(&matmul_tn, (struct kind){true, false}, a, b);
}

EXAMPLE(example_matmul, sb_matmul(x[0], x[1]))
EXAMPLE(example_matmul_nt, sb_matmul_nt(x[0], x[1]))
EXAMPLE(example_matmul_tn, sb_matmul_tn(x[0], x[1]))

OPERATION(matmul,
          {"matmul",
           example_matmul,
           {"1x1 1x1", "2x7 7x1", "=3x2 2x5", "3x2 =2x5", "2x3x4 4x5", "3x4 2x4x5", "2x1x2x3 4x3x2",
            "1x3x2x3 2x1x3x4", "3x65 65x2", "1x2 2x63", "2x0 0x3", "0x2x3 3x2"}},
          {"matmul_nt",
           example_matmul_nt,
           {"1x1 1x1", "2x7 1x7", "2x3x4 5x4", "3x4 2x5x4", "2x1x2x3 4x2x3", "2x64 3x64"}},
          {"matmul_tn",
           example_matmul_tn,
           {"1x1 1x1", "7x2 7x1", "2x4x3 4x5", "4x3 2x4x5", "2x1x3x2 4x3x2", "64x2 64x3",
            "0x3x2 3x2"}});
