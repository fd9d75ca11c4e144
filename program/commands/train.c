/* softback train */
#include "models/kinds.h"
#include "program/kinds/pattern.h"
#include "program/run/kind.h"
#include "program/screen/command.h"
#include "program/screen/machine_options.h"
#include "program/screen/options.h"
#include <string.h>

enum {
    KEY_TASK = 1,
    KEY_MODEL,
    KEY_DATA,
    KEY_VALID,
    KEY_SOURCE,
    KEY_TARGET,
    KEY_FROM,
    KEY_OUT,
    KEY_LOG,
    KEY_RESUME,
    KEY_REPORT,
    KEY_HEARTBEAT,
    KEY_SPLIT
};

static const struct argp_option own_options[] = {
    {"model", KEY_MODEL, "KIND", 0,
     "train seq2seq, an encoder-decoder on pairs of texts; language, a language model on texts; "
     "or classifier, on texts with labels [seq2seq]",
     0},
    {"task", KEY_TASK, "NAME", 0,
     "train on a built-in task: copy, reverse, sort, addition, dates; a classifier on pattern", 0},
    {"data", KEY_DATA, "FILE", 0,
     "train on a TSV file: lines of source, tab, target (for a classifier text, tab, label); a "
     "language model on a text, or on several, with one --data each",
     0},
    {"source-file", KEY_SOURCE, "FILE", 0, "train on two files: the sources, one a line", 0},
    {"target-file", KEY_TARGET, "FILE", 0, "the targets of --source-file, line by line", 0},
    {"valid", KEY_VALID, "FILE", 0, "file to evaluate on [held-out data]", 0},
    {"from", KEY_FROM, "FILE", 0,
     "begin with the weights, sizes and vocabularies of the model in FILE", 0},
    {"out", KEY_OUT, "FILE", 0, "write the best model to FILE (.safetensors)", 0},
    {"log", KEY_LOG, "FILE", 0, "write the log to FILE [--out's path, with .jsonl]", 0},
    {"report", KEY_REPORT, "FILE", 0, "write a page of HTML on the trained model to FILE", 0},
    {"resume", KEY_RESUME, NULL, 0, "resume an interrupted run", 0},
    {"heartbeat", KEY_HEARTBEAT, "SECONDS", 0,
     "under mpirun: abort the job if a rank does not respond for SECONDS; 0: never [20]", 0},
    {"split", KEY_SPLIT, "WHAT=RANKS", 0,
     "under mpirun: sequence parallelism over N ranks (sequence=N), for long sequences, or "
     "tensor parallelism by heads and hidden units (heads=2), for large models [heads=1]",
     0},
    MACHINE_OPTIONS(0),
};

/* Takes the number of "sequence=2" or "heads=2". */
static void train_take_split(struct argp_state *state, const char *argument,
                             struct training_request *request)
{
    const bool heads = strncmp(argument, "heads=", 6) == 0;
    if (!heads && strncmp(argument, "sequence=", 9) != 0)
        options_refuse(state, "--split is \"%s\"; it must be sequence=RANKS or heads=RANKS",
                       argument);
    *(heads ? &request->head_ranks : &request->sequence_ranks) =
        (int)options_number(state, "split", strchr(argument, '=') + 1, 1, 1 << 20);
}

/* Where the name of an option's file goes; NULL when the option names none. */
static const char **train_file_of(struct training_request *request, int key)
{
    return key == KEY_VALID    ? &request->valid
           : key == KEY_SOURCE ? &request->source_file
           : key == KEY_TARGET ? &request->target_file
           : key == KEY_FROM   ? &request->from
           : key == KEY_OUT    ? &request->out
           : key == KEY_LOG    ? &request->log
           : key == KEY_REPORT ? &request->report
                               : NULL;
}

static void train_take_kind(struct argp_state *state, const char *argument,
                            struct training_request *request)
{
    char all[128] = "";
    request->kind = training_kind_find(argument);
    for (int i = 0; training_kind_at(i); i++)
        strcat(strcat(all, i ? ", " : ""), training_kind_at(i)->name);
    if (!request->kind)
        options_refuse(state, "--model: \"%s\" is none of %s", argument, all);
}

