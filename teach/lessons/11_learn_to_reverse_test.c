/* Whether train teaches a small encoder-decoder to reverse eight digits within 200 steps. */
#include "lesson.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 200, PART = 50, TESTED = 200, WIDTH = 32 };
static const sb_task_options lengths = {.min_length = 8, .max_length = 8};

struct run {
    sb_data *data;
    sb_parameters *weights;
    sb_seq2seq *model;
    sb_optimiser *adam;
};

static bool run_open(struct run *run)
{
    const sb_data_options batches = {.seed = 1, .batch_pairs = 32};
    const sb_seq2seq_options options = {.transformer = {.width = WIDTH,
                                                        .heads = 2,
                                                        .feed_forward = 2 * WIDTH,
                                                        .encoder_layers = 1,
                                                        .decoder_layers = 1}};
    const sb_optimiser_options rate = {.schedule = {.kind = SB_SCHEDULE_COSINE,
                                                    .rate = learning_rate(),
                                                    .warmup = 20,
                                                    .steps = STEPS},
                                       .clip = 1};
    sb_set_threads(1); /* so small a model is slower with more */
    run->data = sb_data_task_with(SB_TASK_REVERSE, &lengths, &batches);
    run->weights = sb_parameters_new(1);
    run->model = run->data ? sb_seq2seq_new(run->weights, run->data, &options) : NULL;
    run->adam = run->model ? sb_adam_new(run->weights, &rate) : NULL;
    return run->adam;
}

static void run_close(struct run *run)
{
    sb_optimiser_free(run->adam);
    sb_seq2seq_free(run->model);
    sb_parameters_free(run->weights);
    sb_data_free(run->data);
}

/* The share of digits that the model writes right, of sequences that are never trained on, and its
   standard error over the sequences. */
static double digits_right(const sb_seq2seq *model, bool show, double *error)
{
    static sb_task_pair pairs[TESTED];
    const char *texts[TESTED];
    char *outputs[TESTED];
    double sum = 0, squares = 0;
    for (int i = 0; i < TESTED; i++) {
        if (!sb_task_make(SB_TASK_REVERSE, &lengths, 1, SB_PART_TEST, (uint64_t)i, &pairs[i]))
            return NAN;
        texts[i] = pairs[i].source;
    }
    if (!sb_translate_texts(model, texts, TESTED, NULL, outputs))
        return NAN;
    for (int i = 0; i < TESTED; i++) {
        const size_t length = strlen(outputs[i]), wanted = strlen(pairs[i].target);
        double right = 0;
        for (size_t c = 0; c < wanted; c += 2)
            right += c < length && outputs[i][c] == pairs[i].target[c];
        right /= (double)(wanted / 2 + 1); /* digits have spaces between them */
        sum += right;
        squares += right * right;
        if (show && i < 3)
            say("    %s  ->  %s", texts[i], outputs[i]);
        sb_free(outputs[i]);
    }
    *error = sqrt(fmax(squares - sum * sum / TESTED, 0) / (TESTED - 1) / TESTED);
    return sum / TESTED;
}

/* The loss of a batch; nothing is recorded. */
static double loss_of(const sb_seq2seq *model, const sb_batch *batch)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    double loss = sb_tensor_value(sb_seq2seq_loss(model, batch));
    sb_tape_end(&tape);
    return loss;
}

/* What the decoder attended to: rows are what is written, columns what was read. */
static void show_attention(const struct run *run)
{
    static const char *const shades[] = {" ", ".", "o", "#"};
    sb_tensor *cross[1] = {NULL};
    const sb_seq2seq_weights weights = {.decoder = {.cross = cross}};
    const sb_batch *batch = sb_data_next(run->data);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    if (sb_seq2seq_logits(run->model, batch, &weights) && cross[0]) {
        const int64_t Lt = sb_tensor_dim(cross[0], 2), Ls = sb_tensor_dim(cross[0], 3);
        say("What its two heads read (columns) while they write (rows):");
        for (int64_t i = 0; i < 8 && i < Lt; i++) {
            char line[2][64] = {"", ""};
            for (int64_t h = 0; h < 2; h++)
                for (int64_t j = 0; j < 8 && j < Ls; j++) {
                    double a = sb_tensor_get(cross[0], (h * Lt + i) * Ls + j);
                    strcat(line[h], shades[a < 0.1 ? 0 : a < 0.3 ? 1 : a < 0.6 ? 2 : 3]);
                    strcat(line[h], " ");
                }
            say("    |%s|    |%s|", line[0], line[1]);
        }
    }
    sb_tape_end(&tape);
}

static void name_failure(void)
{
    say("train returned false: %s", sb_error());
    if (strstr(sb_error(), "sb_backward first"))
        hint("adam found no gradient: sb_backward(loss) computes it, before the step");
    else if (strstr(sb_error(), "open"))
        hint("each step has a tape of its own: begin it in the loop, and end it there");
}

static void name_slowness(const struct run *run, double before, double after)
{
    const int64_t drawn = sb_data_tell(run->data).batch;
    if (sb_optimiser_steps(run->adam) == 0)
        hint("the weights have not changed: sb_optimiser_step(adam) was never called, or it failed "
             "(the last message of the library: \"%s\")",
             sb_error());
    else if (sb_optimiser_steps(run->adam) != STEPS)
        hint("adam took %d steps and not %d", (int)sb_optimiser_steps(run->adam), STEPS);
    else if (drawn < STEPS / 2)
        hint("only %d batches were drawn: the model learns these few by heart. Ask for "
             "sb_data_next in each step",
             (int)drawn);
    else if (!isfinite(after) || learning_rate() > 0.03)
        hint("a learning rate of %g is too large: every step overshoots", learning_rate());
    else if (after > 0.5 * before)
        hint("a learning rate of %g is too small for %d steps", learning_rate(), STEPS);
    else
        hint("it is learning, but not fast enough; try another learning rate");
}

static void test(struct run *run)
{
    const sb_data_options other = {.seed = 2, .batch_pairs = 64};
    sb_data *fresh = sb_data_task_with(SB_TASK_REVERSE, &lengths, &other);
    const sb_batch *batch = fresh ? sb_data_next(fresh) : NULL;
    const double before = batch ? loss_of(run->model, batch) : NAN;
    double after = before, right = 0, error = 0;
    bool ok = batch;
    say("steps   loss of a fresh batch   digits right, of %d sequences", TESTED);
    say("%5d %23.3f", 0, before);
    for (int step = PART; ok && step <= STEPS; step += PART) {
        ok = train(run->model, run->data, run->adam, PART);
        after = loss_of(run->model, batch);
        right = digits_right(run->model, false, &error);
        say("%5d %23.3f %7.1f +- %.1f %%", step, after, 100 * right, 100 * error);
    }
    if (ok && right >= 0.99) {
        digits_right(run->model, true, &error);
        show_attention(run);
        say("The weights, to the bit: %016llx",
            (unsigned long long)sb_parameters_fingerprint(run->weights));
    }
    if (!holds(ok, "train returns true"))
        name_failure();
    if (!holds(right >= 0.99, "99 %% of the digits are right after %d steps", STEPS) && ok)
        name_slowness(run, before, after);
    sb_data_free(fresh);
}

int main(void)
{
    struct run run = {0};
    if (run_open(&run))
        test(&run);
    else
        holds(false, "the model can be made: %s", sb_error());
    run_close(&run);
    return lesson_end();
}
