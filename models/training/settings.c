#include "models/training/settings.h"
#include "models/kinds.h"
#include "models/transformer_settings.h"
#include "nn/shares_run.h"
#include "tensor/failure.h"
#include <string.h>

static const char *const graphs[] = {[SB_GRAPHS_AUTO] = "auto", [SB_GRAPHS_OFF] = "off", NULL};
static const char *const optimisers[] = {
    [SB_OPTIMISER_ADAM] = "adam", [SB_OPTIMISER_ADAMW] = "adamw", [SB_OPTIMISER_SGD] = "sgd", NULL};
static const char *const schedules[] = {[SB_SCHEDULE_CONSTANT] = "constant",
                                        [SB_SCHEDULE_INVERSE_ROOT] = "inverse-root",
                                        [SB_SCHEDULE_COSINE] = "cosine",
                                        [SB_SCHEDULE_PLATEAU] = "plateau",
                                        [SB_SCHEDULE_LINEAR] = "linear",
                                        [SB_SCHEDULE_RESTARTS] = "restarts",
                                        NULL};
static const char *const units[] = {
    [SB_UNITS_AUTO] = "auto",   [SB_UNITS_CHARACTERS] = "characters",
    [SB_UNITS_BYTES] = "bytes", [SB_UNITS_WORDS] = "words",
    [SB_UNITS_BPE] = "bpe",     NULL};

static const char *const document_cuts[] = {[SB_DOCUMENTS_FILES] = "files",
                                            [SB_DOCUMENTS_PARAGRAPHS] = "paragraphs",
                                            [SB_DOCUMENTS_LINES] = "lines",
                                            NULL};

static const char *const best_scores[] = {[BEST_AUTO] = "auto",
                                          [BEST_LOSS] = "loss",
                                          [BEST_EXACT] = "exact",
                                          [BEST_ERROR] = "error",
                                          [BEST_BLEU] = "bleu",
                                          [BEST_ACCURACY] = "accuracy",
                                          NULL};

static void settings_add_step(struct setting_table *t, struct settings *s)
{
    t->group = SETTING_OF_TRAINING;
    setting_add_dropout(t, &s->model.transformer);
    setting_add_choice(t, "cuda-graph", &s->trainer.graphs, graphs,
                       "on cuda: replay a step as one graph if its shapes occurred before");
    setting_add_smoothing(t, &s->model.label_smoothing);
    setting_add_count(t, "steps", &s->steps, 0, 1e12,
                      "training steps (0: depends on the size of the data)");
}

