/*
 * Trains a small model for 300 steps and prints each hundredth loss to the bit, and a fingerprint
 * of the weights. A portable build prints the same with every compiler.
 */
#include "softback.h"
#include <stdio.h>
#include <string.h>

static unsigned loss_bits(const sb_tensor *loss)
{
    float value = (float)sb_tensor_value(loss);
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool step(sb_seq2seq *model, sb_data *data, sb_optimiser *adam, sb_random *random,
                 int number)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, random);
    sb_tensor *loss = sb_seq2seq_loss(model, sb_data_next(data));
    bool ok = sb_backward(loss) && sb_optimiser_step(adam);
    if (ok && number % 50 == 0)
        printf("step %3d  loss %.6f  bits %08x\n", number, sb_tensor_value(loss), loss_bits(loss));
    return sb_tape_end(&tape) && ok;
}

int main(void)
{
    const sb_seq2seq_options options = {.transformer = {.width = 32,
                                                        .heads = 2,
                                                        .feed_forward = 64,
                                                        .encoder_layers = 1,
                                                        .decoder_layers = 1,
                                                        .dropout = 0.1,
                                                        .activation = SB_ACTIVATION_GELU}};
    const sb_optimiser_options schedule = {
        .schedule = {.kind = SB_SCHEDULE_COSINE, .rate = 0.003, .warmup = 30, .steps = 300},
        .clip = 1};
    const sb_task_options lengths = {.min_length = 4, .max_length = 8};
    const sb_data_options batches = {.seed = 1, .batch_pairs = 32};
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    sb_data *data = sb_data_task_with(SB_TASK_REVERSE, &lengths, &batches);
    sb_parameters *weights = sb_parameters_new(1);
    sb_seq2seq *model = sb_seq2seq_new(weights, data, &options);
    sb_optimiser *adam = model ? sb_adam_new(weights, &schedule) : NULL;
    bool ok = adam != NULL;
    for (int i = 1; ok && i <= 300; i++)
        ok = step(model, data, adam, &random, i);
    if (ok)
        printf("fingerprint %016llx\n", (unsigned long long)sb_parameters_fingerprint(weights));
    else
        puts(sb_error());
    sb_optimiser_free(adam);
    sb_seq2seq_free(model);
    sb_parameters_free(weights);
    sb_data_free(data);
    return ok ? 0 : 1;
}
