#include "lesson.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 96, ROOM = 1000 };
static int failed;

static void print(const char *before, const char *format, va_list values)
{
    fputs(before, stdout);
    vprintf(format, values);
    putchar('\n');
    fflush(stdout);
}

bool holds(bool ok, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    print(ok ? "  holds    " : "  NOT YET  ", format, values);
    va_end(values);
    failed += !ok;
    return ok;
}

void hint(const char *format, ...)
{
    static char earlier[ROOM];
    char text[ROOM], *word = text;
    int column = WIDTH;
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (strcmp(text, earlier) == 0)
        return;
    strcpy(earlier, text);
    for (bool first = true; *word; first = false) {
        const int length = (int)strcspn(word, " ");
        if (column + 1 + length > WIDTH)
            column = printf("%s           %s", first ? "" : "\n", first ? "->" : "  ") - !first;
        column += printf(" %.*s", length, word);
        word += length + (word[length] == ' ');
    }
    putchar('\n');
    fflush(stdout);
}

void say(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    print("  ", format, values);
    va_end(values);
}

void blank_line(void)
{
    putchar('\n');
}

int lesson_end(void)
{
    if (failed > 1)
        say("(Begin with the first NOT YET: the later ones often follow from it.)");
    return failed > 0;
}

double distance(int64_t n, const double *a, const double *b)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        double apart = fabs(a[i] - b[i]);
        if (!isfinite(apart))
            return NAN;
        most = fmax(most, apart);
    }
    return most;
}

bool hint_guess(int64_t n, const double *yours, int count, const struct guess *guess)
{
    for (int k = 0; k < count; k++) {
        bool alike = true;
        for (int64_t i = 0; i < n; i++)
            alike = alike && fabs(yours[i] - guess[i * count + k].value) < 1e-5;
        if (alike) {
            hint("%s", guess[k].name);
            return true;
        }
    }
    return false;
}

double total(int64_t n, const double *a)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i];
    return sum;
}

bool finite_all(int64_t n, const double *a)
{
    return isfinite(total(n, a));
}

double shown(double x)
{
    return isnan(x) ? (double)NAN : x + 0.0;
}

void true_softmax(int64_t n, const double *x, double *y)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *row = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(n), x));
    if (!sb_tensor_read(sb_softmax(row), y))
        puts(sb_error());
    sb_tape_end(&tape);
}
