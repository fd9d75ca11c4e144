/* Beam search, and the choice of symbols. */
#include "models/decoding/search.h"
#include "tests/support/tiny.h"

enum { TEXTS = 40, LONGEST = 12 };

TEST(beam, a_beam_never_scores_below_greedy, WHOLE_MODELS)
{
    int better = 0, n = test_slow() ? 10 : TEXTS;
    for (uint64_t seed = 0; seed < 6; seed += test_slow() ? 5 : 1) {
        struct tiny tiny = tiny_new(SB_F32, 10 + seed, NULL);
        const char **texts = texts_new(seed * 100, n);
        for (int64_t width = 2; width < 6; width += 3) {
            sb_decoding_options greedy = {.longest = 9, .length_penalty = 0.4 * (double)seed};
            sb_decoding_options beam = greedy;
            beam.beam_width = width;
            sb_decoded a[TEXTS], b[TEXTS];
            decode(&tiny, texts, n, &greedy, a);
            decode(&tiny, texts, n, &beam, b);
            for (int i = 0; i < n; i++) {
                cr_assert(b[i].score >= a[i].score, "%.17g, but greedy %.17g", b[i].score,
                          a[i].score);
                better += b[i].score > a[i].score;
            }
        }
    }
    cr_expect(better > (test_slow() ? 4 : 50), "%d are better", better);
}

/* The best score of all outputs of at most `longest` symbols that begin with this one. */
static double best_score(const struct tiny *tiny, const char *text, sb_decoded *begun,
                         double log_p_begun, const sb_decoding_options *o)
{
    double *log_p = log_probabilities(tiny, text, begun), best = -INFINITY;
    const double *next = log_p + begun->length * TINY_V;
    for (int32_t id = 0; id < TINY_V; id++) {
        if (!search_allows(search_choosable(NULL), id))
            continue;
        double sum = log_p_begun + next[id], score;
        if (id == SB_SYMBOL_END || begun->length + 1 == o->longest) {
            score = search_score(o, sum, begun->length + 1);
        } else {
            begun->ids[begun->length++] = id;
            score = best_score(tiny, text, begun, sum, o);
            begun->length--;
        }
        best = score > best ? score : best;
    }
    return best;
}

TEST(beam, a_wide_beam_finds_the_best_of_all_outputs, WHOLE_MODELS)
{
    for (uint64_t seed = 1; seed < 5; seed += test_slow() ? 4 : 1) {
        struct tiny tiny = tiny_new(SB_F64, seed, NULL);
        for (uint64_t i = 0; i < 6; i += test_slow() ? 4 : 1) {
            int32_t ids[4];
            const char *text = tiny_text(10 * seed + i, 5);
            double alpha = (double)(i % 3);
            sb_decoding_options o = {.beam_width = 500, .longest = 3, .length_penalty = alpha};
            sb_decoded begun = {.ids = ids}, found;
            double expected = best_score(&tiny, text, &begun, 0, &o);
            decode(&tiny, &text, 1, &o, &found);
            cr_expect(fabs(found.score - expected) < 1e-12, "%.15g, not %.15g", found.score,
                      expected);
        }
    }
}

/* score = log p / ((5 + |Y|) / 6)^alpha, |Y| with the end, log p as in training. */
TEST(beam, scores_follow_the_formula, WHOLE_MODELS)
{
    struct tiny tiny = tiny_new(SB_F64, 6, NULL);
    const char **texts = texts_new(30, TEXTS);
    sb_decoded outputs[TEXTS];
    const sb_decoding_options beam = {.beam_width = 4, .longest = 8, .length_penalty = 0.6};
    decode(&tiny, texts, TEXTS, &beam, outputs);
    int ended = 0;
    for (int i = 0; i < TEXTS; i++) {
        const sb_decoded *o = &outputs[i];
        double *log_p = log_probabilities(&tiny, texts[i], o), sum = 0;
        for (int64_t t = 0; t < o->length + o->ended; t++)
            sum += log_p[t * TINY_V + (t < o->length ? o->ids[t] : SB_SYMBOL_END)];
        double Y = (double)(o->length + o->ended);
        cr_expect(fabs(o->log_probability - sum) < 1e-12);
        cr_expect(fabs(o->score - sum / pow((5 + Y) / 6, 0.6)) < 1e-12);
        ended += o->ended;
    }
    cr_expect(ended > TEXTS / 2);
}

