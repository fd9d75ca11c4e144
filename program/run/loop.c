/* A training run: its steps and evaluations, their output, and its end. */
#include "models/training/diagnosis.h"
#include "program/run/kind.h"
#include "program/run/report.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include <math.h>
#include <signal.h>
#include <stdlib.h>

/* ---- the score by which the best model is chosen: --best ---- */

bool training_choose_best(struct training *t)
{
    if (t->settings.best != BEST_AUTO)
        t->best = t->settings.best;
    return t->best == BEST_LOSS || t->scored ||
           sb_fail("--best %s needs texts that are decoded, and --evaluate-pairs is 0; use --best "
                   "loss, or evaluate some pairs",
                   setting_get(&t->settings, setting_find("best")).text);
}

/* Lower is better. */
static double training_score(const struct training *t, const sb_evaluation *e)
{
    return t->best == BEST_LOSS    ? e->loss
           : t->best == BEST_BLEU  ? -e->bleu
           : t->best == BEST_ERROR ? e->unit_error
                                   : e->error;
}

/* With equal scores fewer errors are better; with equal errors, or none decoded, a lower loss. */
static bool training_is_best(const struct training *t, const sb_evaluation *e)
{
    const sb_evaluation *was = &t->progress.best;
    const double is[] = {training_score(t, e), e->error},
                 before[] = {training_score(t, was), was->error};
    if (t->progress.best_step == 0)
        return true;
    for (int i = 0; i < 2; i++)
        if (!isnan(is[i]) && !isnan(before[i]) && is[i] != before[i])
            return is[i] < before[i];
    return e->loss < was->loss;
}

/* ---- evaluating and saving ---- */

static bool training_finished(const struct training *t)
{
    int64_t patience = t->settings.patience;
    return sb_trainer_steps(t->trainer) >= t->settings.steps ||
           (patience > 0 && t->progress.waited >= patience);
}

static void training_note(struct training *t, const sb_evaluation *scores)
{
    struct progress *p = &t->progress;
    const int64_t step = sb_trainer_steps(t->trainer);
    p->evaluations++;
    p->waited++;
    /* A best model newer than the resumed state is saved again, even if rounding made it worse. */
    if (!training_is_best(t, scores) && step != t->ahead)
        return;
    p->best = *scores;
    p->best_step = step;
    p->waited = 0;
    t->ahead = 0;
}

/* With the averaged weights, if there are any. */
static bool training_measure_and_keep(struct training *t, sb_evaluation *scores)
{
    if (!sb_evaluate(&t->subject, &t->held_source, t->scored, t->request->batch_ranks, scores))
        return false;
    training_note(t, scores);
    if (!training_saves(t))
        return true;
    const struct checkpoint_contents best = {
        .settings = &t->settings, .task = t->task, .progress = &t->progress, .best = true};
    return training_holds_lock(t) &&
           (t->progress.waited > 0 ||
            checkpoint_save(t->out, &t->subject, &best, &t->progress.best_fingerprint)) &&
           training_keep(t);
}

/* The diagnosis of the watched batch, for --report. */
static bool training_diagnose(const struct training *t)
{
    struct diagnosis diagnosis;
    if (!diagnosis_make(&diagnosis, &t->subject, t->watched))
        return false;
    const bool ok = log_diagnosis(t->log, sb_trainer_steps(t->trainer), &diagnosis);
    diagnosis_free(&diagnosis);
    return ok;
}

/* Evaluates (with averaged weights, if there are any), saves the model if it is the best so far
   (then progress.waited is 0), that of --keep, and the state. */
static bool training_evaluate(struct training *t, sb_evaluation *scores)
{
    sb_average *average = sb_trainer_average(t->trainer);
    if (t->guess.loss == 0 && t->log && !guess_make(&t->guess, &t->held_source))
        return false;
    if (average && !sb_average_swap(average))
        return false;
    bool ok = training_measure_and_keep(t, scores);
    if (average)
        ok = sb_average_swap(average) && ok;
    if (!ok)
        return false;
    sb_optimiser_observe(sb_trainer_optimiser(t->trainer), scores->loss);
    return log_evaluation(t->log, sb_trainer_steps(t->trainer), scores, &t->guess,
                          t->progress.waited == 0) &&
           (!t->watched || training_diagnose(t)) && training_save(t) && training_kept_trim(t);
}

