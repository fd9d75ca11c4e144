/* The interface of models for training, and the kinds that the library has. */
#include "nn/flat.h"
#include "tests/support/mailbox.h"
#include "tests/support/parallel_run.h"
#include "tests/support/tiny.h"

/* Descriptions and kinds of models; and the invalid models and sources of a user that a trainer
   refuses. */

CPU_TEST(model, a_description_returns_the_values_that_were_set)
{
    sb_description *d = KEPT(sb_description_new("seq2seq"));
    double value;
    MUST(sb_description_set(d, "norm", "pre") && sb_description_set_number(d, "rate", 0.1) &&
         sb_description_set(d, "norm", "post"));
    cr_expect_str_eq(sb_description_kind(d), "seq2seq");
    cr_expect_str_eq(sb_description_get(d, "norm"), "post");
    cr_expect_str_eq(sb_description_name(d, 1), "rate");
    cr_expect_str_eq(sb_description_value(d, 1), "0.1");
    cr_expect(!sb_description_name(d, 2) && !sb_description_get(d, "colour"));
    cr_expect(sb_description_number(d, "rate", 0, 1, &value) && value == 0.1);
    REFUSED("description: \"rate\" is \"0.1\"; it must be a number in 1..2",
            sb_description_number(d, "rate", 1, 2, &value));
    REFUSED("description: \"norm\" is \"post\"; it must be a number in 1..2",
            sb_description_number(d, "norm", 1, 2, &value));
    REFUSED("description: \"width\" of a seq2seq model is missing",
            sb_description_number(d, "width", 1, 2, &value));
    sb_vocabulary *v = tiny_vocabulary();
    MUST(sb_description_add_vocabulary(d, "text", v));
    cr_expect(sb_description_vocabulary(d, "text") == v);
    REFUSED("description: the vocabulary \"source\" of a seq2seq model is missing",
            sb_description_vocabulary(d, "source"));
    cr_assert(sb_description_add_label(d, "cat") && sb_description_add_label(d, "dog"));
    cr_expect_str_eq(sb_description_label(d, 1), "dog");
    cr_expect(!sb_description_label(d, 2));
}

static bool describe(void *unused)
{
    (void)unused;
    struct tiny tiny = tiny_new(SB_F32, 1, NULL);
    const sb_model model = sb_seq2seq_as_model(tiny.model);
    sb_description *d = sb_model_describe(&model);
    sb_description_free(d);
    return d != NULL;
}

TEST(model, a_model_is_built_from_the_description_of_another)
{
    struct tiny tiny = tiny_new(SB_F32, 1, &tiny_variant(17)->options);
    const sb_model model = sb_seq2seq_as_model(tiny.model);
    sb_description *d = KEPT(sb_model_describe(&model));
    sb_parameters *weights = KEPT(sb_parameters_new(1));
    sb_model twin;
    MUST(d && sb_model_build(&twin, sb_model_kind_find("seq2seq"), weights, d));
    const sb_seq2seq_options *a = sb_seq2seq_options_of(tiny.model),
                             *b = sb_seq2seq_options_of(twin.self);
    cr_expect(a->tie_embeddings && b->tie_embeddings && b->share_embeddings);
    cr_expect(b->transformer.width == a->transformer.width);
    cr_expect(sb_parameters_size(weights) == sb_parameters_size(tiny.weights));
    cr_expect(!device_opened() || parameters_values(weights), "a device wants one buffer");
    sb_model_free(&twin);
    cr_assert(sb_description_set(d, "heads", "5"));
    sb_parameters *others = KEPT(sb_parameters_new(1));
    REFUSED("width 12 is not a multiple of 5 heads", sb_model_build(&twin, model.kind, others, d));
    cr_expect(sb_parameters_count(others) == 0);
    cr_expect(describe(NULL));
}

CPU_TEST(model, an_unknown_kind_is_refused_with_the_known_ones)
{
    REFUSED("model_kind: \"diffusion\" is none of seq2seq, language_model, classifier",
            sb_model_kind_find("diffusion"));
    REFUSED("model_kind: name is NULL", sb_model_kind_find(NULL));
}

