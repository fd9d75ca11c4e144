/* Whether a run is good, at a glance: a verdict with its numbers, why, and the command to try
   next. */
#include "teach/report/report.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Fewer steps may be too few; a longer run has NEXT or more. A learning rate is FAR from the usual
   one by this factor. */
enum { ENOUGH = 1000, NEXT = 2000, FAR = 5, FEW_TEXTS = 50 };

enum cause { NO_LOG, NONE, UNSTABLE, TOO_HIGH, TOO_LOW, OVERFITS, TOO_SHORT, TOO_SMALL, STUCK };

/* What may be tried instead of the command, as HTML; NULL: nothing else helps. */
static const char *const others[] = {
    [NO_LOG] = "give <code>--log FILE</code>, or train with <code>--report</code>",
    [NONE] = "try texts of other lengths or kinds than it has seen, on which it may fail "
             "(<code>--input</code>), or a smaller model (<code>--width</code>)",
    [UNSTABLE] = "a longer warm-up (<code>--warmup</code>)",
    [TOO_LOW] = "more steps (<code>--steps</code>)",
    [OVERFITS] =
        "more training texts, which help most, or early stopping (<code>--patience</code>)",
    [TOO_SHORT] = ", which continues this run at the rate that a longer schedule has",
    [TOO_SMALL] = "more layers, or more training texts like those that it gets wrong",
    [STUCK] =
        "see in <em>Gradients</em>, which runs with <code>--report</code> have, which parameters "
        "get none, and in <em>Check and tape</em> whether backward is right"};

/* A run and what is judged of it. */
struct run {
    const struct settings *settings;
    const struct run_log *log;
    struct run_end end;
    double rate, usual, guessing, loss; /* loss: held out, or else of training */
    double right; /* per cent of texts above guessing; NaN where no exact text is to be expected */
    enum cause cause;
};

static bool is_good(const struct run *x)
{
    return x->right >= 80;
}

static bool is_poor(const struct run *x)
{
    return isnan(x->right) ? x->loss >= 0.9 * x->guessing : x->right < 10;
}

/* Whether a loss is clearly above another one, and not only in its last digits. */
static bool is_above(double loss, double other, double factor)
{
    return loss > factor * other && loss > other + fmin(factor - 1, 0.1);
}

/* Whether the held-out loss has risen since long before the end, or has not fallen since and is
   clearly above that of training. */
static bool has_turned(const struct run_end *e)
{
    const bool best_is_old =
        3 * e->least_step <= 2 * e->steps && e->last_held_out > e->least_held_out;
    return best_is_old && (is_above(e->last_held_out, e->last_loss, 1.15) ||
                           (is_above(e->last_held_out, e->least_held_out, 1.02) &&
                            e->last_loss < e->last_held_out));
}

static enum cause cause_of(const struct run *x)
{
    const struct run_end *e = &x->end;
    const bool rises = is_above(e->last_held_out, e->least_held_out, 1.1);
    if (isnan(x->loss))
        return NO_LOG;
    if (rises && is_above(e->last_loss, e->least_loss, 1.1))
        return UNSTABLE;
    if (x->right >= 99)
        return NONE;
    if (!is_good(x) && x->rate > FAR * x->usual)
        return TOO_HIGH;
    if (!is_good(x) && x->rate < x->usual / FAR &&
        (is_poor(x) || e->falls || e->last_loss > 0.9 * e->first_loss))
        return TOO_LOW;
    if (rises || has_turned(e) || (!e->falls && is_above(e->last_held_out, e->last_loss, 2)))
        return OVERFITS;
    if (e->falls || e->steps < ENOUGH)
        return TOO_SHORT;
    return x->loss < 0.7 * x->guessing ? TOO_SMALL : STUCK;
}

static bool has_words(const sb_vocabulary *vocabulary)
{
    const sb_units units = sb_vocabulary_units(vocabulary);
    return units == SB_UNITS_WORDS || units == SB_UNITS_BPE;
}

/* Of texts from words to words, hardly any equals its one reference. */
static bool is_translation(const struct report *r)
{
    const sb_example_attention *at = subject_attention(r->subject, NULL);
    return !r->checkpoint->task[0] && has_words(at->queries.vocabulary) &&
           has_words(at->keys.vocabulary);
}

static struct run run_of(const struct report *r, bool labels)
{
    const struct settings *s = &r->checkpoint->settings;
    const double choices = (double)r->subject->example.choices;
    struct run x = {.settings = s,
                    .log = r->log,
                    .end = run_end(r->log),
                    .rate = s->trainer.optimiser.schedule.rate,
                    .usual = settings_usual_rate(s),
                    .guessing = log(choices)};
    double chance = labels ? 100 / choices : 0;
    if (labels && !isnan(x.end.guess)) /* they are seldom equally frequent */
        chance = x.end.guess;
    if (!isnan(x.end.guess_loss))
        x.guessing = x.end.guess_loss;
    x.loss = isnan(x.end.held_out_loss) ? x.end.last_loss : x.end.held_out_loss;
    x.right = chance < 100 ? 100 * (x.end.exact - chance) / (100 - chance) : (double)NAN;
    if (!labels && x.end.exact < 99 && is_translation(r))
        x.right = NAN;
    x.cause = cause_of(&x);
    return x;
}

