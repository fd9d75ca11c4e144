#include "models/kinds.h"
#include "tensor/file.h"
#include "tests/support/mailbox.h"
#include "tests/support/small_run.h"
#include <jansson.h>
#include <stdio.h>

static void save(const struct small_run *run, const char *path, const struct progress *progress)
{
    MUST(small_run_save(run, path, progress));
}

static struct checkpoint *load(const char *path)
{
    return MUST(checkpoint_open(path, NULL));
}

TEST(checkpoint, a_model_is_loaded_as_it_was_saved, WHOLE_MODELS)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL);
    small_run_train(&run, 5);
    const char *path = test_temporary("model.safetensors");
    save(&run, path, NULL);
    struct checkpoint *c = load(path);
    cr_expect_str_eq(c->task, "reverse");
    cr_expect(!c->has_state && c->settings.model.transformer.width == 8);
    cr_expect(sb_parameters_fingerprint(c->weights) == small_run_bits(&run));
    for (int i = 0; i < 3; i++) {
        const char *text = i == 0 ? "1 2 3" : i == 1 ? "9 9 8 x 1" : "";
        char *before = KEPT(sb_translate(run.model, text, NULL)),
             *after = KEPT(sb_translate(c->subject.self, text, NULL));
        cr_expect_str_eq(before, after);
    }
    checkpoint_free(c);
}

/* Two commands with one --out: the one that ends last finds the other's file. */
CPU_TEST(checkpoint, a_new_model_does_not_replace_another_one)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL);
    const sb_model model = sb_seq2seq_as_model(run.model);
    const struct checkpoint_contents contents = {.settings = &s, .is_new = true};
    const char *path = test_temporary("model.safetensors");
    for (int i = 0; i < 2; i++) /* again with the same parameters */
        cr_expect(checkpoint_save(path, &model, &contents, NULL), "%s", sb_error());
    small_run_train(&run, 5);
    REFUSED("model.safetensors\" exists already; move it away, or name another file",
            checkpoint_save(path, &model, &contents, NULL));
}

TEST(checkpoint, a_program_saves_and_loads_its_own_model, WHOLE_MODELS)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL);
    small_run_train(&run, 5);
    const char *path = test_temporary("model.safetensors");
    MUST(sb_seq2seq_save(run.model, path));
    sb_parameters *weights = KEPT(sb_parameters_new(7));
    sb_seq2seq *model = KEPT(sb_seq2seq_load(weights, path));
    cr_expect(sb_parameters_fingerprint(weights) == small_run_bits(&run));
    char *before = KEPT(sb_translate(run.model, "1 2 3", NULL)),
         *after = KEPT(sb_translate(model, "1 2 3", NULL));
    cr_expect_str_eq(before, after);
    REFUSED("seq2seq_load: the set has 50 parameters already; it must be empty",
            sb_seq2seq_load(weights, path));
    checkpoint_free(load(path)); /* the program reads it too */
}

