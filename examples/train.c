/*
 * An encoder-decoder learns pairs of texts: it reads Roman numerals and writes numbers, and then
 * translates numerals that it was not trained on. sb_pairs_read takes pairs from a file.
 */
#include <softback/softback.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 600, HELD_OUT = 200 };

static void write_roman(int number, char *text)
{
    static const char *const symbol[] = {"M",  "CM", "D",  "CD", "C",  "XC", "L",
                                         "XL", "X",  "IX", "V",  "IV", "I"};
    static const int value[] = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
    *text = '\0';
    for (int i = 0; i < 13; i++)
        for (; number >= value[i]; number -= value[i])
            strcat(text, symbol[i]);
}

static sb_pairs *roman_numerals(void)
{
    sb_pairs *pairs = sb_pairs_new();
    char roman[32], decimal[16];
    for (int number = 1; number < 4000; number++) {
        write_roman(number, roman);
        snprintf(decimal, sizeof decimal, "%d", number);
        sb_pairs_add(pairs, roman, decimal);
    }
    return pairs;
}

static bool train(sb_trainer *trainer)
{
    for (int step = 1; step <= STEPS; step++) {
        sb_trained trained;
        if (!sb_trainer_step(trainer, &trained))
            return false;
        if (step % 100 == 0)
            printf("step %d  loss %.3f\n", step, trained.loss);
    }
    return true;
}

/* Translates the pairs' sources; true if at least nine in ten are right. */
static bool translate(const sb_seq2seq *model, const sb_pairs *pairs)
{
    const int64_t count = sb_pairs_count(pairs);
    int64_t right = 0;
    for (int64_t i = 0; i < count; i++) {
        char *output = sb_translate(model, sb_pairs_source(pairs, i), NULL);
        right += output && strcmp(output, sb_pairs_target(pairs, i)) == 0;
        if (i < 5)
            printf("%s -> %s\n", sb_pairs_source(pairs, i), output ? output : sb_error());
        sb_free(output);
    }
    printf("%lld of %lld held-out numerals are right\n", (long long)right, (long long)count);
    return 10 * right >= 9 * count;
}

int main(void)
{
    sb_pairs *pairs = roman_numerals(), *seen = NULL, *held = NULL;
    sb_pairs_divide(pairs, HELD_OUT, &seen, &held);
    sb_vocabulary *source = sb_vocabulary_new(sb_pairs_sources(seen), sb_pairs_count(seen), NULL);
    sb_vocabulary *target = sb_vocabulary_new(sb_pairs_targets(seen), sb_pairs_count(seen), NULL);
    sb_data *data = sb_data_new(seen, source, target, NULL);
    sb_parameters *weights = sb_parameters_new(1);
    const sb_seq2seq_options sizes = {
        .transformer = {.width = 64, .encoder_layers = 2, .decoder_layers = 2}};
    sb_seq2seq *model = sb_seq2seq_new(weights, data, &sizes);
    const sb_trainer_options options = {
        .optimiser = {
            .schedule = {SB_SCHEDULE_COSINE, .rate = 0.003, .warmup = 100, .steps = STEPS},
            .clip = 1}};
    sb_trainer *trainer = sb_trainer_new(model, data, &options);
    const bool trained = train(trainer);
    if (!trained)
        puts(sb_error());
    const bool learned = trained && translate(model, held);
    sb_trainer_free(trainer);
    sb_seq2seq_free(model);
    sb_parameters_free(weights);
    sb_data_free(data);
    sb_vocabulary_release(target);
    sb_vocabulary_release(source);
    sb_pairs_free(held);
    sb_pairs_free(seen);
    sb_pairs_free(pairs);
    return learned ? 0 : 1;
}
