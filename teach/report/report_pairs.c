/* What a report says of an encoder-decoder: what it writes, and where that is wrong. */
#include "models/seq2seq.h"
#include "teach/report/errors.h"
#include "teach/report/overview.h"
#include "teach/report/report.h"
#include "tensor/memory.h"

static void close_errors(void *found)
{
    errors_free(found);
    memory_free(found);
}

static void *open_errors(const struct report *r)
{
    struct errors *errors = memory_new(sizeof *errors);
    if (!errors)
        return sb_fail("report: out of memory");
    if (errors_find(errors, r->subject, r->pairs))
        return errors;
    close_errors(errors);
    return NULL;
}

static bool begin(struct html *html, const struct report *r, void *found)
{
    const sb_transformer_options *o = &sb_seq2seq_options_of(r->subject->model.self)->transformer;
    overview_add(html, r->subject, r->text, r->checkpoint->task, r->log);
    errors_summary(html, found);
    html_say(
        html,
        "<p>%lld weights: width %lld, %lld heads, feed-forward %lld, %d encoder and %d decoder "
        "layers.</p>\n",
        (long long)sb_parameters_size(r->checkpoint->weights), (long long)o->width,
        (long long)o->heads, (long long)o->feed_forward, o->encoder_layers, o->decoder_layers);
    return true;
}

static bool add_errors(struct html *html, const struct report *r, void *found)
{
    return errors_add(html, r->subject, found);
}

const struct report_kind report_pairs = {
    .open = open_errors, .close = close_errors, .begin = begin, .errors = add_errors};