TEST(checkpoint, float64_stays_float64)
{
    struct settings s = small_settings();
    struct small_run run;
    MUST(small_run_open(&run, &s, NULL, SB_F64));
    const char *path = test_temporary("model.safetensors");
    save(&run, path, NULL);
    struct checkpoint *c = load(path);
    cr_expect(sb_parameters_dtype(c->weights) == SB_F64);
    cr_expect(sb_parameters_fingerprint(c->weights) == small_run_bits(&run));
    checkpoint_free(c);
    small_run_close(&run);
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

TEST(checkpoint, the_state_is_kept_to_the_bit, KNOWN_KERNELS)
{
    struct settings s = small_settings();
    s.trainer.average_decay = 0.9;
    s.trainer.optimiser.schedule.kind = SB_SCHEDULE_PLATEAU;
    struct small_run run = small_run(&s, NULL);
    small_run_train(&run, 5);
    for (int i = 0; i < 8; i++)
        sb_optimiser_observe(sb_trainer_optimiser(run.trainer), 1 / 3. + i);
    const struct progress p = {
        .evaluations = 8,
        .best = {.loss = 0x1.23456789abcdep-7, .error = NAN, .unit_error = NAN, .bleu = 100 / 3.},
        .best_step = 3,
        .waited = 2,
        .data_hash = 0x7edcba9876543210u,
        .best_fingerprint = 0xfedcba9876543210u,
        .finished = true};
    const char *path = test_temporary("state.safetensors");
    save(&run, path, &p);
    struct checkpoint *c = load(path);
    sb_trainer_state was = sb_trainer_save(run.trainer), is = c->state;
    cr_assert(c->has_state);
    cr_expect(is.steps == 5 && is.updates == 5 && is.average_updates == 5);
    cr_expect(is.random_position == was.random_position && is.random_position > 0);
    cr_expect(is.data.batch == 5 && is.data.epoch == 0);
    cr_expect(same_bits(is.plateau.best, 1 / 3.) && is.plateau.seen == 8);
    cr_expect(is.plateau.waited == was.plateau.waited && is.plateau.waited == 1);
    cr_expect(is.plateau.reduced == was.plateau.reduced && is.plateau.reduced == 3);
    cr_expect(isnan(c->progress.best.error) && same_bits(c->progress.best.loss, p.best.loss));
    cr_expect(isnan(c->progress.best.unit_error) && same_bits(c->progress.best.bleu, 100 / 3.));
    cr_expect(c->progress.best_step == 3 && c->progress.evaluations == 8);
    cr_expect(c->progress.waited == 2 && c->progress.data_hash == p.data_hash);
    cr_expect(c->progress.finished && c->progress.best_fingerprint == p.best_fingerprint);
    checkpoint_free(c);
}

/* Trains up to a step; every five it evaluates as the program does. */
static void train_until(struct small_run *run, struct progress *p, const sb_pairs *held,
                        int64_t until)
{
    sb_average *average = sb_trainer_average(run->trainer);
    sb_vocabulary *source = sb_seq2seq_source(run->model), *target = sb_seq2seq_target(run->model);
    sb_data *data = KEPT(sb_data_new(held, source, target, NULL));
    while (sb_trainer_steps(run->trainer) < until) {
        small_run_train(run, 1);
        if (sb_trainer_steps(run->trainer) % 5 != 0)
            continue;
        cr_assert(sb_average_swap(average));
        double loss = sb_evaluate_loss(run->model, data);
        cr_assert(sb_average_swap(average));
        MUST(loss > 0);
        bool best = p->evaluations++ == 0 || loss < p->best.loss;
        p->waited = best ? 0 : p->waited + 1;
        p->best.loss = best ? loss : p->best.loss;
        sb_optimiser_observe(sb_trainer_optimiser(run->trainer), loss);
    }
}

static void expect_resumed_is_uninterrupted(const struct settings *s, const sb_pairs *pairs)
{
    sb_pairs *held = KEPT(small_pairs(7, 4));
    struct progress p = {0}, q = {0};
    struct small_run whole = small_run(s, pairs), half;
    MUST(small_run_open(&half, s, pairs, SB_F32));
    const char *whole_path = test_temporary("whole.safetensors"),
               *half_path = test_temporary("half.safetensors");
    train_until(&whole, &p, held, 40);
    save(&whole, whole_path, &p);
    for (int64_t stop = 17; stop <= 40; stop += 23) { /* 17 steps, and 23 more */
        train_until(&half, &q, held, stop);
        save(&half, half_path, &q);
        small_run_close(&half);
        MUST(small_run_resume(&half, half_path, pairs));
        q = half.loaded->progress;
    }
    cr_expect(sb_trainer_save(whole.trainer).plateau.reduced > 0,
              "the plateau never lowers the rate");
    cr_expect(small_run_bits(&whole) == small_run_bits(&half));
    cr_expect(test_same_files(whole_path, half_path), "the files differ");
    small_run_close(&half);
}

TEST(checkpoint, a_resumed_run_ends_with_the_bytes_of_an_uninterrupted_one, WHOLE_MODELS)
{
    struct settings s = small_settings();
    s.trainer.accumulate = 2;
    s.trainer.average_decay = 0.95;
    s.trainer.optimiser.schedule.kind = SB_SCHEDULE_PLATEAU;
    s.trainer.optimiser.schedule.rate = 0.3; /* the loss must not always fall */
    s.trainer.optimiser.schedule.patience = 1;
    sb_pairs *pairs = KEPT(small_pairs(30, 6));
    if (!test_slow_device())
        expect_resumed_is_uninterrupted(&s, pairs);
    s.trainer.optimiser_kind = SB_OPTIMISER_SGD;
    s.trainer.optimiser.momentum = 0.9;
    s.trainer.optimiser.schedule.rate = 3;
    expect_resumed_is_uninterrupted(&s, pairs);
}

TEST(checkpoint, equal_training_gives_equal_files, KNOWN_KERNELS)
{
    const char *first = test_temporary("first.safetensors"),
               *second = test_temporary("second.safetensors");
    struct settings s = small_settings();
    const struct progress p = {.best.loss = 0.5};
    for (int i = 0; i < 2; i++) {
        struct small_run run = small_run(&s, NULL);
        small_run_train(&run, 3);
        save(&run, i ? second : first, &p);
    }
    cr_expect(test_same_files(first, second));
}

/* ---- averages ---- */

TEST(checkpoint, an_average_is_the_mean_of_the_parameters, KNOWN_KERNELS)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL);
    const char *path[3];
    double values[3], mean = 0;
    for (int i = 0; i < 3; i++) {
        small_run_train(&run, 4);
        path[i] = test_temporary(i == 0 ? "0" : i == 1 ? "1" : "2");
        save(&run, path[i], NULL);
        values[i] = sb_tensor_get(sb_parameters_find(run.weights, "output.weight"), 5);
        mean += values[i] / 3;
    }
    const char *more[] = {path[1], path[2]}, *itself[] = {path[0], path[0]};
    struct checkpoint *c = load(path[0]), *same = load(path[0]);
    uint64_t bits = sb_parameters_fingerprint(same->weights);
    MUST(checkpoint_average(c, 2, more));
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(c->weights, "output.weight"), 5) - mean) <
              1e-7);
    MUST(checkpoint_average(same, 2, itself));
    cr_expect(sb_parameters_fingerprint(same->weights) == bits,
              "the average of one file is that file");
    checkpoint_free(c);
    checkpoint_free(same);
}

