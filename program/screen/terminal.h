/* What a terminal can show. */
#ifndef SOFTBACK_PROGRAM_SCREEN_TERMINAL_H
#define SOFTBACK_PROGRAM_SCREEN_TERMINAL_H

#include <stdbool.h>

/* Whether to write colours to a file descriptor: to a terminal that is not "dumb", unless NO_COLOR
   is set; with CLICOLOR_FORCE to anything. */
bool terminal_has_colour(int descriptor);

/* The last losses of a run in a line of `width` marks, high to low: "▇▅▃▂▂▁". */
enum { SPARK_POINTS = 64, SPARK_TEXT = 3 * SPARK_POINTS + 1 };

struct sparkline {
    int count;    /* of the points below */
    int each, in; /* how many losses a point is the mean of; how many the last one has so far */
    double point[SPARK_POINTS];
};

/* When all points are used, neighbours become one. */
void sparkline_add(struct sparkline *line, double loss);

struct spark_text {
    char text[SPARK_TEXT];
};
struct spark_text sparkline_text(const struct sparkline *line, int width);

#endif
