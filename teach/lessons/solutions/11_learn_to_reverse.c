/* Lesson 11, learn to reverse: a solution. */
#include "lesson.h"

double learning_rate(void)
{
    return 0.01;
}

bool train(const sb_seq2seq *model, sb_data *data, sb_optimiser *adam, int steps)
{
    bool ok = true;
    for (int step = 0; ok && step < steps; step++) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        sb_tensor *loss = sb_seq2seq_loss(model, sb_data_next(data));
        ok = sb_backward(loss) && sb_optimiser_step(adam);
        ok = sb_tape_end(&tape) && ok;
    }
    return ok;
}