static void expect_no_average(struct checkpoint *c, const struct settings *s, const sb_pairs *pairs)
{
    struct small_run run = small_run(s, pairs);
    const char *path = test_temporary("other");
    save(&run, path, NULL);
    REFUSED("other differs from the first in architecture, vocabulary or dtype",
            checkpoint_average(c, 1, &path));
}

TEST(checkpoint, only_models_of_the_same_kind_are_averaged)
{
    struct settings s = small_settings(), wider = s, other = s;
    sb_pairs *pairs = KEPT(small_pairs(4, 6));
    struct small_run run = small_run(&s, NULL);
    const char *path = test_temporary("model");
    save(&run, path, NULL);
    struct checkpoint *c = load(path);
    wider.model.transformer.width = 10;
    other.model.transformer.norm_place = SB_NORM_POST;
    other.model.transformer.norm_kind = SB_NORM_KIND_LAYER;
    expect_no_average(c, &wider, NULL);
    expect_no_average(c, &other, NULL);
    expect_no_average(c, &s, pairs);
    checkpoint_free(c);
}

/* ---- invalid files ---- */

/* Writes the tensors and the metadata of a file, with another text for a key, or without it. */
static void rewrite(const sb_safetensors *file, const char *key, const char *text, const char *path)
{
    sb_named_tensor item[256];
    int n = sb_safetensors_count(file);
    cr_assert(n <= 256);
    for (int i = 0; i < n; i++) {
        const char *name = sb_safetensors_name(file, i);
        item[i] = (sb_named_tensor){name, sb_safetensors_tensor(file, name)};
        MUST(item[i].tensor);
    }
    const char *metadata[16][2] = {{key, text}};
    int pairs = text ? 1 : 0;
    for (int i = 0; i < sb_safetensors_metadata_count(file); i++) {
        metadata[pairs][0] = sb_safetensors_metadata_pair(file, i, &metadata[pairs][1]);
        pairs += strcmp(metadata[pairs][0], key) != 0;
    }
    MUST(sb_safetensors_save(path, n, item, pairs, (const char *const(*)[2])metadata));
    for (int i = 0; i < n; i++)
        sb_tensor_release((sb_tensor *)(uintptr_t)item[i].tensor);
}

