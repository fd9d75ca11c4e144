/* Sets of parameters: files, fingerprints, and derivatives over all of them. */
#include "nn/fingerprint.h"
#include "tests/support/mailbox.h"
#include "tests/support/tiny.h"

static const sb_initial normal = {SB_INITIAL_NORMAL, 1};

static sb_parameters *set_new(sb_dtype dtype, uint64_t seed, bool bias)
{
    sb_parameters *set = sb_parameters_of(dtype, seed);
    MUST(sb_parameters_add(set, "encoder.weight", SB_SHAPE(3, 4), normal) &&
         (!bias || sb_parameters_add(set, "encoder.bias", SB_SHAPE(3), normal)) &&
         sb_parameters_add(set, "head.weight", SB_SHAPE(2, 3), normal));
    return KEPT(set);
}

static double at(sb_parameters *set, const char *name, int64_t i)
{
    return sb_tensor_get(sb_parameters_find(set, name), i);
}

TEST(parameters_file, what_was_saved_is_loaded_and_converted)
{
    static const sb_dtype dtypes[] = {SB_F64, SB_F32, SB_BF16};
    const char *path = test_temporary("p");
    sb_parameters *from = set_new(SB_F64, 1, true);
    MUST(sb_parameters_save(from, NULL, path));
    for (int d = 0; d < 3; d++) {
        sb_parameters *to = set_new(dtypes[d], 2, true);
        MUST(sb_parameters_load(to, NULL, path, NULL));
        for (int i = 0; i < 6; i++)
            cr_expect(fabs(at(to, "head.weight", i) - at(from, "head.weight", i)) <= (d == 0 ? 0
                                                                                      : d == 1
                                                                                          ? 1e-6
                                                                                          : 0.02));
    }
}

TEST(parameters_file, what_is_missing_or_left_over_is_listed)
{
    const char *path = test_temporary("p");
    sb_parameters *from = set_new(SB_F32, 1, true), *to = set_new(SB_F32, 2, false);
    sb_parameters_add(to, "head.bias", SB_SHAPE(2), normal);
    sb_parameters_add(to, "head.scale", SB_SHAPE(2), normal);
    MUST(sb_parameters_save(from, NULL, path));
    const double before = at(to, "encoder.weight", 5);
    REFUSED("parameters_load: 2 parameters are missing in the file, first \"head.bias\"",
            sb_parameters_load(to, NULL, path, NULL));
    REFUSED("the set has no parameters for 1 tensors of the file, first \"encoder.bias\"",
            sb_parameters_load(to, "encoder.*", path, NULL));
    cr_expect(at(to, "encoder.weight", 5) == before);
    sb_loaded loaded;
    MUST(sb_parameters_load(to, NULL, path, &loaded));
    cr_expect(loaded.count == 2);
    cr_expect_str_eq(loaded.missing, "head.bias\nhead.scale");
    cr_expect_str_eq(loaded.left_over, "encoder.bias");
    cr_expect(at(to, "encoder.weight", 5) == at(from, "encoder.weight", 5));
    sb_loaded_free(&loaded);
    MUST(sb_parameters_load(to, "head.weight", path, &loaded));
    cr_expect(loaded.count == 1 && !loaded.missing[0] && !loaded.left_over[0]);
    sb_loaded_free(&loaded);
}

TEST(parameters_file, what_does_not_fit_is_explained_and_changes_nothing)
{
    const char *path = test_temporary("p");
    sb_parameters *set = set_new(SB_F32, 1, true), *other = KEPT(sb_parameters_new(2));
    sb_loaded loaded;
    sb_parameters_add(other, "head.weight", SB_SHAPE(3, 3), normal);
    REFUSED("parameters_save: no parameter matches \"tail.*\"",
            sb_parameters_save(set, "tail.*", path));
    MUST(sb_parameters_save(set, "head.*", path));
    REFUSED("\"head.weight\" is (2, 3) in the file, but (3, 3) in the set",
            sb_parameters_load(other, NULL, path, &loaded));
    REFUSED("parameters_load: the file has none of the parameters that match \"encoder.*\"",
            sb_parameters_load(set, "encoder.*", path, &loaded));
    cr_expect(!sb_parameters_load(set, NULL, test_temporary("none"), NULL));
    cr_expect(!sb_parameters_load(NULL, NULL, path, NULL) && !sb_parameters_save(set, NULL, NULL) &&
              !sb_optimiser_save(NULL, path) && !sb_optimiser_load(NULL, path));
}

/* ---- the state of an optimiser ---- */

typedef sb_optimiser *maker(sb_parameters *, const sb_optimiser_options *);

