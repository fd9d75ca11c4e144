#include "teach/playground/rule.h"
#include "ops/attention.h"
#include "tensor/error.h"
#include "tensor/mathematics.h"
#include "tensor/random.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- Reading: an expression by recursive descent, written down operands first. ---- */

struct reader {
    struct rule *rule;
    const char *text, *at;
    int brackets, held; /* open brackets; rows on the stack */
};

static bool refuse(const struct reader *r, const char *expected)
{
    const int place = (int)(r->at - r->text) + 1;
    if (*r->at == '\0')
        return sb_fail("rule: the text ends where %s is expected", expected);
    return sb_fail("rule: \"%.8s\" at character %d, where %s is expected", r->at, place, expected);
}

static char next(struct reader *r)
{
    while (*r->at == ' ')
        r->at++;
    return *r->at;
}

static bool takes(struct reader *r, char c)
{
    if (next(r) != c)
        return false;
    r->at++;
    return true;
}

/* Adds a step that takes `operands` rows from the stack and leaves one. */
static bool emit(struct reader *r, char what, double number, int operands)
{
    r->held += 1 - operands;
    if (r->rule->steps == RULE_STEPS || r->held > RULE_DEPTH)
        return sb_fail("rule: it is too long; %d steps and %d open operands are possible",
                       RULE_STEPS, RULE_DEPTH);
    r->rule->step[r->rule->steps++] = (struct rule_step){what, number};
    return true;
}

static bool read_sum(struct reader *r);

/* Multiplies a number by the power of ten that is written behind it, as in 1e-3. */
static double scaled_by_power(struct reader *r, double value)
{
    const bool divides = r->at[0] == 'e' && r->at[1] == '-';
    const char *digits = r->at + 1 + divides;
    int power = 0;
    if (*r->at != 'e' || *digits < '0' || *digits > '9')
        return value;
    for (; *digits >= '0' && *digits <= '9'; digits++)
        power = power > 99 ? power : 10 * power + (*digits - '0');
    for (r->at = digits; power > 0; power--)
        value = divides ? value / 10 : value * 10;
    return value;
}

/* A number such as 12, 0.5, .5 or 1e-3 */
static bool read_number(struct reader *r)
{
    double value = 0, digit = 1;
    bool any = false;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++, any = true)
        value = 10 * value + (*r->at - '0');
    if (*r->at == '.')
        for (r->at++; *r->at >= '0' && *r->at <= '9'; r->at++, any = true)
            value += (*r->at - '0') * (digit /= 10);
    return any ? emit(r, 'n', scaled_by_power(r, value), 0) : refuse(r, "a number");
}

static const struct {
    const char *name;
    char what;
} functions[] = {{"sum", 'S'}, {"mean", 'M'}, {"min", 'm'}, {"max", 'x'},
                 {"abs", 'A'}, {"sqrt", 'q'}, {"exp", 'e'}, {"log", 'l'}};

static bool read_brackets(struct reader *r)
{
    if (!takes(r, '('))
        return refuse(r, "\"(\"");
    if (++r->brackets > RULE_DEPTH)
        return sb_fail("rule: more than %d open brackets", RULE_DEPTH);
    const bool ok = read_sum(r) && (takes(r, ')') || refuse(r, "\")\""));
    r->brackets--;
    return ok;
}

