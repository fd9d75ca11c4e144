#include "models/training/settings.h"
#include "models/kinds.h"
#include "nn/shares_run.h"
#include "tensor/failure.h"
#include <math.h>
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

#define AT(member) offsetof(struct settings, member)
#define ROW(member) FIELD(struct settings, member)

static const struct field graph_fields[] = {
    {"cuda-graph", ROW(trainer.graphs),
     "on cuda: replay a step as one graph if its shapes occurred before", .choices = graphs},
    {0}};

static const struct field training_fields[] = {
    {"steps", ROW(steps), "training steps (0: depends on the size of the data)", 0, 1e12,
     .kind = SETTING_MAY_CHANGE},
    {"optimiser", ROW(trainer.optimiser_kind), "optimiser", .choices = optimisers},
    {"learning-rate", ROW(trainer.optimiser.schedule.rate),
     "highest learning rate (0: 0.024 / square root of width)", 0, 1e6, .zero = ZERO_IS_DEFAULT},
    {"schedule", ROW(trainer.optimiser.schedule.kind), "learning rate schedule",
     .choices = schedules},
    {"warmup", ROW(trainer.optimiser.schedule.warmup),
     "warmup steps, over which the learning rate rises", 0, 1e12},
    {"lowest-rate", ROW(trainer.optimiser.schedule.lowest),
     "lowest rate of cosine, linear, restarts, plateau", 0, 1e6},
    {"cycle", ROW(trainer.optimiser.schedule.cycle),
     "restarts: steps of the first cycle (0: steps / 4)", 0, 1e12},
    {"cycle-growth", ROW(trainer.optimiser.schedule.growth),
     "restarts: how many times longer each cycle is than the last (0: 1)", 0, 1e6},
    {"plateau-patience", ROW(trainer.optimiser.schedule.patience),
     "evaluations without improvement before plateau lowers the rate (0: 2)", 0, 1000000},
    {"plateau-factor", ROW(trainer.optimiser.schedule.factor),
     "factor by which plateau lowers the rate (0: 0.5)", 0, 0.999999, .zero = ZERO_IS_DEFAULT},
    {"beta1", ROW(trainer.optimiser.beta1), "Adam: decay of the first moment", 0, 0.999999,
     .zero = ZERO_IS_DEFAULT},
    {"beta2", ROW(trainer.optimiser.beta2), "Adam: decay of the second moment", 0, 0.999999999,
     .zero = ZERO_IS_DEFAULT},
    {"epsilon", ROW(trainer.optimiser.epsilon), "Adam: added to the denominator (0: 1e-9)", 0, 1,
     .zero = ZERO_IS_DEFAULT},
    {"momentum", ROW(trainer.optimiser.momentum), "SGD: momentum", 0, 0.999999},
    {"nesterov", ROW(trainer.optimiser.nesterov), "SGD: Nesterov momentum"},
    {"weight-decay", ROW(trainer.optimiser.weight_decay),
     "weight decay; with adamw not of biases and norms", 0, 1e6},
    {"decay-all", ROW(trainer.optimiser.decay_all), "AdamW: weight decay of biases and norms too"},
    {"clip", ROW(trainer.optimiser.clip), "clip the gradient's norm to X (0: no limit)", 0, 1e12},
    {"shares", ROW(trainer.shares),
     "divide a batch into N shares, for threads; 0: chosen by its size, 1: none", 0, MOST_SHARES},
    {"accumulate", ROW(trainer.accumulate), "gradient accumulation: batches in one optimiser step",
     1, 1 << 20},
    {"average", ROW(trainer.average_decay),
     "save an exponential moving average (EMA) of the weights with this decay (0: off)", 0,
     0.9999999},
    {"seed", ROW(trainer.seed), "seed of weights, dropout and order of pairs", 0, MOST_SEED},
    {"evaluate-every", ROW(evaluate_every), "steps between evaluations (0: steps / 20)", 0, 1e12},
    {"evaluate-pairs", ROW(evaluate_pairs), "number of held-out pairs that an evaluation decodes",
     0, 1e12, .models = "seq2seq"},
    {"patience", ROW(patience),
     "early stopping: stop after N evaluations without improvement (0: never)", 0, 1e9,
     .kind = SETTING_MAY_CHANGE},
    {"best", ROW(best),
     "choose the best model by loss, exact match, error (edit distance), BLEU or accuracy; auto: "
     "bleu from words to words, exact for other pairs, accuracy for a classifier, loss for a "
     "language model",
     .choices = best_scores},
    {"keep", ROW(keep),
     "keep the models of the last N evaluations next to --out, for softback average (0: none)", 0,
     MOST_KEPT},
    {0}};

enum { WORDS = SETTING_OF_FILES | SETTING_OF_WORDS };