static void train_take_data(struct argp_state *state, const char *argument,
                            struct training_request *request)
{
    if (request->file_count == MOST_FILES)
        options_refuse(state, "--data: more than %d files; join some of them", MOST_FILES);
    request->files[request->file_count++] = argument;
    request->data = request->files[0];
}

static error_t train_parse(int key, char *argument, struct argp_state *state)
{
    struct training_request *request = state->input;
    const char **file = train_file_of(request, key);
    error_t error;
    if (file) {
        *file = argument;
        return 0;
    }
    switch (key) {
    case KEY_TASK:
        request->task =
            strcmp(argument, pattern_task) == 0 ? pattern_task : options_task(state, argument);
        return 0;
    case KEY_MODEL:
        train_take_kind(state, argument, request);
        return 0;
    case KEY_DATA:
        train_take_data(state, argument, request);
        return 0;
    case KEY_RESUME:
        request->resume = true;
        return 0;
    case KEY_HEARTBEAT:
        request->heartbeat = options_number(state, "heartbeat", argument, 0, 86400);
        return 0;
    case KEY_SPLIT:
        train_take_split(state, argument, request);
        return 0;
    case ARGP_KEY_ARG:
        options_refuse(state, "unexpected argument \"%s\"", argument);
        return 0;
    case KEY_THREADS:
        request->threads_given = true;
        return machine_option(key, argument, state);
    case KEY_DEVICE:
        return machine_option(key, argument, state);
    default:
        return options_parse(key, argument, state, &request->settings, request->given, &error)
                   ? error
                   : ARGP_ERR_UNKNOWN;
    }
}

/* ---- options that exclude each other ---- */

static int train_check_files(const struct training_request *r)
{
    int sources = (r->task != NULL) + (r->data != NULL) + (r->source_file || r->target_file);
    if (sources == 0)
        return command_misused("train", "give --task NAME or --data FILE to train on");
    if (sources > 1)
        return command_misused("train",
                               "--task, --data and --source-file cannot be combined; use one");
    if (!r->source_file != !r->target_file)
        return command_misused("train", "give both --source-file and --target-file");
    if (r->file_count > 1 && !r->kind->several_files)
        return command_misused("train", "--data is given %d times; --model %s learns from one file",
                               r->file_count, r->kind->name);
    if (r->source_file && !r->kind->two_files)
        return command_misused("train",
                               "--source-file and --target-file are pairs, for --model seq2seq, "
                               "not for --model %s",
                               r->kind->name);
    if (r->task && r->valid)
        return command_misused("train",
                               "--valid is for --data; a task makes its own held-out pairs");
    if (!r->out || !r->out[0])
        return command_misused("train", "give --out FILE for the model");
    return -1;
}

static int train_check_given(const struct training_request *r)
{
    static const char *const of_files[] = {
        "source-units",     "target-units", "vocabulary", "joint-vocabulary",
        "share-embeddings", "units",        "documents",  NULL};
    static const char *const of_tasks[] = {"min-length", "max-length", NULL};
    const char *const *others = r->task ? of_files : of_tasks;
    for (int i = 0; others[i]; i++)
        if (setting_given(r, others[i]))
            return command_misused("train", "--%s is for %s", others[i],
                                   r->task ? "pairs from files, not for --task"
                                           : "--task, not for pairs from files");
    return -1;
}

/* A setting of another kind of models would do nothing. */
static int train_check_kind(const struct training_request *r)
{
    for (int i = 0; setting_name(i); i++) {
        char all[64] = "";
        if (!r->given[i] || model_has_setting(r->kind->model, setting_name(i)))
            continue;
        for (int k = 0; training_kind_at(k); k++)
            if (model_has_setting(training_kind_at(k)->model, setting_name(i)))
                strcat(strcat(all, all[0] ? " or " : ""), training_kind_at(k)->name);
        return command_misused("train", "--%s is for --model %s, not for --model %s",
                               setting_name(i), all, r->kind->name);
    }
    const best_score best = r->settings.best;
    if (best != BEST_AUTO && !(r->kind->scores >> best & 1))
        return command_misused("train", "--best %s: %s has no such score; use %s",
                               setting_get(&r->settings, setting_find("best")).text, r->kind->title,
                               r->kind->scores >> BEST_EXACT & 1      ? "loss, exact, error or bleu"
                               : r->kind->scores >> BEST_ACCURACY & 1 ? "loss or accuracy"
                                                                      : "loss");
    const bool pairs = r->task && strcmp(r->task, pattern_task) != 0;
    if (r->task && pairs != !r->kind->task)
        return command_misused(
            "train", "--task %s is not for --model %s; %s", r->task, r->kind->name,
            pairs ? "use --task pattern" : "use copy, reverse, sort, addition or dates");
    return -1;
}