static const sb_optimiser_options plateau = {
    .schedule = {.kind = SB_SCHEDULE_PLATEAU, .rate = 0.05, .patience = 1, .warmup = 3},
    .weight_decay = 0.1};

/* Step t: the bias has a gradient at even steps alone. */
static void step(sb_parameters *set, sb_optimiser *o, int t)
{
    TAPE(SB_RECORD);
    sb_tensor *w = sb_parameters_find(set, "encoder.weight"),
              *b = sb_parameters_find(set, "encoder.bias"),
              *h = sb_parameters_find(set, "head.weight");
    sb_tensor *y = sb_matmul(h, t % 2 == 0 ? sb_add(w, sb_reshape(b, SB_SHAPE(3, 1))) : w);
    MUST(sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)));
    sb_optimiser_observe(o, t < 3 ? 1 : 2);
    MUST(sb_optimiser_step(o));
}

static void expect_resumed(maker *make, const char *frozen, bool rate)
{
    const char *weights = test_temporary("w"), *state = test_temporary("s");
    sb_parameters *set = set_new(SB_F32, 1, true), *again = set_new(SB_F32, 9, true);
    cr_assert(!frozen || (sb_parameters_freeze(set, frozen, true) &&
                          sb_parameters_freeze(again, frozen, true)));
    sb_optimiser *o = KEPT(make(set, &plateau)), *resumed = KEPT(make(again, &plateau));
    for (int t = 0; t < 5; t++)
        step(set, o, t);
    cr_assert(!rate || sb_optimiser_set_rate(o, 0.01));
    MUST(sb_parameters_save(set, NULL, weights) && sb_optimiser_save(o, state));
    step(again, resumed, 0);
    MUST(sb_parameters_load(again, NULL, weights, NULL) && sb_optimiser_load(resumed, state));
    for (int t = 5; t < 12; t++) {
        step(set, o, t);
        step(again, resumed, t);
    }
    cr_expect(sb_parameters_fingerprint(set) == sb_parameters_fingerprint(again));
    cr_expect(sb_optimiser_rate(o) == sb_optimiser_rate(resumed) && sb_optimiser_rate(o) > 0);
    cr_expect(sb_optimiser_steps(resumed) == 12);
}

TEST(parameters_file, an_optimiser_continues_from_its_file_with_the_same_bits)
{
    static maker *const makers[] = {sb_sgd_new, sb_adam_new, sb_adamw_new};
    for (int i = 0; i < 3; i++) {
        expect_resumed(makers[i], NULL, false);
        expect_resumed(makers[i], "head.*", true);
    }
}

TEST(parameters_file, the_state_of_another_optimiser_is_refused)
{
    const char *path = test_temporary("s");
    sb_parameters *set = set_new(SB_F32, 1, true);
    sb_optimiser *adam = KEPT(sb_adam_new(set, NULL)), *sgd = KEPT(sb_sgd_new(set, NULL));
    MUST(sb_optimiser_save(adam, path));
    REFUSED("optimiser_load: the file has a state of adam, not of sgd",
            sb_optimiser_load(sgd, path));
    cr_assert(sb_parameters_freeze(set, "head.*", true));
    cr_expect(!sb_optimiser_load(adam, path));
    EXPECT_ERROR("the file has 6 tensors, of which 4 belong to parameters that are trained here; "
                 "freeze the same ones");
    cr_assert(sb_parameters_save(set, NULL, path));
    REFUSED("optimiser_load: the file has a state of no optimiser, not of adam",
            sb_optimiser_load(adam, path));
}

static bool save_and_load(void *path_)
{
    const char *path = path_;
    sb_parameters *set = sb_parameters_of(SB_F64, 1);
    bool ok = sb_parameters_add(set, "a", SB_SHAPE(2), normal) &&
              sb_parameters_add(set, "b", SB_SHAPE(3), normal);
    sb_optimiser *adam = ok ? sb_adam_new(set, NULL) : NULL;
    sb_loaded loaded = {0};
    ok = adam && sb_optimiser_save(adam, path) && sb_optimiser_load(adam, path) &&
         sb_parameters_save(set, "a", path) && sb_parameters_load(set, NULL, path, &loaded);
    sb_loaded_free(&loaded);
    sb_optimiser_free(adam);
    sb_parameters_free(set);
    return ok;
}

CPU_TEST(parameters_file, each_allocation_may_fail)
{
    cr_expect(test_each_allocation_fails(save_and_load, (void *)test_temporary("p")) > 20);
}

/* ---- Fingerprints of tensors change with any bit, but not with the order of parts ---- */

static const int64_t shape[] = {4, 6};