static bool read_name(struct reader *r)
{
    const size_t length = strspn(r->at, "abcdefghijklmnopqrstuvwxyz");
    if (length == 1 && strchr("agn", *r->at)) {
        const char what = *r->at == 'n' ? 'k' : *r->at;
        r->at++;
        return emit(r, what, 0, 0);
    }
    if (length == 3 && !strncmp(r->at, "avg", 3)) {
        r->at += length;
        return emit(r, 'a', 0, 0) && emit(r, 'g', 0, 0) && emit(r, '*', 0, 2) && emit(r, 'S', 0, 1);
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (length == strlen(functions[i].name) && !strncmp(r->at, functions[i].name, length)) {
            r->at += length;
            return read_brackets(r) && emit(r, functions[i].what, 0, 1);
        }
    return refuse(r,
                  "a, g, n, avg, a number, or sum, mean, min, max, abs, sqrt, exp, log of (...)");
}

static bool read_factor(struct reader *r)
{
    const char c = next(r);
    if (c == '-') {
        r->at++;
        return emit(r, 'n', 0, 0) && read_factor(r) && emit(r, '-', 0, 2);
    }
    if (c == '(')
        return read_brackets(r);
    return c == '.' || (c >= '0' && c <= '9') ? read_number(r) : read_name(r);
}

/* The operator of a product that comes next, or 0; next to a bracket, * may be left out. */
static char product(struct reader *r)
{
    const bool closed = r->at > r->text && r->at[-1] == ')';
    const char c = next(r);
    if (c == '*' || c == '/') {
        r->at++;
        return c;
    }
    return c == '(' || (closed && c >= 'a' && c <= 'z') ? '*' : 0;
}

static bool read_product(struct reader *r)
{
    bool ok = read_factor(r);
    for (char c; ok && (c = product(r));)
        ok = read_factor(r) && emit(r, c, 0, 2);
    return ok;
}

static bool read_sum(struct reader *r)
{
    bool ok = read_product(r);
    for (char c; ok && ((c = next(r)) == '+' || c == '-');) {
        r->at++;
        ok = read_product(r) && emit(r, c, 0, 2);
    }
    return ok;
}

bool rule_read(struct rule *rule, const char *text)
{
    struct reader r = {rule, text, text, 0, 0};
    rule->steps = 0;
    return read_sum(&r) && (next(&r) == '\0' || refuse(&r, "an operator or the end"));
}

/* ---- Applying ---- */

static void combine(char what, int64_t n, double *x, const double *y)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = what == '+'   ? x[i] + y[i]
               : what == '-' ? x[i] - y[i]
               : what == '*' ? x[i] * y[i]
                             : x[i] / y[i];
}