struct change {
    const char *path;  /* what to change in the metadata: "settings/width" */
    const char *value; /* JSON, or NULL to remove it */
    const char *reason;
};

static const struct change hostile[] = {
    {"format", "2", "its format is 2, expected 3; train the model anew with this version"},
    {"format", "4", "its format is 4, expected 3; read it with the version of softback that wrote"},
    {"format", "\"1\"", "its format is missing or malformed"},
    {"format", NULL, "its format is missing or malformed"},
    {"task", NULL, "its task is missing or malformed"},
    {"task", "[]", "its task is missing or malformed"},
    {"settings", NULL, "its settings are missing or malformed"},
    {"settings", "[1, 2]", "its settings are missing or malformed"},
    {"settings/colour", "\"red\"", "the setting \"colour\" is unknown to this version"},
    {"settings/width", "8", "the setting \"width\" is not a text"},
    {"settings/width", "\"-8\"", "--width: \"-8\" is not a whole number in 1..1048576"},
    {"settings/width", "\"16\"",
     "\"encoder.embedding.weight\" is (14, 8); its settings require (14, 16)"},
    {"settings/width", "\"1048576\"",
     "\"encoder.embedding.weight\" is (14, 8); its settings require (14, 1048576)"},
    {"settings/heads", "\"3\"", "width 8 is not a multiple of 3 heads"},
    {"settings/heads", "\"65536\"", "width 8 is not a multiple of 65536 heads"},
    {"settings/feed-forward", "\"16777216\"",
     "feed_forward.up.weight\" is (12, 8); its settings require (16777216, 8)"},
    {"settings/encoder-layers", "\"1000\"", "layers.1.self_attention.query.weight\", which"},
    {"settings/decoder-layers", "\"2\"", "\"decoder.layers.1.self_attention.query.weight\", which"},
    {"settings/positions", "\"learned\"", ", which is missing"},
    {"settings/norm", "\"sideways\"", "--norm: \"sideways\" is none of pre, post"},
    {"settings/share-embeddings", "\"true\"", "one vocabulary for source and target"},
    {"vocabularies", NULL, "its vocabularies are missing or malformed"},
    {"vocabularies/source", NULL, "the vocabulary \"source\" of a seq2seq model is missing"},
    {"vocabularies/source", "{}", "vocabulary: \"units\" is not a string"},
    {"vocabularies/source/symbols", "[\"a\", \"a\"]",
     "vocabulary: symbol 1, \"a\", repeats symbol 0"},
    {"vocabularies/source/symbols", "[\"a\", \"b\"]", "is (14, 8); its settings require (6, 8)"},
    {"vocabularies/target", "3", "vocabulary: \"units\" is not a string"},
    {"kind", "3", "its kind is missing or malformed"},
    {"kind", NULL, "its kind is missing or malformed"},
    {"kind", "\"language_model\"", "is of kind \"language_model\", expected \"seq2seq\""},
    {"labels", "{}", "its labels are malformed, or more than 1048576"},
    {"labels", "[\"cat\", 3]", "label 1 is not a text"},
    {"state", "null", "the state's \"steps\" is missing or malformed"},
    {"state/steps", "\"5\"", "the state's \"steps\" is missing or malformed"},
    {"state/steps", "-1", "the state's \"steps\" is -1; it must be in 0..9223372036854775807"},
    {"state/best_loss", "0.5", "the state's \"best_loss\" is missing or malformed"},
    {"state/best_loss", "\"0.5 \"", "the state's \"best_loss\" is missing or malformed"},
    {"state/finished", "1", "the state's \"finished\" is missing or malformed"},
    {"state/data_hash", NULL, "the state's \"data_hash\" is missing or malformed"},
    {"state/best_bleu", NULL, "the state's \"best_bleu\" is missing or malformed"},
    {"state/kept", NULL, "the state's \"kept\" is missing or malformed"},
    {"state/best_fingerprint", NULL, "the state's \"best_fingerprint\" is missing or malformed"},
    {"state/best_fingerprint", "1", "the state's \"best_fingerprint\" is missing or malformed"},
    {"state/best_fingerprint", "\"0x12345678901234\"", "\"best_fingerprint\" is missing or malf"},
    {"fingerprint", NULL,
     "its fingerprint is missing or malformed; it must be 16 hexadecimal digits"},
    {"fingerprint", "\"1\"",
     "its fingerprint is missing or malformed; it must be 16 hexadecimal digits"},
    {"fingerprint", "null",
     "its fingerprint is missing or malformed; it must be 16 hexadecimal digits"},
    {"fingerprint", "\"0123456789abcdef\"", "expected 0123456789abcdef: the file was changed"},
    {"best", "[]", "the best model's \"step\" is missing or malformed"},
    {"best", "{\"step\": 1, \"data_hash\": -1}", "the best model's \"data_hash\" is -1; it must"},
};