static uint64_t of(const char *name, const char *dtype, int rank, const int64_t *dim,
                   const float *x, int64_t first, int64_t count)
{
    const struct fingerprint_tensor t = fingerprint_tensor(name, dtype, rank, dim);
    return fingerprint_elements(t.key, SB_F32, first, count, x);
}

static uint64_t whole(const float x[24])
{
    return of("w", "F32", 2, shape, x, 0, 24);
}

static void fill(float x[24])
{
    for (int i = 0; i < 24; i++)
        x[i] = 0.25f * (float)(i % 7);
}

CPU_TEST(fingerprint, each_bit_changes_it)
{
    float x[24], y[24];
    fill(x);
    for (int bit = 0; bit < 32 * 24; bit++) {
        uint32_t word;
        memcpy(y, x, sizeof y);
        memcpy(&word, &y[bit / 32], sizeof word);
        word ^= (uint32_t)1 << bit % 32;
        memcpy(&y[bit / 32], &word, sizeof word);
        cr_expect(whole(x) != whole(y), "bit %d", bit);
    }
}

CPU_TEST(fingerprint, names_dtypes_shapes_and_positions_change_it)
{
    static const int64_t turned[] = {6, 4}, flat[] = {24};
    float x[24], y[24];
    fill(x);
    memcpy(y, x, sizeof y);
    y[3] = x[5];
    y[5] = x[3];
    const uint64_t other[] = {
        of("v", "F32", 2, shape, x, 0, 24),  of("w", "F16", 2, shape, x, 0, 24),
        of("w", "F32", 2, turned, x, 0, 24), of("w", "F32", 1, flat, x, 0, 24),
        of("w", "F32", 2, shape, x, 1, 24),  whole(y)};
    for (int i = 0; i < 6; i++)
        cr_expect(other[i] != whole(x), "%d", i);
    const struct fingerprint_tensor a = fingerprint_tensor("a", "F32", 1, (int64_t[]){0}),
                                    b = fingerprint_tensor("b", "F32", 1, (int64_t[]){0});
    cr_expect(a.term != b.term && a.term != 0, "tensors without elements count");
}

CPU_TEST(fingerprint, parts_add_up_to_that_of_the_whole_tensor)
{
    float x[24];
    fill(x);
    uint64_t sum = 0;
    for (int row = 3; row >= 0; row--) /* columns 2 to 5, and then 0 and 1 */
        sum += of("w", "F32", 2, shape, x + 6 * row + 2, 6 * row + 2, 4);
    for (int row = 0; row < 4; row++)
        sum += of("w", "F32", 2, shape, x + 6 * row, 6 * row, 2);
    cr_expect(sum == whole(x));
}

static void add_up(sb_communicator *c, void *sums_)
{
    uint64_t *sums = sums_;
    const int rank = sb_communicator_rank(c);
    uint64_t own = 0xfedcba9876543210u * (uint64_t)(rank + 1);
    sums[rank] = fingerprint_sum(c, &own) ? own : 0;
}

CPU_TEST(fingerprint, ranks_add_up_their_parts_modulo_2_to_the_64)
{
    uint64_t sums[3];
    mailbox_run(3, add_up, sums);
    for (int rank = 0; rank < 3; rank++)
        cr_expect(sums[rank] == 0xfedcba9876543210u * 6, "rank %d", rank);
}

CPU_TEST(fingerprint, its_text_is_16_hexadecimal_digits)
{
    uint64_t back;
    cr_expect_str_eq(fingerprint_text(0x123456789abcdefu).text, "0123456789abcdef");
    cr_expect(fingerprint_parse("fedcba9876543210", &back) && back == 0xfedcba9876543210u);
    static const char *const bad[] = {"",
                                      "0",
                                      "0123456789abcde",
                                      "0123456789abcdef0",
                                      "0123456789ABCDEF",
                                      "0x23456789abcdef",
                                      " 123456789abcdef"};
    for (int i = 0; i < 7; i++)
        cr_expect(!fingerprint_parse(bad[i], &back), "%s", bad[i]);
}

/* ---- Exact derivatives over a parameter set: the products of a model's loss ---- */

struct loss {
    struct tiny tiny;
    sb_batch *batch;
};

static struct loss loss_new(sb_dtype dtype)
{
    struct loss l = {tiny_new(dtype, 1, &tiny_variant(0)->options), NULL};
    l.batch = tiny_batch(l.tiny.vocabulary, 4, 2, 4);
    return l;
}

static sb_tensor *run_loss(void *context, sb_tensor *const x[])
{
    const struct loss *l = context;
    (void)x;
    return sb_seq2seq_loss(l->tiny.model, l->batch);
}

