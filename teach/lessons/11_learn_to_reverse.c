/* Lesson 11, learn to reverse. The page is teach/lessons/11_learn_to_reverse.md. */
#include "lesson.h"

double learning_rate(void)
{
    /* HOLE, first part: about the largest step of a weight. */
    return 1e-6;
}

bool train(const sb_seq2seq *model, sb_data *data, sb_optimiser *adam, int steps)
{
    /* HOLE, second part: a tape for each step; the loss of the next batch; backward; and Adam's
       step. */
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *loss = sb_seq2seq_loss(model, sb_data_next(data));
    return sb_tape_end(&tape) && loss && adam && steps > 0;
}
