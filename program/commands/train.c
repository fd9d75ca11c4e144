/* softback train */
#include "program/run/kind.h"
#include <string.h>

/* Takes the number of "sequence=2" or "heads=2". */
static bool train_take_split(const struct field *field, void *request, const char *value)
{
    struct training_request *r = request;
    const bool heads = strncmp(value, "heads=", 6) == 0;
    const struct field ranks = {field->name, FIELD_SMALL, 0, NULL, .least = 1, .most = 1 << 20};
    if (!heads && strncmp(value, "sequence=", 9) != 0)
        return sb_fail("--split is \"%s\"; it must be sequence=RANKS or heads=RANKS", value);
    return field_write(&ranks, heads ? &r->head_ranks : &r->sequence_ranks, strchr(value, '=') + 1);
}

static bool train_take_kind(const struct field *field, void *request, const char *value)
{
    struct training_request *r = request;
    char all[128] = "";
    (void)field;
    r->kind = training_kind_find(value);
    for (int i = 0; training_kind_at(i); i++)
        strcat(strcat(all, i ? ", " : ""), training_kind_at(i)->model->name);
    return r->kind || sb_fail("--model: \"%s\" is none of %s", value, all);
}

/* "train seq2seq, an encoder-decoder on pairs of texts; ...", or "train seq2seq on lines of source,
   tab, target; ..." */
static const char *train_help_of_kinds(bool of_files)
{
    enum { ROOM = 512 };
    static char helps[2][ROOM];
    char *help = helps[of_files];
    size_t size = 0;
    for (int i = 0; training_kind_at(i) && size < ROOM; i++) {
        const struct training_kind *kind = training_kind_at(i);
        size += (size_t)snprintf(help + size, ROOM - size, "%s%s%s%s",
                                 i == 0                    ? "train "
                                 : training_kind_at(i + 1) ? "; "
                                                           : "; or ",
                                 kind->model->name, of_files ? " on " : ", ",
                                 of_files ? kind->file : kind->trained);
    }
    if (size < ROOM && !of_files)
        snprintf(help + size, ROOM - size, " [%s]", training_kind_at(0)->model->name);
    return help;
}

static bool train_take_data(const struct field *field, void *request, const char *value)
{
    struct training_request *r = request;
    (void)field;
    if (r->file_count == MOST_FILES)
        return sb_fail("--data: more than %d files; join some of them", MOST_FILES);
    r->files[r->file_count++] = value;
    r->data = r->files[0];
    return true;
}

#define ROW(member) FIELD(struct training_request, member)

/* The first and the third one get their help from the kinds. */
static struct field train_fields[] = {
    {"model", TAKEN(struct training_request, kind, train_take_kind), .argument = "KIND"},
    {"task", ROW(task),
     "train on a built-in task: copy, reverse, sort, addition, dates; a classifier on pattern",
     .argument = "NAME", .take = training_take_task},
    {"data", TAKEN(struct training_request, files, train_take_data), .argument = "FILE"},
    {"source-file", ROW(source_file), "train on two files: the sources, one a line",
     .argument = "FILE"},
    {"target-file", ROW(target_file), "the targets of --source-file, line by line",
     .argument = "FILE"},
    {"valid", ROW(valid), "file to evaluate on [held-out data]", .argument = "FILE"},
    {"from", ROW(from), "begin with the weights, sizes and vocabularies of the model in FILE",
     .argument = "FILE"},
    {"out", ROW(out), "write the best model to FILE (.safetensors)", .argument = "FILE"},
    {"log", ROW(log), "write the log to FILE [--out's path, with .jsonl]", .argument = "FILE"},
    {"report", ROW(report), "write a page of HTML on the trained model to FILE",
     .argument = "FILE"},
    {"resume", ROW(resume), "resume an interrupted run"},
    {"heartbeat", ROW(heartbeat),
     "under mpirun: abort the job if a rank does not respond for SECONDS; 0: never [20]", 0, 86400,
     .argument = "SECONDS"},
    {"split", TAKEN(struct training_request, head_ranks, train_take_split),
     "under mpirun: sequence parallelism over N ranks (sequence=N), for long sequences, or tensor "
     "parallelism by heads and hidden units (heads=2), for large models [heads=1]",
     .argument = "WHAT=RANKS"},
    {.rows = machine_fields},
    {HEADING("The model:")},
    {HEADING("Training:")},
    {HEADING("Data:")},
    {.rows = settings_fields, .at = offsetof(struct training_request, settings)},
    {0}};
#undef ROW

/* ---- options that exclude each other ---- */

static bool train_check_files(const struct training_request *r)
{
    const int sources = (r->task != NULL) + (r->data != NULL) + (r->source_file || r->target_file);
    const char *kind = r->kind->model->name;
    return (sources > 0 || command_misused("give --task NAME or --data FILE to train on")) &&
           (sources == 1 ||
            command_misused("--task, --data and --source-file cannot be combined; use one")) &&
           (!r->source_file == !r->target_file ||
            command_misused("give both --source-file and --target-file")) &&
           (r->file_count <= 1 || r->kind->several_files ||
            command_misused("--data is given %d times; --model %s learns from one file",
                            r->file_count, kind)) &&
           (!r->source_file || r->kind->two_files ||
            command_misused("--source-file and --target-file are pairs, for --model seq2seq, "
                            "not for --model %s",
                            kind)) &&
           (!r->task || !r->valid ||
            command_misused("--valid is for --data; a task makes its own held-out pairs")) &&
           ((r->out && r->out[0]) || command_misused("give --out FILE for the model"));
}