/* log p of each symbol is renormalised: divided by what padding leaves. */
TEST(beam, a_renormalised_beam_gives_padding_no_share)
{
    const sb_seq2seq_options options = tiny_options();
    struct tiny tiny = {
        KEPT(sb_vocabulary_of_ids(TINY_V, SB_SYMBOL_PADDING, SB_SYMBOL_BEGIN, SB_SYMBOL_END)),
        KEPT(sb_parameters_of(SB_F64, 6)), NULL};
    tiny.model = KEPT(sb_seq2seq_for(tiny.weights, tiny.vocabulary, tiny.vocabulary, &options));
    MUST(tiny.model);
    tiny_draw(tiny.weights, 6, 1);
    static const char *const texts[] = {"4 5 6", "7", "10 4 4 9"};
    for (int i = 0; i < 6; i++) {
        const sb_decoding_options beam = {.beam_width = 4, .longest = 6, .renormalise = i % 2};
        sb_decoded o;
        decode(&tiny, &texts[i / 2], 1, &beam, &o);
        double *log_p = log_probabilities(&tiny, texts[i / 2], &o), sum = 0;
        for (int64_t t = 0; t < o.length + o.ended; t++) {
            const double *row = log_p + t * TINY_V;
            sum += row[t < o.length ? o.ids[t] : SB_SYMBOL_END];
            sum -= beam.renormalise ? log1p(-exp(row[SB_SYMBOL_PADDING])) : 0;
        }
        cr_expect(fabs(o.log_probability - sum) < 1e-12, "%s: %g, not %g", texts[i / 2],
                  o.log_probability, sum);
    }
}

/* score = log p / |Y|^alpha; "end" follows what is cut, for nothing. */
TEST(beam, by_the_rule_of_generate_scores_are_means, WHOLE_MODELS)
{
    struct tiny tiny = tiny_new(SB_F64, 6, NULL);
    const char **texts = texts_new(30, TEXTS);
    for (int early = 0; early < 2; early++) {
        const sb_decoding_options beam = {.beam_width = 4,
                                          .longest = 2,
                                          .length_penalty = early ? 0.5 : 1,
                                          .force_end = early,
                                          .beam_rule = early ? SB_BEAM_EARLY : SB_BEAM_GENERATE};
        sb_decoded outputs[TEXTS];
        decode(&tiny, texts, TEXTS, &beam, outputs);
        int cut = 0;
        for (int i = 0; i < TEXTS; i++) {
            const sb_decoded *o = &outputs[i];
            double *log_p = log_probabilities(&tiny, texts[i], o), sum = 0;
            for (int64_t t = 0; t < o->length; t++)
                sum += log_p[t * TINY_V + o->ids[t]];
            const bool forced = early && o->length == beam.longest;
            if (o->ended && !forced)
                sum += log_p[o->length * TINY_V + SB_SYMBOL_END];
            const double Y = (double)(o->length + o->ended);
            cr_expect(fabs(o->score - sum / pow(Y, beam.length_penalty)) < 1e-12);
            cr_expect(o->ended || !early);
            cut += o->length == beam.longest;
        }
        cr_expect(cut > 0, "none was cut");
    }
}

/* The "end" that follows what is cut makes an output longer by one. */
TEST(beam, it_never_scores_below_greedy_with_a_forced_end, WHOLE_MODELS)
{
    const char **texts = texts_new(30, TEXTS);
    for (uint64_t seed = 0; seed < (test_brief() ? 4 : 20); seed++) {
        struct tiny tiny = tiny_new(SB_F64, seed, NULL);
        sb_decoded outputs[2][TEXTS];
        for (int wide = 0; wide < 2; wide++) {
            const sb_decoding_options options = {.beam_width = wide ? 4 : 1,
                                                 .longest = 3,
                                                 .length_penalty = 2,
                                                 .force_end = true,
                                                 .beam_rule = SB_BEAM_BOUNDED};
            decode(&tiny, texts, TEXTS, &options, outputs[wide]);
        }
        for (int i = 0; i < TEXTS; i++)
            cr_expect(outputs[1][i].score >= outputs[0][i].score - 1e-9, "seed %d: %g, greedy %g",
                      (int)seed, outputs[1][i].score, outputs[0][i].score);
    }
}

/* The penalty that gave a score. */
static double penalty_of(const sb_decoded *o)
{
    const double Y = (double)(o->length + o->ended);
    return log(o->log_probability / o->score) / log((5 + Y) / 6);
}

