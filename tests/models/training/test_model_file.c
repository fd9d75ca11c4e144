/* Settings, and files of models. */
#include "models/kinds.h"
#include "models/training/metadata.h"
#include "nn/flat.h"
#include "tests/support/mailbox.h"
#include "tests/support/small_run.h"
#include <stdio.h>

/* Models of other kinds than encoder-decoders: the language model is trained, saved, loaded,
   resumed and shared by ranks through the table of its kind. */

static const sb_language_model_options options = {.transformer = {.width = 8,
                                                                  .heads = 2,
                                                                  .feed_forward = 12,
                                                                  .decoder_layers = 2,
                                                                  .dropout = 0.2,
                                                                  .gated = true},
                                                  .tie_embeddings = true,
                                                  .label_smoothing = 0.1};

/* A language model that learns the targets of a few pairs. */
struct writing {
    sb_data *data;
    sb_parameters *weights;
    sb_model model;
    sb_trainer *trainer;
};

static sb_data *open_data(const sb_pairs *pairs)
{
    struct settings s = small_settings();
    return small_data(&s, pairs);
}

static void open_with(struct writing *w, const sb_trainer_options *o)
{
    const sb_source source = sb_data_as_source(w->data);
    w->trainer = sb_trainer_for(&w->model, &source, o);
    MUST(w->trainer);
}

/* The trainer of its model. */
static void open_trainer(struct writing *w)
{
    open_with(w, &(sb_trainer_options){
                     .seed = 3, .average_decay = 0.9, .optimiser = {.schedule = {.rate = 0.01}}});
}

static struct writing begin(const sb_pairs *pairs, sb_dtype dtype,
                            const sb_language_model_options *o)
{
    struct writing w = {.data = open_data(pairs), .weights = sb_parameters_of(dtype, 5)};
    sb_language_model *model = MUST(sb_language_model_new(w.weights, w.data, o));
    w.model = sb_language_model_as_model(model);
    return w;
}

/* A model that is built only from a file. */
static struct writing begin_from(const sb_pairs *pairs, const char *path)
{
    struct writing w = {.data = open_data(pairs), .weights = sb_parameters_new(9)};
    MUST(sb_model_load(&w.model, NULL, w.weights, path));
    return w;
}

static void end(struct writing *w)
{
    sb_trainer_free(w->trainer);
    sb_model_free(&w->model);
    sb_parameters_free(w->weights);
    sb_data_free(w->data);
}

static double train(struct writing *w, int64_t steps)
{
    sb_trained trained = {0};
    for (int64_t i = 0; i < steps; i++)
        MUST(sb_trainer_step(w->trainer, &trained));
    return trained.loss;
}

TEST(model_file, a_language_model_that_is_resumed_ends_with_the_same_bytes, WHOLE_MODELS)
{
    sb_pairs *pairs = KEPT(small_pairs(11, 6));
    char whole[256], half[256];
    strcpy(whole, test_temporary("whole.safetensors"));
    strcpy(half, test_temporary("half.safetensors"));
    struct writing w = begin(pairs, SB_F32, &options);
    open_trainer(&w);
    const double first = train(&w, 1), last = train(&w, 29);
    cr_expect(last < first, "from %g to %g", first, last);
    MUST(sb_checkpoint_save(w.trainer, whole));
    end(&w);
    w = begin(pairs, SB_F32, &options);
    open_trainer(&w);
    train(&w, 13);
    MUST(sb_checkpoint_save(w.trainer, half));
    end(&w);
    w = begin_from(pairs, half);
    open_trainer(&w);
    MUST(sb_checkpoint_resume(w.trainer, half));
    cr_expect(sb_trainer_steps(w.trainer) == 13);
    train(&w, 17);
    MUST(sb_checkpoint_save(w.trainer, half));
    end(&w);
    cr_expect(test_same_files(whole, half));
}

