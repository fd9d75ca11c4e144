/* Whether softmax_jacobian is the Jacobian of softmax: its rows, and finite differences. */
#include "lesson.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 4 };
static const double scores[N] = {2, 1, 0.1, -1};

/* J by central differences: column j is the change of all a when s_j changes. */
static void differences(double *J)
{
    const double h = 1e-5;
    for (int j = 0; j < N; j++) {
        double s[N], above[N], below[N];
        for (int i = 0; i < N; i++)
            s[i] = scores[i];
        s[j] = scores[j] + h;
        true_softmax(N, s, above);
        s[j] = scores[j] - h;
        true_softmax(N, s, below);
        for (int i = 0; i < N; i++)
            J[i * N + j] = (above[i] - below[i]) / (2 * h);
    }
}

static void print_both(const double *a, const double *yours, const double *measured)
{
    say("a = softmax(2, 1, 0.1, -1) = %.4f %.4f %.4f %.4f", a[0], a[1], a[2], a[3]);
    blank_line();
    say("            your J                          finite differences");
    for (int i = 0; i < N; i++) {
        char line[200];
        int at = 0;
        for (int j = 0; j < N; j++)
            at += snprintf(line + at, sizeof line - (size_t)at, "%8.4f", shown(yours[i * N + j]));
        at += snprintf(line + at, sizeof line - (size_t)at, "    ");
        for (int j = 0; j < N; j++)
            at += snprintf(line + at, sizeof line - (size_t)at, "%8.4f", measured[i * N + j]);
        say("%s", line);
    }
    blank_line();
}

static void name_mistake(const double *a, const double *J, const double *measured)
{
    enum { COUNT = 9 };
    struct guess guess[N * N][COUNT];
    for (int k = 0; k < N * N; k++) {
        const int i = k / N, j = k % N, same = i == j;
        const struct guess known[COUNT] = {
            {same ? a[i] * (1 - a[i]) : 0, "this is the diagonal alone, a_i (1 - a_i), as for a "
                                           "sigmoid. But the row sums to 1: what "
                                           "one a gains, the others pay. Where are the payments?"},
            {same ? a[i] * (1 - a[i]) : a[i] * a[j],
             "off the diagonal the sign is wrong: when s_j grows, the other a fall"},
            {-a[i] * a[j], "this lacks the 1 of i == j: s_i also raises a_i itself"},
            {a[i] * (1 - a[j]),
             "this has the 1 in every place; (i == j) is 1 on the diagonal and 0 elsewhere"},
            {-a[i] * (same - a[j]), "all signs are reversed"},
            {a[i] * (same - a[i]),
             "this has a_i in place of a_j, a_i ((i == j) - a_i): by s_j, a_i falls by a_i a_j"},
            {a[i] * same - a[j],
             "brackets are missing: a_i multiplies the whole difference, a_i ((i == j) - a_j)"},
            {same - a[j],
             "this is (i == j) - a_j, the Jacobian of log a: the factor a_i in front is missing"},
            {a[j] * (same - a[j]),
             "this has a_j in place of a_i in front: in row i, all entries have the factor a_i"},
        };
        memcpy(guess[k], known, sizeof known);
    }
    if (hint_guess(N * N, J, COUNT, guess[0]))
        return;
    int worst = 0;
    for (int i = 0; i < N * N; i++)
        if (!(fabs(J[i] - measured[i]) <= fabs(J[worst] - measured[worst])))
            worst = i;
    hint("furthest apart in row %d, column %d: yours %.4f, measured %.4f", worst / N, worst % N,
         shown(J[worst]), measured[worst]);
}

int main(void)
{
    double a[N], J[N * N] = {0}, measured[N * N], furthest = 0;
    true_softmax(N, scores, a);
    softmax_jacobian(N, a, J);
    differences(measured);
    print_both(a, J, measured);
    for (int i = 0; i < N; i++)
        furthest = fmax(furthest, fabs(total(N, J + i * N)));
    bool empty = J[0] == 0;
    holds(!empty && furthest < 1e-12,
          "each row sums to 0, and J is not all 0: a shift of all scores changes no weight");
    bool symmetric = !empty;
    for (int i = 0; i < N * N; i++)
        symmetric = symmetric && fabs(J[i] - J[i % N * N + i / N]) < 1e-12;
    holds(symmetric, "J is symmetric, and not all 0: i pays j what j pays i");
    double apart = distance(N * N, J, measured);
    if (!holds(apart < 1e-9, "J equals the finite differences: furthest apart %.1e", apart))
        name_mistake(a, J, measured);
    return lesson_end();
}