TEST(model, texts_are_written_through_the_table, WHOLE_MODELS)
{
    struct tiny tiny = tiny_new(SB_F32, 1, NULL);
    const sb_model model = sb_seq2seq_as_model(tiny.model);
    const char *const texts[] = {"abc", "g"};
    sb_decoded one[2], other[2];
    MUST(sb_model_decode(&model, texts, 2, NULL, one) &&
         sb_decode_texts(tiny.model, texts, 2, NULL, other));
    cr_expect(one[0].length == other[0].length && one[1].score == other[1].score);
    sb_decoded_free(2, one);
    sb_decoded_free(2, other);
}

/* ---- a user's model and source: y = w x ---- */

struct line {
    sb_parameters *weights;
    sb_batch batch; /* the only batch */
};

static sb_tensor *line_loss(const void *self, const sb_batch *batch, sb_loss loss)
{
    const struct line *line = self;
    sb_tensor *w = sb_parameters_get(line->weights, 0), *x = sb_batch_get(batch, "x");
    (void)loss;
    return sb_sum(sb_multiply(sb_matmul(x, w), sb_matmul(x, w)), SB_ALL, false);
}

static const sb_batch *line_next(void *line)
{
    return &((struct line *)line)->batch;
}

static sb_data_position line_tell(const void *line)
{
    (void)line;
    return (sb_data_position){0, 0};
}

static bool line_seek(void *line, sb_data_position position)
{
    (void)line;
    return position.epoch == 0;
}

static const sb_model_kind line_kind = {.name = "line", .loss = line_loss};

static struct line line_new(void)
{
    struct line line = {.weights = KEPT(sb_parameters_new(1))};
    cr_assert(
        sb_parameters_add(line.weights, "w", SB_SHAPE(3, 1), (sb_initial){SB_INITIAL_CONSTANT, 1}));
    line.batch = (sb_batch){.items = 4, .targets = 4, .parts = 1};
    line.batch.part[0] =
        (sb_batch_part){"x", KEPT(sb_tensor_full(SB_F32, SB_SHAPE(4, 3), 0.5)), SB_SEQUENCE_NONE};
    return line;
}

static sb_trainer *line_trainer(struct line *line, const sb_trainer_options *options)
{
    const sb_model model = {&line_kind, line, line->weights};
    const sb_source source = {
        .object = line, .next = line_next, .tell = line_tell, .seek = line_seek};
    return KEPT(sb_trainer_for(&model, &source, options));
}

static void expect_refused(sb_batch batch, const char *reason)
{
    struct line line = line_new();
    sb_tensor *x = line.batch.part[0].t;
    sb_trainer *trainer = line_trainer(&line, NULL);
    sb_trained trained;
    MUST(trainer);
    if (batch.parts == 1 && batch.part[0].name)
        batch.part[0].t = x;
    line.batch = batch;
    REFUSED(reason, sb_trainer_step(trainer, &trained));
    line.batch =
        (sb_batch){.items = 4, .targets = 4, .parts = 1, .part = {{"x", x, SB_SEQUENCE_NONE}}};
    cr_expect(sb_trainer_step(trainer, &trained) && sb_trainer_steps(trainer) == 1, "%s",
              sb_error());
}

TEST(model, wrong_batches_are_refused_by_name, KNOWN_KERNELS)
{
    const sb_batch_part x = {.name = "x", .along = SB_SEQUENCE_NONE};
    expect_refused((sb_batch){.items = 5, .targets = 5, .parts = 1, .part = {x}},
                   "batch: \"x\" is (4, 3); axis 0 must have a row for each of 5 items");
    expect_refused((sb_batch){.items = 4, .parts = 1, .part = {x}},
                   "batch: it has 4 items and 0 targets; both must be at least 1");
    expect_refused((sb_batch){.items = 4, .targets = 4, .parts = 9, .part = {x}},
                   "batch: it has 9 parts; it must have 1..8");
    expect_refused((sb_batch){.items = 4, .targets = 4, .parts = 1},
                   "batch: the name of a part is NULL");
    expect_refused(
        (sb_batch){.items = 4, .targets = 4, .parts = 1, .part = {x}, .source_lengths = "x"},
        "batch: \"x\" is (4, 3) of f32; lengths must be (4) of i32");
    struct line line = line_new();
    line.batch.part[0].name = "z";
    sb_trainer *trainer = line_trainer(&line, NULL);
    sb_trained trained;
    REFUSED("batch: it has no part \"x\"", sb_trainer_step(trainer, &trained));
}

