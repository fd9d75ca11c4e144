#include "tests/support/small_run.h"

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