static bool train_check_given(const struct training_request *r)
{
    const char *other = options_given(r->options, r->task ? SETTING_OF_FILES : SETTING_OF_TASKS);
    return !other || command_misused("--%s is for %s", other,
                                     r->task ? "pairs from files, not for --task"
                                             : "--task, not for pairs from files");
}

/* A setting of another kind of models would do nothing. */
static bool train_check_kind(const struct training_request *r)
{
    for (int i = 0; setting_name(i); i++) {
        char all[128] = "";
        if (!option_given(r->options, setting_name(i)) || setting_is_of(i, r->kind->model))
            continue;
        for (int k = 0; training_kind_at(k); k++)
            if (setting_is_of(i, training_kind_at(k)->model))
                strcat(strcat(all, all[0] ? " or " : ""), training_kind_at(k)->model->name);
        return command_misused("--%s is for --model %s, not for --model %s", setting_name(i), all,
                               r->kind->model->name);
    }
    const best_score best = r->settings.best;
    if (best != BEST_AUTO && !(r->kind->scores >> best & 1))
        return command_misused("--best %s: %s has no such score; use %s",
                               setting_get(&r->settings, setting_find("best")).text, r->kind->title,
                               r->kind->scores >> BEST_EXACT & 1      ? "loss, exact, error or bleu"
                               : r->kind->scores >> BEST_ACCURACY & 1 ? "loss or accuracy"
                                                                      : "loss");
    const char *own = r->kind->task;
    if (r->task && (own ? strcmp(r->task, own) != 0 : training_kind_of_task(r->task) != NULL))
        return command_misused("--task %s is not for --model %s; %s%s", r->task,
                               r->kind->model->name,
                               !own     ? "use copy, reverse, sort, addition or dates"
                               : own[0] ? "use --task "
                                        : "use --data FILE",
                               own ? own : "");
    return true;
}

/* Sizes that do not fit are reported before any file is read. */
static bool train_check_settings(const struct training_request *r)
{
    const struct settings *s = &r->settings;
    sb_transformer_options complete;
    sb_task_pair pair;
    return ((sb_transformer_complete(&s->model.transformer, &complete) &&
             (!r->task || sb_task_make(SB_TASK_COPY, &s->task, 0, SB_PART_TRAIN, 0, &pair)) &&
             fine_tuning_check(&s->tuning)) ||
            command_misused("%s", sb_error())) &&
           (!s->model.share_embeddings || s->joint_vocabulary ||
            command_misused("--share-embeddings needs --joint-vocabulary"));
}

static bool train_check_lora(const struct training_request *r)
{
    if (r->settings.tuning.lora == 0)
        return !(option_given(r->options, "lora-on") || option_given(r->options, "lora-alpha")) ||
               command_misused("--lora-on and --lora-alpha need --lora RANK");
    return (r->from || r->resume ||
            command_misused("--lora adapts a trained model; give it with --from FILE")) &&
           (r->head_ranks == 1 ||
            command_misused("--lora and --split heads cannot be combined; let the ranks share "
                            "batches")) &&
           (!r->report ||
            command_misused("--report needs a whole model, and --lora writes adapters; use "
                            "softback merge, then softback report"));
}

static bool train_check_split(const struct training_request *r)
{
    return r->head_ranks == 1 ||
           ((r->sequence_ranks == 1 ||
             command_misused("--split cuts sequences or heads over ranks, not both")) &&
            (!r->report ||
             command_misused("--report needs all heads on one rank, which --split heads "
                             "distributes; run softback report on the trained model")));
}

static bool train_run(struct options *o)
{
    struct training_request r = {.options = o,
                                 .kind = &training_seq2seq,
                                 .settings = settings_default(),
                                 .heartbeat = 20,
                                 .sequence_ranks = 1,
                                 .head_ranks = 1};
    train_fields[0].help = train_help_of_kinds(false);
    train_fields[2].help = train_help_of_kinds(true);
    if (!options_read(o, &r))
        return false;
    training_choose(&r);
    return train_check_files(&r) && train_check_split(&r) && train_check_lora(&r) &&
           train_check_given(&r) && train_check_kind(&r) &&
           (r.resume || train_check_settings(&r)) && training_run(&r);
}

const struct command command_train = {
    .summary = "trains a model",
    .arguments = "--task NAME --out FILE\n--data FILE --out FILE",
    .help = "Trains an encoder-decoder on pairs of texts, or another kind of model.\vThe model "
            "that does best on held-out data is written to --out, with the state that --resume "
            "needs and the log next to it.",
    .fields = train_fields,
    .run = train_run,
};