TEST(model, a_trainer_needs_a_loss_weights_and_a_source)
{
    struct line line = line_new();
    const sb_model_kind nothing = {.name = "nothing"};
    const sb_source source = {
        .object = &line, .next = line_next, .tell = line_tell, .seek = line_seek};
    const sb_source still = {.object = &line, .next = line_next, .tell = line_tell};
    REFUSED("trainer: loss is NULL",
            sb_trainer_for(&(sb_model){&nothing, &line, line.weights}, &source, NULL));
    REFUSED("trainer: weights is NULL",
            sb_trainer_for(&(sb_model){&line_kind, &line, NULL}, &source, NULL));
    REFUSED("trainer: source is NULL",
            sb_trainer_for(&(sb_model){&line_kind, &line, line.weights}, &still, NULL));
    const sb_model model = {&line_kind, &line, line.weights};
    REFUSED("model_describe: the kind \"line\" has no function `describe`",
            sb_model_describe(&model));
    REFUSED("decode: the kind \"line\" has no function `generator`",
            sb_model_decode(&model, NULL, 0, NULL, NULL));
    sb_evaluation evaluation;
    REFUSED("evaluate: the epochs of this source never end; use a source of pairs",
            sb_evaluate(&model, &source, NULL, NULL, &evaluation));
}

static void expect_no_cut(sb_communicator *ranks, const char *splits, int sequence_ranks,
                          const char *reason)
{
    struct line line = line_new();
    const sb_model_kind kind = {.name = "line", .loss = line_loss, .splits = splits};
    const sb_model model = {&kind, &line, line.weights};
    const sb_source source = {
        .object = &line, .next = line_next, .tell = line_tell, .seek = line_seek};
    const sb_trainer_options options = {.communicator = ranks, .sequence_ranks = sequence_ranks};
    REFUSED(reason, sb_trainer_for(&model, &source, &options));
}

CPU_TEST(model, ranks_split_only_what_the_kind_allows)
{
    struct mailbox *mailbox = mailbox_open(2);
    sb_communicator *first = mailbox_rank(mailbox, 0);
    mailbox_rank(mailbox, 1);
    expect_no_cut(first, NULL, 2,
                  "trainer: a model of kind \"line\" cannot be cut over ranks by sequence");
    expect_no_cut(first, "", 1,
                  "trainer: a model of kind \"line\" cannot be cut over ranks by batch");
    mailbox_close(mailbox);
}

/* Language models and classifiers with every kind of positions: bf16, recomputation, and ranks.
   Encoder-decoders have tests of their own, but for recomputation in bf16. */

enum { RANKS = 2 };

static const char *const kinds[] = {"language_model", "classifier", "seq2seq"};
static const char *const positions[] = {"sinusoidal", "learned",  "rotary",
                                        "alibi",      "relative", "none"};

static struct settings settings_of(int place)
{
    struct settings s = parallel_settings();
    s.model.label_smoothing = 0;
    s.model.transformer.width = 16;
    s.model.transformer.positions = (sb_positions)place;
    s.model.transformer.positions_longest = 12;
    s.trainer.optimiser.learning_rate = 0.02;
    return s;
}

/* Fewer kinds of positions and steps with emulated kernels. */
static int next_place(int place)
{
    return place + (test_slow() ? 3 : 1);
}

static int steps(void)
{
    return test_slow() ? 8 : PARALLEL_STEPS;
}

static struct parallel_run trained_for(int64_t n, const char *kind, const struct settings *s,
                                       sb_dtype dtype)
{
    struct parallel_run run;
    parallel_run_make(
        &run, NULL,
        &(struct parallel_job){.kind = kind, .settings = s, .dtype = dtype, .steps = n});
    cr_assert(run.ok, "%s: %s", kind, run.message);
    return run;
}

static struct parallel_run trained(const char *kind, const struct settings *s, sb_dtype dtype)
{
    return trained_for(steps(), kind, s, dtype);
}

/* The mean of the first losses, or of the last. */
static double mean_of(const double *loss)
{
    return (loss[0] + loss[1] + loss[2] + loss[3]) / 4;
}

static void expect_falls(const char *kind, int place, const struct parallel_run *run)
{
    const double first = mean_of(run->loss), last = mean_of(run->loss + steps() - 4);
    cr_expect(last < (test_slow() ? 1 : 0.9) * first, "%s, %s: %.3f, then %.3f", kind,
              positions[place], first, last);
}

