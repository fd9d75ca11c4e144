/* Files of parameters and of an optimiser's state. */
#include "tests/support/test.h"
#include <stdio.h>

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
    cr_expect(!sb_parameters_load(to, NULL, path, NULL));
    EXPECT_ERROR("parameters_load: 2 parameters are missing in the file, first \"head.bias\"");
    cr_expect(!sb_parameters_load(to, "encoder.*", path, NULL));
    EXPECT_ERROR("the set has no parameters for 1 tensors of the file, first \"encoder.bias\"");
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
    cr_expect(!sb_parameters_save(set, "tail.*", path));
    EXPECT_ERROR("parameters_save: no parameter matches \"tail.*\"");
    MUST(sb_parameters_save(set, "head.*", path));
    cr_expect(!sb_parameters_load(other, NULL, path, &loaded));
    EXPECT_ERROR("\"head.weight\" is (2, 3) in the file, but (3, 3) in the set");
    cr_expect(!sb_parameters_load(set, "encoder.*", path, &loaded));
    EXPECT_ERROR("parameters_load: the file has none of the parameters that match \"encoder.*\"");
    cr_expect(!sb_parameters_load(set, NULL, test_temporary("none"), NULL));
    cr_expect(!sb_parameters_load(NULL, NULL, path, NULL) && !sb_parameters_save(set, NULL, NULL) &&
              !sb_optimiser_save(NULL, path) && !sb_optimiser_load(NULL, path));
}

/* ---- the state of an optimiser ---- */

typedef sb_optimiser *maker(sb_parameters *, const sb_optimiser_options *);

static const sb_optimiser_options options = {
    .schedule = {.kind = SB_SCHEDULE_PLATEAU, .rate = 0.05, .patience = 1, .warmup = 3},
    .weight_decay = 0.1};

/* Step t: the bias has a gradient at even steps alone. */
static void step(sb_parameters *set, sb_optimiser *o, int t)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *w = sb_parameters_find(set, "encoder.weight"),
              *b = sb_parameters_find(set, "encoder.bias"),
              *h = sb_parameters_find(set, "head.weight");
    sb_tensor *y = sb_matmul(h, t % 2 == 0 ? sb_add(w, sb_reshape(b, SB_SHAPE(3, 1))) : w);
    MUST(sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)));
    sb_tape_end(&tape);
    sb_optimiser_observe(o, t < 3 ? 1 : 2);
    MUST(sb_optimiser_step(o));
}

static void expect_resumed(maker *make, const char *frozen, bool rate)
{
    const char *weights = test_temporary("w"), *state = test_temporary("s");
    sb_parameters *set = set_new(SB_F32, 1, true), *again = set_new(SB_F32, 9, true);
    cr_assert(!frozen || (sb_parameters_freeze(set, frozen, true) &&
                          sb_parameters_freeze(again, frozen, true)));
    sb_optimiser *o = KEPT(make(set, &options)), *resumed = KEPT(make(again, &options));
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
    cr_expect(!sb_optimiser_load(sgd, path));
    EXPECT_ERROR("optimiser_load: the file has a state of adam, not of sgd");
    cr_assert(sb_parameters_freeze(set, "head.*", true));
    cr_expect(!sb_optimiser_load(adam, path));
    EXPECT_ERROR("the file has 6 tensors, of which 4 belong to parameters that are trained here; "
                 "freeze the same ones");
    cr_assert(sb_parameters_save(set, NULL, path));
    cr_expect(!sb_optimiser_load(adam, path));
    EXPECT_ERROR("optimiser_load: the file has a state of no optimiser, not of adam");
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
    char path[256];
    snprintf(path, sizeof path, "%s", test_temporary("p"));
    cr_expect(test_each_allocation_fails(save_and_load, path) > 20);
}
