#include "models/training/settings.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const norm_places[] = {"pre", "post", NULL};
static const char *const norm_kinds[] = {"layer", "rms", NULL};
static const char *const activations[] = {"identity", "relu", "gelu",    "gelu-tanh",
                                          "silu",     "tanh", "sigmoid", NULL};
static const char *const scores[] = {"scaled", "balanced", "cosine", NULL};
static const char *const graphs[] = {"auto", "off", NULL};
static const char *const precisions[] = {"f32", "bf16", NULL};
static const char *const algorithms[] = {"auto", "composed", "tiled", NULL};
static const char *const positions[] = {"sinusoidal", "learned", "rotary", "alibi",
                                        "relative",   "none",    NULL};
static const char *const optimisers[] = {"adam", "adamw", "sgd", NULL};
static const char *const schedules[] = {"constant", "inverse-root", "cosine", "plateau", NULL};
static const char *const units[] = {"auto", "characters", "bytes", "words", "bpe", NULL};

#define AT(member) offsetof(struct settings, member)
#define TRANSFORMER(member) AT(model.transformer.member)
#define OPTIMISER(member) AT(trainer.optimiser.member)
#define MODEL SETTING_OF_MODEL
#define TRAINING SETTING_OF_TRAINING
#define DATA SETTING_OF_DATA
#define COUNT SETTING_COUNT
#define NUMBER SETTING_NUMBER
#define CHOICE SETTING_CHOICE
#define FLAG SETTING_FLAG

