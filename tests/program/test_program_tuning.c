/* Parameters that are frozen or grouped by options of softback train. */
#include "tests/support/program.h"
#include <stdio.h>

#define TRAIN                                                                                      \
    "train --data pairs.tsv --log m.jsonl --width 16 --heads 2 --encoder-layers 1 "                \
    "--decoder-layers 1 --batch-pairs 4 --average 0.9 --optimiser adamw --weight-decay 0.2 "       \
    "--schedule restarts --cycle 8 --cycle-growth 2 --learning-rate 0.01 --warmup 5 "              \
    "--evaluate-pairs 4 --evaluate-every 7 --threads 1 --out m "

#define GROUPS                                                                                     \
    "--freeze 'encoder.layers.*' --group '*.bias:rate=0.5,decay=0.1' --freeze '*.norm*' "          \
    "--group 'decoder.*:rate=2' "

/* Whether a tensor of two files has the same bits. */
static bool same_tensor(const char *a, const char *b, const char *name)
{
    sb_safetensors *file[2];
    sb_tensor *t[2];
    const char *const paths[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        file[i] = sb_safetensors_open(test_temporary(paths[i]));
        t[i] = sb_safetensors_tensor(file[i], name);
        MUST(t[i]);
    }
    const bool same = test_same_bits(t[0], t[1]);
    for (int i = 0; i < 2; i++) {
        sb_tensor_release(t[i]);
        sb_safetensors_close(file[i]);
    }
    return same;
}

CPU_TEST(program_tuning, a_resumed_run_with_frozen_and_grouped_parameters_ends_with_the_same_bytes)
{
    program_write_pairs();
    struct outcome o = program_run(TRAIN GROUPS "--steps 42");
    cr_assert(o.code == 0 && strstr(o.out, " are trained\n"), "%s%s", o.out, o.err);
    rename_run("whole-");
    run_well(TRAIN GROUPS "--steps 21");
    o = program_run(TRAIN GROUPS "--steps 42 --resume");
    cr_assert(o.code == 0 && strstr(o.out, "resumed    after step 21"), "%s%s", o.out, o.err);
    program_expect_same_run("whole-");
}

TEST(program_tuning, frozen_parameters_of_a_file_are_those_that_were_drawn, KNOWN_KERNELS)
{
    static const char frozen[] = "encoder.layers.0.self_attention.query.weight",
                      other[] = "decoder.layers.0.self_attention.query.weight";
    program_write_pairs();
    run_well(TRAIN GROUPS "--steps 7");
    rename_run("short-");
    run_well(TRAIN GROUPS "--steps 35");
    cr_expect(same_tensor("m.state", "short-m.state", frozen));
    cr_expect(same_tensor("m", "short-m", frozen));
    cr_expect(!same_tensor("m.state", "short-m.state", other));
}

CPU_TEST(program_tuning, the_state_has_moments_of_trained_parameters_alone)
{
    program_write_pairs();
    run_well(TRAIN "--freeze 'encoder.*,decoder.*' --steps 7");
    sb_safetensors *file = KEPT(sb_safetensors_open(test_temporary("m.state")));
    int trained = 0, moments = 0;
    for (int i = 0; i < sb_safetensors_count(file); i++) {
        const char *name = sb_safetensors_name(file, i);
        char moment[300];
        snprintf(moment, sizeof moment, "optimiser.moment.1.%s", name);
        moments += strncmp(name, "optimiser.moment.1.", 19) == 0;
        if (strncmp(name, "head", 4) != 0 && strncmp(name, "output", 6) != 0)
            continue;
        const int at = sb_safetensors_find(file, moment);
        cr_assert(at >= 0, "%s is not there", moment);
        cr_expect(sb_safetensors_shape(file, at)[0] == sb_safetensors_shape(file, i)[0]);
        trained++;
    }
    cr_expect(trained > 0 && moments == trained, "%d moments of %d parameters", moments, trained);
}

CPU_TEST(program_tuning, what_is_frozen_cannot_change_with_resume)
{
    program_write_pairs();
    run_well(TRAIN "--freeze 'encoder.*' --steps 7");
    struct outcome o = program_run(TRAIN "--freeze 'decoder.*' --steps 14 --resume");
    cr_expect(o.code == 1 &&
                  strstr(o.err, "--freeze is decoder.*, but m was started with encoder.*"),
              "%s", o.err);
    o = run_well(TRAIN "--steps 14 --resume");
}