static void settings_add_optimiser(struct setting_table *t, sb_trainer_options *trainer)
{
    sb_optimiser_options *o = &trainer->optimiser;
    sb_schedule *schedule = &o->schedule;
    t->group = SETTING_OF_TRAINING;
    setting_add_choice(t, "optimiser", &trainer->optimiser_kind, optimisers, "optimiser");
    setting_add_number(t, "learning-rate", &schedule->rate, 0, 1e6,
                       "highest learning rate (0: 0.024 / square root of width)");
    setting_zero(t, ZERO_IS_DEFAULT);
    setting_add_choice(t, "schedule", &schedule->kind, schedules, "learning rate schedule");
    setting_add_count(t, "warmup", &schedule->warmup, 0, 1e12,
                      "warmup steps, over which the learning rate rises");
    setting_add_number(t, "lowest-rate", &schedule->lowest, 0, 1e6,
                       "cosine, linear, restarts, plateau: lowest rate");
    setting_add_count(t, "cycle", &schedule->cycle, 0, 1e12,
                      "restarts: steps of the first cycle (0: steps / 4)");
    setting_add_number(t, "cycle-growth", &schedule->growth, 0, 1e6,
                       "restarts: how many times longer each cycle is than the last (0: 1)");
    setting_add_small(t, "plateau-patience", &schedule->patience, 0, 1000000,
                      "evaluations without improvement before plateau lowers the rate (0: 2)");
    setting_add_number(t, "plateau-factor", &schedule->factor, 0, 0.999999,
                       "factor by which plateau lowers the rate (0: 0.5)");
    setting_zero(t, ZERO_IS_DEFAULT);
    setting_add_number(t, "beta1", &o->beta1, 0, 0.999999, "Adam: decay of the first moment");
    setting_zero(t, ZERO_IS_DEFAULT);
    setting_add_number(t, "beta2", &o->beta2, 0, 0.999999999, "Adam: decay of the second moment");
    setting_zero(t, ZERO_IS_DEFAULT);
    setting_add_number(t, "epsilon", &o->epsilon, 0, 1, "Adam: added to the denominator (0: 1e-9)");
    setting_zero(t, ZERO_IS_DEFAULT);
    setting_add_number(t, "momentum", &o->momentum, 0, 0.999999, "SGD: momentum");
    setting_add_flag(t, "nesterov", &o->nesterov, "SGD: Nesterov momentum");
    setting_add_number(t, "weight-decay", &o->weight_decay, 0, 1e6,
                       "weight decay; with adamw not of biases and norms");
    setting_add_flag(t, "decay-all", &o->decay_all, "AdamW: weight decay of biases and norms too");
    setting_add_number(t, "clip", &o->clip, 0, 1e12,
                       "clip the gradient's norm to this (0: no limit)");
    setting_add_count(t, "shares", &trainer->shares, 0, MOST_SHARES,
                      "divide a batch into N shares, for threads; 0: chosen by its size, 1: none");
    setting_add_count(t, "accumulate", &trainer->accumulate, 1, 1 << 20,
                      "gradient accumulation: batches in one optimiser step");
    setting_add_number(
        t, "average", &trainer->average_decay, 0, 0.9999999,
        "save an exponential moving average (EMA) of the weights with this decay (0: off)");
}

static void settings_add_run(struct setting_table *t, struct settings *s)
{
    t->group = SETTING_OF_TRAINING;
    setting_add_seed(t, "seed", &s->trainer.seed, "seed of weights, dropout and order of pairs");
    setting_add_count(t, "evaluate-every", &s->evaluate_every, 0, 1e12,
                      "steps between evaluations (0: steps / 20)");
    setting_add_count(t, "evaluate-pairs", &s->evaluate_pairs, 0, 1e12,
                      "number of held-out pairs that an evaluation decodes");
    setting_add_count(t, "patience", &s->patience, 0, 1e9,
                      "early stopping: stop after N evaluations without improvement (0: never)");
    setting_add_choice(t, "best", &s->best, best_scores,
                       "choose the best model by loss, exact match, error (edit distance), BLEU or "
                       "accuracy; auto: bleu from words to words, exact for other pairs, accuracy "
                       "for a classifier, loss for a language model");
    setting_add_count(t, "keep", &s->keep, 0, MOST_KEPT,
                      "keep the models of the last N evaluations next to --out, for softback "
                      "average (0: none)");
}

static void settings_add_data(struct setting_table *t, struct settings *s)
{
    t->group = SETTING_OF_DATA;
    setting_add_choice(t, "source-units", &s->source_units, units, "tokenisation of the source");
    setting_add_choice(t, "target-units", &s->target_units, units, "tokenisation of the target");
    setting_add_count(t, "vocabulary", &s->vocabulary, 0, 1 << 24,
                      "most symbols of a vocabulary (0: no limit; bpe: 8000)");
    setting_add_flag(t, "joint-vocabulary", &s->joint_vocabulary,
                     "one vocabulary for source and target");
    setting_add_count(t, "batch-pairs", &s->data.batch_pairs, 1, 1 << 20,
                      "maximum number of pairs in a batch");
    setting_add_count(t, "batch-symbols", &s->data.batch_symbols, 1, 1 << 26,
                      "most symbols of a batch, with padding");
    setting_add_count(t, "longest", &s->data.longest, 1, 1 << 20,
                      "longest source or target in symbols; longer pairs are left out");
    setting_add_small(t, "min-length", &s->task.min_length, 0, SB_TASK_LENGTH,
                      "fewest digits of copy, reverse and sort (0: 1)");
    setting_add_small(t, "max-length", &s->task.max_length, 0, SB_TASK_LENGTH,
                      "most digits of copy, reverse and sort (0: 16)");
}

