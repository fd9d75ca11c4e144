#include "models/decoding/search.h"
#include "tests/support/test.h"

enum { V = 9 };

/* p = 0.4, 0.3, 0.2, 0.1 of the symbols 5, 7, 6, 8; special symbols are more probable. */
static const double p[V] = {5, 6, 0, 7, 0, 0.4, 0.2, 0.3, 0.1};

static void logs(double log_p[V])
{
    for (int i = 0; i < V; i++)
        log_p[i] = log(p[i]);
}

CPU_TEST(choices, the_best_come_first)
{
    double log_p[V];
    struct choice best[V];
    logs(log_p);
    const int32_t expected[] = {5, 7, 6, 8, SB_SYMBOL_END, 4};
    for (int64_t k = 1; k < 8; k++) {
        int64_t n = choices_best(search_choosable(NULL), V, log_p, k, best);
        cr_expect(n == (k < 6 ? k : 6)); /* without padding, begin and unknown */
        for (int64_t i = 0; i < n; i++)
            cr_expect(best[i].id == expected[i] && best[i].log_p == log_p[expected[i]]);
    }
}

CPU_TEST(choices, equal_probabilities_are_sorted_by_id)
{
    double log_p[V] = {0};
    struct choice best[V];
    cr_expect(choices_best(search_choosable(NULL), V, log_p, 3, best) == 3);
    cr_expect(best[0].id == SB_SYMBOL_END && best[1].id == 4 && best[2].id == 5);
}

/* A different algorithm sorts many than few. */
CPU_TEST(choices, the_k_best_are_the_first_k_of_all)
{
    enum { MANY = 500 };
    static double log_p[MANY];
    static struct choice all[MANY], best[MANY];
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int i = 0; i < MANY; i++) /* one in ten is a repetition */
        log_p[i] = i % 10 == 9 ? log_p[i - 5] : -sb_random_uniform(&random);
    cr_expect(choices_best(search_choosable(NULL), MANY, log_p, MANY, all) == MANY - 3);
    for (int i = 1; i < MANY - 3; i++)
        cr_assert(all[i - 1].log_p > all[i].log_p ||
                  (all[i - 1].log_p == all[i].log_p && all[i - 1].id < all[i].id));
    for (int64_t k = 1; k < 80; k++) {
        cr_expect(choices_best(search_choosable(NULL), MANY, log_p, k, best) == k);
        for (int64_t i = 0; i < k; i++)
            cr_assert(best[i].id == all[i].id && best[i].log_p == all[i].log_p);
    }
}

/* The fraction of each symbol among draws by evenly spaced numbers. */
static void expect_shares(const sb_decoding_options *options, const double shares[V])
{
    enum { DRAWS = 10000 };
    double log_p[V];
    struct choice scratch[V];
    int count[V] = {0};
    logs(log_p);
    for (int i = 0; i < DRAWS; i++) {
        struct choice c =
            choices_draw(options, search_choosable(NULL), V, log_p, (i + 0.5) / DRAWS, scratch);
        cr_assert(c.id >= 0 && c.id < V && c.log_p == log_p[c.id]);
        count[c.id]++;
    }
    for (int i = 0; i < V; i++)
        cr_expect(fabs((double)count[i] / DRAWS - shares[i]) < 2e-4, "symbol %d: %d, not %g", i,
                  count[i], shares[i] * DRAWS);
}

CPU_TEST(choices, symbols_are_drawn_by_their_probability)
{
    sb_decoding_options options = {.temperature = 1, .top_p = 1};
    expect_shares(&options, (double[V]){[5] = 0.4, [7] = 0.3, [6] = 0.2, [8] = 0.1});
}

/* At T = 1/2 probabilities are squared: 16, 9, 4, 1 of 30. */
CPU_TEST(choices, a_low_temperature_sharpens_the_distribution)
{
    sb_decoding_options options = {.temperature = 0.5, .top_p = 1};
    expect_shares(&options,
                  (double[V]){[5] = 16. / 30, [7] = 9. / 30, [6] = 4. / 30, [8] = 1. / 30});
}

CPU_TEST(choices, top_k_keeps_the_k_most_probable)
{
    sb_decoding_options options = {.temperature = 1, .top_k = 2, .top_p = 1};
    expect_shares(&options, (double[V]){[5] = 4. / 7, [7] = 3. / 7});
    options.top_k = 1;
    expect_shares(&options, (double[V]){[5] = 1});
}

/* 0.4 + 0.3 does not reach 0.75, 0.4 + 0.3 + 0.2 does. */
CPU_TEST(choices, top_p_keeps_the_fewest_that_reach_p)
{
    sb_decoding_options options = {.temperature = 1, .top_p = 0.75};
    expect_shares(&options, (double[V]){[5] = 4. / 9, [7] = 3. / 9, [6] = 2. / 9});
    options.top_p = 0.65;
    expect_shares(&options, (double[V]){[5] = 4. / 7, [7] = 3. / 7});
    options.top_p = 1e-9;
    expect_shares(&options, (double[V]){[5] = 1});
}

/* Of the three most probable, 4/9 + 3/9 reach 0.75. */
CPU_TEST(choices, top_p_is_applied_after_top_k)
{
    sb_decoding_options options = {.temperature = 1, .top_k = 3, .top_p = 0.75};
    expect_shares(&options, (double[V]){[5] = 4. / 7, [7] = 3. / 7});
}