static const struct setting settings[] = {
    {"width", MODEL, COUNT, TRANSFORMER(width), 1, 1 << 20, NULL,
     "size of embeddings and layers; built-in tasks take 64"},
    {"heads", MODEL, COUNT, TRANSFORMER(heads), 1, 1 << 16, NULL, "attention heads"},
    {"key-heads", MODEL, COUNT, TRANSFORMER(key_heads), 0, 1 << 16, NULL,
     "heads of keys and values (0: as many as heads)"},
    {"feed-forward", MODEL, COUNT, TRANSFORMER(feed_forward), 0, 1 << 24, NULL,
     "hidden size of the feed-forward part (0: 4 x width)"},
    {"encoder-layers", MODEL, COUNT, TRANSFORMER(encoder_layers), 1, 1000, NULL,
     "encoder layers; built-in tasks take 2"},
    {"decoder-layers", MODEL, COUNT, TRANSFORMER(decoder_layers), 1, 1000, NULL,
     "decoder layers; built-in tasks take 2"},
    {"norm", MODEL, CHOICE, TRANSFORMER(norm_place), 0, 0, norm_places,
     "norms before or after each part"},
    {"norm-kind", MODEL, CHOICE, TRANSFORMER(norm_kind), 0, 0, norm_kinds, "kind of norm"},
    {"activation", MODEL, CHOICE, TRANSFORMER(activation), 0, 0, activations,
     "activation of the feed-forward part"},
    {"gated", MODEL, FLAG, TRANSFORMER(gated), 0, 0, NULL, "gate the feed-forward part"},
    {"score", MODEL, CHOICE, TRANSFORMER(score), 0, 0, scores, "how attention scores are scaled"},
    {"temperature", MODEL, NUMBER, TRANSFORMER(temperature), 0, 1e6, NULL,
     "what attention scores are divided by besides (0: 1)"},
    {"attention", MODEL, CHOICE, TRANSFORMER(attention), 0, 0, algorithms,
     "how attention is computed: with stored weights, or by tiles"},
    {"recompute", MODEL, FLAG, TRANSFORMER(recompute), 0, 0, NULL,
     "compute layers again in backward, which saves memory"},
    {"positions", MODEL, CHOICE, TRANSFORMER(positions), 0, 0, positions,
     "how the order of symbols is told"},
    {"positions-longest", MODEL, COUNT, TRANSFORMER(longest), 0, 1 << 24, NULL,
     "how many positions are learned (0: 512)"},
    {"tie-embeddings", MODEL, FLAG, AT(model.tie_embeddings), 0, 0, NULL,
     "the output uses the target's embeddings"},
    {"share-embeddings", MODEL, FLAG, AT(model.share_embeddings), 0, 0, NULL,
     "source and target share embeddings (with --joint-vocabulary)"},

    {"dropout", TRAINING, NUMBER, TRANSFORMER(dropout), 0, 0.999, NULL,
     "share of units dropped while training"},
    {"precision", TRAINING, CHOICE, TRANSFORMER(precision), 0, 0, precisions,
     "what layers hand on while training; weights stay f32"},
    {"cuda-graph", TRAINING, CHOICE, AT(trainer.graphs), 0, 0, graphs,
     "on cuda: launch a step at once where its shape came before"},
    {"label-smoothing", TRAINING, NUMBER, AT(model.label_smoothing), 0, 0.999, NULL,
     "share of each target spread over all symbols"},
    {"steps", TRAINING, COUNT, AT(steps), 0, 1e12, NULL,
     "steps of training (0: chosen by the data)"},
    {"optimiser", TRAINING, CHOICE, AT(trainer.optimiser_kind), 0, 0, optimisers, "optimiser"},
    {"learning-rate", TRAINING, NUMBER, OPTIMISER(schedule.rate), 0, 1e6, NULL,
     "highest learning rate (0: 0.024 / root of the width)"},
    {"schedule", TRAINING, CHOICE, OPTIMISER(schedule.kind), 0, 0, schedules,
     "how the learning rate falls"},
    {"warmup", TRAINING, COUNT, OPTIMISER(schedule.warmup), 0, 1e12, NULL,
     "steps over which the learning rate rises"},
    {"lowest-rate", TRAINING, NUMBER, OPTIMISER(schedule.lowest), 0, 1e6, NULL,
     "where cosine and plateau end"},
    {"plateau-patience", TRAINING, COUNT, OPTIMISER(schedule.patience), 0, 1000000, NULL,
     "evaluations without a lower loss before plateau lowers the rate (0: 2)"},
    {"plateau-factor", TRAINING, NUMBER, OPTIMISER(schedule.factor), 0, 0.999999, NULL,
     "what plateau multiplies the rate with (0: 0.5)"},
    {"beta1", TRAINING, NUMBER, OPTIMISER(beta1), 0, 0.999999, NULL,
     "Adam: decay of the mean of gradients"},
    {"beta2", TRAINING, NUMBER, OPTIMISER(beta2), 0, 0.999999999, NULL,
     "Adam: decay of the mean of their squares"},
    {"epsilon", TRAINING, NUMBER, OPTIMISER(epsilon), 0, 1, NULL,
     "Adam: added to the root (0: 1e-9)"},
    {"momentum", TRAINING, NUMBER, OPTIMISER(momentum), 0, 0.999999, NULL, "SGD: momentum"},
    {"nesterov", TRAINING, FLAG, OPTIMISER(nesterov), 0, 0, NULL, "SGD: Nesterov's momentum"},
    {"weight-decay", TRAINING, NUMBER, OPTIMISER(weight_decay), 0, 1e6, NULL, "decay of weights"},
    {"clip", TRAINING, NUMBER, OPTIMISER(clip), 0, 1e12, NULL,
     "largest norm of the gradient (0: no limit)"},
    {"accumulate", TRAINING, COUNT, AT(trainer.accumulate), 1, 1 << 20, NULL,
     "batches whose gradients make one step"},
    {"average", TRAINING, NUMBER, AT(trainer.average_decay), 0, 0.9999999, NULL,
     "decay of a moving average of the weights, which is then used (0: none)"},
    {"seed", TRAINING, COUNT, AT(trainer.seed), 0, 9007199254740991.0, NULL,
     "of weights, dropout and the order of pairs"},
    {"evaluate-every", TRAINING, COUNT, AT(evaluate_every), 0, 1e12, NULL,
     "steps between evaluations (0: a twentieth of them)"},
    {"evaluate-pairs", TRAINING, COUNT, AT(evaluate_pairs), 0, 1e12, NULL,
     "how many held-out pairs an evaluation decodes"},
    {"patience", TRAINING, COUNT, AT(patience), 0, 1e9, NULL,
     "stop after so many evaluations without a better one (0: never)"},

    {"source-units", DATA, CHOICE, AT(source_units), 0, 0, units, "what the source is cut into"},
    {"target-units", DATA, CHOICE, AT(target_units), 0, 0, units, "what the target is cut into"},
    {"vocabulary", DATA, COUNT, AT(vocabulary), 0, 1 << 24, NULL,
     "most symbols of a vocabulary (0: no limit; bpe 8000)"},
    {"joint-vocabulary", DATA, FLAG, AT(joint_vocabulary), 0, 0, NULL,
     "one vocabulary for source and target"},
    {"batch-pairs", DATA, COUNT, AT(data.batch_pairs), 1, 1 << 20, NULL, "most pairs of a batch"},
    {"batch-symbols", DATA, COUNT, AT(data.batch_symbols), 1, 1 << 26, NULL,
     "most symbols of a batch, with padding"},
    {"longest", DATA, COUNT, AT(data.longest), 1, 1 << 20, NULL,
     "pairs with more symbols on a side are left out"},
    {"min-length", DATA, COUNT, AT(task.min_length), 0, SB_TASK_LENGTH, NULL,
     "fewest digits of copy, reverse and sort (0: 1)"},
    {"max-length", DATA, COUNT, AT(task.max_length), 0, SB_TASK_LENGTH, NULL,
     "most digits of copy, reverse and sort (0: 16)"},
};