/* ---- the verdict ---- */

static bool is_bad(const struct run *x)
{
    return x->cause != NO_LOG && !is_good(x) &&
           (is_poor(x) || x->cause == UNSTABLE || x->cause == STUCK);
}

static const char *says(const struct run *x, bool labels)
{
    return x->cause == NO_LOG ? "There is no log of its training."
           : x->right >= 99   ? "It has learnt its task."
           : is_good(x)       ? "It has nearly learnt its task."
           : isnan(x->right)  ? is_poor(x) ? "It has hardly learnt: its loss is near guessing."
                                : x->loss >= 0.7 * x->guessing
                                    ? "Its loss is below guessing, but not by much."
                                    : "Its loss is well below guessing."
           : !is_poor(x)      ? "It has learnt a part of its task."
           : labels           ? "It is hardly better than always choosing the commonest label."
                              : "It gets almost no text right.";
}

double saturated_at_end(const struct run_log *log)
{
    double sum = 0;
    for (int64_t h = 0; log->diagnoses > 0 && h < log->heads; h++)
        sum += log->diagnosis[log->diagnoses - 1].of[RUN_SATURATED][h];
    return sum / fmax((double)log->heads, 1);
}

static void add_why(struct html *html, const struct run *x)
{
    const struct run_end *e = &x->end;
    if (x->cause == UNSTABLE)
        html_say(html,
                 "<p>Training became unstable: the held-out loss rose from %.3g at step %.10g to "
                 "%.3g at the end, and the training loss rose too. The learning rate %.3g is too "
                 "high.</p>\n",
                 e->least_held_out, e->least_step, e->last_held_out, x->rate);
    else if (x->cause == TOO_HIGH)
        html_say(
            html,
            "<p>The learning rate %.3g is too high: the usual one for this width is %.3g.</p>\n",
            x->rate, x->usual);
    else if (x->cause == TOO_LOW)
        html_say(html,
                 "<p>The learning rate %.3g is too low: the training loss only went from %.3g to "
                 "%.3g. The usual one for this width is %.3g.</p>\n",
                 x->rate, e->first_loss, e->last_loss, x->usual);
    else if (x->cause == OVERFITS)
        html_say(html,
                 e->least_step < e->steps
                     ? "<p>It overfits: at the end the loss is %.3g on training texts and %.3g on "
                       "held-out ones, where its least was %.3g at step %.10g.</p>\n"
                     : "<p>It fits its training texts much better than held-out ones: at the end "
                       "the loss is %.3g and %.3g.</p>\n",
                 e->last_loss, e->last_held_out, e->least_held_out, e->least_step);
    else if (x->cause == TOO_SHORT)
        html_say(html,
                 e->falls ? "<p>The held-out loss fell in the last third of training, too: train "
                            "longer.</p>\n"
                          : "<p>%.10g steps are few: train longer.</p>\n",
                 e->steps);
    else if (x->cause == TOO_SMALL)
        html_add(html, "<p>The held-out loss no longer falls, and it does not overfit: a larger "
                       "model may learn more.</p>\n");
    const double saturated = saturated_at_end(x->log);
    if (is_bad(x) && saturated > 0.5)
        html_say(html,
                 "<p>At the end %.0f %% of the rows of attention are saturated: they pass hardly "
                 "any gradient to queries and keys. See <em>Gradients</em>.</p>\n",
                 100 * saturated);
}

/* ---- what to do next ---- */

/* A longer run, whose warm-up is at most a tenth of it. */
static void lengthen(struct settings *s, double steps)
{
    const struct settings defaults = settings_default();
    int64_t *warmup = &s->trainer.optimiser.schedule.warmup;
    const int64_t usual = defaults.trainer.optimiser.schedule.warmup,
                  chosen = s->steps / 20 > 50 ? s->steps / 20 : 50;
    s->evaluate_every = s->evaluate_every == chosen ? defaults.evaluate_every : s->evaluate_every;
    s->steps = (int64_t)fmax(steps, NEXT);
    if (*warmup > 0)
        *warmup = (int64_t)fmin(fmax((double)*warmup, (double)usual), (double)s->steps / 10);
}

/* To two digits. */
static double rounded(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.2g", x);
    return strtod(text, NULL);
}

/* The settings of the run, with what the cause asks for. */
static struct settings next_of(const struct run *x)
{
    struct settings s = *x->settings;
    double *rate = &s.trainer.optimiser.schedule.rate, *dropout = &s.model.transformer.dropout;
    const bool high = x->cause == UNSTABLE || x->cause == TOO_HIGH;
    if (x->cause == TOO_SHORT || (x->end.steps < ENOUGH && x->cause != OVERFITS))
        lengthen(&s, (x->cause == TOO_SHORT ? 3 : 1) * x->end.steps);
    if (x->cause == TOO_LOW || *rate > (high ? 2 : FAR) * x->usual)
        *rate = rounded(x->usual);
    else if (high || (x->cause == STUCK && *rate >= x->usual))
        *rate = rounded(*rate / 3);
    if (high && !(s.trainer.optimiser.clip > 0))
        s.trainer.optimiser.clip = 1;
    if (x->cause == OVERFITS)
        *dropout = rounded(fmin(*dropout + 0.1, 0.5));
    if (x->cause == TOO_SMALL)
        s.model.transformer.width *= 2;
    if (x->rate == x->usual && *rate == x->usual)
        *rate = 0; /* the program chooses it for the width */
    return s;
}

