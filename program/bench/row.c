#include "program/bench/bench.h"
#include <stdio.h>

static const char *const limit_names[] = {"copy", "f32 rate", "bf16 rate"};

/* Three digits and a prefix: "4.21 T". */
static void row_print_number(double x, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    int p = 0;
    while (x >= 999.5 && p < 5) {
        x /= 1000;
        p++;
    }
    char text[40];
    snprintf(text, sizeof text, "%.*f %s%s",
             x < 9.995   ? 2
             : x < 99.95 ? 1
                         : 0,
             x, prefixes[p], unit);
    printf(" %20s", text);
}

void bench_print(const struct bench *bench, const struct bench_row *r)
{
    const double rate = r->seconds > 0 ? r->amount / r->seconds : r->amount;
    const double limit = bench->limit[r->limit];
    const bool known = r->work > 0 && limit > 0 && !bench->quick; /* tiny sizes measure no speed */
    const double share = known ? 100 * r->work / r->seconds / limit : 0;
    if (bench->tabs) {
        printf("%s\t%s\t%s\t%.9g\t%.6g\t%s\t%.4g\t%s\n", r->group, r->name, r->way, r->seconds,
               rate, r->unit ? r->unit : "", share, known ? limit_names[r->limit] : "");
    } else {
        printf("%-10s %-26s %-22s", r->group, r->name, r->way);
        if (r->seconds > 0)
            printf(" %10.3f ms", 1e3 * r->seconds);
        if (r->amount > 0)
            row_print_number(rate, r->unit);
        if (known)
            printf(" %6.1f %% of the %s", share, limit_names[r->limit]);
        putchar('\n');
    }
    fflush(stdout); /* the next may take long, or fail */
}
