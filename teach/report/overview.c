#include "teach/report/overview.h"
#include <math.h>

static double mean_of_last(const struct run_log *log)
{
    const int64_t tenth = log->count / 10 + 1;
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = log->count - 1; i >= 0 && n < tenth; i--)
        if (!isnan(log->line[i].loss)) {
            sum += log->line[i].loss;
            n++;
        }
    return n > 0 ? sum / (double)n : (double)NAN;
}

static bool is_better(const struct run_line *line, const struct run_end *end)
{
    const double exact = 1 - line->held_out_error;
    if (isnan(end->held_out_loss))
        return true;
    return exact > end->exact ||
           (!(exact < end->exact) && line->held_out_loss < end->held_out_loss);
}

struct run_end run_end(const struct run_log *run, int64_t symbols)
{
    struct run_end end = {.steps = 0,
                          .first_loss = NAN,
                          .last_loss = mean_of_last(run),
                          .held_out_loss = NAN,
                          .exact = NAN,
                          .guessing = log((double)symbols)};
    for (int64_t i = 0; i < run->count; i++) {
        const struct run_line *line = &run->line[i];
        end.steps = fmax(end.steps, line->step);
        if (isnan(end.first_loss))
            end.first_loss = line->loss;
        if (!isnan(line->held_out_loss) && is_better(line, &end)) {
            end.held_out_loss = line->held_out_loss;
            end.exact = 1 - line->held_out_error;
        }
    }
    return end;
}

/* The verdict: a word for the style, a sentence, and what to do next, as HTML. */
struct verdict_text {
    const char *mood, *says, *next;
};

static struct verdict_text verdict_of(const struct run_end *end)
{
    const double loss = isnan(end->held_out_loss) ? end->last_loss : end->held_out_loss;
    if (isnan(loss))
        return (struct verdict_text){"open", "There is no log of its training.",
                                     "give <code>--log FILE</code>, or train with <code>--report"
                                     "</code>"};
    if (end->exact >= 0.99)
        return (struct verdict_text){"good", "It has learnt its task.",
                                     "try texts that are longer than those it has seen (<code>"
                                     "--input</code>), or a smaller model (<code>--width</code>)"};
    if (end->exact >= 0.8)
        return (struct verdict_text){"good", "It has nearly learnt its task.",
                                     "see <em>Errors</em> for what they have in common, and train "
                                     "longer (<code>--steps</code>)"};
    if (loss < 0.7 * end->guessing)
        return (struct verdict_text){"open",
                                     "It has learnt a part: its loss is well below guessing.",
                                     end->held_out_loss > 2 * end->last_loss
                                         ? "it fits its training texts better than others: give it "
                                           "more of them, or <code>--dropout</code>"
                                         : "train longer (<code>--steps</code>): the curves show "
                                           "whether the loss still falls"};
    return (struct verdict_text){"bad", "It has hardly learnt: its loss is near guessing.",
                                 "try another <code>--rate</code>; <em>Gradients</em> shows which "
                                 "parameters get none, <em>Check and tape</em> whether backward is "
                                 "right"};
}

static void fact(struct html *html, const char *name, int digits, double x, const char *unit)
{
    if (!isnan(x))
        html_say(html, "<p><span>%s</span> <strong>%.*g%s</strong></p>\n", name, digits, x, unit);
}

void overview_add(struct html *html, const struct subject *s, const char *text, const char *task,
                  const struct run_log *run)
{
    const struct run_end end = run_end(run, s->example.choices);
    const struct verdict_text verdict = verdict_of(&end);
    html_print(
        html,
        "<section class=\"overview %s\">\n<p class=\"verdict\">%s</p>\n<p>Next: %s.</p>\n<div "
        "class=\"facts\">\n",
        verdict.mood, verdict.says, verdict.next);
    if (task[0]) {
        html_add(html, "<p><span>task</span> <strong>");
        html_text(html, task);
        html_add(html, "</strong></p>\n");
    }
    fact(html, "held-out texts exactly right", 3, 100 * end.exact, " %");
    fact(html, "held-out loss, nats a symbol", 3, end.held_out_loss, "");
    fact(html, "loss of guessing", 3, end.guessing, "");
    fact(html, "loss at the start", 3, end.first_loss, "");
    fact(html, "loss at the end", 3, end.last_loss, "");
    fact(html, "steps", 10, run->count > 0 ? end.steps : (double)NAN, "");
    html_add(html, "</div>\n");
    if (!isnan(end.last_loss))
        html_add(html, "<p>A nat is the unit of natural logarithms: ln 2 = 0.69 nats are one bit. "
                       "The loss at the end is a mean over the last tenth of the steps, with "
                       "dropout and label smoothing where they are set. The held-out loss is that "
                       "of the best evaluation, without them, and so it can be the smaller "
                       "one.</p>\n");
    html_add(html, "<p>For <code>");
    html_text(html, text);
    html_add(html, "</code> it writes <code>");
    html_text(html, s->example.target);
    html_add(html, "</code>.</p>\n</section>\n");
}
