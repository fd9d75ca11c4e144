/* Whether project_backward is right alone, and in attention, where three of them read one h. */
#include "lesson.h"
#include <math.h>
#include <string.h>

enum { L = 4, C = 3 };
static const sb_operation project_operation = {
    .name = "project", .inputs = "x w", .backward = project_backward};

static sb_tensor *project(sb_tensor *x, sb_tensor *w)
{
    sb_tensor *in[] = {x, w};
    sb_node *node = sb_node_new(&project_operation, 2, in, 1, NULL, 0);
    if (!node)
        return NULL;
    const int64_t R = sb_tensor_dim(x, 0), I = sb_tensor_dim(w, 0), O = sb_tensor_dim(w, 1);
    sb_tensor *y = sb_node_output(node, SB_F64, 2, (const int64_t[]){R, O});
    const double *a = sb_tensor_data(x), *b = sb_tensor_data(w);
    double *to = y ? sb_tensor_data(y) : NULL;
    for (int64_t k = 0; to && k < R * O; k++) {
        to[k] = 0;
        for (int64_t i = 0; i < I; i++)
            to[k] += a[k / O * I + i] * b[i * O + k % O];
    }
    return y;
}

/* x: a tensor, a weight */
static sb_tensor *once(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return project(x[0], x[1]);
}

enum { Q = 1, K = 2, V = 4 };

/* x: h and the weights of Q, K and V; h is detached from those not in *paths. */
static sb_tensor *attention(void *paths, sb_tensor *const x[])
{
    const int open = *(const int *)paths;
    sb_tensor *part[3];
    for (int i = 0; i < 3; i++)
        part[i] = project(open >> i & 1 ? x[0] : sb_detach(x[0]), x[i + 1]);
    return sb_attention(part[0], part[1], part[2], NULL);
}

static sb_tensor *random_tensor(sb_random *random, int64_t rows, int64_t columns)
{
    double values[64];
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = sb_random_normal(random);
    return sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(rows, columns), values));
}

static bool check(sb_function f, void *context, sb_tensor *const x[], int n, const char *what)
{
    sb_gradcheck_result result;
    bool ok = sb_gradcheck(f, context, x, n, NULL, &result);
    if (holds(ok, "the gradient check of %s: error %.1e", what, result.error))
        return true;
    say("         %s", sb_error());
    if (strstr(result.mistake, "assign") || strstr(result.mistake, "overwr"))
        hint("dx may already hold gradients of other operations: += and not =");
    else if (result.input < 0)
        hint("does project_backward return true?");
    else if (result.backward == 0)
        hint("nothing arrives in input %d: does x (0) or w (1) get no gradient?", result.input);
    else if (result.input == 0)
        hint("dx = dy w': dx[r, i] is the sum over o of dy[r, o] w[i, o]");
    else
        hint("dw = x' dy: dw[i, o] is the sum over r of x[r, i] dy[r, o]");
    return false;
}

/* h's gradient when only some paths lead to it; the loss is the sum of the squares of y. */
static bool gradient_by(int paths, sb_tensor *const x[], double *dh)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = attention(&paths, x);
    bool ok = sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false));
    ok = sb_tape_end(&tape) && ok && sb_tensor_grad(x[0]) &&
         sb_tensor_read(sb_tensor_grad(x[0]), dh);
    for (int i = 0; i < 4; i++)
        sb_tensor_clear_grad(x[i]);
    return ok;
}

static void test_sum(sb_tensor *const x[])
{
    static const char *const names[] = {"through Q", "through K", "through V", "all three"};
    static const int paths[] = {Q, K, V, Q | K | V};
    double dh[4][L * C], sum[L * C];
    for (int k = 0; k < 4; k++) {
        if (!gradient_by(paths[k], x, dh[k])) {
            holds(false, "there is a gradient of h %s", names[k]);
            return;
        }
        say("dh %s:  %8.4f %8.4f %8.4f ...", names[k], dh[k][0], dh[k][1], dh[k][2]);
    }
    for (int i = 0; i < L * C; i++)
        sum[i] = dh[0][i] + dh[1][i] + dh[2][i];
    holds(distance(L * C, sum, dh[3]) < 1e-12, "the three add up in h");
}

/* The weight is a constant here: sb_node_dx gives NULL for it. */
static void test_constant(sb_random *random, sb_tensor *x)
{
    double values[C * C];
    for (int i = 0; i < C * C; i++)
        values[i] = sb_random_normal(random);
    sb_tensor *w = sb_tensor_from_doubles(SB_F64, SB_SHAPE(C, C), values);
    sb_tensor *both[] = {x, w};
    say("The last case has a constant weight: a crash means that dw was NULL and written to.");
    check(once, NULL, both, 2, "y = x w with a constant w");
    sb_tensor_release(w);
}

int main(void)
{
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    int all = Q | K | V;
    sb_tensor *x[4] = {random_tensor(&random, L, C)};
    for (int i = 1; i < 4; i++)
        x[i] = random_tensor(&random, C, C);
    sb_tensor *wide[] = {random_tensor(&random, 2, 4), random_tensor(&random, 4, 3)};
    if (check(once, NULL, wide, 2, "y = x w")) {
        check(attention, &all, x, 4, "attention(h wq, h wk, h wv)");
        blank_line();
        test_sum(x);
        blank_line();
        test_constant(&random, x[0]);
    }
    for (int i = 0; i < 4; i++)
        sb_tensor_release(x[i]);
    sb_tensor_release(wide[0]);
    sb_tensor_release(wide[1]);
    return lesson_end();
}
