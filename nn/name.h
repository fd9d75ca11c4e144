/* Dotted names of parameters, and patterns of them, as a shell has them for files. */
#ifndef SOFTBACK_NN_NAME_H
#define SOFTBACK_NN_NAME_H

#include <stdbool.h>
#include <stdio.h>

struct name {
    char text[256]; /* a longer name is truncated, and sb_parameters_add rejects it */
};

/* "encoder.layers.0" and "norm" make "encoder.layers.0.norm"; an empty path adds nothing. */
static inline struct name name_join(const char *path, const char *last)
{
    struct name name;
    snprintf(name.text, sizeof name.text, "%s%s%s", path, path[0] ? "." : "", last);
    return name;
}

/* "encoder" and 3 make "encoder.layers.3". */
static inline struct name name_layer(const char *path, int i)
{
    struct name name;
    snprintf(name.text, sizeof name.text, "%s%slayers.%d", path, path[0] ? "." : "", i);
    return name;
}

/* Whether a name matches one of the patterns, which commas separate. "*" stands for any characters,
   none included, and "?" for one: "encoder.*,*.bias". */
bool glob_matches(const char *patterns, const char *name);

#endif