TEST(model_file, a_model_is_built_from_its_file_as_it_was, WHOLE_MODELS)
{
    sb_pairs *pairs = KEPT(small_pairs(11, 6));
    const char *path = test_temporary("model.safetensors");
    struct writing w = begin(pairs, SB_F32, &options);
    open_trainer(&w);
    train(&w, 5);
    MUST(sb_model_save(&w.model, path));
    struct writing back = begin_from(pairs, path);
    const sb_language_model_options *o = sb_language_model_options_of(back.model.self);
    cr_expect(o->transformer.gated && o->tie_embeddings && o->label_smoothing == 0.1);
    cr_expect(sb_parameters_fingerprint(back.weights) == sb_parameters_fingerprint(w.weights));
    struct checkpoint *c = checkpoint_open(path, NULL);
    cr_expect(c && c->fingerprint == sb_parameters_fingerprint(w.weights),
              "the file has another fingerprint than its parameters");
    checkpoint_free(c);
    char *before = sb_continue(w.model.self, "ab", NULL),
         *after = sb_continue(back.model.self, "ab", NULL);
    cr_expect_str_eq(before, after);
    sb_free(before);
    sb_free(after);
    REFUSED("parameters already; it must be empty",
            sb_model_load(&w.model, NULL, back.weights, path));
    end(&back);
    end(&w);
}

static void expect_no_resume(struct writing *w, const char *path, const char *reason)
{
    sb_trainer_free(w->trainer);
    open_trainer(w);
    REFUSED(reason, sb_checkpoint_resume(w->trainer, path));
    end(w);
}

TEST(model_file, only_the_training_of_the_same_model_and_data_is_resumed, KNOWN_KERNELS)
{
    sb_pairs *pairs = KEPT(small_pairs(11, 6)), *others = KEPT(small_pairs(12, 6));
    const char *path = test_temporary("state.safetensors");
    struct writing w = begin(pairs, SB_F32, &options), other;
    open_trainer(&w);
    train(&w, 2);
    MUST(sb_checkpoint_save(w.trainer, path));
    sb_language_model_options wider = options;
    wider.transformer.width = 12;
    other = begin(pairs, SB_F32, &wider);
    expect_no_resume(&other, path,
                     "checkpoint: \"width\" is 8 in the file, but 12 in the trainer's model");
    other = begin_from(others, path);
    expect_no_resume(&other, path, "checkpoint: the data differ from those that its training was");
    struct settings s = small_settings();
    struct small_run run = small_run(&s, pairs);
    REFUSED("checkpoint: its model is of kind \"language_model\", expected \"seq2seq\"",
            sb_checkpoint_resume(run.trainer, path));
    MUST(sb_model_save(&w.model, path));
    expect_no_resume(&w, path, "checkpoint: it has a model, but no training state");
    REFUSED("checkpoint: its model is of kind \"language_model\", expected \"seq2seq\"",
            checkpoint_open(path, &(struct checkpoint_options){.kind = &seq2seq_kind}));
}

TEST(model_file, the_same_functions_save_and_load_an_encoder_decoder, KNOWN_KERNELS)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL), twin = small_run(&s, NULL);
    char whole[256], half[256];
    strcpy(whole, test_temporary("whole.safetensors"));
    strcpy(half, test_temporary("half.safetensors"));
    small_run_train(&run, 7);
    cr_assert(sb_optimiser_set_rate(sb_trainer_optimiser(run.trainer), 0.002)); /* is kept too */
    MUST(sb_checkpoint_save(run.trainer, half));
    MUST(sb_checkpoint_resume(twin.trainer, half));
    small_run_train(&run, 4);
    small_run_train(&twin, 4);
    MUST(sb_checkpoint_save(run.trainer, whole));
    MUST(sb_checkpoint_save(twin.trainer, half));
    cr_expect(test_same_files(whole, half));
    checkpoint_free(checkpoint_open(half, NULL)); /* the program reads it too */
    cr_expect(sb_trainer_model(run.trainer) == run.model);
}

