#include "nn/layer.h"
#include "tensor/failure.h"
#include <string.h>

bool layer_begin(struct layer_start *start, const char *who, void *layer, size_t size,
                 sb_parameters *set, const char *name)
{
    if (layer)
        memset(layer, 0, size);
    if (!layer || !set || !name)
        return fail_null(who, !layer ? "layer" : !set ? "set" : "name");
    *start = (struct layer_start){layer, size, set, parameters_mark(set)};
    return true;
}

bool layer_end(const struct layer_start *start, bool made)
{
    if (made)
        return true;
    memset(start->layer, 0, start->size);
    parameters_return(start->set, &start->mark);
    return false;
}
