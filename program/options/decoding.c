#include "program/options/options.h"

static const char *const formats[] = {
    [SB_WEIGHTS_AS_STORED] = "stored", [SB_WEIGHTS_INT8] = "int8", NULL};

#define ROW(member) FIELD(sb_decoding_options, member)

const struct field weights_fields[] = {
    {"weights", ROW(weights),
     "int8: weights and their inputs rounded to 8 bits, faster on the CPU; stored: unchanged "
     "[stored]",
     .choices = formats, .argument = "FORMAT"},
    {0}};

const struct field sampling_fields[] = {
    {"temperature", ROW(temperature),
     "divide the logits by X: below 1 sharpens the distribution [1]", 1e-6, 1e6,
     .kind = OF_SAMPLING},
    {"top-k", ROW(top_k), "sample from the N most probable symbols", 1, 1 << 24,
     .kind = OF_SAMPLING},
    {"top-p", ROW(top_p),
     "nucleus sampling: from the most probable symbols with total probability X", 1e-9, 1,
     .kind = OF_SAMPLING},
    {"seed", ROW(seed), "random seed; equal seeds give equal texts [0]", 0, MOST_SEED,
     .kind = OF_SAMPLING},
    {0}};

const struct field decoding_fields[] = {
    {HEADING("Decoding:")},
    {"beam", ROW(beam_width), "width of beam search [default 1: greedy]", 1, 1000},
    {"length-penalty", ROW(length_penalty),
     "length penalty of beam search; higher favours longer outputs [1 for words and byte pairs, "
     "else 0]",
     0, 100, .zero = ZERO_IS_DEFAULT},
    {"longest-output", ROW(longest), "maximum output length in symbols [50 + 2 x source length]", 1,
     1 << 20},
    {.rows = weights_fields},
    {"batch", ROW(batch_pairs), "texts decoded together; results do not depend on it [64]", 1,
     1 << 16},
    {.rows = machine_fields},
    {0}};
