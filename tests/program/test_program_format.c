/* Formats of files: the first one that is kept is read, and older files are refused with the
   reason. */
#include "tests/support/program.h"
#include <stdio.h>

/* The stored files were written with these options and --report:
   train --task copy --min-length 1 --max-length 4 --width 8 --heads 2 --feed-forward 8 --gated
   --encoder-layers 1 --decoder-layers 1 --average 0.9 --batch-pairs 4 --warmup 2 --steps 20
   --evaluate-every 10 --evaluate-pairs 8 --threads 1 --out first_format.safetensors */
static const char *const files[] = {"m.safetensors", "m.state.safetensors", "m.jsonl"};

#define RESUME "train --task copy --resume --threads 1 --out m.safetensors --steps 24"

static void take_stored(void)
{
    for (int i = 0; i < 3; i++) {
        char command[2000];
        snprintf(command, sizeof command, "cp '%s/golden/first_format%s' '%s'", TEST_FOLDER,
                 files[i] + 1, test_temporary(files[i]));
        cr_assert(system(command) == 0);
    }
}

/* Reads a number that follows a text. */
static double number_after(const char *text, const char *before)
{
    const char *at = text ? strstr(text, before) : NULL;
    return at ? strtod(at + strlen(before), NULL) : NAN;
}

CPU_TEST(program_format, files_of_the_first_kept_format_are_read_and_continued)
{
    take_stored();
    struct outcome o = run_well("translate m.safetensors '1 2'");
    o = run_well("report m.safetensors --input '1 2'");
    char *page = program_read("m.html", NULL);
    cr_expect(page && strstr(page, "<h2>Saturated rows</h2>") && strstr(page, "training took"));
    o = program_run(RESUME);
    cr_expect(o.code == 0 && strstr(o.out, "resumed    after step 20\n"), "%s%s", o.out, o.err);
    char *log = program_read("m.jsonl", NULL);
    cr_assert(log && strstr(log, "{\"step\":10,\"loss\":"), "%s", log);
    cr_expect(fabs(number_after(log, "{\"step\":20,\"held_out_loss\":") - 2.47837) < 1e-12, "%s",
              log);
    cr_expect(fabs(number_after(log, "{\"step\":24,\"held_out_loss\":") - 2.472) < 1e-3, "%s", log);
}

/* Changes the last character of a text that a file has. */
static void change(const char *file, const char *text, char to)
{
    size_t size = 0;
    char *bytes = program_read(file, &size), *at = memmem(bytes, size, text, strlen(text));
    cr_assert(at, "%s is not in %s", text, file);
    at[strlen(text) - 1] = to;
    program_write(file, bytes, size);
}

/* Each of the files is made an older one, which the command refuses and leaves as it is. */
static void expect_refused(int i, const char *command, const char *message)
{
    take_stored();
    change(files[i], i < 2 ? "{\\\"format\\\":3" : "\"format\":2", i < 2 ? '2' : '1');
    for (int k = 0; k < 3; k++)
        program_copy(files[k], k == 0 ? "model" : k == 1 ? "state" : "log");
    struct outcome o = program_run("%s", command);
    cr_expect(o.code == 1 && strstr(o.err, message), "%s: exit code %d: %s", command, o.code,
              o.err);
    for (int k = 0; k < 3; k++)
        cr_expect(program_same(files[k], k == 0   ? "model"
                                         : k == 1 ? "state"
                                                  : "log"),
                  "%s changes %s", command, files[k]);
}

CPU_TEST(program_format, an_older_model_is_refused)
{
    static const char message[] = "m.safetensors: checkpoint: its format is 2, expected 3; train "
                                  "the model anew with this version";
    expect_refused(0, "translate m.safetensors '1 2'", message);
    expect_refused(0, "info m.safetensors", message);
    expect_refused(0, "report m.safetensors", message);
    expect_refused(0, "average --out mean m.safetensors m.safetensors", message);
    expect_refused(0, "train --task copy --from m.safetensors --out n", message);
    expect_refused(0, RESUME, message);
    take_stored();
    struct outcome o =
        program_run("train --task copy --from m.safetensors --lora 1 --steps 2 --out a");
    cr_assert(o.code == 0, "%s", o.err);
    expect_refused(0, "translate a '1 2' --base m.safetensors", message);
}

CPU_TEST(program_format, an_older_state_is_refused)
{
    expect_refused(1, RESUME,
                   "m.state.safetensors: checkpoint: its format is 2, expected 3; train the model "
                   "anew with this version");
}

CPU_TEST(program_format, an_older_log_is_refused)
{
    expect_refused(2, "report m.safetensors --input '1 2'",
                   "the log m.jsonl: its format is 1, expected 2; train the model anew with this "
                   "version");
    expect_refused(2, RESUME,
                   "--log (by default) \"m.jsonl\": its format is 1, expected 2; move it away and "
                   "train the model anew with this version");
}
