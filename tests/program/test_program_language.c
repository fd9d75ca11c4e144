/* Language models: training, resuming, evaluating, and what they write. */
#include "tests/support/program.h"
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define SIZES "--width 16 --heads 2 --decoder-layers 1 --context 16 --batch-pairs 8 "
#define TRAIN                                                                                      \
    "train --model language_model --data text.txt --log m.jsonl " SIZES                            \
    "--learning-rate 0.01 --warmup 5 --average 0.9 --evaluate-every 10 --out m "

/* A text of sentences that can be guessed. */
static void write_lines(const char *file, int lines)
{
    static const char *const who[] = {"the cat", "a dog", "one bird"}, *const does[] = {
                                                                           "sees", "eats", "likes"};
    char text[20000] = "";
    for (int i = 0; i < lines; i++) {
        strcat(strcat(text, who[i * 7 % 3]), " ");
        strcat(strcat(strcat(text, does[i * 5 / 3 % 3]), " "), who[(i / 2) % 3]);
        strcat(text, ".\n");
    }
    write_text(file, text);
}

static void make_model(const char *options)
{
    write_lines("text.txt", 300);
    run_well(TRAIN "%s", options);
}

static double evaluated(const char *arguments, const char *name)
{
    struct outcome o = run_well("evaluate m --json %s", arguments);
    json_t *json = json_loads(o.out, 0, NULL);
    cr_assert(json, "%s", o.out);
    const double x = json_number_value(json_object_get(json, name));
    json_decref(json);
    return x;
}

CPU_TEST(program_language, a_text_is_learned_and_described)
{
    write_lines("text.txt", 300);
    struct outcome o = run_well(TRAIN "--steps 60");
    EXPECT_TEXTS(o.out, "text.txt   6,", " in 1 document; ", "characters, ",
                 "windows of up to 16 symbols", "a language model of 1 layer, width 16",
                 "best       at step 60: held-out loss ", " bits a byte");
    expect_text(o.err, "  perplexity ");
    o = run_well("info m");
    expect_text(o.out, "kind    language_model");
    expect_text(o.out, "context            16");
    expect_text(o.out, "running-text       true");
}

CPU_TEST(program_language, it_evaluates_as_training_did)
{
    make_model("--steps 40");
    struct outcome o = run_well("evaluate m --data text.txt");
    expect_text(o.out, " nats a symbol, perplexity ");
    expect_text(o.out, "bits a byte ");
    const double loss = evaluated("--data text.txt", "loss");
    cr_expect(loss > 0.2 && loss < 2.5, "%g", loss);
    const double bits = evaluated("--data text.txt", "bits_per_byte");
    const double symbols = evaluated("--data text.txt", "symbols"),
                 bytes = evaluated("--data text.txt", "bytes");
    cr_expect(fabs(bits - loss * symbols / bytes / log(2)) < 1e-6);
    write_text("other.txt", "the cat \xC3\xA9 sees\n");
    cr_expect(evaluated("--data other.txt", "unknown") == 1);
}

CPU_TEST(program_language, several_files_paragraphs_lines_bytes_and_pairs_of_bytes)
{
    write_lines("text.txt", 200);
    write_text("more.txt", "a dog\n\na cat\nsees\n\n\none bird\n");
    struct outcome o = run_well(TRAIN "--data more.txt --units bytes --steps 10");
    expect_text(o.out, " of 2 files in 2 documents; ");
    expect_text(o.out, "bytes, 256 different symbols");
    o = run_well("train --model language_model --data more.txt --valid text.txt --documents "
                 "paragraphs --out p --steps 210 " SIZES);
    expect_text(o.out, " in 3 documents; ");
    expect_text(o.out, " to evaluate on");
    o = run_well("train --model language_model --data text.txt --documents lines --out l "
                 "--units bpe --vocabulary 60 --steps 210 " SIZES);
    expect_text(o.out, "bpe (byte-pair merges), 4");
    o = run_well("info l");
    expect_text(o.out, "running-text       false");
}

