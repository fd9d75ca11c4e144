#include "models/training/settings.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const norm_places[] = {[SB_NORM_PRE] = "pre", [SB_NORM_POST] = "post", NULL};
static const char *const norm_kinds[] = {[SB_LAYER_NORM] = "layer", [SB_RMS_NORM] = "rms", NULL};
static const char *const activations[] = {[SB_IDENTITY] = "identity", [SB_RELU] = "relu",
                                          [SB_GELU] = "gelu",         [SB_GELU_TANH] = "gelu-tanh",
                                          [SB_SILU] = "silu",         [SB_TANH] = "tanh",
                                          [SB_SIGMOID] = "sigmoid",   NULL};
static const char *const scores[] = {
    [SB_SCALED] = "scaled", [SB_BALANCED] = "balanced", [SB_COSINE] = "cosine", NULL};
static const char *const graphs[] = {[SB_GRAPHS_AUTO] = "auto", [SB_GRAPHS_OFF] = "off", NULL};
static const char *const precisions[] = {
    [SB_PRECISION_F32] = "f32", [SB_PRECISION_BF16] = "bf16", NULL};
static const char *const algorithms[] = {
    [SB_AUTOMATIC] = "auto", [SB_COMPOSED] = "composed", [SB_TILED] = "tiled", NULL};
static const char *const positions[] = {[SB_POSITIONS_SINUSOIDAL] = "sinusoidal",
                                        [SB_POSITIONS_LEARNED] = "learned",
                                        [SB_POSITIONS_ROTARY] = "rotary",
                                        [SB_POSITIONS_ALIBI] = "alibi",
                                        [SB_POSITIONS_RELATIVE] = "relative",
                                        [SB_POSITIONS_NONE] = "none",
                                        NULL};
static const char *const optimisers[] = {
    [SB_OPTIMISER_ADAM] = "adam", [SB_OPTIMISER_ADAMW] = "adamw", [SB_OPTIMISER_SGD] = "sgd", NULL};
static const char *const schedules[] = {[SB_SCHEDULE_CONSTANT] = "constant",
                                        [SB_SCHEDULE_INVERSE_ROOT] = "inverse-root",
                                        [SB_SCHEDULE_COSINE] = "cosine",
                                        [SB_SCHEDULE_PLATEAU] = "plateau",
                                        NULL};
static const char *const units[] = {
    [SB_UNITS_AUTO] = "auto",   [SB_UNITS_CHARACTERS] = "characters",
    [SB_UNITS_BYTES] = "bytes", [SB_UNITS_WORDS] = "words",
    [SB_UNITS_BPE] = "bpe",     NULL};

/* All of them, bound to one struct settings. */
struct table {
    enum setting_group group; /* of those that are added */
    int count;
    struct setting at[MOST_SETTINGS];
};

static struct setting *add(struct table *t, const char *name, double least, double most,
                           const char *help)
{
    assert(t->count < MOST_SETTINGS);
    t->at[t->count] = (struct setting){
        .name = name, .group = t->group, .least = least, .most = most, .help = help};
    return &t->at[t->count++];
}

static void add_count(struct table *t, const char *name, int64_t *count, double least, double most,
                      const char *help)
{
    add(t, name, least, most, help)->count = count;
}

static void add_small(struct table *t, const char *name, int *small, double least, double most,
                      const char *help)
{
    add(t, name, least, most, help)->small = small;
}

static void add_seed(struct table *t, const char *name, uint64_t *seed, const char *help)
{
    add(t, name, 0, 9007199254740991.0, help)->seed = seed;
}

static void add_number(struct table *t, const char *name, double *number, double least, double most,
                       const char *help)
{
    add(t, name, least, most, help)->number = number;
}

static void add_flag(struct table *t, const char *name, bool *flag, const char *help)
{
    add(t, name, 0, 0, help)->flag = flag;
}

static void add_choice(struct table *t, const char *name, unsigned *choice,
                       const char *const *choices, const char *help)
{
    struct setting *setting = add(t, name, 0, 0, help);
    setting->choice = choice;
    setting->choices = choices;
}