bool training_save(struct training *t)
{
    const struct checkpoint_contents state = {
        .settings = &t->settings, .task = t->task, .trainer = t->trainer, .progress = &t->progress};
    t->progress.finished = training_finished(t);
    return !training_saves(t) ||
           (training_holds_lock(t) &&
            checkpoint_save(t->state_path.text, &t->subject, &state, NULL) && training_lock(t));
}

/* ---- steps ---- */

static volatile sig_atomic_t interrupted;

static void training_interrupt(int signal_number)
{
    interrupted = 1;
    signal(signal_number, SIG_DFL); /* a second one ends the program immediately */
}

bool training_interrupted(void *unused)
{
    (void)unused;
    return interrupted;
}

/* Signals that are ignored, as under nohup, stay ignored. */
static void training_catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (signal(signals[i], training_interrupt) == SIG_IGN)
            signal(signals[i], SIG_IGN);
}

/* Prints why this rank failed; if there are other ranks, ends the job. */
static bool training_failed(sb_communicator *c)
{
    if (sb_communicator_size(c) > 1)
        sb_communicator_abort(c, "softback train", sb_error());
    return command_failed();
}

/* An abort ends the process, so all output comes before it. */
static void training_step_failed(const struct training *t, double loss)
{
    const bool alone = sb_communicator_size(t->request->communicator) == 1;
    char message[1024];
    snprintf(message, sizeof message, "%s", sb_error());
    if (alone)
        command_failed();
    if (!isfinite(loss))
        training_save_batch(t); /* so that the cause can be found */
    if (!alone)
        sb_communicator_abort(t->request->communicator, "softback train", message);
}

static bool training_one_step(struct training *t, struct progress_line *line)
{
    sb_trained trained;
    if (!sb_trainer_step(t->trainer, &trained)) {
        if (trained.stopped) /* by a signal, which the caller sees */
            return true;
        progress_clear(line);
        training_step_failed(t, trained.loss);
        return false;
    }
    int64_t step = sb_trainer_steps(t->trainer);
    const bool writes = training_writes(t);
    if (trained.skipped || trained.without_gradient)
        progress_clear(line);
    if (trained.skipped && writes)
        fprintf(stderr, "softback train: step %s: %s\n", count_text(step).text, sb_error());
    if (trained.without_gradient && writes)
        fprintf(stderr, "softback train: the parameter %s gets no gradient\n",
                trained.without_gradient);
    if (step % 10 == 0 && !log_step(t->log, step, &trained)) {
        progress_clear(line);
        return training_failed(t->request->communicator);
    }
    line->waited += trained.waited;
    line->sent += trained.sent;
    progress_step(line, step, t->settings.steps, trained.loss, trained.targets);
    return true;
}

static bool training_log_seconds(const struct training *t, struct progress_line *line)
{
    return log_seconds(t->log, sb_trainer_steps(t->trainer), progress_lap(line));
}

/* The evaluation after a step, if it is due. */
static bool training_evaluate_now(struct training *t, struct progress_line *line)
{
    sb_evaluation scores;
    const int64_t steps = sb_trainer_steps(t->trainer);
    if (steps == 0 || (steps % t->settings.evaluate_every != 0 && steps != t->settings.steps))
        return true;
    if (!training_evaluate(t, &scores) || !training_log_seconds(t, line)) {
        progress_clear(line);
        return training_failed(t->request->communicator);
    }
    char measure[96];
    t->request->kind->measure(t, &scores, 1, measure, sizeof measure);
    progress_evaluation(line, steps, t->settings.steps, scores.loss, measure,
                        t->progress.waited == 0);
    return true;
}

static bool training_go_on(struct training *t, struct progress_line *line)
{
    while (!training_finished(t) && !interrupted) {
        const int64_t before = sb_trainer_steps(t->trainer);
        if (!training_one_step(t, line) ||
            /* a step that a signal gave up leaves the one before it, which was evaluated */
            (sb_trainer_steps(t->trainer) > before && !training_evaluate_now(t, line)))
            return false;
    }
    progress_clear(line);
    if (training_finished(t))
        return true;
    if (!training_save(t) || !training_log_seconds(t, line))
        return command_failed();
    fprintf(stderr, "Stopped after step %s; the same command with --resume continues.\n",
            count_text(sb_trainer_steps(t->trainer)).text);
    return false;
}