static void for_each_file(int (*act)(const char *path))
{
    static const char *const files[] = {"m", "m.state", "m.jsonl"};
    for (int i = 0; i < 3; i++)
        cr_assert(act(test_temporary(files[i])) == 0, "no %s", files[i]);
}

CPU_TEST(program_language, an_interrupted_run_ends_with_the_same_bytes)
{
    write_lines("text.txt", 300);
    run_well(TRAIN "--dropout 0.2 --steps 200");
    program_copy("m", "whole-m");
    program_copy("m.state", "whole-m.state");
    program_copy("m.jsonl", "whole-m.jsonl");
    for_each_file(remove);
    pid_t process = program_start(TRAIN "--dropout 0.2 --steps 200");
    const struct timespec moment = {0, 400000000};
    nanosleep(&moment, NULL);
    kill(process, SIGINT);
    program_wait(process);
    run_well(TRAIN "--dropout 0.2 --steps 200 --resume");
    program_expect_same_run("whole-");
}

CPU_TEST(program_language, a_text_is_the_same_for_a_seed_on_any_threads_and_in_any_batch)
{
    make_model("--steps 60");
    struct outcome one =
        run_well("generate m \"the \" --seed 7 --count 7 --length 50 --batch 1 --threads 1");
    struct outcome many =
        run_well("generate m \"the \" --seed 7 --count 7 --length 50 --batch 7 --threads 4");
    cr_expect_str_eq(one.out, many.out);
    struct outcome other = run_well("generate m \"the \" --seed 8 --count 7 --length 50");
    cr_expect(strcmp(one.out, other.out) != 0);
    struct outcome first = run_well("generate m \"the \" --seed 7 --length 50");
    const char *text = strchr(one.out, '\n') + 1; /* behind --- 1 --- */
    cr_expect(strncmp(first.out, text, strlen(first.out)) == 0, "%s", first.out);
    cr_expect(strncmp(text, "the ", 4) == 0, "the prompt is shown");
}

CPU_TEST(program_language, greedy_and_narrow_sampling_agree)
{
    make_model("--steps 60");
    struct outcome greedy = run_well("generate m \"a dog \" --greedy --length 40");
    struct outcome narrow = run_well("generate m \"a dog \" --top-k 1 --length 40");
    cr_expect_str_eq(greedy.out, narrow.out);
    narrow = run_well("generate m \"a dog \" --top-p 0.000001 --length 40 --seed 3");
    cr_expect_str_eq(greedy.out, narrow.out);
    narrow = run_well("generate m \"a dog \" --temperature 0.0001 --length 40");
    cr_expect_str_eq(greedy.out, narrow.out);
}

CPU_TEST(program_language, it_says_what_it_forgets_and_does_not_know)
{
    make_model("--steps 20");
    struct outcome o = run_well("generate m \"the \xE2\x82\xAC\" --length 40");
    expect_text(o.err, "is unknown to the model");
    expect_text(o.err, "the text is longer than the context of 16 symbols");
    o = run_well("generate m \"the\" --length 5");
    cr_expect_str_eq(o.err, "");
    o = run_well("generate m --length 9"); /* from the start of a line */
    cr_expect(strlen(o.out) >= 2, "%s", o.out);
}

CPU_TEST(program_language, learned_positions_end_a_text_without_a_context)
{
    make_model("--steps 6 --positions learned --positions-longest 24");
    struct outcome o = run_well("generate m \"the\" --length 60");
    expect_text(o.err, "longer than the context of 16");
    write_lines("text.txt", 30);
    run_well("train --model language_model --data text.txt --documents lines --out l --steps "
             "210 --width 16 --heads 2 --decoder-layers 1 --context 0 --positions "
             "learned --positions-longest 40");
    o = run_well("generate l \"the\" --length 60 --greedy");
    cr_expect(strlen(o.out) < 50, "%s", o.out);
}