/* ---- another model's weights, and adapters ---- */

#define FROM                                                                                       \
    "train --data pairs.tsv --log m.jsonl --from base --batch-pairs 4 --average 0.9 "              \
    "--optimiser adamw --weight-decay 0.2 --learning-rate 0.01 --warmup 5 --evaluate-pairs 4 "     \
    "--evaluate-every 7 --threads 1 --schedule constant --out m "

/* A model "base" of a few steps. */
static void make_base(void)
{
    program_write_pairs();
    run_well(TRAIN "--steps 14");
    rename_run("base-");
    cr_assert(rename(test_temporary("base-m"), test_temporary("base")) == 0);
}

TEST(program_tuning, a_run_begins_with_the_weights_of_another_model)
{
    make_base();
    struct outcome o = program_run(FROM "--freeze 'encoder.*' --steps 7");
    cr_assert(o.code == 0 && strstr(o.out, "from       base, fingerprint "), "%s%s", o.out, o.err);
    cr_assert(strstr(o.out, "width 16, 2 heads"), "%s", o.out);
    cr_expect(same_tensor("m", "base", "encoder.layers.0.self_attention.query.weight"));
    cr_expect(!same_tensor("m", "base", "decoder.layers.0.self_attention.query.weight"));
}

CPU_TEST(program_tuning, symbols_that_the_other_model_does_not_know_are_counted)
{
    static const char other[] = "31\txx\n32\t23\n41\t14\n42\t2y\n";
    make_base();
    program_write("other.tsv", other, sizeof other - 1);
    struct outcome o = program_run("train --data other.tsv --valid other.tsv --from base --steps 3 "
                                   "--out x");
    cr_expect(o.code == 0 && strstr(o.out, "warning    3 symbols of the data (3 of targets) are "
                                           "unknown to its vocabularies"),
              "%s%s", o.out, o.err);
}

/* The lines that a command prints for the numbers of pairs.tsv. */
static char *translated(const char *model)
{
    struct outcome o = run_well("translate %s 31 42 53 64 75 86 97 18 29", model);
    return o.out;
}

TEST(program_tuning, adapters_are_trained_resumed_run_and_merged, KNOWN_KERNELS)
{
    make_base();
    program_copy("base", "kept");
    struct outcome o = run_well(FROM "--lora 4 --lora-on '*.query,*.value,*.up' --steps 42");
    rename_run("whole-");
    run_well(FROM "--lora 4 --lora-on '*.query,*.value,*.up' --steps 21");
    o = program_run(FROM "--lora 4 --lora-on '*.query,*.value,*.up' --steps 42 --resume");
    cr_assert(o.code == 0 && strstr(o.out, "resumed    after step 21"), "%s%s", o.out, o.err);
    cr_expect(program_same("m.state", "whole-m.state") && program_same("m.jsonl", "whole-m.jsonl"));
    cr_expect(program_same("base", "kept"));
    cr_expect(same_tensor("m.state", "base", "encoder.layers.0.self_attention.query.weight"));
    cr_expect(same_tensor("m.state", "base", "decoder.layers.0.feed_forward.down.weight"));
    o = program_run("merge base m --out joined");
    cr_assert(o.code == 0 && strstr(o.out, "joined is base with its adapters"), "%s", o.err);
    cr_expect(!same_tensor("joined", "base", "encoder.layers.0.self_attention.query.weight"));
    cr_expect(same_tensor("joined", "base", "encoder.layers.0.self_attention.key.weight"));
    char *apart = strdup(translated("m --base base")), *joined = strdup(translated("joined")),
         *plain = strdup(translated("base"));
    cr_expect_str_eq(apart, joined);
    cr_expect_str_neq(apart, plain);
    free(apart);
    free(joined);
    free(plain);
}

CPU_TEST(program_tuning, a_report_of_a_folder_leaves_out_adapters)
{
    make_base();
    cr_assert(rename(test_temporary("base-m.jsonl"), test_temporary("base.jsonl")) == 0);
    run_well(FROM "--lora 2 --steps 7");
    struct outcome o = program_run("report . --out page.html");
    cr_expect(o.code == 0 && strstr(o.err, "softback report: skipped ./m: it has LoRA adapters "
                                           "alone; softback merge joins them with their model\n"),
              "%d %s", o.code, o.err);
    char *page = program_read("page.html", NULL);
    cr_expect(page && strstr(page, "<h1>1 runs in .</h1>"));
}
