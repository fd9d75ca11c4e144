#include "teach/report/overview.h"
#include <math.h>

static double mean_of_last(const struct run_log *log)
{
    const int64_t tenth = log->count / 10 + 1;
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = log->count - 1; i >= 0 && n < tenth; i--)
        if (!isnan(log->line[i].of[RUN_LOSS])) {
            sum += log->line[i].of[RUN_LOSS];
            n++;
        }
    return n > 0 ? sum / (double)n : (double)NAN;
}

struct run_end run_end(const struct run_log *run)
{
    struct run_end end = {.steps = run->count > 0 ? 0 : (double)NAN,
                          .first_loss = NAN,
                          .last_loss = mean_of_last(run),
                          .best_step = NAN,
                          .held_out_loss = NAN,
                          .exact = NAN};
    for (int64_t i = 0; i < run->count; i++) {
        const double *of = run->line[i].of;
        end.steps = fmax(end.steps, of[RUN_STEP]);
        if (isnan(end.first_loss))
            end.first_loss = of[RUN_LOSS];
        if (of[RUN_BEST] == 1) {
            end.best_step = of[RUN_STEP];
            end.held_out_loss = of[RUN_HELD_OUT_LOSS];
            end.exact = of[RUN_EXACT];
        }
    }
    return end;
}

/* The verdict: a word for the style, a sentence, and what to do next, as HTML. */
struct verdict_text {
    const char *mood, *says, *next;
};

static struct verdict_text verdict_of(const struct run_end *end, double guessing)
{
    const double loss = isnan(end->held_out_loss) ? end->last_loss : end->held_out_loss;
    if (isnan(loss))
        return (struct verdict_text){"open", "There is no log of its training.",
                                     "give <code>--log FILE</code>, or train with <code>--report"
                                     "</code>"};
    if (end->exact >= 99)
        return (struct verdict_text){"good", "It has learnt its task.",
                                     "try texts that are longer than those it has seen (<code>"
                                     "--input</code>), or a smaller model (<code>--width</code>)"};
    if (end->exact >= 80)
        return (struct verdict_text){"good", "It has nearly learnt its task.",
                                     "see what its errors have in common, and train longer (<code>"
                                     "--steps</code>)"};
    if (loss < 0.7 * guessing)
        return (struct verdict_text){"open",
                                     "It has learnt a part: its loss is well below guessing.",
                                     end->held_out_loss > 2 * end->last_loss
                                         ? "it fits its training texts better than others: give it "
                                           "more of them, or <code>--dropout</code>"
                                         : "train longer (<code>--steps</code>): the curves show "
                                           "whether the loss still falls"};
    return (struct verdict_text){
        "bad", "It has hardly learnt: its loss is near guessing.",
        "try another <code>--learning-rate</code>; <em>Gradients</em> shows which "
        "parameters get none, <em>Check and tape</em> whether backward is "
        "right"};
}

static void fact(struct html *html, const char *name, int digits, double x, const char *unit)
{
    if (!isnan(x))
        html_say(html, "<p><span>%s</span> <strong>%.*g%s</strong></p>\n", name, digits, x, unit);
}

void overview_add(struct html *html, const struct subject *s, const char *text,
                  const struct checkpoint *c, const struct run_log *run)
{
    const struct run_end end = run_end(run);
    const double guessing = log((double)s->example.choices);
    const struct verdict_text verdict = verdict_of(&end, guessing);
    html_print(html, "<section class=\"overview %s\">\n<p class=\"verdict\">%s", verdict.mood,
               verdict.says);
    if (!isnan(end.exact))
        html_say(html, " %.3g&#160;%% of held-out texts are exactly right.", end.exact);
    else if (!isnan(end.last_loss))
        html_say(html, " %.3g nats a symbol; guessing has %.3g.",
                 isnan(end.held_out_loss) ? end.last_loss : end.held_out_loss, guessing);
    html_add(html, "</p>\n<p>For ");
    html_code(html, text);
    html_add(html, " it writes ");
    html_code(html, s->example.target);
    html_print(html,
               ".</p>\n<p>Next: %s.</p>\n<details><summary>All numbers</summary>\n<div "
               "class=\"facts\">\n",
               verdict.next);
    if (c->task[0]) {
        html_add(html, "<p><span>task</span> <strong>");
        html_text(html, c->task);
        html_add(html, "</strong></p>\n");
    }
    fact(html, "held-out texts exactly right", 3, end.exact, " %");
    fact(html, "held-out loss, nats a symbol", 3, end.held_out_loss, "");
    fact(html, "loss of guessing", 3, guessing, "");
    fact(html, "loss at the start", 3, end.first_loss, "");
    fact(html, "loss at the end", 3, end.last_loss, "");
    fact(html, "steps", 10, end.steps, "");
    html_add(html, "</div>\n");
    if (!isnan(end.last_loss))
        html_add(html, "<p>A nat is the unit of natural logarithms: ln 2 = 0.69 nats are one bit. "
                       "The loss at the end is a mean over the last tenth of the steps, with "
                       "dropout and label smoothing where they are set. The held-out loss is "
                       "without them, and so it can be the smaller one.</p>\n");
    if (!isnan(end.best_step))
        html_say(html,
                 "<p>The held-out numbers are those of the best evaluation in training, at step "
                 "%.10g, whose weights were saved as this model. An evaluation decodes up to %lld "
                 "texts.</p>\n",
                 end.best_step, (long long)c->settings.evaluate_pairs);
    html_add(html, "</details>\n</section>\n");
}
