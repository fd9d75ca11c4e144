/* Tensors as text. */
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <stdio.h>
#include <string.h>

enum { EDGE = 4 }; /* elements shown at either end of a long axis */

struct writer {
    char *text;
    int64_t used, room;
    bool failed;
};

static void put(struct writer *w, const char *piece)
{
    for (; *piece && !w->failed; piece++) {
        if (!memory_room(&w->text, w->used + 1, &w->room, 1))
            w->failed = true;
        else
            w->text[w->used++] = *piece;
    }
}

static void put_axis(struct writer *w, const sb_tensor *t, int axis, int64_t start)
{
    char number[40];
    if (axis == t->rank) {
        snprintf(number, sizeof number, "%.*g", t->dtype == SB_I32 ? 10 : 5,
                 sb_tensor_get(t, start));
        put(w, number);
        return;
    }
    int64_t stride = shape_size(t->rank - axis - 1, t->dim + axis + 1);
    put(w, "[");
    for (int64_t i = 0; i < t->dim[axis]; i++) {
        if (i > 0) {
            put(w, axis == t->rank - 1 ? " " : "\n");
            for (int pad = 0; pad <= axis && axis < t->rank - 1; pad++)
                put(w, " ");
        }
        if (i == EDGE && t->dim[axis] > 2 * EDGE + 1) {
            put(w, "...");
            i = t->dim[axis] - EDGE - 1;
            continue;
        }
        put_axis(w, t, axis + 1, start + i * stride);
    }
    put(w, "]");
}

char *sb_tensor_text(const sb_tensor *t)
{
    if (!t)
        return fail_null("tensor_text", "t");
    if (!tensor_readable("tensor_text", t))
        return NULL;
    struct writer w = {0};
    put(&w, sb_dtype_name(t->dtype));
    put(&w, " ");
    put(&w, tensor_shape(t).text);
    put(&w, t->rank > 1 ? "\n" : " ");
    put_axis(&w, t, 0, 0);
    if (!w.failed)
        return w.text;
    memory_free(w.text);
    return sb_fail("tensor_text: out of memory");
}

void sb_tensor_print(const sb_tensor *t)
{
    if (!t) {
        printf("(no tensor) %s\n", sb_error());
        return;
    }
    char *text = sb_tensor_text(t);
    puts(text ? text : sb_error());
    sb_free(text);
}