/* What only language models and classifiers have. */
static void settings_add_texts(struct setting_table *t, struct settings *s)
{
    t->group = SETTING_OF_DATA;
    setting_add_choice(t, "units", &s->units, units, "tokenisation of the text");
    setting_add_choice(t, "documents", &s->documents, document_cuts,
                       "how to divide a text into documents: one for each file, paragraph or line");
    t->group = SETTING_OF_MODEL;
    setting_add_context(t, &s->language.context, &s->language.running_text);
    setting_add_pooling(t, &s->pooling, &s->hidden);
}

static struct setting_table settings_table_of(struct settings *s)
{
    struct setting_table t = {.count = 0};
    setting_add_transformer(&t, &s->model.transformer);
    setting_add_ties(&t, &s->model.tie_embeddings, &s->model.share_embeddings);
    settings_add_step(&t, s);
    settings_add_optimiser(&t, &s->trainer);
    settings_add_run(&t, s);
    settings_add_data(&t, s);
    settings_add_texts(&t, s);
    fine_tuning_add_settings(&t, &s->tuning);
    return t;
}

struct setting setting_at(struct settings *settings, int i)
{
    struct setting_table t = settings_table_of(settings);
    return i >= 0 && i < t.count ? t.at[i] : (struct setting){0};
}

const char *setting_name(int i)
{
    struct settings any;
    return setting_at(&any, i).name;
}

int setting_find(const char *name)
{
    struct settings any;
    const struct setting_table t = settings_table_of(&any);
    for (int i = 0; i < t.count; i++)
        if (strcmp(t.at[i].name, name) == 0)
            return i;
    return -1;
}

struct settings settings_default(void)
{
    return (struct settings){
        .model = seq2seq_defaults,
        .trainer = {.seed = 1,
                    .accumulate = 1,
                    .optimiser = {.schedule = {.kind = SB_SCHEDULE_COSINE, .warmup = 200},
                                  .beta1 = 0.9,
                                  .beta2 = 0.98,
                                  .clip = 1}},
        .data = {.batch_pairs = 64, .batch_symbols = 4096, .longest = 512},
        .evaluate_pairs = 500,
        .language = {.context = 128},
    };
}

bool setting_set(struct settings *settings, int i, const char *text)
{
    const struct setting setting = setting_at(settings, i);
    return setting_write(&setting, text);
}

struct setting_text setting_get(const struct settings *settings, int i)
{
    struct settings copy = *settings; /* not const, as a setting can be written to */
    const struct setting setting = setting_at(&copy, i);
    return setting_read(&setting);
}

bool settings_write(const struct settings *settings, const sb_model_kind *kind,
                    sb_description *description)
{
    struct settings copy = *settings; /* not const, as a setting can be written to */
    const struct setting_table t = settings_table_of(&copy);
    for (int i = 0; i < t.count; i++)
        if (model_has_setting(kind, t.at[i].name) &&
            !sb_description_set(description, t.at[i].name, setting_read(&t.at[i]).text))
            return false;
    return true;
}

/* Settings that are missing keep their defaults: sb_model_save writes the model's alone. */
bool settings_read(struct settings *settings, const sb_description *description)
{
    const char *name;
    *settings = settings_default();
    for (int64_t i = 0; (name = sb_description_name(description, i)); i++) {
        const int setting = setting_find(name);
        if (setting < 0)
            return sb_fail("checkpoint: the setting \"%.60s\" is unknown to this version", name);
        if (!setting_set(settings, setting, sb_description_value(description, i)))
            return sb_fail("checkpoint: its settings: %s", sb_error());
    }
    return true;
}
