#include "teach/playground/training.h"
#include "autograd/tape.h"
#include "models/translation.h"
#include "tensor/memory.h"
#include <string.h>

enum { WIDTH = 32, HEADS = 2, DIGITS = 8, PAIRS = 32, TESTED = 50 };

static const sb_task_options lengths = {.min_length = DIGITS, .max_length = DIGITS};

/* A pair that it is not trained on. */
static bool make_pair(const struct training_options *o, int i, sb_task_pair *pair)
{
    return sb_task_make(o->task, &lengths, o->seed, SB_PART_TEST, (uint64_t)i, pair);
}

/* A batch of such pairs, with the same symbols. */
static sb_data *held_out(const sb_data *data, const struct training_options *o)
{
    const sb_data_options batches = {.seed = o->seed, .batch_pairs = PAIRS};
    sb_pairs *pairs = sb_pairs_new();
    sb_task_pair pair;
    bool ok = pairs;
    for (int i = 0; ok && i < PAIRS; i++)
        ok = make_pair(o, i, &pair) && sb_pairs_add(pairs, pair.source, pair.target);
    sb_data *others =
        ok ? sb_data_new(pairs, sb_data_source(data), sb_data_target(data), &batches) : NULL;
    sb_pairs_free(pairs);
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
    t->data = rule_install(o->rule) ? sb_data_task_with(o->task, &lengths, &batches) : NULL;
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
    if (!rule_install(rule))
        return false;
    t->options.rule = rule;
    return true;
}

/* n <= TESTED pairs from number `first` on, and what the model writes for their sources; NULL, with
   a message, when that fails. */
static sb_task_pair *translate(const struct training *t, int first, int n, char *output[])
{
    const char *texts[TESTED];
    sb_task_pair *pairs = memory_new((size_t)n * sizeof *pairs);
    bool ok = pairs || sb_fail("training: out of memory for %d pairs", n);
    for (int i = 0; ok && i < n; i++) {
        ok = make_pair(&t->options, first + i, &pairs[i]);
        texts[i] = pairs[i].source;
    }
    if (ok && sb_translate_texts(t->model, texts, n, NULL, output))
        return pairs;
    memory_free(pairs);
    return NULL;
}

bool training_observe(struct training *t, int index)
{
    const sb_model model = sb_seq2seq_as_model(t->model);
    struct rule rule;
    const bool own = t->options.rule && *t->options.rule != '\0';
    forget(t);
    return (!own || rule_read(&rule, t->options.rule)) &&
           (t->pairs = translate(t, index, TRAINING_OUTPUTS, t->output)) &&
           subject_begin(&t->subject, &model, t->pairs->source, t->pairs->target) &&
           observation_make(&t->seen, &t->subject, own ? &rule : NULL) &&
           diagnosis_make(&t->diagnosis, &model, t->batch);
}

bool training_right(const struct training *t, double *share)
{
    char *outputs[TESTED];
    int right = 0, all = 0;
    sb_task_pair *pairs = translate(t, 0, TESTED, outputs);
    for (int i = 0; pairs && i < TESTED; i++) {
        const char *said = outputs[i], *wanted = pairs[i].target;
        const size_t length = strlen(said);
        for (size_t c = 0; c < strlen(wanted); c += 2, all++) /* between digits are spaces */
            right += c < length && said[c] == wanted[c];
        sb_free(outputs[i]);
    }
    memory_free(pairs);
    *share = all ? (double)right / all : 0;
    return all > 0;
}