static json_t *changed(const char *text, const struct change *change)
{
    json_t *json = json_loads(text, 0, NULL), *object = json;
    const char *key = change->path;
    char outer[32];
    for (const char *slash; (slash = strchr(key, '/')); key = slash + 1) {
        snprintf(outer, sizeof outer, "%.*s", (int)(slash - key), key);
        object = json_object_get(object, outer);
    }
    if (change->value)
        json_object_set_new(object, key, json_loads(change->value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(object, key);
    return json;
}

/* A file with the state of a run after 3 steps. */
static sb_safetensors *sample_file(void)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL);
    small_run_train(&run, 3);
    const struct progress p = {.best.loss = 0.5};
    const char *path = test_temporary("good.safetensors");
    save(&run, path, &p);
    return sb_safetensors_open(path);
}

TEST(checkpoint, hostile_metadata_is_refused_with_a_clear_message, KNOWN_KERNELS)
{
    sb_safetensors *file = KEPT(sample_file());
    const char *text = sb_safetensors_metadata(file, "softback");
    const struct checkpoint_options pairs = {.kind = &seq2seq_kind};
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        json_t *json = changed(text, &hostile[i]);
        char *dumped = json_dumps(json, JSON_COMPACT);
        const char *path = test_temporary("bad.safetensors");
        rewrite(file, "softback", dumped, path);
        free(dumped);
        json_decref(json);
        sb_device_reset_peak(sb_device_in_use());
        int64_t live = memory_in_use().live_bytes;
        cr_expect(!checkpoint_open(path, &pairs), "%s as %s is accepted", hostile[i].path,
                  hostile[i].value);
        EXPECT_ERROR(hostile[i].reason);
        cr_expect(strncmp(sb_error(), path, strlen(path)) == 0, "\"%s\" names no file", sb_error());
        int64_t used = memory_in_use().peak_bytes - live;
        cr_expect(used < 2 << 20, "%s as %s takes %lld bytes", hostile[i].path, hostile[i].value,
                  (long long)used);
    }
}