CPU_TEST(program_language, a_task_needs_no_data)
{
    struct outcome o = run_well(
        "train --model language_model --task copy --max-length 3 --steps 20 --out m " SIZES);
    expect_text(o.out, "of copy in 20,000 documents");
    o = run_well("evaluate m --task copy --count 20");
    expect_text(o.out, "exact match     ");
    o = run_well("generate m \"4 7 = \" --length 5");
    expect_text(o.out, "4 7 = ");
}

CPU_TEST(program_language, dropout_is_set_apart_and_a_zero_that_is_given_is_zero)
{
    make_model("--steps 10 --dropout 0.3 --attention-dropout 0 --feed-forward-dropout 0.1");
    struct outcome o = run_well("info m");
    expect_text(o.out, "attention-dropout  -0\n");
    expect_text(o.out, "feed-forward-dropout 0.1\n");
    o = program_run(TRAIN "--steps 20 --dropout 0.3 --attention-dropout 0.3 "
                          "--feed-forward-dropout 0.1 --resume");
    cr_expect(o.code == 1 && strstr(o.err, "--attention-dropout is 0.3, but m was started with -0"),
              "%s", o.err);
}

/* As small as Llama's or T5's are large. */
CPU_TEST(program_language, options_of_published_models_are_trained_saved_and_resumed)
{
    static const char *const options[] = {
        "--positions rotary --rotary-base 500 --rotary-scaling 2 --rotary-original 8 "
        "--rotary-low-factor 0.5 --rotary-high-factor 2 --head-size 6 --gated --biases "
        "none --norm-kind rms --norm-epsilon 0.0001 --embedding-scale 1 --key-heads 1",
        "--positions buckets --position-buckets 8 --position-distance 20 --score-scale 1 --biases "
        "qkv",
        "--positions learned --positions-longest 40 --position-offset 2 --position-scale 1 "
        "--segments 2 "
        "--embedding-norm --no-output-bias --tie-embeddings",
        "--positions halves --norm post", "--norm sandwich --qk-norm"};
    write_lines("text.txt", 300);
    for (int i = 0; i < 5; i++) {
        struct outcome o = program_run(TRAIN "--steps 10 %s --out m%d", options[i], i);
        cr_assert(o.code == 0, "%s: %s", options[i], o.err);
        o = program_run(TRAIN "--steps 14 %s --out m%d --resume", options[i], i);
        cr_expect(o.code == 0 && strstr(o.out, "4 more steps"), "%s: %s", options[i], o.err);
        o = program_run("generate m%d a --seed 3 --length 20", i);
        cr_expect(o.code == 0, "%s: %s", options[i], o.err);
        o = program_run("info m%d", i);
        cr_expect(o.code == 0 && (i > 0 || strstr(o.out, "head-size          6")), "%s", o.out);
    }
    struct outcome o = program_run(TRAIN "--steps 20 --resume --out m0 --rotary-base 600");
    cr_expect(o.code == 1 && strstr(o.err, "--rotary-base is 6e+02, but m0 was started with 5e+02"),
              "%s", o.err);
}

CPU_TEST(program_language, runs_are_averaged)
{
    make_model("--steps 20");
    program_copy("m", "first");
    cr_assert(remove(test_temporary("m")) == 0 && remove(test_temporary("m.state")) == 0);
    run_well(TRAIN "--steps 30");
    struct outcome o = run_well("average --out mean first m");
    expect_text(o.out, "mean is the mean of 2 models");
    run_well("generate mean the --length 5");
}

CPU_TEST(program_language, its_attention_is_drawn)
{
    make_model("--steps 20 --heads 2");
    struct outcome o = run_well("attend m \"the cat\" --numbers");
    expect_text(o.out, "the cat\n");
    expect_text(o.out, "t 1.00 0.00"); /* the first symbol sees itself */
    expect_text(o.out, "Decoder attention, layer 1 of 1, mean over 2 heads.");
}
