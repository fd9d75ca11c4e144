#include "program/screen/progress.h"
#include "tensor/clock.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the last losses ---- */

/* When all points are used, neighbours become one. */
static void sparkline_halve(struct sparkline *line)
{
    for (int i = 0; i < SPARK_POINTS / 2; i++)
        line->point[i] = (line->point[2 * i] + line->point[2 * i + 1]) / 2;
    line->count = SPARK_POINTS / 2;
    line->each *= 2;
}

static void sparkline_add(struct sparkline *line, double loss)
{
    if (!isfinite(loss))
        return;
    line->each += line->each == 0;
    if (line->in == 0) {
        if (line->count == SPARK_POINTS)
            sparkline_halve(line);
        line->point[line->count++] = 0;
    }
    double *last = &line->point[line->count - 1];
    *last = (*last * line->in + loss) / (line->in + 1);
    line->in = (line->in + 1) % line->each;
}

/* The mean of the points that mark i of `width` stands for. */
static double sparkline_mark(const struct sparkline *line, int i, int width)
{
    const int from = i * line->count / width, to = (i + 1) * line->count / width;
    double sum = 0;
    for (int p = from; p < to; p++)
        sum += line->point[p];
    return sum / (to - from);
}

struct spark_text {
    char text[3 * SPARK_POINTS + 1];
};

/* A line of at most `width` marks, high to low: "▇▅▃▂▂▁". */
static struct spark_text sparkline_text(const struct sparkline *line, int width)
{
    static const char *const marks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    struct spark_text result = {""};
    double low = INFINITY, high = -INFINITY;
    width = line->count < width ? line->count : width;
    for (int i = 0; i < width; i++) {
        low = fmin(low, sparkline_mark(line, i, width));
        high = fmax(high, sparkline_mark(line, i, width));
    }
    for (int i = 0; i < width; i++) {
        const double share = high > low ? (sparkline_mark(line, i, width) - low) / (high - low) : 0;
        strcat(result.text, marks[(int)fmin(8 * share, 7)]);
    }
    return result;
}

/* ---- the line ---- */

struct progress_line progress_begin(int64_t step)
{
    const double now = clock_seconds();
    return (struct progress_line){.shown = true,
                                  .terminal = isatty(STDERR_FILENO),
                                  .began = now,
                                  .lap = now,
                                  .at_start = step};
}

double progress_seconds(const struct progress_line *line)
{
    return clock_seconds() - line->began;
}

double progress_lap(struct progress_line *line)
{
    const double now = clock_seconds(), seconds = now - line->lap;
    line->lap = now;
    return seconds;
}

double progress_rate(const struct progress_line *line)
{
    double seconds = progress_seconds(line);
    return seconds > 0 ? line->symbols / seconds : 0;
}

static struct duration_text progress_left(const struct progress_line *line, int64_t step,
                                          int64_t steps)
{
    const double each = progress_seconds(line) / (double)(step - line->at_start);
    return duration_text(each * (double)(steps - step));
}

void progress_step(struct progress_line *line, int64_t step, int64_t steps, double loss,
                   int64_t symbols)
{
    const double interval = 0.1;
    line->symbols += (double)symbols;
    line->loss = loss;
    sparkline_add(&line->losses, loss);
    if (!line->shown || !line->terminal || clock_seconds() - line->drawn < interval)
        return;
    line->drawn = clock_seconds();
    fprintf(stderr, "\r\033[Kstep %s/%s  loss %.4f %s  %s symbols/s  %s left",
            count_text(step).text, count_text(steps).text, loss,
            sparkline_text(&line->losses, 16).text, count_text((int64_t)progress_rate(line)).text,
            progress_left(line, step, steps).text);
    fflush(stderr);
}

void progress_evaluation(struct progress_line *line, int64_t step, int64_t steps, double loss,
                         const char *measure, bool best)
{
    const char *end = best ? "  best so far" : "";
    if (!line->shown)
        return;
    progress_clear(line);
    if (line->terminal)
        fprintf(stderr, "step %s  held-out loss %.4f%s%s\n", count_text(step).text, loss, measure,
                end);
    else
        fprintf(stderr, "step %s/%s  loss %.4f  held-out loss %.4f%s  %s symbols/s  %s left%s\n",
                count_text(step).text, count_text(steps).text, line->loss, loss, measure,
                count_text((int64_t)progress_rate(line)).text,
                progress_left(line, step, steps).text, end);
    fflush(stderr);
}

void progress_clear(struct progress_line *line)
{
    if (line->shown && line->terminal)
        fputs("\r\033[K", stderr);
    line->drawn = 0;
}

struct duration_text duration_text(double seconds)
{
    struct duration_text duration;
    long long s = seconds > 0 && seconds < 1e9 ? (long long)(seconds + 0.5) : 0;
    if (s < 3600)
        snprintf(duration.text, sizeof duration.text, "%lld:%02lld", s / 60, s % 60);
    else
        snprintf(duration.text, sizeof duration.text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60,
                 s % 60);
    return duration;
}

struct count_text count_text(int64_t count)
{
    char digits[24];
    struct count_text grouped;
    int n = snprintf(digits, sizeof digits, "%lld", (long long)count), used = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-')
            grouped.text[used++] = ',';
        grouped.text[used++] = digits[i];
    }
    grouped.text[used] = '\0';
    return grouped;
}
