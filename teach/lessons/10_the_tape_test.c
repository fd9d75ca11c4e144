/* Whether project_backward is right alone, and in attention, where three of them read one h; and
   whether attention_backward is right. */
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
    hint("%s", sb_error());
    if (strstr(result.mistake, "assign") || strstr(result.mistake, "overwr"))
        hint("dx may already hold gradients of other operations: += and not =");
    else if (result.input < 0)
        hint("is project_backward true, and sb_tensor_data called of no dx or dw that is NULL?");
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
            hint("%s", sb_error());
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
    check(once, NULL, both, 2, "y = x w with a constant w");
    sb_tensor_release(w);
}

/* ---- One head of attention ---- */

/* Lesson 3, for attention_backward. */
void softmax_backward(int64_t n, const double *a, const double *g, double *ds)
{
    double average = 0;
    for (int64_t i = 0; i < n; i++)
        average += a[i] * g[i];
    for (int64_t i = 0; i < n; i++)
        ds[i] = a[i] * (g[i] - average);
}

enum { VALUE, QUERY, KEY, UPSTREAM, ROWS };             /* matrices (L, C), and three gradients */
enum { WEIGHTS, D_WEIGHTS, D_SCORES, DIAGONAL, PAIRS }; /* matrices (L, L) */
static const char *const gradients[] = {"dv", "dq", "dk"};

/* One head with a causal mask, by the library. */
struct head {
    double row[ROWS][L * C], right[UPSTREAM][L * C], pair[PAIRS][L * L];
};

static bool head_read(const sb_tensor *x, double *to)
{
    const sb_tensor *grad = sb_tensor_grad(x);
    return grad && sb_tensor_read(grad, to);
}

static bool head_make(struct head *head)
{
    sb_random random = sb_random_new(2, SB_STREAM_USER);
    sb_tensor *x[ROWS], *weights = NULL;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < L * C; k++)
            head->row[i][k] = sb_random_normal(&random);
        x[i] = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(L, C), head->row[i]));
        sb_tensor_requires_grad(x[i]);
    }
    sb_tensor *bias = sb_tape_own(sb_tensor_zeros(SB_F64, SB_SHAPE(L, L))); /* its gradient is ds */
    sb_tensor_requires_grad(bias);
    const sb_attention_options options = {.mask = sb_mask_causal(),
                                          .bias = bias,
                                          .weights = &weights,
                                          .algorithm = SB_ATTENTION_COMPOSED};
    sb_tensor *y = sb_attention(x[QUERY], x[KEY], x[VALUE], &options);
    bool ok = y && sb_keep(weights) && sb_backward_from(y, x[UPSTREAM]) &&
              sb_tensor_read(weights, head->pair[WEIGHTS]) && head_read(bias, head->pair[D_SCORES]);
    for (int i = 0; ok && i < UPSTREAM; i++)
        ok = head_read(x[i], head->right[i]);
    for (int k = 0; k < L * L; k++) { /* the library has no da of blocked pairs */
        const double a = head->pair[WEIGHTS][k], *dy = head->row[UPSTREAM] + k / L * C;
        double da = 0;
        for (int c = 0; c < C; c++)
            da += dy[c] * head->row[VALUE][k % L * C + c];
        head->pair[D_WEIGHTS][k] = da;
        head->pair[DIAGONAL][k] = a * (1 - a) * da;
    }
    return sb_tape_end(&tape) && ok;
}

/* A mistake: which matrix of pairs is used, by which power of sqrt C the sum is divided, whether
   pair ji is taken in place of ij, and whether only the last part of a sum remains. */
struct mistake {
    int pair, power;
    bool swapped, last;
    const char *name;
};

static const struct mistake of_values[] = {
    {D_WEIGHTS, 0, false, false, "dv is made with da in place of a: y_i = sum_j a_ij v_j"},
    {D_SCORES, 0, false, false, "dv is made with ds in place of a: y_i = sum_j a_ij v_j"},
    {WEIGHTS, 0, true, false,
     "dv gets a the wrong way round: value j is in the result of each query i, with a_ij"},
    {WEIGHTS, 0, false, true,
     "dv keeps the part of the last query alone: value j is in the results of all: += and not ="},
    {.name = NULL}};

