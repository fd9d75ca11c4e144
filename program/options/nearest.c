#include "program/options/options.h"
#include <stdio.h>
#include <string.h>

/* The edit distance (Levenshtein 1966). */
static int nearest_distance(const char *a, const char *b)
{
    int row[64], n = (int)strlen(b) < 63 ? (int)strlen(b) : 63;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int shorter = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < shorter ? change : shorter;
        }
    }
    return row[n];
}

struct nearest_text nearest_name(const char *word, const char *(*name)(const void *list, int i),
                                 const void *list, const char *before, const char *after)
{
    struct nearest_text nearest = {""};
    int least = 1 + (int)strlen(word) / 2;
    for (int i = 0; name(list, i); i++) {
        int far = nearest_distance(word, name(list, i));
        if (far < least) {
            least = far;
            snprintf(nearest.text, sizeof nearest.text, "; did you mean %s%s%s?", before,
                     name(list, i), after);
        }
    }
    return nearest;
}
