/* softback explain layer_norm: one row loses its mean and its length, and so does its gradient. */
#include "autograd/tape.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include <math.h>
#include <string.h>

enum { N = 4 };

static const double x[N] = {1, 2, 3, 10}, gain[N] = {1, 1, 2, 1}, bias[N], dy[N] = {1, 0, 1, 0};

struct outcome {
    double y[N], dx[N], dgain[N], dbias[N];
};

static sb_tensor *row(int rank, const double values[N])
{
    const int64_t dim[] = {1, N};
    return constant_of(SB_F64, rank, dim + 2 - rank, values);
}

/* y, and backward from dy. */
static bool compute(const double from[N], struct outcome *o)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *in[] = {row(2, from), row(1, gain), row(1, bias)};
    for (int i = 0; i < 3; i++)
        sb_tensor_requires_grad(in[i]);
    sb_tensor *y = sb_keep(sb_layer_norm(in[0], in[1], in[2], 0));
    bool ok = y && sb_backward_from(y, row(2, dy)) && sb_tensor_read(y, o->y) &&
              sb_tensor_read(sb_tensor_grad(in[0]), o->dx) &&
              sb_tensor_read(sb_tensor_grad(in[1]), o->dgain) &&
              sb_tensor_read(sb_tensor_grad(in[2]), o->dbias);
    return sb_tape_end(&tape) && ok;
}

/* The central difference of sum_j dy_j y_j by x_i. */
static double difference(struct page *page, int i)
{
    const double h = 1e-5;
    struct outcome up = {0}, down = {0};
    double moved[N];
    memcpy(moved, x, sizeof x);
    moved[i] = x[i] + h;
    page_need(page, compute(moved, &up));
    moved[i] = x[i] - h;
    page_need(page, compute(moved, &down));
    return (row_dot(N, dy, up.y) - row_dot(N, dy, down.y)) / (2 * h);
}

/* The steps by their formulas, as the page explains them. */
struct steps {
    double m, s, h[N], u[N], mean, along, dx[N];
};

static struct steps steps_of_row(void)
{
    struct steps t = {.m = row_sum(N, x) / N};
    for (int i = 0; i < N; i++)
        t.s += (x[i] - t.m) * (x[i] - t.m) / N;
    t.s = sqrt(t.s + 1e-5);
    for (int i = 0; i < N; i++) {
        t.h[i] = (x[i] - t.m) / t.s;
        t.u[i] = gain[i] * dy[i];
    }
    t.mean = row_sum(N, t.u) / N;
    t.along = row_dot(N, t.u, t.h) / N;
    for (int i = 0; i < N; i++)
        t.dx[i] = (t.u[i] - t.mean - t.along * t.h[i]) / t.s;
    return t;
}

static void write_backward(struct page *page, const struct steps *t, const struct outcome *o)
{
    page_table(
        page, "backward",
        "i .0 | u .0 | less mean .4 | less its part along h .4 | / s: dx .4 | #4 | difference .4");
    for (int i = 0; i < N; i++)
        PAGE_NUMBERS(page, NULL, i, t->u[i], t->u[i] - t->mean, t->dx[i] * t->s, o->dx[i],
                     difference(page, i));
}

/* What remains of a shift of x and of its stretching, where a part of dx is left out. */
static void write_mistakes(struct page *page, const struct steps *t)
{
    static const struct {
        const char *name;
        bool mean, along;
    } kept[] = {{"right", true, true},
                {"m taken as constant", false, true},
                {"s taken as constant", true, false},
                {"both: u / s", false, false}};
    page_table(page, "mistakes",
               "backward | dx_0 .4 | dx_1 .4 | dx_2 .4 | dx_3 .4 | sum .4 | sum of dx h .4");
    for (int k = 0; k < 4; k++) {
        double d[N];
        for (int i = 0; i < N; i++)
            d[i] = (t->u[i] - kept[k].mean * t->mean - kept[k].along * t->along * t->h[i]) / t->s;
        const double sum = row_sum(N, d), along = row_dot(N, d, t->h);
        PAGE_NUMBERS(page, kept[k].name, d[0], d[1], d[2], d[3], fabs(sum) < 1e-12 ? 0 : sum,
                     fabs(along) < 1e-4 ? 0 : along);
    }
}

static void write(struct page *page, const struct explain_options *options)
{
    struct outcome o = {0};
    const struct steps t = steps_of_row();
    (void)options;
    page_title(page, "each row gets mean 0 and length √n, then a gain and a bias");
    page_need(page, compute(x, &o));
    page_text(page,
              "FORWARD  h = (x - m) / s, with the mean m = %.4g of the row and s = %.4g, the root "
              "of its variance + 1e-5. Then y = gain h + bias; here bias is 0.",
              t.m, t.s);
    page_table(page, "forward", "i .0 | x .0 | x - m .0 | h .4 | gain .0 | y .4");
    for (int i = 0; i < N; i++)
        PAGE_NUMBERS(page, NULL, i, x[i], x[i] - t.m, t.h[i], gain[i], o.y[i]);
    page_text(page, "BACKWARD  m and s depend on every x of the row. What that means can be seen "
                    "without deriving them: a direction of x that does not change h gets no "
                    "gradient. x + 1 has the same h, so u loses its mean. 2 x has the same h (but "
                    "for the 1e-5), so u loses its part along h.");
    page_lines(page, "  forward            backward\n"
                     "  y = gain h + bias  dbias = dy, dgain = dy h   (sums over all rows)\n"
                     "                     u = gain dy\n"
                     "  h = (x - m) / s    dx = (u - mean of u - h (mean of u h)) / s\n");
    page_text(page,
              "With dy = 1, 0, 1, 0: the mean of u is %.4g, and the mean of u h is %.4f. "
              "\"difference\" is the central difference:",
              t.mean, t.along);
    write_backward(page, &t, &o);
    page_text(page, "WHAT GOES WRONG  Whoever takes m or s as a constant keeps one of the two "
                    "parts. Then x also moves where nothing changes the loss:");
    write_mistakes(page, &t);
}

const struct topic topic_layer_norm = {"layer_norm",
                                       "one row forward and backward, and what goes wrong",
                                       TAKES_REFERENCE, NULL, write};