/* Sizes that do not fit are reported before any file is read. */
static int train_check_settings(const struct training_request *r)
{
    const struct settings *s = &r->settings;
    sb_transformer_options complete;
    sb_task_pair pair;
    if (!sb_transformer_complete(&s->model.transformer, &complete) ||
        (r->task && !sb_task_make(SB_TASK_COPY, &s->task, 0, SB_PART_TRAIN, 0, &pair)))
        return command_misused("train", "%s", sb_error());
    if (!fine_tuning_check(&s->tuning))
        return command_misused("train", "%s", sb_error());
    if (s->model.share_embeddings && !s->joint_vocabulary)
        return command_misused("train", "--share-embeddings needs --joint-vocabulary");
    return -1;
}

static int train_check_lora(const struct training_request *r)
{
    const struct fine_tuning *tuning = &r->settings.tuning;
    if (tuning->lora == 0 && (setting_given(r, "lora-on") || setting_given(r, "lora-alpha")))
        return command_misused("train", "--lora-on and --lora-alpha need --lora RANK");
    if (tuning->lora > 0 && !r->from && !r->resume)
        return command_misused("train", "--lora adapts a trained model; give it with --from FILE");
    if (tuning->lora > 0 && r->head_ranks > 1)
        return command_misused("train",
                               "--lora and --split heads cannot be combined; let the ranks "
                               "share batches");
    if (tuning->lora > 0 && r->report)
        return command_misused("train", "--report needs a whole model, and --lora writes adapters; "
                                        "use softback merge, then softback report");
    return -1;
}

static int train_check_split(const struct training_request *r)
{
    if (r->sequence_ranks > 1 && r->head_ranks > 1)
        return command_misused("train", "--split cuts sequences or heads over ranks, not both");
    if (r->report && r->head_ranks > 1)
        return command_misused(
            "train", "--report needs all heads on one rank, which --split heads distributes; "
                     "run softback report on the trained model");
    return -1;
}

static int train_check(const struct training_request *r)
{
    int wrong = train_check_files(r);
    wrong = wrong < 0 ? train_check_split(r) : wrong;
    wrong = wrong < 0 ? train_check_lora(r) : wrong;
    wrong = wrong < 0 ? train_check_given(r) : wrong;
    wrong = wrong < 0 ? train_check_kind(r) : wrong;
    return wrong < 0 && !r->resume ? train_check_settings(r) : wrong;
}

static int train_run(int argc, char **argv)
{
    static struct argp_option options[MOST_OPTIONS];
    options_with_settings(options, own_options, sizeof own_options / sizeof own_options[0]);
    const struct argp argp = {
        options,
        train_parse,
        "--task NAME --out FILE\n--data FILE --out FILE",
        "Trains an encoder-decoder on pairs of texts, or another kind of model.\vThe model that "
        "does "
        "best on held-out data is written to --out, with the state that --resume needs and the log "
        "next to it.",
        NULL,
        NULL,
        NULL};
    struct training_request request = {
        .kind = &training_seq2seq, .settings = settings_default(), .heartbeat = 20};
    request.sequence_ranks = request.head_ranks = 1;
    int wrong = command_parse(&argp, "train", argc, argv, &request);
    training_choose(&request);
    if (wrong < 0)
        wrong = train_check(&request);
    return wrong < 0 ? training_run(&request) : wrong;
}

const struct command command_train = {"train", "trains a model", train_run};