TEST(checkpoint, hostile_numbers_of_an_optimiser_are_refused)
{
    static const char *const hostile_numbers[][2] = {
        {"optimiser.steps", "-1"},         {"optimiser.steps", "0.5"},
        {"optimiser.rate", "-0x1p-3"},     {"optimiser.plateau_best", "best"},
        {"optimiser.plateau_seen", "nan"}, {"optimiser.plateau_reduced", "2000000"},
        {"optimiser.plateau_waited", ""}};
    sb_safetensors *file = KEPT(sample_file());
    for (size_t i = 0; i < sizeof hostile_numbers / sizeof hostile_numbers[0]; i++) {
        const char *path = test_temporary("bad.safetensors"), *name = hostile_numbers[i][0];
        char reason[200];
        rewrite(file, name, hostile_numbers[i][1], path);
        snprintf(reason, sizeof reason, "the file's \"%s\" is missing or malformed", name);
        cr_expect(!checkpoint_open(path, NULL), "%s as %s is accepted", name,
                  hostile_numbers[i][1]);
        EXPECT_ERROR(reason);
    }
}

TEST(checkpoint, files_of_another_kind_are_refused, KNOWN_KERNELS)
{
    sb_safetensors *file = sample_file();
    const char *path = test_temporary("bad.safetensors");
    rewrite(file, "softback", NULL, path);
    REFUSED("its metadata does not describe a model of softback", checkpoint_open(path, NULL));
    static const char *const text[][2] = {
        {"", "checkpoint: JSON, byte 0: "},
        {"{\"format\":3", "checkpoint: JSON, byte 11: "},
        {"[]", "its format is missing or malformed"},
        {"{\"format\":3,\"format\":3}", "duplicate object key"},
    };
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        rewrite(file, "softback", text[i][0], path);
        REFUSED(text[i][1], checkpoint_open(path, NULL));
    }
    sb_safetensors_close(file);
    FILE *garbage = fopen(path, "wb");
    fputs("this is no model at all", garbage);
    fclose(garbage);
    REFUSED("not a safetensors file", checkpoint_open(path, NULL));
    REFUSED("cannot open", checkpoint_open(test_temporary("not-there"), NULL));
}

/* Settings that a file lacks keep their defaults; additional keys are ignored. */
TEST(checkpoint, missing_settings_and_additional_keys_are_accepted, KNOWN_KERNELS)
{
    static const struct change harmless[] = {{"settings/steps", NULL, NULL}, {"note", "[1]", NULL}};
    sb_safetensors *file = KEPT(sample_file());
    for (int i = 0; i < 2; i++) {
        json_t *json = changed(sb_safetensors_metadata(file, "softback"), &harmless[i]);
        char *dumped = json_dumps(json, JSON_COMPACT);
        const char *path = test_temporary("other.safetensors");
        rewrite(file, "softback", dumped, path);
        checkpoint_free(load(path));
        free(dumped);
        json_decref(json);
    }
}

TEST(checkpoint, resuming_needs_a_matching_state)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL), resumed;
    const char *path = test_temporary("model.safetensors");
    save(&run, path, NULL);
    REFUSED("has a model, but no training state", small_run_resume(&resumed, path, NULL));
    const struct progress p = {0};
    run.settings.trainer.average_decay = 0.9; /* the file has no averages */
    save(&run, path, &p);
    REFUSED("has no tensor \"average.", small_run_resume(&resumed, path, NULL));
}