static void add_model(struct table *t, sb_seq2seq_options *model)
{
    sb_transformer_options *o = &model->transformer;
    t->group = SETTING_OF_MODEL;
    add_count(t, "width", &o->width, 1, 1 << 20,
              "size of embeddings and layers; built-in tasks take 64");
    add_count(t, "heads", &o->heads, 1, 1 << 16, "attention heads");
    add_count(t, "key-heads", &o->key_heads, 0, 1 << 16,
              "heads of keys and values (0: as many as heads)");
    add_count(t, "feed-forward", &o->feed_forward, 0, 1 << 24,
              "hidden size of the feed-forward part (0: 4 x width)");
    add_small(t, "encoder-layers", &o->encoder_layers, 1, 1000,
              "encoder layers; built-in tasks take 2");
    add_small(t, "decoder-layers", &o->decoder_layers, 1, 1000,
              "decoder layers; built-in tasks take 2");
    add_choice(t, "norm", &o->norm_place, norm_places, "norms before or after each part");
    add_choice(t, "norm-kind", &o->norm_kind, norm_kinds, "kind of norm");
    add_choice(t, "activation", &o->activation, activations, "activation of the feed-forward part");
    add_flag(t, "gated", &o->gated, "gate the feed-forward part");
    add_choice(t, "score", &o->score, scores, "how attention scores are scaled");
    add_number(t, "temperature", &o->temperature, 0, 1e6,
               "extra divisor of attention scores (0: 1)");
    add_choice(t, "attention", &o->attention, algorithms,
               "how attention is computed: with stored weights, or by tiles");
    add_flag(t, "recompute", &o->recompute, "compute layers again in backward, which saves memory");
    add_choice(t, "positions", &o->positions, positions, "positional encoding");
    add_count(t, "positions-longest", &o->longest, 0, 1 << 24,
              "how many positions are learned (0: 512)");
    add_flag(t, "tie-embeddings", &model->tie_embeddings,
             "the output uses the target's embeddings");
    add_flag(t, "share-embeddings", &model->share_embeddings,
             "source and target share embeddings (with --joint-vocabulary)");
}

static void add_step(struct table *t, struct settings *s)
{
    t->group = SETTING_OF_TRAINING;
    add_number(t, "dropout", &s->model.transformer.dropout, 0, 0.999,
               "share of units dropped while training");
    add_choice(t, "precision", &s->model.transformer.precision, precisions,
               "dtype of activations in training; weights stay f32");
    add_choice(t, "cuda-graph", &s->trainer.graphs, graphs,
               "on cuda: launch a step as one graph where its shape came before");
    add_number(t, "label-smoothing", &s->model.label_smoothing, 0, 0.999,
               "share of each target spread over all symbols");
    add_count(t, "steps", &s->steps, 0, 1e12, "steps of training (0: chosen by the data)");
}

static void add_optimiser(struct table *t, sb_trainer_options *trainer)
{
    sb_optimiser_options *o = &trainer->optimiser;
    sb_schedule *schedule = &o->schedule;
    t->group = SETTING_OF_TRAINING;
    add_choice(t, "optimiser", &trainer->optimiser_kind, optimisers, "optimiser");
    add_number(t, "learning-rate", &schedule->rate, 0, 1e6,
               "highest learning rate (0: 0.024 / root of the width)");
    add_choice(t, "schedule", &schedule->kind, schedules, "how the learning rate falls");
    add_count(t, "warmup", &schedule->warmup, 0, 1e12, "steps over which the learning rate rises");
    add_number(t, "lowest-rate", &schedule->lowest, 0, 1e6, "where cosine and plateau end");
    add_small(t, "plateau-patience", &schedule->patience, 0, 1000000,
              "evaluations without a lower loss before plateau lowers the rate (0: 2)");
    add_number(t, "plateau-factor", &schedule->factor, 0, 0.999999,
               "what plateau multiplies the rate with (0: 0.5)");
    add_number(t, "beta1", &o->beta1, 0, 0.999999, "Adam: decay of the mean of gradients");
    add_number(t, "beta2", &o->beta2, 0, 0.999999999, "Adam: decay of the mean of their squares");
    add_number(t, "epsilon", &o->epsilon, 0, 1, "Adam: added to the root (0: 1e-9)");
    add_number(t, "momentum", &o->momentum, 0, 0.999999, "SGD: momentum");
    add_flag(t, "nesterov", &o->nesterov, "SGD: Nesterov's momentum");
    add_number(t, "weight-decay", &o->weight_decay, 0, 1e6, "decay of weights");
    add_number(t, "clip", &o->clip, 0, 1e12, "largest norm of the gradient (0: no limit)");
    add_count(t, "accumulate", &trainer->accumulate, 1, 1 << 20,
              "batches whose gradients make one step");
    add_number(t, "average", &trainer->average_decay, 0, 0.9999999,
               "decay of a moving average of the weights, which is then used (0: none)");
}

static void add_run(struct table *t, struct settings *s)
{
    t->group = SETTING_OF_TRAINING;
    add_seed(t, "seed", &s->trainer.seed, "of weights, dropout and the order of pairs");
    add_count(t, "evaluate-every", &s->evaluate_every, 0, 1e12,
              "steps between evaluations (0: a twentieth of them)");
    add_count(t, "evaluate-pairs", &s->evaluate_pairs, 0, 1e12,
              "how many held-out pairs an evaluation decodes");
    add_count(t, "patience", &s->patience, 0, 1e9,
              "stop after so many evaluations without a better one (0: never)");
}