/* ---- ranks are threads here ---- */

enum { STEPS = 6, MOST = 3 };

struct shared {
    const sb_pairs *pairs;
    int cut; /* ranks that share each sequence */
    double loss[MOST];
    struct writing rank[MOST];
};

/* SGD, since Adam amplifies gradients that are only rounding error. */
static void open_shared(struct writing *w, sb_communicator *ranks, int cut)
{
    open_with(w, &(sb_trainer_options){.seed = 3,
                                       .optimiser_kind = SB_OPTIMISER_SGD,
                                       .optimiser = {.schedule = {.rate = 0.1}},
                                       .communicator = ranks,
                                       .sequence_ranks = cut});
}

static void share(sb_communicator *c, void *context)
{
    struct shared *s = context;
    const int rank = sb_communicator_rank(c);
    s->rank[rank] = begin(s->pairs, SB_F64, &options);
    open_shared(&s->rank[rank], c, s->cut);
    s->loss[rank] = train(&s->rank[rank], STEPS);
    sb_trainer_free(s->rank[rank].trainer); /* before the communicator is closed */
    s->rank[rank].trainer = NULL;
}

CPU_TEST(model_file, ranks_train_a_language_model_like_one_rank)
{
    sb_pairs *pairs = KEPT(small_pairs(11, 6));
    struct writing one = begin(pairs, SB_F64, &options);
    open_shared(&one, NULL, 1);
    const double loss = train(&one, STEPS);
    static const int ways[][2] = {{2, 1}, {3, 1}, {2, 2}}; /* ranks, and those of each sequence */
    for (int way = 0; way < 3; way++) {
        struct shared s = {.pairs = pairs, .cut = ways[way][1]};
        mailbox_run(ways[way][0], share, &s);
        for (int r = 0; r < ways[way][0]; r++) {
            const double apart =
                test_relative(parameters_values(s.rank[r].weights), parameters_values(one.weights));
            cr_expect(fabs(s.loss[r] - loss) <= 1e-12 * loss && apart <= 1e-12,
                      "rank %d of %d: loss %.17g, not %.17g; weights differ by %g", r, ways[way][0],
                      s.loss[r], loss, apart);
            end(&s.rank[r]);
        }
    }
    end(&one);
}

/* ---- settings ---- */

/* A value that is not the setting's default, with as many digits as its type has. */
static const char *other(const struct settings *usual, int i)
{
    static char text[40];
    const struct field f = setting_at(i);
    if (f.type == FIELD_FLAG)
        return "true";
    if (f.type == FIELD_TEXT)
        return "encoder.*:rate=0.1";
    if (f.type == FIELD_CHOICE)
        return f.choices[strcmp(field_read(&f, usual).text, f.choices[0]) == 0];
    if (f.type == FIELD_NUMBER)
        snprintf(text, sizeof text, "%.17g", f.least + (f.most < 1 ? 1 / 3. : 0.7));
    else
        snprintf(text, sizeof text, "%.0f", f.most > f.least + 7 ? f.least + 7 : f.most);
    return text;
}

CPU_TEST(settings, each_setting_reads_what_it_writes)
{
    const struct settings usual = settings_default();
    int count = 0;
    for (; setting_name(count); count++) {
        const char *name = setting_name(count);
        struct settings s = usual, back = usual;
        MUST(setting_set(&s, count, other(&usual, count)));
        struct field_text value = setting_get(&s, count);
        cr_expect(strcmp(value.text, setting_get(&usual, count).text) != 0, "%s stays", name);
        MUST(setting_set(&back, count, value.text));
        cr_expect(memcmp(&s, &back, sizeof s) == 0, "%s, written as %s", name, value.text);
        cr_expect(setting_find(name) == count, "%s occurs twice", name);
    }
    cr_expect(count > 40 && setting_find("no-such-setting") < 0);
}

