#include "models/program/progress.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

struct progress_line progress_begin(int64_t step)
{
    return (struct progress_line){.shown = isatty(STDERR_FILENO), .began = now(), .at_start = step};
}

double progress_seconds(const struct progress_line *line)
{
    return now() - line->began;
}

double progress_rate(const struct progress_line *line)
{
    double seconds = progress_seconds(line);
    return seconds > 0 ? line->symbols / seconds : 0;
}

void progress_step(struct progress_line *line, int64_t step, int64_t steps, double loss,
                   int64_t symbols)
{
    const double interval = 0.1;
    line->symbols += (double)symbols;
    if (!line->shown || now() - line->drawn < interval)
        return;
    line->drawn = now();
    double left = progress_seconds(line) / (double)(step - line->at_start) * (double)(steps - step);
    fprintf(stderr, "\r\033[Kstep %s/%s  loss %.4f  %s symbols/s  %s left", count_text(step).text,
            count_text(steps).text, loss, count_text((int64_t)progress_rate(line)).text,
            duration_text(left).text);
    fflush(stderr);
}

void progress_clear(struct progress_line *line)
{
    if (line->shown)
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