TEST(kinds, the_loss_falls_with_every_kind_of_positions, WHOLE_MODELS)
{
    for (int k = 0; k < 2; k++)
        for (int place = 0; place <= SB_POSITIONS_NONE; place = next_place(place)) {
            const struct settings s = settings_of(place);
            FREED_BY(parallel_run_free) struct parallel_run run = trained(kinds[k], &s, SB_F32);
            expect_falls(kinds[k], place, &run);
        }
}

static void expect_same_when_recomputed(const char *kind, int place, sb_precision precision)
{
    struct settings s = settings_of(place);
    s.model.transformer.dropout = 0.1;
    s.model.transformer.precision = precision;
    const int64_t n = test_brief() ? 3 : steps();
    FREED_BY(parallel_run_free) struct parallel_run plain = trained_for(n, kind, &s, SB_F32);
    s.model.transformer.recompute = true;
    FREED_BY(parallel_run_free) struct parallel_run again = trained_for(n, kind, &s, SB_F32);
    cr_expect(plain.bits == again.bits && plain.position == again.position &&
                  memcmp(plain.loss, again.loss, sizeof plain.loss) == 0,
              "%s, %s, precision %d", kind, positions[place], (int)precision);
}

TEST(kinds, recomputation_gives_the_same_bits, WHOLE_MODELS)
{
    for (int k = 0; k < 3; k++)
        for (int place = test_slow() ? k : 0; place <= SB_POSITIONS_NONE;
             place = next_place(place)) {
            expect_same_when_recomputed(kinds[k], place, SB_PRECISION_F32);
            expect_same_when_recomputed(kinds[k], place, SB_PRECISION_BF16);
        }
}

TEST(kinds, bf16_trains_as_f32_does_but_for_rounding, WHOLE_MODELS)
{
    for (int k = 0; k < 2; k++)
        for (int place = 0; place <= SB_POSITIONS_NONE; place = next_place(place)) {
            struct settings s = settings_of(place);
            FREED_BY(parallel_run_free) struct parallel_run exact = trained(kinds[k], &s, SB_F32);
            s.model.transformer.precision = SB_PRECISION_BF16;
            FREED_BY(parallel_run_free) struct parallel_run run = trained(kinds[k], &s, SB_F32);
            const struct parallel_compared apart = parallel_compare(&run, &exact);
            cr_expect(apart.gradients > 0 && apart.gradients < 0.05, "%s, %s: gradients %g apart",
                      kinds[k], positions[place], apart.gradients);
            expect_falls(kinds[k], place, &run);
        }
}

/* Two ranks compute what one does, but for rounding, and both have the same weights. */
static void expect_as_on_one(const char *kind, const struct settings *s, int heads,
                             const char *split)
{
    struct parallel_ranks job = {
        .one = {.kind = kind, .settings = s, .dtype = SB_F64, .steps = steps(), .heads = heads}};
    mailbox_run(RANKS, parallel_run_rank, &job);
    FREED_BY(parallel_run_free) struct parallel_run one = trained(kind, s, SB_F64);
    const struct parallel_compared apart = parallel_compare(&job.run[1], &one);
    cr_expect(job.run[0].bits == job.run[1].bits, "%s by %s: weights differ", kind, split);
    cr_expect(apart.gradients <= 1e-12 && apart.losses <= 1e-12,
              "%s by %s, %s: gradients %g apart, losses %g", kind, split,
              positions[s->model.transformer.positions], apart.gradients, apart.losses);
    for (int r = 0; r < RANKS; r++)
        parallel_run_free(&job.run[r]);
}

CPU_TEST(kinds, two_ranks_train_like_one)
{
    for (int k = 0; k < 2; k++)
        for (int place = 0; place <= SB_POSITIONS_NONE; place = next_place(place)) {
            struct settings s = settings_of(place);
            s.model.transformer.dropout = 0.1;
            s.model.pooling = (sb_pooling)(place % 2);
            expect_as_on_one(kinds[k], &s, 1, "batch");
            expect_as_on_one(kinds[k], &s, 2, "heads");
            s.trainer.sequence_ranks = 2;
            if (k == 0)
                expect_as_on_one(kinds[k], &s, 1, "sequence");
        }
}