static const struct field data_fields[] = {
    {"source-units", ROW(source_units), "tokenisation of the source", .choices = units,
     .kind = WORDS, .models = "seq2seq"},
    {"target-units", ROW(target_units), "tokenisation of the target", .choices = units,
     .kind = WORDS, .models = "seq2seq"},
    {"vocabulary", ROW(vocabulary), "most symbols of a vocabulary (0: unlimited; bpe: 8000)", 0,
     1 << 24, .kind = WORDS},
    {"joint-vocabulary", ROW(joint_vocabulary), "one vocabulary for source and target",
     .kind = WORDS, .models = "seq2seq"},
    {"batch-pairs", ROW(data.batch_pairs), "maximum number of pairs in a batch", 1, 1 << 20},
    {"batch-symbols", ROW(data.batch_symbols), "most symbols of a batch, with padding", 1, 1 << 26},
    {"longest", ROW(data.longest), "longest source or target in symbols; longer pairs are left out",
     1, 1 << 20, .models = "seq2seq classifier"},
    {"min-length", ROW(task.min_length), "fewest digits of copy, reverse and sort (0: 1)", 0,
     SB_TASK_LENGTH, .kind = SETTING_OF_TASKS},
    {"max-length", ROW(task.max_length), "most digits of copy, reverse and sort (0: 16)", 0,
     SB_TASK_LENGTH, .kind = SETTING_OF_TASKS},
    {"units", ROW(units), "tokenisation of the text", .choices = units, .kind = WORDS,
     .models = "language_model classifier"},
    {"documents", ROW(documents),
     "how to divide a text into documents: one for each file, paragraph or line",
     .choices = document_cuts, .kind = SETTING_OF_FILES, .models = "language_model"},
    {0}};

static const struct field tuning_fields[] = {
    {"freeze", ROW(tuning.freeze),
     "do not train the parameters whose names match PATTERN, such as \"encoder.*\"; may be "
     "repeated",
     .argument = "PATTERN", .separator = ','},
    {"group", ROW(tuning.groups),
     "give parameters a factor of the learning rate, a weight decay, or freeze them: "
     "\"PATTERN:rate=0.1,decay=0\" or \"PATTERN:frozen\"; may be repeated, and the last one that "
     "matches counts",
     .argument = "GROUP", .separator = ';'},
    {"lora", ROW(tuning.lora),
     "train LoRA adapters of rank N for the model of --from, which is frozen; --out has the "
     "adapters alone (0: off)",
     0, 1 << 16},
    {"lora-on", ROW(tuning.lora_on), "the layers that get adapters (0: *.query,*.value)",
     .argument = "PATTERN", .separator = ','},
    {"lora-alpha", ROW(tuning.lora_alpha), "adapters are multiplied by X / rank (0: rank)", 0, 1e6,
     .zero = ZERO_IS_DEFAULT_ALONE},
    {0}};

/* The order of files and of `softback info`. */
const struct field settings_fields[] = {
    {.rows = transformer_fields, .at = AT(model.transformer), .group = FIELD_OF_MODEL},
    {.rows = tie_fields, .at = AT(model), .group = FIELD_OF_MODEL},
    {.rows = dropout_fields, .at = AT(model.transformer), .group = FIELD_OF_TRAINING},
    {.rows = graph_fields, .group = FIELD_OF_TRAINING},
    {.rows = smoothing_fields, .at = AT(model), .group = FIELD_OF_TRAINING},
    {.rows = training_fields, .group = FIELD_OF_TRAINING},
    {.rows = data_fields, .group = FIELD_OF_DATA},
    {.rows = own_fields, .at = AT(model), .group = FIELD_OF_MODEL},
    {.rows = tuning_fields, .group = FIELD_OF_TRAINING},
    {0}};
#undef ROW
#undef AT

struct field setting_at(int i)
{
    return field_at(settings_fields, i);
}

const char *setting_name(int i)
{
    return setting_at(i).name;
}

int setting_find(const char *name)
{
    const char *known;
    for (int i = 0; (known = setting_name(i)); i++)
        if (strcmp(known, name) == 0)
            return i;
    return -1;
}

bool setting_is_of(int i, const sb_model_kind *kind)
{
    const struct field field = setting_at(i);
    return field_is_of(&field, kind);
}

struct settings settings_default(void)
{
    struct settings s = {
        .model = seq2seq_defaults,
        .trainer = {.seed = 1,
                    .accumulate = 1,
                    .optimiser = {.schedule = {.kind = SB_SCHEDULE_COSINE, .warmup = 200},
                                  .beta1 = 0.9,
                                  .beta2 = 0.98,
                                  .clip = 1}},
        .data = {.batch_pairs = 64, .batch_symbols = 4096, .longest = 512},
        .evaluate_pairs = 500,
    };
    s.model.context = 128;
    return s;
}

double settings_usual_rate(const struct settings *s)
{
    return s->trainer.optimiser_kind == SB_OPTIMISER_SGD
               ? 0.1
               : 0.024 / sqrt((double)s->model.transformer.width);
}

bool setting_set(struct settings *settings, int i, const char *text)
{
    const struct field field = setting_at(i);
    return field_write(&field, settings, text);
}

struct field_text setting_get(const struct settings *settings, int i)
{
    const struct field field = setting_at(i);
    return field_read(&field, settings);
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