/* Of the parameters, the moments and the average: a resumed run would end with other bytes. */
TEST(checkpoint, a_flipped_bit_in_any_tensor_of_a_state_is_refused, KNOWN_KERNELS)
{
    sb_safetensors_close(sample_file());
    size_t size;
    unsigned char *bytes = MUST(
        (unsigned char *)file_text("test", test_temporary("good.safetensors"), 1 << 24, &size));
    const size_t data = 8 + bytes[0] + 256u * bytes[1] + 65536u * bytes[2];
    for (size_t at = data; at < size; at += 1 + (size - data) / 60) {
        const char *path = test_temporary("bad.safetensors");
        FILE *file = fopen(path, "wb");
        bytes[at] ^= (unsigned char)(1 << at % 8);
        cr_assert(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
        bytes[at] ^= (unsigned char)(1 << at % 8);
        cr_expect(!checkpoint_open(path, NULL), "a flipped bit of byte %zu is accepted", at);
        EXPECT_ERROR("the file was changed after it was saved");
    }
    memory_free(bytes);
}

/* ---- tensor parallelism; ranks are threads here ---- */

/* A span of training steps from one checkpoint (NULL: initial weights) to another. */
struct span {
    const struct settings *settings;
    const char *from, *to;
    int64_t steps;
    double loss; /* of the last step */
};

static void train_span(sb_communicator *c, void *context)
{
    struct span *span = context;
    const struct progress progress = {.best_step = 1};
    struct settings s = *span->settings;
    struct small_run run;
    s.model.transformer.ranks = c;
    const bool ok = span->from ? small_run_resume_part(&run, span->from, NULL, c)
                               : small_run_open(&run, &s, NULL, SB_F32);
    sb_trained trained = {0};
    bool well = ok;
    for (int64_t i = 0; well && i < span->steps; i++)
        well = sb_trainer_step(run.trainer, &trained);
    if (!well || !small_run_save(&run, span->to, &progress)) {
        fprintf(stderr, "%s\n", sb_error());
        abort(); /* the others would wait forever */
    }
    if (sb_communicator_rank(c) == 0)
        span->loss = trained.loss;
    small_run_close(&run);
}

/* Runs it; the loss of the last step. */
static double run_span(int ranks, const struct settings *s, const char *from, int64_t steps,
                       const char *to)
{
    struct span span = {.settings = s, .from = from, .to = to, .steps = steps};
    mailbox_run(ranks, train_span, &span);
    return span.loss;
}

CPU_TEST(checkpoint, the_file_of_a_sharded_model_is_that_of_the_unsharded_one)
{
    struct settings s = small_settings();
    const char *one = test_temporary("one"), *cut = test_temporary("cut"),
               *again = test_temporary("again");
    s.model.transformer.heads = 4;
    s.model.transformer.gated = true;
    s.model.transformer.positions = SB_POSITIONS_RELATIVE;
    s.trainer.average_decay = 0.9;
    run_span(1, &s, NULL, 0, one);
    for (int ranks = 2; ranks <= 4; ranks += 2) {
        run_span(ranks, &s, NULL, 0, cut); /* the initial weights */
        cr_expect(test_same_files(one, cut), "%d ranks", ranks);
    }
    const double whole = run_span(1, &s, NULL, 7, one);
    for (int ranks = 2; ranks <= 4; ranks += 2) {
        run_span(ranks, &s, one, 0, cut); /* each rank loads and saves its part */
        cr_expect(test_same_files(one, cut), "%d ranks", ranks);
        run_span(ranks, &s, NULL, 4, cut);
        run_span(1, &s, cut, 0, again);
        cr_expect(test_same_files(again, cut), "%d ranks", ranks);
        const double there = run_span(ranks, &s, cut, 3, again),
                     back = run_span(1, &s, cut, 3, one);
        cr_expect(fabs(there - whole) < 1e-4 && fabs(back - whole) < 1e-4, "%d ranks", ranks);
        run_span(ranks, &s, NULL, 7, cut);
        cr_expect(test_same_files(again, cut), "%d ranks: resuming gives different bytes", ranks);
        run_span(1, &s, NULL, 7, one);
    }
}
