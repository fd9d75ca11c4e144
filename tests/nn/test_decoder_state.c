#include "tests/support/tiny.h"

enum { B = 3, L = 6, LS = 4, C = 12 };

struct steps {
    struct tiny tiny;
    sb_decoder *decoder;
    int32_t ids[B * L], lengths[B];
    sb_tensor *memory;
};

static struct steps steps_new(int variant)
{
    struct steps s = {.tiny = tiny_new(SB_F64, 1, &tiny_variant(variant)->options),
                      .lengths = {4, 2, 3}};
    s.decoder = sb_seq2seq_decoder(s.tiny.model);
    s.memory = test_leaf(SB_F64, 2, SB_SHAPE(B, LS, C));
    for (int i = 0; i < B * L; i++)
        s.ids[i] = SB_SPECIAL_SYMBOLS + i * i % TINY_SYMBOLS;
    return s;
}

static sb_tensor *owned_ids(int rank, const int64_t *dim, const int32_t *values)
{
    return sb_tape_own(sb_tensor_from(SB_I32, rank, dim, values));
}

/* The positions from `first` on, of all sequences. */
static sb_tensor *columns(const struct steps *s, int64_t first, int64_t n)
{
    int32_t ids[B * L];
    for (int64_t i = 0; i < B * n; i++)
        ids[i] = s->ids[i / n * L + first + i % n];
    return owned_ids(SB_SHAPE(B, n), ids);
}

/* All positions in one pass, (B, L, C); on the open tape. */
static sb_tensor *in_one_pass(const struct steps *s)
{
    sb_tensor *ids = columns(s, 0, L), *lengths = owned_ids(SB_SHAPE(B), s->lengths);
    return sb_decoder_forward(s->decoder, ids, s->memory, lengths, NULL);
}

TEST(decoder_state, steps_of_any_size_compute_the_same_as_one_pass, WHOLE_MODELS)
{
    const int step = test_slow() ? 3 : 1;
    for (int v = 0; tiny_variant(v); v++)
        for (int64_t size = 1 + v % step; size <= 4; size += step) {
            struct steps s = steps_new(v);
            sb_decoder_state *state = KEPT(sb_decoder_state_new(s.decoder));
            TAPE(SB_NO_RECORD);
            sb_tensor *expected = in_one_pass(&s), *lengths = owned_ids(SB_SHAPE(B), s.lengths);
            for (int64_t t = 0; t < L; t += size) {
                int64_t n = t + size < L ? size : L - t;
                cr_expect(sb_decoder_state_length(state) == t);
                sb_tensor *y = sb_decoder_step(s.decoder, state, columns(&s, t, n),
                                               t == 0 ? s.memory : NULL, lengths, NULL);
                double error = test_relative(y, sb_slice(expected, 1, t, n));
                cr_expect(error < 1e-13, "%s: %g", tiny_variant(v)->name, error);
            }
        }
}

/* Sequences are swapped, duplicated and dropped; each continues as before. */
TEST(decoder_state, sequences_can_be_reordered)
{
    static const struct {
        int n;
        int32_t rows[5];
    } orders[] = {{3, {2, 0, 1}},       {5, {0, 0, 1, 2, 2}}, {5, {4, 3, 2, 1, 0}},
                  {5, {0, 1, 2, 3, 4}}, {2, {3, 1}},          {2, {0, 0}}};
    struct steps s = steps_new(0);
    sb_decoder_state *state = KEPT(sb_decoder_state_new(s.decoder));
    int32_t origin[5] = {0, 1, 2}, n = B, lengths[5], ids[5];
    TAPE(SB_NO_RECORD);
    sb_tensor *expected = in_one_pass(&s);
    for (int t = 0; t < L; t++) {
        for (int i = 0; i < n; i++) {
            lengths[i] = s.lengths[origin[i]];
            ids[i] = s.ids[origin[i] * L + t];
        }
        sb_tensor *new_ids = owned_ids(SB_SHAPE(n, 1), ids),
                  *new_lengths = owned_ids(SB_SHAPE(n), lengths);
        sb_tensor *y = MUST(sb_decoder_step(s.decoder, state, new_ids, t == 0 ? s.memory : NULL,
                                            new_lengths, NULL));
        for (int i = 0; i < n; i++) {
            sb_tensor *want = sb_slice(sb_slice(expected, 0, origin[i], 1), 1, t, 1);
            double error = test_relative(sb_slice(y, 0, i, 1), want);
            cr_expect(error < 1e-13, "step %d, sequence %d: %g", t, i, error);
        }
        int32_t before[5];
        memcpy(before, origin, sizeof before);
        n = orders[t].n;
        for (int i = 0; i < n; i++)
            origin[i] = before[orders[t].rows[i]];
        MUST(sb_decoder_state_reorder(state, n, orders[t].rows));
    }
}

