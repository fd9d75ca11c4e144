#include "program/run/kind.h"
#include <string.h>

#define ENTRY(name) &training_##name,
static const struct training_kind *const kinds[] = {MODELS(ENTRY) NULL};

const struct training_kind *training_kind_at(int i)
{
    return i >= 0 && i < (int)(sizeof kinds / sizeof *kinds) ? kinds[i] : NULL;
}

const struct training_kind *training_kind_find(const char *name)
{
    for (int i = 0; kinds[i]; i++)
        if (strcmp(kinds[i]->model->name, name) == 0)
            return kinds[i];
    return NULL;
}

const struct training_kind *training_kind_of(const sb_model_kind *model)
{
    for (int i = 0; kinds[i]; i++)
        if (kinds[i]->model == model)
            return kinds[i];
    return NULL;
}
