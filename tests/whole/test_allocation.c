/*
 * Failing memory: each allocation of a training step, of saving, loading and decoding fails in
 * turn, alone and with all later ones. Each failure gives a clear message and leaks nothing, and
 * the next attempt gives the usual results. Jansson's memory comes from the same hook.
 */
#include "tensor/file.h"
#include "tests/support/small_run.h"
#include <jansson.h>
#include <stdio.h>

struct scene {
    struct settings settings;
    sb_pairs *pairs;
    struct small_run run;
    const char *path, *more;
    struct checkpoint *into; /* of an average */
    const sb_decoding_options *decoding;
};

static struct scene scene_new(void)
{
    struct scene scene = {.settings = small_settings()};
    json_set_alloc_funcs(memory_new, memory_free);
    bool large = test_long();
    scene.settings.model.transformer.width = large ? 24 : 4;
    scene.settings.model.transformer.encoder_layers = large ? 3 : 1;
    scene.settings.model.transformer.decoder_layers = large ? 3 : 1;
    scene.settings.trainer.accumulate = large ? 2 : 1;
    scene.settings.trainer.average_decay = 0.9;
    scene.settings.data.batch_pairs = 3;
    scene.pairs = KEPT(small_pairs(3, 4)); /* one batch: an epoch is planned for each step */
    scene.run = small_run(&scene.settings, scene.pairs);
    scene.path = test_temporary("model.safetensors");
    return scene;
}

static bool open_and_step(void *context)
{
    const struct scene *scene = context;
    struct small_run run;
    sb_trained trained;
    if (!small_run_open(&run, &scene->settings, scene->pairs, SB_F32))
        return false;
    bool ok = sb_trainer_step(run.trainer, &trained);
    small_run_close(&run);
    return ok;
}

TEST(allocation, each_failing_allocation_of_a_first_step_is_reported, WHOLE_MODELS)
{
    struct scene scene = scene_new();
    cr_expect(test_each_allocation_fails(open_and_step, &scene) > 200);
}

static bool step(void *context)
{
    struct scene *scene = context;
    sb_trained trained;
    return sb_trainer_step(scene->run.trainer, &trained);
}

TEST(allocation, each_failing_allocation_of_a_training_step_is_reported, WHOLE_MODELS)
{
    struct scene scene = scene_new();
    struct small_run undisturbed = small_run(&scene.settings, scene.pairs);
    small_run_train(&scene.run, 1);
    small_run_train(&undisturbed, 1);
    cr_expect(test_each_allocation_fails(step, &scene) > 100); /* two steps succeed */
    small_run_train(&undisturbed, 2);
    cr_expect(sb_trainer_steps(scene.run.trainer) == 3);
    double after = small_run_train(&scene.run, 1), plain = small_run_train(&undisturbed, 1);
    cr_expect(after == plain, "the next loss is %.17g, not %.17g", after, plain);
    cr_expect(small_run_bits(&scene.run) == small_run_bits(&undisturbed));
}

static bool evaluate(void *context)
{
    const struct scene *scene = context;
    sb_vocabulary *v = sb_seq2seq_source(scene->run.model);
    sb_data *data = sb_data_new(scene->pairs, v, v, NULL);
    bool ok = data && !isnan(sb_evaluate_loss(scene->run.model, data));
    sb_data_free(data);
    sb_average *average = sb_trainer_average(scene->run.trainer);
    if (!ok || !sb_average_swap(average))
        return false;
    sb_text_score score;
    char *text[3] = {NULL};
    const sb_decoding_options few = {.longest = 3};
    ok = translation_score(NULL, scene->run.model, scene->pairs, &few, &score, text);
    for (int i = 0; i < 3; i++)
        sb_free(text[i]);
    while (!sb_average_swap(average)) /* the weights must be restored after any failure */
        pool_fail_after(-1, false);
    return ok;
}

TEST(allocation, each_failing_allocation_of_an_evaluation_is_reported, WHOLE_MODELS)
{
    struct scene scene = scene_new();
    uint64_t bits = small_run_bits(&scene.run);
    cr_expect(test_each_allocation_fails(evaluate, &scene) > 50);
    cr_expect(small_run_bits(&scene.run) == bits);
}

static bool save(void *context)
{
    const struct scene *scene = context;
    const struct progress progress = {.best.loss = 1};
    bool ok = small_run_save(&scene->run, scene->path, &progress);
    char part[300];
    snprintf(part, sizeof part, "%s.softback-part", scene->path);
    cr_expect(!file_exists(part), "a temporary file is left");
    return ok;
}

