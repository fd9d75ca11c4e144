#include "models/kinds.h"
#include "tests/support/tiny.h"
#include <stdio.h>

enum { TEXTS = 90 };
static const char *const labels[] = {"first", "other", "third"};

/* Texts of the letters a to g with a label that says whether an a comes first, or a b. */
static sb_pairs *labelled_texts(void)
{
    sb_pairs *pairs = sb_pairs_new();
    for (int i = 0; i < TEXTS; i++) {
        char text[16];
        snprintf(text, sizeof text, "%c%s", "abg"[i % 3], tiny_text((uint64_t)i, 6));
        cr_assert(sb_pairs_add(pairs, text, labels[i % 3 == 0 ? 0 : i % 3 == 1 ? 2 : 1]));
    }
    return KEPT(pairs);
}

struct judge {
    sb_vocabulary *vocabulary;
    sb_parameters *weights;
    sb_classifier *model;
};

static struct judge judge_new(sb_dtype dtype, sb_pooling pooling)
{
    const sb_classifier_options options = {
        .transformer = {.width = 16, .heads = 2, .encoder_layers = 1}, .pooling = pooling};
    struct judge j = {tiny_vocabulary(), KEPT(sb_parameters_of(dtype, 2)), NULL};
    j.model = KEPT(sb_classifier_for(j.weights, j.vocabulary, labels, 3, &options));
    return j;
}

static sb_labelled *data_of(const struct judge *j, const sb_pairs *pairs)
{
    sb_labels *known = sb_labels_new(labels, 3);
    const sb_data_options options = {.seed = 1, .batch_pairs = 8};
    sb_labelled *data = MUST(sb_labelled_new(pairs, j->vocabulary, known, &options));
    sb_labels_free(known);
    return KEPT(data);
}

TEST(classifier, it_learns_labels_with_either_pooling, WHOLE_MODELS)
{
    for (int pooling = test_brief(); pooling < 2; pooling++) {
        struct judge j = judge_new(SB_F32, (sb_pooling)pooling);
        sb_pairs *pairs = labelled_texts();
        sb_labelled *data = data_of(&j, pairs);
        const sb_model model = sb_classifier_as_model(j.model);
        const sb_source source = sb_labelled_as_source(data);
        const sb_trainer_options how = {.optimiser = {.learning_rate = 0.01}};
        sb_trainer *trainer = KEPT(sb_trainer_for(&model, &source, &how));
        sb_trained trained;
        for (int step = 0; step < 150; step++)
            MUST(sb_trainer_step(trainer, &trained));
        const sb_held_labelled held = {pairs};
        sb_evaluation e;
        MUST(sb_evaluate(&model, &source, &held, NULL, &e));
        cr_expect(e.error == 0 && e.loss < 0.1, "pooling %d: error %g, loss %g", pooling, e.error,
                  e.loss);
        sb_class class;
        MUST(sb_classify(j.model, &(const char *){"bgf"}, 1, &class));
        cr_expect_str_eq(sb_classifier_label(j.model, class.label), "third");
        cr_expect(class.probability > 0.5 && class.probability <= 1);
    }
}

TEST(classifier, a_label_depends_on_no_other_text_of_the_batch, KNOWN_KERNELS)
{
    for (int pooling = 0; pooling < 2; pooling++) {
        struct judge j = judge_new(SB_F64, (sb_pooling)pooling);
        const char *texts[] = {"", "abcdefgabcdefg", "gg", "a"};
        sb_class together[4], alone;
        MUST(sb_classify(j.model, texts, 4, together));
        for (int i = 0; i < 4; i++) {
            MUST(sb_classify(j.model, &texts[i], 1, &alone));
            cr_expect(alone.label == together[i].label &&
                          fabs(alone.probability - together[i].probability) < 1e-12,
                      "text %d", i);
        }
    }
}

static sb_tensor *loss_of(const struct judge *j, const sb_batch *batch)
{
    const sb_model model = sb_classifier_as_model(j->model);
    return model.kind->loss(model.self, batch, SB_LOSS_MEAN);
}

static sb_batch *two_texts(void)
{
    const int32_t a[] = {4, 5, 6}, b[] = {7};
    return sb_labelled_batch_new(2, (const int32_t *const[]){a, b}, (const int64_t[]){3, 1},
                                 (const int64_t[]){2, 0}, NULL);
}

static sb_tensor *run_loss(void *context, sb_tensor *const x[])
{
    void *const *of = context;
    (void)x;
    return loss_of(of[0], of[1]);
}

