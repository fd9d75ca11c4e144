#include "models/kinds.h"
#include "models/training/metadata.h"
#include "tests/support/small_run.h"
#include <stdio.h>

/* A value that is not the setting's default, with as many digits as its type has. */
static const char *other(const struct settings *usual, int i)
{
    static char text[40];
    const struct field f = setting_at(i);
    if (f.type == FIELD_FLAG)
        return "true";
    if (f.type == FIELD_TEXT)
        return "encoder.*:rate=0.1";
    if (f.type == FIELD_CHOICE)
        return f.choices[strcmp(field_read(&f, usual).text, f.choices[0]) == 0];
    if (f.type == FIELD_NUMBER)
        snprintf(text, sizeof text, "%.17g", f.least + (f.most < 1 ? 1 / 3. : 0.7));
    else
        snprintf(text, sizeof text, "%.0f", f.most > f.least + 7 ? f.least + 7 : f.most);
    return text;
}

CPU_TEST(settings, each_setting_reads_what_it_writes)
{
    const struct settings usual = settings_default();
    int count = 0;
    for (; setting_name(count); count++) {
        const char *name = setting_name(count);
        struct settings s = usual, back = usual;
        MUST(setting_set(&s, count, other(&usual, count)));
        struct field_text value = setting_get(&s, count);
        cr_expect(strcmp(value.text, setting_get(&usual, count).text) != 0, "%s stays", name);
        MUST(setting_set(&back, count, value.text));
        cr_expect(memcmp(&s, &back, sizeof s) == 0, "%s, written as %s", name, value.text);
        cr_expect(setting_find(name) == count, "%s occurs twice", name);
    }
    cr_expect(count > 40 && setting_find("no-such-setting") < 0);
}

/* Writes the settings of a kind of models to a description and reads them back. */
static void expect_settings_survive(const char *name)
{
    struct settings s = settings_default();
    const sb_model_kind *kind = sb_model_kind_find(name);
    for (int i = 0; setting_name(i); i++)
        MUST(setting_set(&s, i, other(&s, i)));
    const char *text = "a b";
    sb_vocabulary *v = KEPT(sb_vocabulary_new(&text, 1, NULL));
    struct metadata d = {.model = sb_description_new(name), .task = (char *)(uintptr_t) ""};
    MUST(settings_write(&s, kind, d.model) && sb_description_add_vocabulary(d.model, "source", v) &&
         sb_description_add_vocabulary(d.model, "target", v));
    cr_assert(sb_description_add_label(d.model, "cat") && sb_description_add_label(d.model, "dog"));
    char *json = KEPT(metadata_write(&d));
    struct metadata back;
    struct settings read;
    MUST(json && metadata_read(json, &back) && settings_read(&read, back.model));
    for (int i = 0; setting_name(i); i++) {
        const bool same = strcmp(setting_get(&read, i).text, setting_get(&s, i).text) == 0;
        cr_expect(same == setting_is_of(i, kind), "%s: %s", name, setting_name(i));
    }
    cr_expect_str_eq(sb_description_label(back.model, 1), "dog");
    cr_expect(!sb_description_label(back.model, 2));
    sb_description_free(d.model);
    metadata_free(&back);
}

CPU_TEST(settings, all_settings_of_a_kind_survive_a_checkpoints_description)
{
    expect_settings_survive("seq2seq");
    expect_settings_survive("language_model");
    expect_settings_survive("classifier");
}

CPU_TEST(settings, numbers_are_written_with_the_fewest_digits_that_give_the_same_bits)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.1, "0.1"}, {0.98, "0.98"}, {1, "1"}, {1e-12, "1e-12"}, {1 / 3., "0.3333333333333333"},
        {0, "0"}};
    const int rate = setting_find("lowest-rate");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct settings s = settings_default();
        s.trainer.optimiser.schedule.lowest = cases[i].value;
        cr_expect_str_eq(setting_get(&s, rate).text, cases[i].text);
    }
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int i = 0; i < 1000; i++) {
        struct settings s = settings_default(), back = s;
        s.trainer.optimiser.schedule.lowest = 1e6 * pow(sb_random_uniform(&random), 9);
        MUST(setting_set(&back, rate, setting_get(&s, rate).text));
        cr_expect(back.trainer.optimiser.schedule.lowest == s.trainer.optimiser.schedule.lowest);
    }
}

CPU_TEST(settings, wrong_values_are_refused_with_the_reason)
{
    static const char *const cases[][3] = {
        {"width", "0", "--width: \"0\" is not a whole number in 1..1048576"},
        {"width", "12.5", "--width: \"12.5\" is not a whole number in"},
        {"width", "99999999999999999999", "--width: \"99999999999999999999\" is not"},
        {"width", "", "--width: \"\" is not a whole number"},
        {"encoder-layers", "1001", "--encoder-layers: \"1001\" is not a whole number in 1..1000"},
        {"dropout", "1", "--dropout: \"1\" is not a number in 0..0.999"},
        {"dropout", "nan", "--dropout: \"nan\" is not a number"},
        {"learning-rate", "-1", "--learning-rate: \"-1\" is not a number in 0..1000000"},
        {"clip", "inf", "--clip: \"inf\" is not a number"},
        {"clip", "1x", "--clip: \"1x\" is not a number"},
        {"norm", "per", "--norm: \"per\" is none of pre, post"},
        {"tie-embeddings", "yes", "--tie-embeddings: \"yes\" is neither true nor false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct settings s = settings_default(), before = s;
        cr_expect(!setting_set(&s, setting_find(cases[i][0]), cases[i][1]));
        EXPECT_ERROR(cases[i][2]);
        cr_expect(memcmp(&s, &before, sizeof s) == 0, "%s changes", cases[i][0]);
    }
}