struct trial {
    struct steps *s;
    sb_decoder_state *state;
    int64_t length;
};

static bool step(void *context)
{
    struct trial *trial = context;
    struct steps *s = trial->s;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *ids = columns(s, trial->length, 1), *lengths = owned_ids(SB_SHAPE(B), s->lengths);
    sb_tensor *y = ids && lengths
                       ? sb_decoder_step(s->decoder, trial->state, ids, s->memory, lengths, NULL)
                       : NULL;
    bool ok = sb_tape_end(&tape) && y;
    cr_assert(sb_decoder_state_length(trial->state) == trial->length + ok);
    return ok;
}

TEST(decoder_state, a_failed_step_can_be_repeated, KNOWN_KERNELS)
{
    struct steps s = steps_new(0);
    struct trial trial = {&s, sb_decoder_state_new(s.decoder), 0};
    int failures = 0;
    for (; trial.length < 3; trial.length++) { /* the first step creates the caches */
        bool ok = false;
        for (int64_t after = 0; !ok; after += after < 20 || !test_slow() ? 1 : 3) {
            pool_fail_after(after, false);
            ok = step(&trial);
            pool_fail_after(-1, false);
            failures += !ok;
        }
    }
    cr_expect(failures > (test_slow() ? 40 : 100), "%d", failures);
    TAPE(SB_NO_RECORD);
    sb_tensor *lengths = owned_ids(SB_SHAPE(B), s.lengths);
    sb_tensor *y = sb_decoder_step(s.decoder, trial.state, columns(&s, 3, 1), NULL, lengths, NULL);
    double error = test_relative(y, sb_slice(in_one_pass(&s), 1, 3, 1));
    cr_expect(error < 1e-13, "%g", error);
    sb_decoder_state_free(trial.state);
}

static bool make(void *context)
{
    sb_decoder_state *state = sb_decoder_state_new(context);
    sb_decoder_state_free(state);
    return state != NULL;
}

TEST(decoder_state, each_allocation_may_fail)
{
    struct steps s = steps_new(0);
    /* The state, its array, and the caches. */
    cr_expect(test_each_allocation_fails(make, s.decoder) == 2 + 2 * 2);
}

static void expect_refusal(const struct steps *s, sb_decoder_state *state, sb_mode mode,
                           sb_tensor *memory, bool has_lengths, const char *message)
{
    FAILED_TAPE(mode);
    sb_tensor *lengths = has_lengths ? owned_ids(SB_SHAPE(B), s->lengths) : NULL;
    REFUSED(message, sb_decoder_step(s->decoder, state, columns(s, 0, 1), memory, lengths, NULL));
}

TEST(decoder_state, wrong_arguments_are_refused)
{
    struct steps s = steps_new(0), other = steps_new(0);
    sb_decoder_state *state = KEPT(sb_decoder_state_new(s.decoder));
    sb_decoder_state *foreign = KEPT(sb_decoder_state_new(other.decoder));
    expect_refusal(&s, NULL, SB_NO_RECORD, s.memory, true, "decoder: state is NULL");
    expect_refusal(&s, foreign, SB_NO_RECORD, s.memory, true, "the state is of another decoder");
    expect_refusal(&s, state, SB_NO_RECORD, NULL, true, "decoder: memory is NULL");
    expect_refusal(&s, state, SB_NO_RECORD, s.memory, false, "decoder: lengths is NULL");
    expect_refusal(&s, state, SB_RECORD, s.memory, true, "the open tape records");
    REFUSED("decoder_state: decoder is NULL", sb_decoder_state_new(NULL));
    cr_expect(!sb_decoder_state_reorder(NULL, 0, NULL) &&
              !sb_decoder_state_reorder(state, 0, NULL));
    EXPECT_ERROR("decoder_state_reorder: rows is NULL");
    cr_expect(sb_decoder_state_length(state) == 0 && sb_decoder_state_length(NULL) == 0);
    sb_decoder_state_free(NULL);
}