/* The product of two vectors over all names. */
static double product(const sb_parameters *a, const sb_parameters *b)
{
    double sum = 0;
    for (int64_t i = 0; i < sb_parameters_count(a); i++)
        for (int64_t k = 0; k < sb_tensor_size(sb_parameters_get(a, i)); k++)
            sum += sb_tensor_get(sb_parameters_get(a, i), k) *
                   sb_tensor_get(sb_parameters_get(b, i), k);
    return sum;
}

CPU_TEST(parameters_derivative, products_of_drawn_vectors_are_symmetric)
{
    struct loss l = loss_new(SB_F64);
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    sb_parameters *u = KEPT(sb_parameters_vector(l.tiny.weights, &random));
    sb_parameters *v = KEPT(sb_parameters_vector(l.tiny.weights, &random));
    cr_assert(u && v && sb_parameters_fingerprint(u) != sb_parameters_fingerprint(v));
    cr_expect(product(v, v) == (double)sb_parameters_size(l.tiny.weights));
    sb_parameters *hu = KEPT(sb_parameters_hvp(l.tiny.weights, run_loss, &l, u));
    sb_parameters *hv = KEPT(sb_parameters_hvp(l.tiny.weights, run_loss, &l, v));
    MUST(hu && hv);
    const double a = product(u, hv), b = product(v, hu);
    cr_expect(fabs(a) > 1e-3 && fabs(a - b) <= 1e-11 * fmax(fabs(a), 1), "%.17g, %.17g", a, b);
    for (int64_t i = 0; i < sb_parameters_count(l.tiny.weights); i++)
        cr_expect(!sb_tensor_grad(sb_parameters_get(l.tiny.weights, i)));
}

/* Adds the gradients of the loss. */
static void run_backward(struct loss *l)
{
    TAPE(SB_RECORD);
    MUST(sb_backward(run_loss(l, NULL)));
}

/* A vector with one name is that direction alone. */
CPU_TEST(parameters_derivative, a_vector_that_names_one_parameter_moves_it_alone)
{
    struct loss l = loss_new(SB_F64);
    const char *const name = "output.bias";
    sb_tensor *w = sb_parameters_find(l.tiny.weights, name), *y, *dy;
    cr_assert(w);
    sb_parameters *v = KEPT(sb_parameters_of(SB_F64, 5));
    cr_assert(sb_parameters_add(v, name, sb_tensor_rank(w), (int64_t[]){sb_tensor_dim(w, 0)},
                                (sb_initial){SB_INITIAL_NORMAL, 1}));
    MUST(sb_parameters_jvp(l.tiny.weights, run_loss, &l, v, &y, &dy));
    run_backward(&l);
    double expected = 0;
    for (int64_t k = 0; k < sb_tensor_size(w); k++)
        expected += sb_tensor_get(sb_tensor_grad(w), k) * sb_tensor_get(sb_parameters_get(v, 0), k);
    cr_expect(fabs(sb_tensor_value(dy) - expected) <= 1e-14 && fabs(expected) > 1e-4, "%g, %g",
              sb_tensor_value(dy), expected);
    sb_tensor_release(y);
    sb_tensor_release(dy);
    cr_expect(sb_parameters_jvp(l.tiny.weights, run_loss, &l, v, NULL, NULL));
    /* one column of H against a difference of gradients */
    sb_parameters *hv = KEPT(sb_parameters_hvp(l.tiny.weights, run_loss, &l, v));
    MUST(hv);
    sb_tensor *first = sb_parameters_get(l.tiny.weights, 0);
    const double h = 1e-5;
    double up[2];
    for (int side = 0; side < 2; side++) {
        for (int64_t k = 0; k < sb_tensor_size(w); k++)
            sb_tensor_set(w, k,
                          sb_tensor_get(w, k) +
                              (side ? -2 * h : h) * sb_tensor_get(sb_parameters_get(v, 0), k));
        sb_parameters_clear(l.tiny.weights);
        run_backward(&l);
        up[side] = sb_tensor_get(sb_tensor_grad(first), 0);
    }
    const double exact = sb_tensor_get(sb_parameters_get(hv, 0), 0);
    cr_expect(fabs((up[0] - up[1]) / (2 * h) - exact) <= 1e-8 * fmax(1, fabs(exact)), "%g, %g",
              (up[0] - up[1]) / (2 * h), exact);
}

