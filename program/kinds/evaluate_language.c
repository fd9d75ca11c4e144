/* How well a language model predicts texts, and with a built-in task, whether it writes what
   follows "source = ". */
#include "models/data/windows.h"
#include "models/kinds.h"
#include "program/kinds/evaluate.h"
#include "program/kinds/task_texts.h"
#include "program/run/task_pairs.h"
#include "program/screen/progress.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

struct measured_documents {
    sb_documents *documents;
    sb_pairs *pairs; /* of a task; else NULL */
    int64_t symbols, unknown;
    double loss, exact; /* share of the pairs; NAN without */
};

static bool evaluate_read_documents(const struct evaluate_request *r, const struct checkpoint *c,
                                    struct measured_documents *e)
{
    if (r->task) {
        e->pairs = task_pairs(r->task, &c->settings, SB_PART_TEST, r->count);
        e->documents = e->pairs ? task_documents(r->task, e->pairs) : NULL;
        return e->documents != NULL;
    }
    e->documents = sb_documents_new();
    return e->documents && sb_documents_read(e->documents, r->data, c->settings.documents);
}

static bool evaluate_windows(const struct checkpoint *c, struct measured_documents *e)
{
    const int64_t context = c->settings.language.context;
    const sb_windows_options options = {
        .length = context > 0 ? context : c->settings.data.batch_symbols, .fixed = true};
    sb_windows *windows =
        sb_windows_new(e->documents, sb_language_model_vocabulary(c->subject.self), &options);
    if (!windows)
        return false;
    const sb_source source = sb_windows_as_source(windows);
    sb_evaluation evaluation;
    const bool ok = sb_evaluate(&c->subject, &source, NULL, NULL, &evaluation);
    e->loss = ok ? evaluation.loss : NAN;
    e->symbols = sb_windows_symbols(windows);
    e->unknown = sb_windows_unknown(windows);
    sb_windows_free(windows);
    return ok;
}

/* Whether an output is the target of a pair. */
static bool evaluate_is_exact(const sb_vocabulary *vocabulary, const sb_decoded *d,
                              const char *target, bool *exact)
{
    char *text = sb_vocabulary_decode(vocabulary, d->ids, d->length);
    *exact = text && d->ended && strcmp(text, target) == 0;
    sb_free(text);
    return text != NULL;
}

static bool evaluate_prompts(const struct evaluate_request *r, const sb_language_model *model,
                             const sb_pairs *pairs, char **prompt, double *exact)
{
    const int64_t n = sb_pairs_count(pairs);
    int64_t right = 0;
    sb_decoded *d = memory_new((size_t)n * sizeof *d);
    bool ok = d || sb_fail("out of memory for %lld pairs", (long long)n);
    for (int64_t i = 0; ok && i < n; i++)
        ok = (prompt[i] = task_prompt(sb_pairs_source(pairs, i))) != NULL;
    const bool decoded =
        ok && sb_continue_texts(model, (const char *const *)prompt, n, &r->decoding, d);
    ok = decoded;
    for (int64_t i = 0; ok && i < n; i++) {
        bool is = false;
        ok = evaluate_is_exact(sb_language_model_vocabulary(model), &d[i],
                               sb_pairs_target(pairs, i), &is);
        right += is;
    }
    *exact = (double)right / (double)n;
    if (decoded)
        sb_decoded_free(n, d);
    memory_free(d);
    return ok;
}

static bool evaluate_task(const struct evaluate_request *r, const struct checkpoint *c,
                          struct measured_documents *e)
{
    e->exact = NAN;
    if (!e->pairs)
        return true;
    const int64_t n = sb_pairs_count(e->pairs);
    char **prompt = memory_new((size_t)n * sizeof *prompt);
    if (!prompt)
        return sb_fail("out of memory for %lld pairs", (long long)n);
    const bool ok = evaluate_prompts(r, c->subject.self, e->pairs, prompt, &e->exact);
    for (int64_t i = 0; i < n; i++)
        memory_free(prompt[i]);
    memory_free(prompt);
    return ok;
}

static double evaluate_bits(const struct measured_documents *e)
{
    return e->loss * (double)e->symbols / (log(2) * (double)sb_documents_bytes(e->documents));
}

static void evaluate_language_json(const struct measured_documents *e)
{
    evaluate_print(json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "documents",
                             (json_int_t)sb_documents_count(e->documents), "bytes",
                             (json_int_t)sb_documents_bytes(e->documents), "symbols",
                             (json_int_t)e->symbols, "unknown", (json_int_t)e->unknown, "loss",
                             evaluate_number(e->loss), "perplexity", evaluate_number(exp(e->loss)),
                             "bits_per_byte", evaluate_number(evaluate_bits(e)), "exact_match",
                             evaluate_number(e->exact)));
}

static void evaluate_language_table(const struct measured_documents *e)
{
    const int64_t n = sb_documents_count(e->documents);
    printf("text            %s bytes in %s %s, %s symbols to predict\n",
           count_text(sb_documents_bytes(e->documents)).text, count_text(n).text,
           n == 1 ? "document" : "documents", count_text(e->symbols).text);
    if (e->unknown > 0)
        printf("unknown         %s symbols that the model does not know\n",
               count_text(e->unknown).text);
    printf("loss            %.4f nats a symbol, perplexity %.4f\n", e->loss, exp(e->loss));
    printf("bits a byte     %.4f\n", evaluate_bits(e));
    if (e->pairs)
        printf("exact match     %.2f %% of the targets, after \"source = \"\n", 100 * e->exact);
}

bool evaluate_language(const struct evaluate_request *r, const struct checkpoint *c)
{
    struct measured_documents e = {0};
    const bool ok = (r->show == 0 || sb_fail("--show is for encoder-decoders; softback generate "
                                             "shows what a language model writes")) &&
                    evaluate_read_documents(r, c, &e) && evaluate_windows(c, &e) &&
                    evaluate_task(r, c, &e);
    if (ok)
        (r->json ? evaluate_language_json : evaluate_language_table)(&e);
    sb_documents_free(e.documents);
    sb_pairs_free(e.pairs);
    return ok;
}