/* Its mean multiplies by weights that are made in f32. */
CPU_TEST(classifier, its_gradient_is_that_of_dual_numbers)
{
    for (int pooling = 0; pooling < 2; pooling++) {
        struct judge j = judge_new(SB_F64, (sb_pooling)pooling);
        void *context[] = {&j, two_texts()};
        sb_tensor **x = tiny_parameters(j.weights);
        sb_gradcheck_result result;
        cr_expect(sb_gradcheck(run_loss, context, x, (int)sb_parameters_count(j.weights), NULL,
                               &result) &&
                      result.method == SB_GRADCHECK_EXACT,
                  "%s", sb_error());
        sb_random random = sb_random_new(3, SB_STREAM_USER);
        sb_parameters *v = KEPT(sb_parameters_vector(j.weights, &random));
        sb_parameters *hv = KEPT(sb_parameters_hvp(j.weights, run_loss, context, v));
        cr_expect(hv && sb_parameters_jvp(j.weights, run_loss, context, v, NULL, NULL), "%s",
                  sb_error());
        sb_batch_free(context[1]);
    }
}

TEST(classifier, its_gradient_is_right, WHOLE_MODELS)
{
    for (int pooling = 0; pooling < 2; pooling++) {
        struct judge j = judge_new(SB_F64, (sb_pooling)pooling);
        sb_batch *batch = KEPT(two_texts());
        for (int64_t i = 0; i < sb_parameters_count(j.weights); i++) {
            sb_tensor *p = sb_parameters_get(j.weights, i);
            const double h = 1e-5, value = sb_tensor_get(p, 1);
            double loss[2];
            sb_tape tape;
            for (int side = 0; side < 2; side++) {
                sb_tensor_set(p, 1, side ? value + h : value - h);
                sb_tape_begin(&tape, SB_NO_RECORD);
                loss[side] = sb_tensor_value(loss_of(&j, batch));
                sb_tape_end(&tape);
            }
            sb_tensor_set(p, 1, value);
            sb_tape_begin(&tape, SB_RECORD);
            MUST(sb_backward(loss_of(&j, batch)));
            sb_tape_end(&tape);
            const double expected = (loss[1] - loss[0]) / (2 * h),
                         got = sb_tensor_get(sb_tensor_grad(p), 1);
            cr_expect(fabs(got - expected) < 1e-8, "%s: %g, not %g",
                      sb_parameters_name(j.weights, i), got, expected);
            sb_parameters_clear(j.weights);
        }
    }
}

TEST(classifier, a_file_keeps_labels_and_pooling)
{
    struct judge j = judge_new(SB_F32, SB_POOLING_FIRST);
    char path[300];
    strcpy(path, test_temporary("c.safetensors"));
    MUST(sb_classifier_save(j.model, path));
    sb_parameters *weights = KEPT(sb_parameters_new(1));
    sb_classifier *again = KEPT(sb_classifier_load(weights, path));
    cr_expect(sb_classifier_options_of(again)->pooling == SB_POOLING_FIRST);
    cr_expect(sb_classifier_labels(again) == 3);
    cr_expect_str_eq(sb_classifier_label(again, 1), "other");
    cr_expect(sb_parameters_fingerprint(weights) == sb_parameters_fingerprint(j.weights));
    cr_expect(!sb_seq2seq_load(weights, path));
}

TEST(classifier, each_text_comes_once_an_epoch_and_a_position_says_what_comes_next)
{
    struct judge j = judge_new(SB_F32, SB_POOLING_MEAN);
    sb_pairs *pairs = labelled_texts();
    sb_labelled *data = data_of(&j, pairs);
    int64_t count[3] = {0}, met = 0;
    while (sb_labelled_tell(data).epoch == 0) {
        const sb_batch *batch = sb_labelled_next(data);
        MUST(batch && batch->targets == batch->items);
        const int32_t *label = test_data(sb_batch_get(batch, "label"));
        for (int64_t b = 0; b < batch->items; b++, met++)
            count[label[b]]++;
    }
    cr_expect(met == TEXTS && count[0] == 30 && count[1] == 30 && count[2] == 30);
    MUST(sb_labelled_seek(data, (sb_data_position){0, 3}));
    cr_expect(sb_labelled_next(data) && sb_labelled_tell(data).batch == 4);
    cr_expect(!sb_labelled_seek(data, (sb_data_position){0, 99}));
}

/* Data number the labels that they were made with. */
CPU_TEST(classifier, data_that_number_labels_in_another_way_are_refused)
{
    static const char *const two[] = {"other", "third"}, *const begun[] = {"first", "other"},
                             *const more[] = {"first", "other", "third", "zen"};
    struct judge j = judge_new(SB_F32, SB_POOLING_MEAN);
    const sb_model model = sb_classifier_as_model(j.model);
    sb_pairs *pairs = KEPT(sb_pairs_new());
    cr_assert(sb_pairs_add(pairs, "ab", "other"));
    const char *const *const names[] = {two, begun, more};
    const int64_t counts[] = {2, 2, 4};
    for (int i = 0; i < 3; i++) {
        sb_labels *known = sb_labels_new(names[i], counts[i]);
        sb_labelled *data = KEPT(sb_labelled_new(pairs, j.vocabulary, known, NULL));
        sb_labels_free(known); /* the data have a copy */
        const sb_source source = sb_labelled_as_source(data);
        sb_evaluation e;
        sb_trainer *trainer = sb_trainer_for(&model, &source, NULL);
        cr_expect(!trainer == (i != 1), "%d: %s", i, sb_error());
        sb_trainer_free(trainer);
        cr_expect(sb_evaluate(&model, &source, NULL, NULL, &e) == (i == 1), "%d", i);
        if (i == 0)
            EXPECT_ERROR("evaluate: the data have the labels other, third, in this order, but the "
                         "model has first, other, third; make the data with the labels of the "
                         "model");
    }
}