/* Writes the settings of a kind of models to a description and reads them back. */
static void expect_settings_survive(const char *name)
{
    struct settings s = settings_default();
    const sb_model_kind *kind = sb_model_kind_find(name);
    for (int i = 0; setting_name(i); i++)
        MUST(setting_set(&s, i, other(&s, i)));
    const char *text = "a b";
    sb_vocabulary *v = KEPT(sb_vocabulary_new(&text, 1, NULL));
    struct metadata d = {.model = sb_description_new(name), .task = (char *)(uintptr_t) ""};
    MUST(fields_describe(settings_fields, &s, kind, d.model) &&
         sb_description_add_vocabulary(d.model, "source", v) &&
         sb_description_add_vocabulary(d.model, "target", v));
    cr_assert(sb_description_add_label(d.model, "cat") && sb_description_add_label(d.model, "dog"));
    char *json = KEPT(metadata_write(&d));
    struct metadata back;
    struct settings read;
    MUST(json && metadata_read(json, &back) && settings_read(&read, back.model));
    for (int i = 0; setting_name(i); i++) {
        const bool same = strcmp(setting_get(&read, i).text, setting_get(&s, i).text) == 0;
        cr_expect(same == setting_is_of(i, kind), "%s: %s", name, setting_name(i));
    }
    cr_expect_str_eq(sb_description_label(back.model, 1), "dog");
    cr_expect(!sb_description_label(back.model, 2));
    sb_description_free(d.model);
    metadata_free(&back);
}

CPU_TEST(settings, all_settings_of_a_kind_survive_a_checkpoints_description)
{
    expect_settings_survive("seq2seq");
    expect_settings_survive("language_model");
    expect_settings_survive("classifier");
}

CPU_TEST(settings, numbers_are_written_with_the_fewest_digits_that_give_the_same_bits)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.1, "0.1"}, {0.98, "0.98"}, {1, "1"}, {1e-12, "1e-12"}, {1 / 3., "0.3333333333333333"},
        {0, "0"}};
    const int rate = setting_find("lowest-rate");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct settings s = settings_default();
        s.trainer.optimiser.schedule.lowest = cases[i].value;
        cr_expect_str_eq(setting_get(&s, rate).text, cases[i].text);
    }
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int i = 0; i < 1000; i++) {
        struct settings s = settings_default(), back = s;
        s.trainer.optimiser.schedule.lowest = 1e6 * pow(sb_random_uniform(&random), 9);
        MUST(setting_set(&back, rate, setting_get(&s, rate).text));
        cr_expect(back.trainer.optimiser.schedule.lowest == s.trainer.optimiser.schedule.lowest);
    }
}

CPU_TEST(settings, wrong_values_are_refused_with_the_reason)
{
    static const char *const cases[][3] = {
        {"width", "0", "--width: \"0\" is not a whole number in 1..1048576"},
        {"width", "12.5", "--width: \"12.5\" is not a whole number in"},
        {"width", "99999999999999999999", "--width: \"99999999999999999999\" is not"},
        {"width", "", "--width: \"\" is not a whole number"},
        {"encoder-layers", "1001", "--encoder-layers: \"1001\" is not a whole number in 1..1000"},
        {"dropout", "1", "--dropout: \"1\" is not a number in 0..0.999"},
        {"dropout", "nan", "--dropout: \"nan\" is not a number"},
        {"learning-rate", "-1", "--learning-rate: \"-1\" is not a number in 0..1000000"},
        {"clip", "inf", "--clip: \"inf\" is not a number"},
        {"clip", "1x", "--clip: \"1x\" is not a number"},
        {"norm", "per", "--norm: \"per\" is none of pre, post"},
        {"tie-embeddings", "yes", "--tie-embeddings: \"yes\" is neither true nor false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct settings s = settings_default(), before = s;
        REFUSED(cases[i][2], setting_set(&s, setting_find(cases[i][0]), cases[i][1]));
        cr_expect(memcmp(&s, &before, sizeof s) == 0, "%s changes", cases[i][0]);
    }
}