TEST(beam, by_default_words_have_a_length_penalty_and_characters_have_none, WHOLE_MODELS)
{
    static const struct {
        sb_units units;
        int64_t width;
        double given, penalty;
    } cases[] = {{SB_UNITS_WORDS, 3, 0, 1},      {SB_UNITS_BPE, 3, 0, 1},
                 {SB_UNITS_CHARACTERS, 3, 0, 0}, {SB_UNITS_BYTES, 3, 0, 0},
                 {SB_UNITS_WORDS, 1, 0, 0},      {SB_UNITS_WORDS, 3, SB_ZERO, 0},
                 {SB_UNITS_WORDS, 3, 0.6, 0.6},  {SB_UNITS_CHARACTERS, 3, 0.6, 0.6}};
    const char *text = "a b c aa bb ab", *const source = "a b";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sb_vocabulary_options units = {.units = cases[i].units};
        const sb_seq2seq_options sizes = {.transformer = {.width = 8, .heads = 2}};
        sb_vocabulary *v = KEPT(sb_vocabulary_new(&text, 1, &units));
        sb_parameters *weights = KEPT(sb_parameters_of(SB_F64, 5));
        sb_seq2seq *model = KEPT(sb_seq2seq_for(weights, v, v, &sizes));
        const sb_decoding_options options = {
            .beam_width = cases[i].width, .longest = 5, .length_penalty = cases[i].given};
        sb_decoded output;
        MUST(sb_decode_texts(model, &source, 1, &options, &output));
        cr_expect(output.length + output.ended > 1 &&
                      fabs(penalty_of(&output) - cases[i].penalty) < 1e-9,
                  "%zu: %g", i, penalty_of(&output));
        KEPT(output.ids);
    }
}

/* With 7 symbols, a beam of 9 has slots that stay empty. */
TEST(beam, beams_that_the_device_extends_alone_have_the_bits_of_single_steps, WHOLE_MODELS)
{
    const sb_decoding_options narrow = {.beam_width = 2, .longest = 18, .length_penalty = 1};
    const sb_decoding_options wide = {.beam_width = 9, .longest = 6};
    expect_bits_of_single_steps(&narrow);
    expect_bits_of_single_steps(&wide);
}

/* The hypotheses of many models, some of which the host prunes and the device does not. */
TEST(beam, beams_of_a_device_are_those_of_the_processor, WHOLE_MODELS)
{
    enum { SOME = 6 };
    device_needed();
    const char **texts = texts_new(400, SOME);
    for (uint64_t seed = 0; seed < (test_brief() ? 3 : test_slow() ? 6 : 20); seed++) {
        const sb_decoding_options options = {.beam_width = 2 + (int64_t)seed % 5,
                                             .longest = 14,
                                             .length_penalty = 0.5 * (double)(seed % 3)};
        sb_decoded there[SOME], here[SOME];
        for (int on_device = 0; on_device < 2; on_device++) {
            sb_use_device(on_device ? device_cuda() : NULL);
            struct tiny tiny = tiny_new(SB_F64, seed, NULL);
            decode(&tiny, texts, SOME, &options, on_device ? there : here);
        }
        for (int i = 0; i < SOME; i++)
            cr_expect(
                same_symbols(&there[i], &here[i]) && fabs(there[i].score - here[i].score) < 1e-12,
                "seed %d, text %d: %.17g, not %.17g", (int)seed, i, there[i].score, here[i].score);
    }
}

static sb_tensor *encode(const void *model, sb_tensor *ids, sb_tensor *source_lengths)
{
    return sb_seq2seq_encode(model, ids, source_lengths);
}

static sb_tensor *output(const void *model, sb_tensor *y)
{
    return sb_seq2seq_output(model, y);
}

/* Beam search itself with a width of 1, which decoding otherwise leaves to greedy search. */
TEST(beam, a_beam_of_one_is_greedy, KNOWN_KERNELS)
{
    struct tiny tiny = tiny_new(SB_F32, 7, NULL);
    struct generator generator = {.model = tiny.model,
                                  .vocabulary = tiny.vocabulary,
                                  .outputs = tiny.vocabulary,
                                  .decoder = sb_seq2seq_decoder(tiny.model),
                                  .encode = encode,
                                  .output = output};
    for (int i = 0; i < test_some(TEXTS); i++) {
        const char *text = tiny_text((uint64_t)i, 15);
        sb_decoded expected, got = {0};
        struct decoding_text encoded = {.longest = LONGEST, .output = &got};
        encoded.ids = sb_vocabulary_encode(tiny.vocabulary, text, &encoded.length, NULL);
        const sb_decoding_options greedy = {.longest = LONGEST};
        decode(&tiny, &text, 1, &greedy, &expected);
        struct sequences sequences;
        sb_decoding_options o = {.beam_width = 1};
        struct search search = {&o,      &sequences, 1, TINY_V, search_choosable(tiny.vocabulary),
                                &encoded};
        sb_tape tape; /* as decoding opens it */
        sb_tape_begin_with(&tape, SB_NO_RECORD, &(sb_context){.batch_invariant = true});
        MUST(sequences_begin(&sequences, &generator, 1, &encoded, true));
        MUST(search_beam(&search));
        sb_tape_end(&tape);
        cr_expect(same_bits(&got, &expected), "%s", text);
        sequences_end(&sequences);
        KEPT(got.ids);
        KEPT(encoded.ids);
    }
}

/* ---- choices ---- */

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
