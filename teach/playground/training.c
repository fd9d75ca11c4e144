#include "teach/playground/training.h"
#include "autograd/tape.h"
#include "models/translation.h"
#include "tensor/memory.h"
#include <string.h>

enum { WIDTH = 32, HEADS = 2, DIGITS = 8, PAIRS = 32, TESTED = 50 };

static const sb_task_options lengths = {.min_length = DIGITS, .max_length = DIGITS};

/* A batch of pairs that it is not trained on, with the same symbols. */
static sb_data *held_out(const sb_data *data, const struct training_options *o)
{
    const sb_data_options batches = {.seed = o->seed, .batch_pairs = PAIRS};
    sb_pairs *pairs = sb_pairs_new();
    sb_task_pair *pair = memory_new(sizeof *pair);
    bool ok = pairs && (pair || sb_fail("training: out of memory for a pair"));
    for (uint64_t i = 0; ok && i < PAIRS; i++)
        ok = sb_task_make(o->task, &lengths, o->seed, SB_PART_TEST, i, pair) &&
             sb_pairs_add(pairs, pair->source, pair->target);
    sb_data *others =
        ok ? sb_data_new(pairs, sb_data_source(data), sb_data_target(data), &batches) : NULL;
    sb_pairs_free(pairs);
    memory_free(pair);
    return others;
}

/* The mistake is the whole process's: one training at a time. */
bool training_open(struct training *t, const struct training_options *o)
{
    const sb_data_options batches = {.seed = o->seed, .batch_pairs = PAIRS};
    const sb_seq2seq_options sizes = {.transformer = {.width = WIDTH,
                                                      .heads = HEADS,
                                                      .feed_forward = 2 * WIDTH,
                                                      .encoder_layers = 1,
                                                      .decoder_layers = 1,
                                                      .temperature = 1 / o->factor}};
    const sb_optimiser_options rate = {.schedule = {.kind = SB_SCHEDULE_COSINE,
                                                    .rate = o->rate > 0 ? o->rate : 0.01,
                                                    .warmup = 20,
                                                    .steps = o->steps},
                                       .clip = 1};
    *t = (struct training){.options = *o};
    t->data = mistake_install(o->rule) ? sb_data_task_with(o->task, &lengths, &batches) : NULL;
    t->others = t->data ? held_out(t->data, o) : NULL;
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
    observation_free(&t->seen);
    subject_end(&t->subject);
    diagnosis_free(&t->diagnosis);
    memory_free(t->pairs);
    t->pairs = NULL;
    for (int i = 0; i < TRAINING_OUTPUTS; i++) {
        sb_free(t->output[i]);
        t->output[i] = NULL;
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

bool training_change_rule(struct training *t, const char *rule)
{
    if (!mistake_install(rule))
        return false;
    t->options.rule = rule;
    return true;
}

/* The pair and those that follow it, and what the model writes for their sources. */
static bool write_outputs(struct training *t, int index)
{
    const char *texts[TRAINING_OUTPUTS];
    t->pairs = memory_new(TRAINING_OUTPUTS * sizeof *t->pairs);
    bool ok = t->pairs || sb_fail("training: out of memory for %d pairs", TRAINING_OUTPUTS);
    for (int i = 0; ok && i < TRAINING_OUTPUTS; i++) {
        ok = sb_task_make(t->options.task, &lengths, t->options.seed, SB_PART_TEST,
                          (uint64_t)(index + i), &t->pairs[i]);
        texts[i] = t->pairs[i].source;
    }
    return ok && sb_translate_texts(t->model, texts, TRAINING_OUTPUTS, NULL, t->output);
}

bool training_observe(struct training *t, int index)
{
    const sb_model model = sb_seq2seq_as_model(t->model);
    struct rule rule;
    const bool own = t->options.rule && *t->options.rule != '\0';
    forget(t);
    return (!own || rule_read(&rule, t->options.rule)) && write_outputs(t, index) &&
           subject_begin(&t->subject, &model, t->pairs->source, t->pairs->target) &&
           observation_make(&t->seen, &t->subject, own ? &rule : NULL) &&
           diagnosis_make(&t->diagnosis, &model, t->batch);
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