/* One number of the row, for each of its places. */
static void reduce(char what, int64_t n, double *x)
{
    double result = what == 'm' || what == 'x' ? x[0] : 0;
    for (int64_t i = 0; i < n; i++) {
        if (what == 'S' || what == 'M')
            result += x[i];
        else if (what == 'm' ? x[i] < result : x[i] > result)
            result = x[i];
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = what == 'M' ? result / (double)n : result;
}

static void push(const struct rule_step *step, int64_t n, const double *a, const double *g,
                 double *x)
{
    const double number = step->what == 'k' ? (double)n : step->number;
    for (int64_t i = 0; i < n; i++)
        x[i] = step->what == 'a' ? a[i] : step->what == 'g' ? g[i] : number;
}

struct stack {
    double row[RULE_DEPTH][RULE_KEYS];
    int held;
};

static void apply_step(const struct rule_step *step, int64_t n, const double *a, const double *g,
                       struct stack *stack)
{
    double *top = stack->held > 0 ? stack->row[stack->held - 1] : NULL;
    if (strchr("nagk", step->what))
        push(step, n, a, g, stack->row[stack->held++]);
    else if (strchr("+-*/", step->what))
        combine(step->what, n, stack->row[--stack->held - 1], top);
    else if (strchr("SMmx", step->what))
        reduce(step->what, n, top);
    else
        for (int64_t i = 0; i < n; i++)
            top[i] = step->what == 'A'   ? fabs(top[i])
                     : step->what == 'q' ? sqrt(top[i])
                     : step->what == 'e' ? math_exp(top[i])
                                         : math_log(top[i]);
}

void rule_apply(const struct rule *rule, int64_t n, const double *a, const double *g, double *ds)
{
    struct stack stack;
    stack.held = 0; /* its rows are 6 kB, which each row of attention would clear */
    for (int s = 0; s < rule->steps; s++)
        apply_step(&rule->step[s], n, a, g, &stack);
    memcpy(ds, stack.row[0], (size_t)n * sizeof *ds);
}

/* ---- Checking ---- */

/* The first key whose number is not finite; n when all are. */
static int64_t first_not_finite(int64_t n, const double *x)
{
    int64_t i = 0;
    while (i < n && isfinite(x[i]))
        i++;
    return i;
}

static const char *cause_of(char what)
{
    return what == '/'   ? "division by 0"
           : what == 'q' ? "square root of a number below 0"
           : what == 'l' ? "logarithm of a number that is not above 0"
                         : "a number beyond the range of floating point";
}

bool rule_is_finite(const struct rule *rule, int64_t n, const double *a, const double *g)
{
    struct stack stack = {.held = 0};
    double ds[RULE_KEYS];
    rule_apply(rule, n, a, g, ds);
    if (first_not_finite(n, ds) == n)
        return true;
    for (int s = 0; s < rule->steps; s++) {
        apply_step(&rule->step[s], n, a, g, &stack);
        const int64_t key = first_not_finite(n, stack.row[stack.held - 1]);
        if (key < n)
            return sb_fail("rule: ds is not finite for key %d, where a = %.3g and g = %.3g (%s)",
                           (int)key, a[key], g[key], cause_of(rule->step[s].what));
    }
    return true;
}

enum { ROWS = RULE_TEST_ROWS, KEYS = RULE_TEST_KEYS };

/* Weights of a random row: positive, with sum 1. */
static void draw(sb_random *random, double *a, double *g)
{
    double sum = 0;
    for (int i = 0; i < KEYS; i++)
        sum += a[i] = math_exp(sb_random_normal(random));
    for (int i = 0; i < KEYS; i++) {
        a[i] /= sum;
        g[i] = sb_random_normal(random);
    }
}

bool rule_check(const struct rule *rule, struct rule_check *check)
{
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    double apart = 0, most = 0, sums = 0, moves = 0;
    for (int row = 0; row < ROWS; row++) {
        double a[KEYS], g[KEYS], moved[KEYS], ds[KEYS], again[KEYS], average = 0, sum = 0;
        draw(&random, a, g);
        for (int i = 0; i < KEYS; i++) {
            average += a[i] * g[i];
            moved[i] = g[i] + 1;
        }
        if (!rule_is_finite(rule, KEYS, a, g) || !rule_is_finite(rule, KEYS, a, moved))
            return false;
        rule_apply(rule, KEYS, a, g, ds);
        rule_apply(rule, KEYS, a, moved, again);
        for (int i = 0; i < KEYS; i++) {
            const double exact = a[i] * (g[i] - average), error = fabs(ds[i] - exact);
            most = fmax(most, fabs(exact));
            apart = fmax(apart, error);
            moves += fabs(again[i] - ds[i]);
            sum += ds[i];
        }
        sums += fabs(sum);
    }
    const double limit = 1e-9 * ROWS * most;
    *check = (struct rule_check){apart <= 1e-9 * most, sums <= limit, moves <= limit, apart / most};
    return true;
}

/* ---- In the place of the library's: to show what training with a wrong gradient leads to. ---- */

static struct rule chosen;

/* da becomes scale ds, by the rule that was chosen. */
static void mistaken_row_gradient(int64_t n, float scale, const float *a, float *da)
{
    static double weights[RULE_KEYS], g[RULE_KEYS], ds[RULE_KEYS]; /* of one row at a time */
    for (int64_t j = 0; j < n; j++) {
        weights[j] = (double)a[j];
        g[j] = (double)da[j];
    }
    rule_apply(&chosen, n, weights, g, ds);
    for (int64_t j = 0; j < n; j++)
        da[j] = scale * (float)ds[j];
}

/* Row l of a head; NULL where there is no data. */
static float *row_of(const void *data, struct attention_strides s, int64_t b, int64_t h, int64_t l)
{
    return data ? (float *)(uintptr_t)data + b * s.batch + h * s.head + l * s.row : NULL;
}

/* In four sums, which compilers add as a vector. */
static float dot(int64_t n, const float *x, const float *y)
{
    float sum[4] = {0};
    int64_t d = 0;
    for (; d + 4 <= n; d += 4)
        for (int i = 0; i < 4; i++)
            sum[i] += x[d + i] * y[d + i];
    for (; d < n; d++)
        sum[0] += x[d] * y[d];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* y += factor x, where both are there */
static void add_scaled(int64_t n, float factor, const float *x, float *y)
{
    for (int64_t d = 0; x && y && d < n; d++)
        y[d] += factor * x[d];
}

/* The gradient of the weights of row `row`, with what else they were used for added. */
static void weight_gradient(const struct attention *a, struct attention_gradient dweights,
                            int64_t row, struct key_range keys, float *da)
{
    if (!dweights.data)
        return;
    float *total = (float *)dweights.data + row * a->Lk;
    if (dweights.fresh)
        memset(total, 0, (size_t)a->Lk * sizeof *total);
    for (int64_t j = keys.from; j < keys.to; j++)
        da[j] = total[j] += da[j];
}

/* Query i of head h: y = sum_j a_j v_j, a = softmax(s), s_j = scale q . k_j */
static void backward_row(const struct attention *a, const struct attention_backward *g, int64_t b,
                         int64_t h, int64_t i)
{
    const int64_t row = (b * a->H + h) * a->Lq + i, group = h / (a->H / a->G);
    const struct key_range keys = mask_range(&a->mask, b, i, i, a->Lk);
    const float *weights = (const float *)g->weights + row * a->Lk;
    const float *q = row_of(g->q, a->q, b, h, i), *dy = row_of(g->dy, a->y, b, h, i);
    float *dq = row_of(g->dq.data, a->q, b, h, i), *da = g->scratch;
    for (int64_t j = keys.from; j < keys.to; j++) {
        da[j] = dy ? dot(a->Dv, dy, row_of(g->v, a->v, b, group, j)) : 0;
        add_scaled(a->Dv, weights[j], dy, row_of(g->dv.data, a->v, b, group, j));
    }
    weight_gradient(a, g->dweights, row, keys, da);
    float *ds = da + keys.from;
    mistaken_row_gradient(keys.to - keys.from, (float)a->scale, weights + keys.from, ds);
    for (int64_t j = keys.from; j < keys.to; j++, ds++) {
        add_scaled(a->D, *ds, row_of(g->k, a->k, b, group, j), dq);
        add_scaled(a->D, *ds, q, row_of(g->dk.data, a->k, b, group, j));
    }
}

/* Zeros in the rows of one head, where their gradient is fresh. */
static void clear_fresh(struct attention_gradient x, struct attention_strides s, int64_t b,
                        int64_t h, int64_t rows, int64_t n)
{
    for (int64_t l = 0; x.data && x.fresh && l < rows; l++)
        memset(row_of(x.data, s, b, h, l), 0, (size_t)n * sizeof(float));
}

static bool mistaken_backward(const struct attention *a, const struct attention_backward *g)
{
    assert(a->Lk <= RULE_KEYS && !g->dbias.data && !a->mask.dense && a->dropout.threshold == 0);
    for (int64_t b = 0; b < a->B; b++) {
        for (int64_t group = 0; group < a->G; group++) {
            clear_fresh(g->dk, a->k, b, group, a->Lk, a->D);
            clear_fresh(g->dv, a->v, b, group, a->Lk, a->Dv);
        }
        for (int64_t h = 0; h < a->H; h++) {
            clear_fresh(g->dq, a->q, b, h, a->Lq, a->D);
            for (int64_t i = 0; i < a->Lq; i++)
                backward_row(a, g, b, h, i);
        }
    }
    return true;
}

bool rule_install(const char *text)
{
    static const struct attention_kernels *right;
    static struct attention_kernels wrong;
    const void **row = &attention_rows.row[kernel_cpu_set()][SB_F32];
    const bool own = text && *text != '\0';
    if (own && !rule_read(&chosen, text))
        return false;
    if (!right)
        right = *row;
    wrong = *right;
    wrong.backward = mistaken_backward;
    *row = own ? &wrong : right;
    return true;
}