TEST(allocation, each_failing_allocation_of_saving_keeps_the_old_file)
{
    struct scene scene = scene_new();
    cr_assert(file_save("test", scene.path, "old", 3));
    cr_expect(test_each_allocation_fails(save, &scene) > 100);
    struct checkpoint *c = MUST(checkpoint_open(scene.path, NULL));
    cr_expect(sb_parameters_fingerprint(c->weights) == small_run_bits(&scene.run));
    checkpoint_free(c);
}

static bool load(void *context)
{
    const struct scene *scene = context;
    struct small_run run;
    if (!small_run_resume(&run, scene->path, scene->pairs))
        return false;
    bool same = small_run_bits(&run) == small_run_bits(&scene->run);
    small_run_close(&run);
    return same;
}

TEST(allocation, each_failing_allocation_of_loading_is_reported, KNOWN_KERNELS)
{
    struct scene scene = scene_new();
    MUST(save(&scene));
    cr_expect(test_each_allocation_fails(load, &scene) > 200);
}

/* A language model that is built from a file, resumes its training and is saved again. */
static bool go_on(void *context)
{
    struct scene *scene = context;
    sb_model model = {.kind = NULL};
    sb_parameters *weights = sb_parameters_new(1);
    sb_data *data = small_data(&scene->settings, scene->pairs);
    bool ok = weights && data && sb_model_load(&model, NULL, weights, scene->path);
    const sb_source source = sb_data_as_source(data);
    sb_trainer *trainer = ok ? sb_trainer_for(&model, &source, NULL) : NULL;
    sb_trained trained;
    ok = trainer && sb_checkpoint_resume(trainer, scene->path) &&
         sb_trainer_step(trainer, &trained) && sb_checkpoint_save(trainer, scene->more);
    sb_trainer_free(trainer);
    sb_model_free(&model);
    sb_parameters_free(weights);
    sb_data_free(data);
    return ok;
}

TEST(allocation, each_failing_allocation_of_a_language_model_is_reported, WHOLE_MODELS)
{
    struct scene scene = scene_new();
    const sb_language_model_options options = {
        .transformer = {.width = 8, .heads = 2, .decoder_layers = 1}};
    scene.more = test_temporary("more.safetensors");
    sb_parameters *weights = KEPT(sb_parameters_new(1));
    sb_language_model *writer = KEPT(sb_language_model_new(weights, scene.run.data, &options));
    const sb_model model = sb_language_model_as_model(writer);
    const sb_source source = sb_data_as_source(scene.run.data);
    sb_trainer *trainer = KEPT(sb_trainer_for(&model, &source, NULL));
    sb_trained trained;
    MUST(sb_trainer_step(trainer, &trained) && sb_checkpoint_save(trainer, scene.path));
    cr_expect(test_each_allocation_fails(go_on, &scene) > 200);
}

static bool decode(void *context)
{
    const struct scene *scene = context;
    const char *const texts[] = {"ab", "c"};
    char *output[2] = {NULL, NULL};
    bool ok = sb_translate_texts(scene->run.model, texts, 2, scene->decoding, output);
    cr_expect(ok == (output[0] && output[1]), "a failure has an output");
    sb_free(output[0]);
    sb_free(output[1]);
    return ok;
}

TEST(allocation, each_failing_allocation_of_decoding_is_reported, WHOLE_MODELS)
{
    static const sb_decoding_options ways[] = {
        {.longest = 3},
        {.beam_width = 2, .longest = 3},
        {.sample = true, .top_k = 3, .top_p = 0.9, .longest = 3},
    };
    struct scene scene = scene_new();
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        scene.decoding = &ways[i];
        cr_expect(test_each_allocation_fails(decode, &scene) > 50);
    }
}

static bool average(void *context)
{
    const struct scene *scene = context;
    const char *paths[] = {scene->path};
    return checkpoint_average(scene->into, 1, paths);
}

/* What it is averaged into stays usable. */
TEST(allocation, each_failing_allocation_of_averaging_is_reported, KNOWN_KERNELS)
{
    struct scene scene = scene_new();
    MUST(save(&scene));
    scene.into = checkpoint_open(scene.path, NULL);
    MUST(scene.into && average(&scene)); /* now its weights are flat */
    cr_expect(test_each_allocation_fails(average, &scene) > 100);
    checkpoint_free(scene.into);
}

static bool task(void *context)
{
    (void)context;
    const sb_data_options few = {.batch_pairs = 2};
    sb_data *data = sb_data_task_with(SB_TASK_ADDITION, NULL, &few);
    bool ok = data && sb_data_next(data);
    sb_data_free(data);
    return ok;
}

TEST(allocation, each_failing_allocation_of_a_tasks_data_is_reported)
{
    cr_expect(test_each_allocation_fails(task, NULL) > 20);
}
