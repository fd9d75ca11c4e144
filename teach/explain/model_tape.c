#include "autograd/tape.h"
#include "teach/explain/model.h"
#include "teach/explain/topic.h"
#include <string.h>

/* The comment of ops.h, without its stars. */
static void describe(struct drawing *d, const char *operation)
{
    const char *line = operation_comment(operation);
    while (line && strncmp(line, " */", 3) != 0) {
        const size_t size = strcspn(line, "\n"), skip = size < 3 ? size : 3;
        drawing_print_escaped(d, line + skip, size - skip);
        drawing_print(d, "\n");
        line += size + 1;
    }
}

char *model_tape(const struct subject *subject, drawing_write *write)
{
    const sb_model *model = &subject->model;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, NULL);
    sb_tensor *loss = model->kind->loss(model->self, subject->example.batch, SB_LOSS_MEAN);
    char *text = loss ? drawing_of_tape(loss, write, model->weights, describe) : NULL;
    sb_tape_end(&tape);
    return text;
}