static void add_data(struct table *t, struct settings *s)
{
    t->group = SETTING_OF_DATA;
    add_choice(t, "source-units", &s->source_units, units, "what the source is cut into");
    add_choice(t, "target-units", &s->target_units, units, "what the target is cut into");
    add_count(t, "vocabulary", &s->vocabulary, 0, 1 << 24,
              "most symbols of a vocabulary (0: no limit; bpe 8000)");
    add_flag(t, "joint-vocabulary", &s->joint_vocabulary, "one vocabulary for source and target");
    add_count(t, "batch-pairs", &s->data.batch_pairs, 1, 1 << 20, "most pairs of a batch");
    add_count(t, "batch-symbols", &s->data.batch_symbols, 1, 1 << 26,
              "most symbols of a batch, with padding");
    add_count(t, "longest", &s->data.longest, 1, 1 << 20,
              "pairs with more symbols on a side are left out");
    add_small(t, "min-length", &s->task.min_length, 0, SB_TASK_LENGTH,
              "fewest digits of copy, reverse and sort (0: 1)");
    add_small(t, "max-length", &s->task.max_length, 0, SB_TASK_LENGTH,
              "most digits of copy, reverse and sort (0: 16)");
}

static struct table table_of(struct settings *s)
{
    struct table t = {.count = 0};
    add_model(&t, &s->model);
    add_step(&t, s);
    add_optimiser(&t, &s->trainer);
    add_run(&t, s);
    add_data(&t, s);
    return t;
}

struct setting setting_at(struct settings *settings, int i)
{
    struct table t = table_of(settings);
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
    const struct table t = table_of(&any);
    for (int i = 0; i < t.count; i++)
        if (strcmp(t.at[i].name, name) == 0)
            return i;
    return -1;
}

struct settings settings_default(void)
{
    return (struct settings){
        .model = {.transformer = {.width = 128,
                                  .heads = 4,
                                  .encoder_layers = 3,
                                  .decoder_layers = 3,
                                  .dropout = 0.1,
                                  .activation = SB_RELU}},
        .trainer = {.seed = 1,
                    .accumulate = 1,
                    .optimiser = {.schedule = {.kind = SB_SCHEDULE_COSINE, .warmup = 200},
                                  .beta1 = 0.9,
                                  .beta2 = 0.98,
                                  .clip = 1}},
        .data = {.batch_pairs = 64, .batch_symbols = 4096, .longest = 512},
        .evaluate_pairs = 500,
    };
}

/* ---- from text and to text ---- */

static bool set_choice(const struct setting *setting, const char *text)
{
    char all[160] = "";
    for (unsigned i = 0; setting->choices[i]; i++) {
        if (strcmp(setting->choices[i], text) == 0) {
            *setting->choice = i;
            return true;
        }
        strcat(strcat(all, i ? ", " : ""), setting->choices[i]);
    }
    return sb_fail("--%s: \"%s\" is none of %s", setting->name, text, all);
}

static bool set_flag(const struct setting *setting, const char *text)
{
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return sb_fail("--%s: \"%s\" is neither true nor false", setting->name, text);
    *setting->flag = text[0] == 't';
    return true;
}

static bool set_number(const struct setting *setting, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= setting->least && value <= setting->most))
        return sb_fail("--%s: \"%s\" is not a number in %.10g..%.10g", setting->name, text,
                       setting->least, setting->most);
    *setting->number = value;
    return true;
}

static bool set_count(const struct setting *setting, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || (double)value < setting->least ||
        (double)value > setting->most)
        return sb_fail("--%s: \"%s\" is not a whole number in %.10g..%.10g", setting->name, text,
                       setting->least, setting->most);
    if (setting->small)
        *setting->small = (int)value;
    else if (setting->seed)
        *setting->seed = (uint64_t)value;
    else
        *setting->count = value;
    return true;
}

bool setting_set(struct settings *settings, int i, const char *text)
{
    const struct setting setting = setting_at(settings, i);
    return setting.choice   ? set_choice(&setting, text)
           : setting.flag   ? set_flag(&setting, text)
           : setting.number ? set_number(&setting, text)
                            : set_count(&setting, text);
}

/* The fewest digits from which the same bits are read. */
static struct setting_text shortest(double number)
{
    struct setting_text value;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(value.text, sizeof value.text, "%.*g", digits, number);
        if (strtod(value.text, NULL) == number)
            break;
    }
    return value;
}

static struct setting_text whole(long long count)
{
    struct setting_text value;
    snprintf(value.text, sizeof value.text, "%lld", count);
    return value;
}

static struct setting_text word(const char *text)
{
    struct setting_text value;
    snprintf(value.text, sizeof value.text, "%s", text);
    return value;
}

struct setting_text setting_get(const struct settings *settings, int i)
{
    struct settings copy = *settings; /* a setting can be written to */
    const struct setting setting = setting_at(&copy, i);
    return setting.choice   ? word(setting.choices[*setting.choice])
           : setting.flag   ? word(*setting.flag ? "true" : "false")
           : setting.number ? shortest(*setting.number)
           : setting.small  ? whole(*setting.small)
           : setting.seed   ? whole((long long)*setting.seed)
                            : whole(*setting.count);
}