/* %s is dq or dk. */
static const struct mistake of_scores[] = {
    {D_SCORES, 0, false, false, "1 / sqrt D is missing in %s: s_ij = q_i k_j / sqrt D"},
    {D_SCORES, 2, false, false, "1 / sqrt D is there twice in %s"},
    {D_WEIGHTS, 1, false, false,
     "%s is made with da in place of ds: it skips softmax, lesson 3, and so the keys that the mask "
     "blocks get gradients"},
    {D_WEIGHTS, 0, false, false,
     "%s is made with da in place of ds: it skips softmax, and 1 / sqrt D is missing as well"},
    {DIAGONAL, 1, false, false, "%s: this is a (1 - a) da, the diagonal of J alone; lesson 3"},
    {D_SCORES, 1, true, false,
     "%s gets the part of another key: score ij belongs to query i and key j, so ds_ij k_j goes to "
     "dq_i and ds_ij q_i to dk_j"},
    {D_SCORES, 1, false, true, "%s keeps only the last part of its sum: += and not ="},
    {.name = NULL}};

/* Whether yours is what a mistake makes of a gradient: a sum over keys for queries, over queries
   for keys and values. */
static bool is_mistake(const struct mistake *m, const struct head *head, int gradient,
                       const double *yours)
{
    static const int factor[] = {[VALUE] = UPSTREAM, [QUERY] = KEY, [KEY] = QUERY};
    double made[L * C] = {0};
    for (int to = 0; to < L; to++)
        for (int from = m->last ? L - 1 : 0; from < L; from++)
            for (int c = 0; c < C; c++) {
                const bool row = (gradient == QUERY) != m->swapped;
                made[to * C + c] += head->pair[m->pair][row ? to * L + from : from * L + to] *
                                    head->row[factor[gradient]][from * C + c] /
                                    pow(sqrt(C), m->power);
            }
    return distance(L * C, yours, made) < 1e-9;
}

static bool check_gradient(const struct head *head, int gradient, const double *yours)
{
    const char *name = gradients[gradient];
    const double *right = head->right[gradient];
    const struct mistake *m = gradient == VALUE ? of_values : of_scores;
    if (holds(distance(L * C, yours, right) < 1e-12,
              "%s of the second word: %.4f %.4f %.4f, yours %.4f %.4f %.4f", name, right[C],
              right[C + 1], right[C + 2], shown(yours[C]), shown(yours[C + 1]),
              shown(yours[C + 2])))
        return true;
    while (m->name && !is_mistake(m, head, gradient, yours))
        m++;
    if (m->name)
        hint(m->name, name);
    return false;
}

/* Backward runs twice: gradients are added to what is there. */
static void test_attention(void)
{
    struct head head;
    double d[UPSTREAM][L * C] = {{0}}, once[L * C];
    if (!head_make(&head))
        say("%s", sb_error());
    say("One head, %d words of size %d, with a causal mask.", L, C);
    bool ok = true;
    for (int run = 1; ok && run <= 2; run++) {
        attention_backward(L, C, head.row[QUERY], head.row[KEY], head.row[VALUE],
                           head.pair[WEIGHTS], head.row[UPSTREAM], d[QUERY], d[KEY], d[VALUE]);
        for (int i = 0; i < UPSTREAM; i++) {
            for (int k = 0; k < L * C; k++)
                once[k] = d[i][k] / run;
            if (run == 1)
                ok = check_gradient(&head, i, once) && ok;
            else if (!holds(distance(L * C, once, head.right[i]) < 1e-12,
                            "a second backward adds to %s", gradients[i]))
                hint("%s was assigned: it may already hold gradients of other operations",
                     gradients[i]);
        }
    }
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
        say("From here on inputs may be constants: a crash means that dx or dw was NULL.");
        test_sum(x);
        blank_line();
        test_constant(&random, x[0]);
    }
    blank_line();
    test_attention();
    for (int i = 0; i < 4; i++)
        sb_tensor_release(x[i]);
    sb_tensor_release(wide[0]);
    sb_tensor_release(wide[1]);
    return lesson_end();
}
