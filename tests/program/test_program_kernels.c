/* SOFTBACK_KERNELS: the program with plain kernels. */
#include "tests/support/program.h"
#include <jansson.h>

/* The loss of each step in a log; returns how many. */
static int losses(const char *file, double loss[], int most)
{
    char *text = program_read(file, NULL);
    int n = 0;
    for (char *line = strtok(text, "\n"); line && n < most; line = strtok(NULL, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        if (json_object_get(json, "loss"))
            loss[n++] = json_number_value(json_object_get(json, "loss"));
        json_decref(json);
    }
    free(text);
    return n;
}

static int train_copy(const char *run, double loss[], int most)
{
    struct outcome o = program_run("train --task copy --max-length 4 --width 16 --heads 2 "
                                   "--encoder-layers 1 --decoder-layers 1 --batch-pairs 8 "
                                   "--steps 30 --threads 1 --out %s.safetensors --log %s.jsonl",
                                   run, run);
    char log[32];
    cr_assert(o.code == 0, "%s", o.err);
    snprintf(log, sizeof log, "%s.jsonl", run);
    return losses(log, loss, most);
}

/* In float32, where rounding errors of a step carry over to the next. */
CPU_TEST(program_kernels, plain_kernels_train_copy_to_the_same_loss)
{
    double fast[64], plain[64];
    const int n = train_copy("fast", fast, 64);
    setenv("SOFTBACK_KERNELS", "plain", 1);
    cr_assert(n > 0 && train_copy("plain", plain, 64) == n, "%d losses", n);
    unsetenv("SOFTBACK_KERNELS");
    cr_expect(fast[n - 1] < fast[0], "it does not learn");
    for (int i = 0; i < n; i++)
        cr_expect(fabs(fast[i] - plain[i]) <= 1e-4 * fast[i], "loss %d: %.9g and %.9g", i, fast[i],
                  plain[i]);
}

CPU_TEST(program_kernels, the_environment_chooses_kernels_by_name)
{
    setenv("SOFTBACK_KERNELS", "plain", 1);
    struct outcome o = program_run("info --devices");
    cr_expect(o.code == 0 && strstr(o.out, "plain kernels"), "%s%s", o.out, o.err);
    setenv("SOFTBACK_KERNELS", "plian", 1);
    o = program_run("gradcheck softmax");
    cr_expect(o.code == 1 && strstr(o.out, "SOFTBACK_KERNELS is \"plian\"; here it may be plain"),
              "%s%s", o.out, o.err);
    unsetenv("SOFTBACK_KERNELS");
}

/* The batch lies on the device. */
TEST(program_kernels, a_device_run_saves_the_batch_whose_loss_is_not_finite)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    static const char *const kinds[] = {"seq2seq --task copy --encoder-layers 1 --decoder-layers 1",
                                        "language_model --task copy --decoder-layers 1",
                                        "classifier --task pattern --encoder-layers 1"};
    device_needed();
    for (int i = 0; i < 3; i++) {
        struct outcome o = program_run(
            "train --model %s --width 8 --heads 2 --batch-pairs 4 --steps 40 --optimiser sgd "
            "--learning-rate 1e6 --clip 0 --schedule constant --warmup 0 --device cuda --out m%d",
            kinds[i], i);
        cr_expect(o.code == 1 && strstr(o.err, "Its batch is in m"), "%s: %s", kinds[i], o.err);
    }
}

/* The emulated device shows two, of which one is chosen by its number. */
TEST(program_kernels, the_device_is_chosen_by_its_number)
{
    device_needed();
    if (strcmp(getenv("SOFTBACK_CUDA"), "emulated") != 0)
        cr_skip_test("a machine may have one device only");
    setenv("SOFTBACK_EMULATOR_DEVICES", "2", 1);
    struct outcome o = program_run("gradcheck softmax --device cuda:1");
    cr_expect(o.code == 0 && strstr(o.out, "cuda"), "%s%s", o.out, o.err);
    o = program_run("gradcheck softmax --device cuda:2");
    cr_expect(o.code == 1 && strstr(o.err, "cuda: there is no device 2; the driver shows 2, from 0 "
                                           "to 1"),
              "%s%s", o.out, o.err);
    o = program_run("info --devices");
    cr_expect(o.code == 0 && strstr(o.out, ", device 0 of 0 to 1"), "%s%s", o.out, o.err);
    unsetenv("SOFTBACK_EMULATOR_DEVICES");
}
