/* Dotted names of parameters. */
#ifndef SOFTBACK_NN_NAME_H
#define SOFTBACK_NN_NAME_H

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

#endif
