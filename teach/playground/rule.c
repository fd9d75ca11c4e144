#include "teach/playground/rule.h"
#include "tensor/error.h"
#include "tensor/mathematics.h"
#include "tensor/random.h"
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

/* A number such as 12, 0.5 or .5 */
static bool read_number(struct reader *r)
{
    double value = 0, digit = 1;
    bool any = false;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++, any = true)
        value = 10 * value + (*r->at - '0');
    if (*r->at == '.')
        for (r->at++; *r->at >= '0' && *r->at <= '9'; r->at++, any = true)
            value += (*r->at - '0') * (digit /= 10);
    return any ? emit(r, 'n', value, 0) : refuse(r, "a number");
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
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (length == strlen(functions[i].name) && !strncmp(r->at, functions[i].name, length)) {
            r->at += length;
            return read_brackets(r) && emit(r, functions[i].what, 0, 1);
        }
    return refuse(r, "a, g, n, a number, or sum, mean, min, max, abs, sqrt, exp, log of (...)");
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

static bool read_product(struct reader *r)
{
    bool ok = read_factor(r);
    for (char c; ok && ((c = next(r)) == '*' || c == '/');) {
        r->at++;
        ok = read_factor(r) && emit(r, c, 0, 2);
    }
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

static double combine(char what, double x, double y)
{
    switch (what) {
    case '+':
        return x + y;
    case '-':
        return x - y;
    case '*':
        return x * y;
    default:
        return x / y;
    }
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

static double map(char what, double x)
{
    switch (what) {
    case 'A':
        return fabs(x);
    case 'q':
        return sqrt(x);
    case 'e':
        return math_exp(x);
    default:
        return math_log(x);
    }
}

static double pushed(const struct rule_step *step, int64_t n, double a, double g)
{
    switch (step->what) {
    case 'a':
        return a;
    case 'g':
        return g;
    case 'k':
        return (double)n;
    default:
        return step->number;
    }
}

void rule_apply(const struct rule *rule, int64_t n, const double *a, const double *g, double *ds)
{
    double stack[RULE_DEPTH][RULE_KEYS];
    int held = 0;
    for (int s = 0; s < rule->steps; s++) {
        const struct rule_step *step = &rule->step[s];
        double *top = held > 0 ? stack[held - 1] : NULL;
        if (strchr("nagk", step->what)) {
            for (int64_t i = 0; i < n; i++)
                stack[held][i] = pushed(step, n, a[i], g[i]);
            held++;
        } else if (strchr("+-*/", step->what)) {
            held--;
            for (int64_t i = 0; i < n; i++)
                stack[held - 1][i] = combine(step->what, stack[held - 1][i], top[i]);
        } else if (strchr("SMmx", step->what)) {
            reduce(step->what, n, top);
        } else {
            for (int64_t i = 0; i < n; i++)
                top[i] = map(step->what, top[i]);
        }
    }
    memcpy(ds, stack[0], (size_t)n * sizeof *ds);
}

/* ---- Checking ---- */

enum { ROWS = 64, KEYS = 6 };

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

struct rule_check rule_check(const struct rule *rule)
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
        rule_apply(rule, KEYS, a, g, ds);
        rule_apply(rule, KEYS, a, moved, again);
        for (int i = 0; i < KEYS; i++) {
            const double exact = a[i] * (g[i] - average), error = fabs(ds[i] - exact);
            most = fmax(most, fabs(exact));
            apart = apart <= error || isnan(error) ? error : apart;
            moves += fabs(again[i] - ds[i]);
            sum += ds[i];
        }
        sums += fabs(sum);
    }
    const double limit = 1e-9 * ROWS * most;
    return (struct rule_check){apart <= 1e-9 * most, sums <= limit, moves <= limit, apart / most};
}
