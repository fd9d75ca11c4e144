/* softback attend: what is asked for, and how weights are drawn. */
#ifndef SOFTBACK_PROGRAM_COMMANDS_ATTEND_H
#define SOFTBACK_PROGRAM_COMMANDS_ATTEND_H

#include "teach/explain/subject.h"

struct attend_request {
    enum attention_kind kind;
    bool kind_given;
    int64_t layer, head; /* from 1; 0: the last layer, the mean over heads */
    const char *target;  /* instead of the model's output */
    bool numbers;
    const char *path, *text;
};

/* Draws the weights (1, H, rows, columns) of a head (0: the mean over all), and says what it is:
   `axes`, then "<title> attention, layer 2 of 3, head 1 of 4." */
void attend_draw(const sb_tensor *weights, int64_t head, const struct subject_axis *rows,
                 const struct subject_axis *columns, bool numbers);
void attend_explain(const struct attend_request *request, const char *axes, const char *title,
                    int layers, int64_t heads);

/* The same of a model that reads one text: a language model or a classifier. */
bool attend_text(const struct attend_request *request, const struct checkpoint *checkpoint);

#endif