TEST(classifier, a_model_with_more_labels_gives_the_others_the_same_logits)
{
    static const char *const more[] = {"above", "first", "other", "second", "third"};
    struct judge j = judge_new(SB_F64, SB_POOLING_FIRST);
    sb_labels *known = KEPT(sb_labels_new(more, 5));
    sb_parameters *weights = KEPT(sb_parameters_of(SB_F64, 3));
    for (int64_t i = 0; i < 3; i++)
        cr_assert(sb_tensor_set(sb_parameters_find(j.weights, "output.bias"), i, 10 * (double)i));
    sb_classifier *grown = KEPT(classifier_grow(weights, j.model, known));
    const int32_t *const ids[] = {(const int32_t[]){4, 5, 6}};
    sb_batch *batch = KEPT(sb_labelled_batch_new(1, ids, (const int64_t[]){3}, NULL, j.vocabulary));
    double old[3], its[5];
    TAPE(SB_NO_RECORD);
    MUST(sb_tensor_read(sb_classifier_logits(j.model, batch), old) &&
         sb_tensor_read(sb_classifier_logits(grown, batch), its));
    for (int i = 0; i < 3; i++)
        cr_expect(fabs(its[(const int[]){1, 2, 4}[i]] - old[i]) < 1e-12, "%d", i);
    cr_expect(its[0] != 0 && its[3] != 0 && its[0] != its[3]);
}

TEST(classifier, bad_calls_are_named)
{
    struct judge j = judge_new(SB_F32, SB_POOLING_MEAN);
    sb_parameters *weights = KEPT(sb_parameters_new(1));
    const char *const twice[] = {"a", "b", "a"};
    REFUSED("of 3 labels only 2 are different",
            sb_classifier_for(weights, j.vocabulary, twice, 3, NULL));
    REFUSED("there is 1 label, expected at least 2",
            sb_classifier_for(weights, j.vocabulary, twice, 1, NULL));
    cr_expect(!sb_classifier_for(weights, NULL, twice, 2, NULL));
    REFUSED("label 1 is empty", sb_labels_new((const char *const[]){"a", ""}, 2));
    sb_labels *known = KEPT(sb_labels_new(twice, 2));
    sb_pairs *pairs = labelled_texts();
    REFUSED("has the label \"first\", which is none of the 2 labels in training; is it a label?",
            sb_labelled_new(pairs, j.vocabulary, known, NULL));
    cr_expect(!sb_classify(NULL, NULL, 1, NULL) && !sb_labelled_next(NULL));
}

static bool learn_a_little(void *unused)
{
    (void)unused;
    const sb_classifier_options options = {
        .transformer = {.width = 8, .heads = 1, .encoder_layers = 1}};
    sb_vocabulary *v = sb_vocabulary_new(&(const char *){"abc"}, 1, NULL);
    sb_pairs *pairs = sb_pairs_new();
    sb_parameters *weights = sb_parameters_new(1);
    bool ok =
        v && pairs && weights && sb_pairs_add(pairs, "ab", "x") && sb_pairs_add(pairs, "c", "y");
    sb_labels *known = ok ? sb_labels_new(sb_pairs_targets(pairs), 2) : NULL;
    sb_labelled *data = known ? sb_labelled_new(pairs, v, known, NULL) : NULL;
    sb_classifier *m =
        data ? sb_classifier_for(weights, v, sb_pairs_targets(pairs), 2, &options) : NULL;
    const sb_model model = sb_classifier_as_model(m);
    const sb_source source = sb_labelled_as_source(data);
    sb_trainer *trainer = m ? sb_trainer_for(&model, &source, NULL) : NULL;
    sb_trained trained;
    const sb_held_labelled held = {pairs};
    sb_evaluation e;
    ok = trainer && sb_trainer_step(trainer, &trained) &&
         sb_evaluate(&model, &source, &held, NULL, &e);
    sb_trainer_free(trainer);
    sb_classifier_free(m);
    sb_labelled_free(data);
    sb_labels_free(known);
    sb_parameters_free(weights);
    sb_pairs_free(pairs);
    sb_vocabulary_release(v);
    return ok;
}

TEST(classifier, each_allocation_may_fail, WHOLE_MODELS)
{
    cr_expect(test_each_allocation_fails(learn_a_little, NULL) > 100);
}