_Static_assert(sizeof settings / sizeof settings[0] <= MOST_SETTINGS, "too many settings");

const struct setting *setting_at(int i)
{
    return i >= 0 && i < (int)(sizeof settings / sizeof settings[0]) ? &settings[i] : NULL;
}

const struct setting *setting_find(const char *name)
{
    for (int i = 0; setting_at(i); i++)
        if (strcmp(settings[i].name, name) == 0)
            return &settings[i];
    return NULL;
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

/* Counts are int64_t, uint64_t or int, as their place in the struct says. */
static bool is_int(const struct setting *setting)
{
    return setting->offset == TRANSFORMER(encoder_layers) ||
           setting->offset == TRANSFORMER(decoder_layers) ||
           setting->offset == AT(task.min_length) || setting->offset == AT(task.max_length) ||
           setting->offset == OPTIMISER(schedule.patience);
}

static bool set_choice(void *place, const struct setting *setting, const char *text)
{
    char all[160] = "";
    for (int i = 0; setting->choices[i]; i++) {
        if (strcmp(setting->choices[i], text) == 0) {
            memcpy(place, &i, sizeof i); /* an enum has the size of an int */
            return true;
        }
        strcat(strcat(all, i ? ", " : ""), setting->choices[i]);
    }
    return sb_fail("--%s: \"%s\" is none of %s", setting->name, text, all);
}

static bool set_flag(bool *place, const struct setting *setting, const char *text)
{
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return sb_fail("--%s: \"%s\" is neither true nor false", setting->name, text);
    *place = text[0] == 't';
    return true;
}

static bool out_of_range(const struct setting *setting, const char *text)
{
    return sb_fail("--%s: \"%s\" is not a %s in %.10g..%.10g", setting->name, text,
                   setting->type == SETTING_COUNT ? "whole number" : "number", setting->least,
                   setting->most);
}

static bool set_count(void *place, const struct setting *setting, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || (double)value < setting->least ||
        (double)value > setting->most)
        return out_of_range(setting, text);
    if (is_int(setting))
        *(int *)place = (int)value;
    else
        *(int64_t *)place = value;
    return true;
}

static bool set_number(double *place, const struct setting *setting, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= setting->least && value <= setting->most))
        return out_of_range(setting, text);
    *place = value;
    return true;
}

bool setting_set(struct settings *all, const struct setting *setting, const char *text)
{
    void *place = (char *)all + setting->offset;
    switch (setting->type) {
    case SETTING_COUNT:
        return set_count(place, setting, text);
    case SETTING_NUMBER:
        return set_number(place, setting, text);
    case SETTING_CHOICE:
        return set_choice(place, setting, text);
    case SETTING_FLAG:
        return set_flag(place, setting, text);
    }
    return false;
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

struct setting_text setting_get(const struct settings *all, const struct setting *setting)
{
    const void *place = (const char *)all + setting->offset;
    struct setting_text value;
    int choice;
    switch (setting->type) {
    case SETTING_COUNT:
        snprintf(value.text, sizeof value.text, "%lld",
                 is_int(setting) ? (long long)*(const int *)place
                                 : (long long)*(const int64_t *)place);
        break;
    case SETTING_NUMBER:
        value = shortest(*(const double *)place);
        break;
    case SETTING_CHOICE:
        memcpy(&choice, place, sizeof choice);
        snprintf(value.text, sizeof value.text, "%s", setting->choices[choice]);
        break;
    case SETTING_FLAG:
        snprintf(value.text, sizeof value.text, "%s", *(const bool *)place ? "true" : "false");
        break;
    }
    return value;
}