static void training_conclude(const struct training *t, const struct progress_line *line)
{
    const struct progress *p = &t->progress;
    int64_t steps = sb_trainer_steps(t->trainer), taken = steps - line->at_start;
    printf("trained    %s %s in %s, %s target symbols/s\n", count_text(taken).text,
           line->at_start > 0 ? "more steps" : "steps", duration_text(progress_seconds(line)).text,
           count_text((int64_t)progress_rate(line)).text);
    if (sb_communicator_size(t->request->batch_ranks) > 1)
        printf("ranks      %d, which spent %.1f %% of the time only on summing gradients\n",
               sb_communicator_size(t->request->communicator),
               100 * line->waited / progress_seconds(line));
    if (sb_communicator_size(t->request->communicator) > 1)
        printf("sent       %s bytes a step, by rank 0\n",
               count_text(taken > 0 ? line->sent / taken : 0).text);
    if (steps < t->settings.steps)
        printf("stopped    at step %s: %lld evaluations without a better one\n",
               count_text(steps).text, (long long)p->waited);
    char measure[96];
    t->request->kind->measure(t, &p->best, 2, measure, sizeof measure);
    printf("best       at step %s: held-out loss %.4f%s\n", count_text(p->best_step).text,
           p->best.loss, measure);
    printf("model      %s\n", foreign(t->out));
    training_describe_kept(t, stdout);
}

/* A page on the model, with a text that it was not trained on. */
static bool training_report(const struct training *t, const char *path)
{
    const struct training_request *r = t->request;
    const bool kept = t->log && ftell(t->log) >= 0; /* a pipe keeps nothing */
    const struct report_request request = {.model = t->out,
                                           .page.text = t->drawn,
                                           .page.expected = t->drawn_target,
                                           .log = kept ? t->log_path.text : "/dev/null",
                                           .out = path,
                                           .page.pairs = t->held_pairs,
                                           .page.trained_on = r->file_count == 1 ? r->data : NULL,
                                           .page.valid = r->file_count == 1 ? r->valid : NULL};
    const bool ok = report_write(&request);
    if (ok)
        printf("report     %s\n", foreign(path));
    return ok;
}

/* The part of the first rank, after the last step of all. */
static bool training_conclude_all(const struct training *t, const struct progress_line *line)
{
    const struct training_request *r = t->request;
    if (!training_writes(t))
        return true;
    if (!training_check_ahead(t))
        return training_failed(r->communicator);
    training_conclude(t, line);
    return !r->report || training_report(t, r->report) || training_failed(r->communicator);
}

static bool training_train(const struct training_request *request)
{
    struct training t;
    bool alike;
    if (!training_open(&t, request, &alike)) {
        const bool first = sb_communicator_rank(request->communicator) == 0;
        return alike ? first && command_failed() : training_failed(request->communicator);
    }
    const bool alone = sb_communicator_size(request->communicator) == 1;
    if (training_writes(&t))
        training_describe(&t, stdout);
    fflush(stdout);
    struct progress_line line = progress_begin(sb_trainer_steps(t.trainer));
    line.shown = training_writes(&t);
    if (alone) /* mpirun ends all ranks immediately, without a common last step */
        training_catch_signals();
    bool done = training_go_on(&t, &line) && training_conclude_all(&t, &line);
    training_close(&t);
    return done;
}

/* Neighbours hold parts of one model; ranks with the same part share batches. All ranks make both
   groups, even without a split: their options have not been compared yet. */
static bool training_divide(struct training_request *r)
{
    sb_communicator *c = r->communicator;
    const int rank = sb_communicator_rank(c);
    r->model_ranks = sb_communicator_split(c, rank / r->head_ranks, rank);
    r->batch_ranks = r->model_ranks ? sb_communicator_split(c, rank % r->head_ranks, rank) : NULL;
    return r->batch_ranks != NULL;
}

/* The ranks of a job share the processors of a machine and monitor each other. */
static bool training_join(struct training_request *request)
{
    sb_communicator *c = request->communicator = sb_communicator_world();
    if (!c)
        return false;
    if (sb_communicator_processors(c) > 0 && !option_given(request->options, "threads") &&
        !getenv("OMP_NUM_THREADS") && !sb_set_threads(sb_communicator_processors(c)))
        return false;
    return (request->heartbeat == 0 || sb_communicator_watch(c, request->heartbeat)) &&
           training_divide(request);
}

bool training_run(struct training_request *request)
{
    if (!training_join(request))
        return training_failed(request->communicator);
    const bool done = training_train(request);
    sb_communicator_close(request->batch_ranks);
    sb_communicator_close(request->model_ranks);
    sb_communicator_close(request->communicator);
    return done;
}
