#include "program/screen/terminal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] != '\0';
}

bool terminal_has_colour(int descriptor)
{
    const char *kind = getenv("TERM");
    if (is_set("NO_COLOR"))
        return false;
    if (is_set("CLICOLOR_FORCE") && strcmp(getenv("CLICOLOR_FORCE"), "0") != 0)
        return true;
    return isatty(descriptor) && !(kind && strcmp(kind, "dumb") == 0);
}

static void halve(struct sparkline *line)
{
    for (int i = 0; i < SPARK_POINTS / 2; i++)
        line->point[i] = (line->point[2 * i] + line->point[2 * i + 1]) / 2;
    line->count = SPARK_POINTS / 2;
    line->each *= 2;
}

void sparkline_add(struct sparkline *line, double loss)
{
    if (!isfinite(loss))
        return;
    line->each += line->each == 0;
    if (line->in == 0) {
        if (line->count == SPARK_POINTS)
            halve(line);
        line->point[line->count++] = 0;
    }
    double *last = &line->point[line->count - 1];
    *last = (*last * line->in + loss) / (line->in + 1);
    line->in = (line->in + 1) % line->each;
}

/* The mean of the points that mark i of `width` stands for. */
static double mark_of(const struct sparkline *line, int i, int width)
{
    const int from = i * line->count / width, to = (i + 1) * line->count / width;
    double sum = 0;
    for (int p = from; p < to; p++)
        sum += line->point[p];
    return sum / (to - from);
}

struct spark_text sparkline_text(const struct sparkline *line, int width)
{
    static const char *const marks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    struct spark_text result = {""};
    double low = INFINITY, high = -INFINITY;
    width = line->count < width ? line->count : width;
    for (int i = 0; i < width; i++) {
        low = fmin(low, mark_of(line, i, width));
        high = fmax(high, mark_of(line, i, width));
    }
    for (int i = 0; i < width; i++) {
        const double share = high > low ? (mark_of(line, i, width) - low) / (high - low) : 0;
        strcat(result.text, marks[(int)fmin(8 * share, 7)]);
    }
    return result;
}
