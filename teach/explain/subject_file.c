#include "teach/explain/subject.h"

bool subject_open(struct subject *s, const char *path, const char *text, const char *target)
{
    struct checkpoint *checkpoint = checkpoint_load(path);
    if (checkpoint && subject_begin(s, checkpoint->model, text, target)) {
        s->checkpoint = checkpoint;
        return true;
    }
    checkpoint_free(checkpoint);
    return false;
}

void subject_close(struct subject *s)
{
    struct checkpoint *checkpoint = s->checkpoint;
    subject_end(s);
    checkpoint_free(checkpoint);
}
