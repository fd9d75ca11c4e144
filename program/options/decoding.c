#include "program/options/decoding.h"

void option_base(struct options *o, const char **base)
{
    option_text(o, "base", "FILE", base,
                "for a file of LoRA adapters: the model that they are for");
}

void option_weights(struct options *o, sb_decoding_options *d)
{
    static const char *const formats[] = {
        [SB_WEIGHTS_AS_STORED] = "stored", [SB_WEIGHTS_INT8] = "int8", NULL};
    option_choice(o, "weights", &d->weights, formats,
                  "int8: weights and their inputs rounded to 8 bits, faster on the CPU; stored: as "
                  "in the file [stored]")
        ->argument = "FORMAT";
}

void options_of_sampling(struct options *o, sb_decoding_options *d, unsigned kind)
{
    o->kind = kind;
    option_number(o, "temperature", &d->temperature, 1e-6, 1e6,
                  "divide the logits by X: below 1 sharpens the distribution [1]");
    option_count(o, "top-k", &d->top_k, 1, 1 << 24, "sample from the N most probable symbols");
    option_number(o, "top-p", &d->top_p, 1e-9, 1,
                  "nucleus sampling: from the most probable symbols with total probability X");
    option_seed(o, "seed", &d->seed, "random seed; equal seeds give equal texts [0]");
    o->kind = 0;
}

void options_of_decoding(struct options *o, sb_decoding_options *d)
{
    option_group(o, "Decoding:");
    option_count(o, "beam", &d->beam_width, 1, 1000, "width of beam search [default 1: greedy]");
    option_number(o, "length-penalty", &d->length_penalty, 0, 100,
                  "length penalty of beam search; higher favours longer outputs [1 for words and "
                  "byte pairs, else 0]")
        ->field.zero = ZERO_IS_DEFAULT;
    option_count(o, "longest-output", &d->longest, 1, 1 << 20,
                 "maximum output length in symbols [50 + 2 x source length]");
    option_weights(o, d);
    option_count(o, "batch", &d->batch_pairs, 1, 1 << 16,
                 "texts decoded together; results do not depend on it [64]");
    options_of_machine(o);
}
