#include "tests/support/small_run.h"
#include "models/kinds.h"
#include "models/text_model.h"

struct settings small_settings(void)
{
    struct settings s = settings_default();
    text_options_of_kind(&s.model, &seq2seq_kind);
    s.model.transformer.width = 8;
    s.model.transformer.heads = 2;
    s.model.transformer.feed_forward = 12;
    s.model.transformer.encoder_layers = 1;
    s.model.transformer.decoder_layers = 1;
    s.trainer.optimiser.schedule.kind = SB_SCHEDULE_CONSTANT;
    s.trainer.optimiser.schedule.warmup = 3;
    s.data.batch_pairs = 4;
    s.task = (sb_task_options){.min_length = 1, .max_length = 5};
    return s;
}

sb_data *small_data(const struct settings *s, const sb_pairs *pairs)
{
    sb_data_options options = s->data;
    options.seed = s->trainer.seed;
    if (!pairs)
        return sb_data_task_with(SB_TASK_REVERSE, &s->task, &options);
    const sb_vocabulary_options letters = {.units = SB_UNITS_CHARACTERS};
    sb_vocabulary *v = sb_vocabulary_new(sb_pairs_sources(pairs), sb_pairs_count(pairs), &letters);
    sb_data *data = v ? sb_data_new(pairs, v, v, &options) : NULL;
    sb_vocabulary_release(v);
    return data;
}

/* Sets what could be made. */
static bool small_run_make(struct small_run *run, const struct settings *settings,
                           const sb_pairs *pairs, sb_dtype dtype)
{
    *run = (struct small_run){.settings = *settings};
    text_options_of_kind(&run->settings.model, &seq2seq_kind);
    run->data = small_data(settings, pairs);
    run->weights = run->data ? sb_parameters_of(dtype, settings->trainer.seed) : NULL;
    if (run->weights && fine_tuning_prepare(&settings->tuning, run->weights))
        run->model = sb_seq2seq_new(run->weights, run->data, &run->settings.model);
    if (run->model && fine_tuning_apply(&settings->tuning, run->weights))
        run->trainer = sb_trainer_new(run->model, run->data, &settings->trainer);
    return run->trainer != NULL;
}

bool small_run_open(struct small_run *run, const struct settings *settings, const sb_pairs *pairs,
                    sb_dtype dtype)
{
    if (small_run_make(run, settings, pairs, dtype))
        return true;
    small_run_close(run);
    return false;
}

struct small_run small_run(const struct settings *settings, const sb_pairs *pairs)
{
    struct small_run run;
    MUST(small_run_make(&run, settings, pairs, SB_F32));
    KEPT(run.data);
    KEPT(run.weights);
    KEPT(run.model);
    KEPT(run.trainer);
    run.kept = true;
    return run;
}

void small_run_close(struct small_run *run)
{
    cr_assert(!run->kept, "a small run is closed that belongs to the test");
    sb_trainer_free(run->trainer);
    if (run->loaded) {
        run->forget(run->loaded);
    } else {
        sb_seq2seq_free(run->model);
        sb_parameters_free(run->weights);
    }
    sb_data_free(run->data);
    *run = (struct small_run){0};
}

double small_run_train(struct small_run *run, int64_t steps)
{
    sb_trained trained = {0};
    for (int64_t i = 0; i < steps; i++)
        MUST(sb_trainer_step(run->trainer, &trained));
    return trained.loss;
}

uint64_t small_run_bits(const struct small_run *run)
{
    return sb_parameters_fingerprint(run->weights);
}

sb_pairs *small_pairs(int64_t n, int longest)
{
    sb_pairs *pairs = sb_pairs_new();
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    for (int64_t i = 0; i < n; i++) {
        char source[64] = "", target[64] = "";
        uint32_t length = 1 + sb_random_below(&random, (uint32_t)longest);
        for (uint32_t k = 0; k < length; k++)
            source[k] = target[length - 1 - k] = (char)('a' + sb_random_below(&random, 6));
        MUST(sb_pairs_add(pairs, source, target));
    }
    return pairs;
}

bool small_run_save(const struct small_run *run, const char *path, const struct progress *progress)
{
    const sb_model model = sb_seq2seq_as_model(run->model);
    const struct checkpoint_contents contents = {.settings = &run->settings,
                                                 .task = "reverse",
                                                 .trainer = progress ? run->trainer : NULL,
                                                 .progress = progress};
    return checkpoint_save(path, &model, &contents, NULL);
}

bool small_run_resume(struct small_run *run, const char *path, const sb_pairs *pairs)
{
    return small_run_resume_part(run, path, pairs, NULL);
}

bool small_run_resume_part(struct small_run *run, const char *path, const sb_pairs *pairs,
                           sb_communicator *ranks)
{
    const struct checkpoint_options part = {.ranks = ranks, .resumes = true};
    *run = (struct small_run){.loaded = checkpoint_open(path, &part), .forget = checkpoint_free};
    if (run->loaded) {
        run->settings = run->loaded->settings;
        run->weights = run->loaded->weights;
        run->model = run->loaded->subject.self;
        run->data = small_data(&run->settings, pairs);
    }
    if (run->data)
        run->trainer = sb_trainer_new(run->model, run->data, &run->settings.trainer);
    if (run->trainer && checkpoint_resume(run->loaded, run->trainer))
        return true;
    small_run_close(run);
    return false;
}