/* Whether more steps can continue the run: not where the warm-up, which stays, is a large part, or
   where the learning rate is far too high. */
static bool continues(const struct run *x, struct settings *more)
{
    *more = *x->settings;
    more->steps = (int64_t)fmax(3 * x->end.steps, NEXT);
    return x->cause == TOO_SHORT && x->rate <= FAR * x->usual &&
           more->trainer.optimiser.schedule.warmup <= more->steps / 4;
}

static bool add_next(struct html *html, const struct run *x, const struct report *r)
{
    struct settings more;
    const bool resumes = continues(x, &more);
    /* No warm-up mends a rate that is far too high, and there is nothing else for one. */
    const bool none = !others[x->cause] || (x->rate > FAR * x->usual && x->cause == UNSTABLE) ||
                      (x->cause == TOO_SHORT && !resumes);
    const bool rises = x->end.least_step < x->end.steps;
    html_add(html, "<p>Next: ");
    if (x->cause > NONE) {
        const struct settings next = next_of(x);
        if (!report_command(html, r, &next, false))
            return false;
        html_add(html, none ? "</p>\n" : "</p>\n<p>Or: ");
    }
    if (resumes && !report_command(html, r, &more, true))
        return false;
    if (!none)
        html_print(html, "%s.</p>\n",
                   x->cause == OVERFITS && !rises ? "more training texts, which help most"
                                                  : others[x->cause]);
    return true;
}

/* ---- all of it ---- */

static void fact(struct html *html, const char *name, int digits, double x, const char *unit)
{
    if (!isnan(x))
        html_say(html, "<p><span>%s</span> <strong>%.*g%s</strong></p>\n", name, digits, x, unit);
}

static void add_numbers(struct html *html, const struct run *x, const struct checkpoint *c)
{
    const struct run_end *e = &x->end;
    html_add(html, "<details><summary>All numbers</summary>\n<div class=\"facts\">\n");
    if (c->task[0]) {
        html_add(html, "<p><span>task</span> <strong>");
        html_text(html, c->task);
        html_add(html, "</strong></p>\n");
    }
    fact(html, "held-out texts", 10, e->texts, "");
    fact(html, "of them exactly right", 3, e->exact, " %");
    fact(html, "held-out loss, nats", 3, e->held_out_loss, "");
    fact(html, "loss of guessing by frequency", 3, x->guessing, "");
    fact(html, "loss at the start", 3, e->first_loss, "");
    fact(html, "loss at the end", 3, e->last_loss, "");
    fact(html, "steps", 10, e->steps, "");
    html_add(html, "</div>\n");
    if (!isnan(e->last_loss))
        html_add(html, "<p>A nat is the unit of natural logarithms: ln 2 = 0.69 nats are one bit. "
                       "Losses are means over the symbols, or labels, of the targets; the loss at "
                       "the end is a mean over the last tenth of the steps too.</p>\n");
    if (!isnan(e->best_step))
        html_say(html,
                 "<p>The held-out numbers are those of the best evaluation in training, at step "
                 "%.10g, whose weights were saved as this model.</p>\n",
                 e->best_step);
    html_add(html, "</details>\n");
}

bool verdict_is_bad(const struct report *r, bool labels)
{
    const struct run x = run_of(r, labels);
    return is_bad(&x);
}

bool verdict_add(struct html *html, const struct report *r, bool labels, const char *pattern)
{
    const struct run x = run_of(r, labels);
    html_print(html, "<section class=\"overview %s\">\n<p class=\"verdict\">%s",
               is_bad(&x)                         ? "bad"
               : x.cause != NO_LOG && is_good(&x) ? "good"
                                                  : "open",
               says(&x, labels));
    if (!isnan(x.end.exact))
        html_say(html, " %.3g&#160;%% of ", x.end.exact);
    if (!isnan(x.end.texts))
        html_say(html, labels ? "%.10g " : "%.10g different ", x.end.texts);
    if (!isnan(x.end.exact))
        html_print(html, "held-out texts are exactly right.%s",
                   x.end.texts < FEW_TEXTS ? " So few tell little: give more with "
                                             "<code>--valid</code>."
                                           : "");
    else if (!isnan(x.loss))
        html_say(html, " %.3g nats a symbol; guessing has %.3g.", x.loss, x.guessing);
    html_add(html, "</p>\n");
    add_why(html, &x);
    html_add(html, pattern);
    if (!add_next(html, &x, r))
        return false;
    add_numbers(html, &x, r->checkpoint);
    html_add(html, "</section>\n");
    return true;
}
