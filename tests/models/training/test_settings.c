#include "models/training/checkpoint_json.h"
#include "tests/support/small_run.h"
#include <stdio.h>

/* A text for the setting that is not its default, as exact as its type can be. */
static const char *other(const struct settings *usual, const struct setting *setting)
{
    static char text[40];
    int choice;
    switch (setting->type) {
    case SETTING_COUNT:
        snprintf(text, sizeof text, "%.0f",
                 setting->most > setting->least + 7 ? setting->least + 7 : setting->most);
        return text;
    case SETTING_NUMBER:
        snprintf(text, sizeof text, "%.17g", setting->least + (setting->most < 1 ? 1 / 3. : 0.7));
        return text;
    case SETTING_CHOICE:
        memcpy(&choice, (const char *)usual + setting->offset, sizeof choice);
        return setting->choices[choice == 0 ? 1 : 0];
    case SETTING_FLAG:
        return "true";
    }
    return NULL;
}

CLAIM(settings, each_one_reads_what_it_writes)
{
    const struct settings usual = settings_default();
    int count = 0;
    for (; setting_at(count); count++) {
        const struct setting *setting = setting_at(count);
        struct settings s = usual, back = usual;
        cr_assert(setting_set(&s, setting, other(&usual, setting)), "%s", sb_error());
        struct setting_text value = setting_get(&s, setting);
        cr_expect(strcmp(value.text, setting_get(&usual, setting).text) != 0, "%s stays",
                  setting->name);
        cr_assert(setting_set(&back, setting, value.text), "%s", sb_error());
        cr_expect(memcmp(&s, &back, sizeof s) == 0, "%s, written as %s", setting->name, value.text);
        cr_expect(setting_find(setting->name) == setting, "%s is there twice", setting->name);
    }
    cr_expect(count > 40 && !setting_find("no-such-setting"));
}

/* All of them at once through a description; other settings must not change on the way. */
CLAIM(settings, all_of_them_survive_a_checkpoints_description)
{
    struct settings s = settings_default();
    for (int i = 0; setting_at(i); i++)
        cr_assert(setting_set(&s, setting_at(i), other(&s, setting_at(i))), "%s", sb_error());
    const char *text = "a b";
    sb_vocabulary *v = sb_vocabulary_new(&text, 1, NULL);
    struct description d = {
        .settings = s, .task = (char *)(uintptr_t) "", .source = v, .target = v};
    char *json = description_write(&d);
    struct description back;
    cr_assert(json && description_read(json, &back), "%s", sb_error());
    for (int i = 0; setting_at(i); i++)
        cr_expect_str_eq(setting_get(&back.settings, setting_at(i)).text,
                         setting_get(&s, setting_at(i)).text, "%s", setting_at(i)->name);
    sb_free(json);
    description_free(&back);
    sb_vocabulary_release(v);
}

CLAIM(settings, numbers_are_written_with_as_few_digits_as_give_the_same_bits)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.1, "0.1"}, {0.98, "0.98"}, {1, "1"}, {1e-12, "1e-12"}, {1 / 3., "0.3333333333333333"},
        {0, "0"}};
    const struct setting *rate = setting_find("lowest-rate");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct settings s = settings_default();
        s.trainer.optimiser.schedule.lowest = cases[i].value;
        cr_expect_str_eq(setting_get(&s, rate).text, cases[i].text);
    }
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int i = 0; i < 1000; i++) {
        struct settings s = settings_default(), back = s;
        s.trainer.optimiser.schedule.lowest = 1e6 * pow(sb_random_uniform(&random), 9);
        cr_assert(setting_set(&back, rate, setting_get(&s, rate).text), "%s", sb_error());
        cr_expect(back.trainer.optimiser.schedule.lowest == s.trainer.optimiser.schedule.lowest);
    }
}

CLAIM(settings, what_does_not_fit_is_refused_with_the_reason)
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
