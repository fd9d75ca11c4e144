#include "teach/playground/training.h"
#include "autograd/tape.h"
#include "models/translation.h"
#include "tensor/memory.h"
#include <string.h>

enum { WIDTH = 32, HEADS = 2, DIGITS = 8, PAIRS = 32, TESTED = 50 };

static const sb_task_options lengths = {.min_length = DIGITS, .max_length = DIGITS};

/* The mistake is the whole process's: one training at a time. */
bool training_open(struct training *t, const struct training_options *o)
{
    const sb_data_options batches = {.seed = o->seed, .batch_pairs = PAIRS};
    const sb_data_options other_batches = {.seed = o->seed + 1, .batch_pairs = PAIRS};
    const sb_seq2seq_options sizes = {.transformer = {.width = WIDTH,
                                                      .heads = HEADS,
                                                      .feed_forward = 2 * WIDTH,
                                                      .encoder_layers = 1,
                                                      .decoder_layers = 1,
                                                      .temperature = 1 / o->factor}};
    const sb_optimiser_options rate = {
        .schedule = {.kind = SB_SCHEDULE_COSINE, .rate = 0.01, .warmup = 20, .steps = o->steps},
        .clip = 1};
    *t = (struct training){.options = *o};
    mistake_install(o->mistake);
    t->data = sb_data_task_with(o->task, &lengths, &batches);
    t->others = t->data ? sb_data_task_with(o->task, &lengths, &other_batches) : NULL;
    t->batch = t->others ? sb_data_next(t->others) : NULL;
    t->weights = t->batch ? sb_parameters_new(o->seed) : NULL;
    t->model = t->weights ? sb_seq2seq_new(t->weights, t->data, &sizes) : NULL;
    t->adam = t->model ? sb_adam_new(t->weights, &rate) : NULL;
    if (t->adam)
        return true;
    training_close(t);
    return false;
}

static void forget(struct training *t)
{
    subject_end(&t->subject);
    diagnosis_free(&t->diagnosis);
    for (int i = 0; i < TRAINING_ATTENTIONS; i++) {
        memory_free(t->map[i]);
        t->map[i] = NULL;
    }
}

void training_close(struct training *t)
{
    forget(t);
    sb_optimiser_free(t->adam);
    sb_seq2seq_free(t->model);
    sb_parameters_free(t->weights);
    sb_data_free(t->others);
    sb_data_free(t->data);
    *t = (struct training){0};
}

bool training_step(struct training *t, double *loss)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *mean = sb_seq2seq_loss(t->model, sb_data_next(t->data));
    bool ok = sb_backward(mean) && sb_optimiser_step(t->adam);
    *loss = ok ? sb_tensor_value(mean) : 0;
    return sb_tape_end(&tape) && ok;
}

static bool keep_map(struct training *t, int attention, const sb_tensor *weights)
{
    t->rows[attention] = sb_tensor_dim(weights, 2);
    t->keys[attention] = sb_tensor_dim(weights, 3);
    t->map[attention] = memory_new((size_t)sb_tensor_size(weights) * sizeof(double));
    if (!t->map[attention])
        return sb_fail("training: out of memory for weights");
    return sb_tensor_read(weights, t->map[attention]);
}

static bool keep_maps(struct training *t)
{
    sb_tensor *all[TRAINING_ATTENTIONS] = {NULL};
    const sb_seq2seq_weights weights = {&all[TRAINING_ENCODER],
                                        {&all[TRAINING_DECODER], &all[TRAINING_CROSS]}};
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    bool ok = sb_seq2seq_logits(t->model, t->subject.batch, &weights);
    for (int i = 0; ok && i < TRAINING_ATTENTIONS; i++)
        ok = keep_map(t, i, all[i]);
    return sb_tape_end(&tape) && ok;
}

bool training_observe(struct training *t, int index)
{
    sb_task_pair *pair = memory_new(sizeof *pair);
    forget(t);
    const sb_model model = sb_seq2seq_as_model(t->model);
    bool ok = pair || sb_fail("training: out of memory for a pair");
    ok = ok &&
         sb_task_make(t->options.task, &lengths, t->options.seed, SB_PART_TEST, (uint64_t)index,
                      pair) &&
         subject_begin(&t->subject, t->model, pair->source, pair->target) && keep_maps(t) &&
         diagnosis_make(&t->diagnosis, &model, t->batch);
    memory_free(pair);
    return ok;
}

/* Digits and spaces: every second letter counts. */
static void count(const char *said, const char *wanted, int *right, int *all)
{
    const size_t length = strlen(said);
    for (size_t c = 0; c < strlen(wanted); c += 2, ++*all)
        *right += c < length && said[c] == wanted[c];
}

bool training_right(const struct training *t, double *share)
{
    sb_task_pair *pairs = memory_new(TESTED * sizeof *pairs);
    const char *texts[TESTED];
    char *outputs[TESTED];
    int right = 0, all = 0;
    bool ok = pairs || sb_fail("training: out of memory for %d pairs", TESTED);
    for (int i = 0; ok && i < TESTED; i++) {
        ok = sb_task_make(t->options.task, &lengths, t->options.seed, SB_PART_TEST, (uint64_t)i,
                          &pairs[i]);
        texts[i] = pairs[i].source;
    }
    ok = ok && sb_translate_texts(t->model, texts, TESTED, NULL, outputs);
    for (int i = 0; ok && i < TESTED; i++) {
        count(outputs[i], pairs[i].target, &right, &all);
        sb_free(outputs[i]);
    }
    memory_free(pairs);
    *share = all ? (double)right / all : 0;
    return ok;
}
