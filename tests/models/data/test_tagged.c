#include "autograd/tape.h"
#include "models/data/tagged.h"
#include "models/text_model.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"

/* "ab" has the labels "x y", and "c" has `last`. */
static sb_labelled *tagged_of(sb_vocabulary *vocabulary, const char *last)
{
    sb_pairs *pairs = sb_pairs_new();
    cr_assert(sb_pairs_add(pairs, "ab", "x  y") && sb_pairs_add(pairs, "c", last));
    sb_labels *labels = tagged_labels((const char *[]){"y x", "x"}, 2);
    cr_assert(sb_labels_count(labels) == 2, "%s", sb_error());
    sb_labelled *tagged = tagged_new(pairs, vocabulary, labels, NULL);
    sb_labels_free(labels);
    sb_pairs_free(pairs);
    return tagged;
}

TEST(tagged, each_symbol_has_its_label)
{
    sb_vocabulary *vocabulary = tiny_vocabulary();
    sb_labelled *tagged = tagged_of(vocabulary, "y");
    cr_assert(tagged, "%s", sb_error());
    sb_batch *batch = labelled_batch(tagged, 2, (const int64_t[]){1, 0});
    const double expected[2][3] = {{-1, 1, -1}, {-1, 0, 1}};
    sb_tensor *label = sb_batch_get(batch, "label");
    const int64_t L = sb_tensor_dim(label, 1);
    for (int64_t i = 0; i < 2 * L; i++)
        cr_expect(sb_tensor_get(label, i) == (i % L < 3 ? expected[i / L][i % L] : -1));
    cr_expect(batch->items == 2 && batch->targets == 3);
    sb_batch_free(batch);
    sb_labelled_free(tagged);
    sb_vocabulary_release(vocabulary);
}

CPU_TEST(tagged, a_text_has_as_many_labels_as_symbols)
{
    sb_vocabulary *vocabulary = tiny_vocabulary();
    cr_expect(!tagged_of(vocabulary, "x y"));
    EXPECT_ERROR("labelled: text 1 has 1 symbols and 2 labels, expected one for each symbol");
    cr_expect(!tagged_of(vocabulary, "z"));
    EXPECT_ERROR("labelled: text 1 has the label \"z\", which is none of 2 labels");
    sb_vocabulary_release(vocabulary);
}

TEST(tagged, a_text_model_with_tags_has_logits_for_each_symbol)
{
    const sb_model_kind kind = {.name = "tagger"};
    const struct text_kind text = {.model = &kind,
                                   .source = "text",
                                   .source_lengths = "lengths",
                                   .expected = "label",
                                   .tags = true};
    const struct text_options options = {.transformer = {.width = 8, .heads = 2}};
    sb_vocabulary *vocabulary = tiny_vocabulary();
    const struct text_words words = {
        .source = vocabulary, .labels = (const char *[]){"x", "y"}, .count = 2};
    sb_parameters *weights = sb_parameters_new(1);
    struct text_model *m = text_model_new(sizeof *m, &text, weights, &words, &options);
    cr_assert(m, "%s", sb_error());
    sb_labelled *tagged = tagged_of(vocabulary, "y");
    const sb_batch *batch = sb_labelled_next(tagged);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *logits = text_model_logits(m, batch, NULL);
    cr_assert(logits && sb_tensor_rank(logits) == 3, "%s", sb_error());
    cr_expect(sb_tensor_dim(logits, 0) == 2 && sb_tensor_dim(logits, 2) == 2);
    sb_tensor *mean = text_model_loss(m, batch, SB_LOSS_MEAN),
              *sum = text_model_loss(m, batch, SB_LOSS_SUM);
    cr_assert(mean && sum, "%s", sb_error());
    const double ratio = sb_tensor_get(sum, 0) / sb_tensor_get(mean, 0);
    cr_expect(ratio > 2.9999 && ratio < 3.0001, "of three symbols: %g", ratio);
    cr_expect(sb_backward(mean), "%s", sb_error());
    cr_expect(sb_tape_end(&tape));
    sb_labelled_free(tagged);
    text_model_free(m);
    sb_parameters_free(weights);
    sb_vocabulary_release(vocabulary);
}
