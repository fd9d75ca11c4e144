#include "autograd/tape.h"
#include "models/training/diagnosis.h"
#include "tests/support/tiny.h"

enum { PAIRS = 5, LONGEST = 6 };

static struct diagnosis diagnose(const struct tiny *tiny)
{
    struct diagnosis d;
    sb_batch *batch = tiny_batch(tiny->vocabulary, 1, PAIRS, LONGEST);
    const sb_model model = sb_seq2seq_as_model(tiny->model);
    MUST(diagnosis_make(&d, &model, batch));
    return d;
}

/* Multiplies all parameters whose names contain `part`. */
static void scale_parameters(sb_parameters *set, const char *part, double factor)
{
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        sb_tensor *w = sb_parameters_get(set, i);
        for (int64_t e = 0; strstr(sb_parameters_name(set, i), part) && e < sb_tensor_size(w); e++)
            sb_tensor_set(w, e, factor * sb_tensor_get(w, e));
    }
}

static double mean(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* It counts all elements; `large` of them are 1e-3 or more. */
static void expect_histogram(const int64_t histogram[], int64_t elements, double large)
{
    int64_t sum = 0, counted = 0;
    for (int bin = 0; bin < DIAGNOSIS_BINS; bin++) {
        sum += histogram[bin];
        counted += bin >= 7 ? histogram[bin] : 0;
    }
    cr_expect(sum == elements, "%lld of %lld elements", (long long)sum, (long long)elements);
    cr_expect((double)counted == large, "%lld and %g", (long long)counted, large);
}

TEST(diagnosis, gradients_and_their_histograms_are_those_of_the_loss)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    for (int v = 0; tiny_variant(v); v += 3 * tiny_step()) {
        const sb_seq2seq_options *options = &tiny_variant(v)->options;
        struct tiny tiny = tiny_new(SB_F64, 2, options);
        FREED_BY(diagnosis_free) struct diagnosis d = diagnose(&tiny);
        cr_expect(!sb_tensor_grad(sb_parameters_get(tiny.weights, 0)), "a gradient is left");
        sb_batch *batch = tiny_batch(tiny.vocabulary, 1, PAIRS, LONGEST);
        TAPE(SB_RECORD);
        MUST(sb_backward(sb_seq2seq_loss(tiny.model, batch)));
        cr_expect(d.parameters == sb_parameters_count(tiny.weights));
        for (int64_t i = 0; i < d.parameters && options->label_smoothing == 0; i++) {
            const sb_tensor *dw = sb_tensor_grad(sb_parameters_get(tiny.weights, i));
            double sum = 0, large = 0;
            for (int64_t e = 0; dw && e < sb_tensor_size(dw); e++) {
                sum += sb_tensor_get(dw, e) * sb_tensor_get(dw, e);
                large += fabs(sb_tensor_get(dw, e)) >= 1e-3;
            }
            expect_histogram(d.histogram + i * DIAGNOSIS_BINS, dw ? sb_tensor_size(dw) : 0, large);
            cr_expect(fabs(d.gradient[i] - sqrt(sum)) <= 1e-9 * (1 + sqrt(sum)), "%s: %s, %g, %g",
                      tiny_variant(v)->name, sb_parameters_name(tiny.weights, i), d.gradient[i],
                      sqrt(sum));
        }
    }
}

/* If queries are 0, all scores are 0 (this variant has no score bias). */
TEST(diagnosis, equal_weights_are_even_and_not_saturated)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    sb_seq2seq_options options = tiny_options();
    struct tiny tiny = tiny_new(SB_F64, 2, &options);
    scale_parameters(tiny.weights, "query", 0);
    FREED_BY(diagnosis_free) struct diagnosis d = diagnose(&tiny);
    cr_expect(d.heads == 3 * options.transformer.heads * options.transformer.encoder_layers);
    for (int64_t h = 0; h < d.heads; h++)
        cr_expect(fabs(d.evenness[h] - 1) < 1e-12 && d.saturated[h] == 0, "head %d: %g, %g", (int)h,
                  d.evenness[h], d.saturated[h]);
}

TEST(diagnosis, heads_with_large_scores_are_saturated)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    sb_seq2seq_options options = tiny_options();
    struct tiny tiny = tiny_new(SB_F64, 2, &options);
    scale_parameters(tiny.weights, "encoder.layers.1.self_attention.query", 1e4);
    FREED_BY(diagnosis_free) struct diagnosis d = diagnose(&tiny);
    const int64_t H = options.transformer.heads;
    cr_expect(mean(H, d.saturated + H) > 0.9 && mean(H, d.evenness + H) < 0.1, "%g, %g",
              mean(H, d.saturated + H), mean(H, d.evenness + H));
    cr_expect(mean(H, d.saturated) < 0.5 && mean(H, d.evenness) > 0.2, "%g, %g",
              mean(H, d.saturated), mean(H, d.evenness));
}

TEST(diagnosis, dropout_is_not_applied)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    sb_seq2seq_options options = tiny_options();
    options.transformer.dropout = 0.5;
    struct tiny tiny = tiny_new(SB_F64, 2, &options);
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    FREED_BY(diagnosis_free) struct diagnosis d = diagnose(&tiny), again = diagnose(&tiny);
    cr_expect(memcmp(d.gradient, again.gradient, (size_t)d.parameters * sizeof(double)) == 0);
}