CPU_TEST(parameters_derivative, vectors_that_do_not_fit_are_refused_with_one_sentence)
{
    struct loss l = loss_new(SB_F64), narrow = loss_new(SB_F32);
    sb_parameters *v = KEPT(sb_parameters_of(SB_F64, 1)), *w = KEPT(sb_parameters_of(SB_F64, 1));
    sb_parameters *zeros = KEPT(sb_parameters_vector(narrow.tiny.weights, NULL)), *none = NULL;
    sb_parameters_add(v, "output.bias", SB_SHAPE(2), (sb_initial){0});
    sb_parameters_add(w, "outputs", SB_SHAPE(2), (sb_initial){0});
    sb_tensor *y, *dy;
    const struct {
        const sb_parameters *set, *v;
        sb_function f;
        const char *message;
    } bad[] = {
        {l.tiny.weights, v, run_loss, "\"output.bias\" is (11) in the set and (2) in v"},
        {l.tiny.weights, w, run_loss, "v has \"outputs\", which the set has not"},
        {narrow.tiny.weights, zeros, run_loss,
         "parameters_jvp: the set is of f32 and v of f64; both must be f64"},
        {none, zeros, run_loss, "parameters_jvp: set is NULL"},
        {l.tiny.weights, none, run_loss, "parameters_jvp: v is NULL"},
        {l.tiny.weights, zeros, NULL, "jvp: f is NULL"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(!sb_parameters_jvp(bad[i].set, bad[i].f, &l, bad[i].v, &y, &dy) && !y && !dy);
        EXPECT_ERROR(bad[i].message);
    }
    REFUSED("parameters_hvp: v has \"outputs\"", sb_parameters_hvp(v, run_loss, &l, w));
}

FUNCTION(run_square, sb_sum(sb_multiply(x[0], x[0]), SB_ALL, false))

static bool product_without_memory(void *unused)
{
    (void)unused;
    sb_parameters *set = sb_parameters_of(SB_F64, 1);
    sb_parameters *v = NULL, *hv = NULL;
    bool ok =
        set && sb_parameters_add(set, "w", SB_SHAPE(2, 2), (sb_initial){SB_INITIAL_XAVIER, 0});
    v = ok ? sb_parameters_vector(set, NULL) : NULL;
    hv = v ? sb_parameters_hvp(set, run_square, NULL, v) : NULL;
    ok = hv != NULL;
    sb_parameters_free(set);
    sb_parameters_free(v);
    sb_parameters_free(hv);
    return ok;
}

CPU_TEST(parameters_derivative, each_failed_allocation_is_an_error)
{
    test_each_allocation_fails(product_without_memory, NULL);
}

/* Logits and loss of a head whose row of padding is one of x[1], the weight. */
static sb_tensor *run_head(void *padding, sb_tensor *const x[])
{
    const sb_output_head head = {
        .weight = x[1], .scale = 2, .padded = true, .padding_id = *(const int64_t *)padding};
    sb_tensor *logits = sb_output_head_logits(&head, x[0]);
    sb_tensor *loss = sb_output_head_loss(&head, x[0], x[2], NULL);
    return sb_add(loss, sb_sum(sb_multiply(logits, logits), SB_ALL, false));
}

/* A direction that moves the row of padding alone. */
static sb_tensor *row_direction(int64_t V, int64_t C, int64_t row)
{
    sb_tensor *v = sb_tensor_zeros(SB_F64, SB_SHAPE(V, C));
    for (int64_t c = 0; c < C; c++)
        sb_tensor_set(v, row * C + c, 1);
    return v;
}

CPU_TEST(parameters_derivative, the_row_of_padding_of_an_output_head_is_a_constant)
{
    enum { V = 4, C = 3 };
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(2, C)), test_leaf(SB_F64, 2, SB_SHAPE(V, C)),
                      KEPT(sb_tensor_from_doubles(SB_I32, SB_SHAPE(2), (double[]){1, 3}))};
    for (int64_t padding = 0; padding < V; padding++) {
        sb_gradcheck_result result;
        const sb_gradcheck_options options = {.method = SB_GRADCHECK_EXACT};
        cr_expect(sb_gradcheck(run_head, &padding, x, 3, &options, &result), "row %d: %s",
                  (int)padding, sb_error());
        sb_tensor *v[3] = {[1] = row_direction(V, C, padding)}, *dy, *hv[3];
        MUST(sb_jvp(run_head, &padding, x, v, 3, NULL, &dy));
        cr_expect(sb_tensor_value(dy) == 0, "row %d: %g", (int)padding, sb_tensor_value(dy));
        MUST(sb_hvp(run_head, &padding, x, v, 3, hv));
        cr_expect(largest_of(hv[0]) == 0 && largest_of(hv[1]) == 0, "row %d", (int)padding);
        release_all(4, (sb_tensor *[]){v[1], dy, hv[0], hv[1]});
    }
}
