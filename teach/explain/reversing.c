#include "teach/explain/reversing.h"
#include "autograd/tape.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/optimiser.h"
#include <math.h>

enum { B = 32, L = REVERSING_LENGTH, V = REVERSING_SYMBOLS, C = 32, H = 2, D = C / H };

static const sb_transformer_options sizes = {.width = C,
                                             .heads = H,
                                             .key_heads = H,
                                             .feed_forward = 2 * C,
                                             .activation = SB_ACTIVATION_RELU,
                                             .positions = SB_POSITIONS_LEARNED,
                                             .longest = L};

struct attention {
    sb_norm_layer norm;
    sb_linear_layer query, key, value, output;
};

/* One layer each, with the norm before every part. */
struct model {
    enum wrong wrong;
    sb_embedding_layer source, target;
    struct attention encoder_self, decoder_self, cross;
    sb_norm_layer encoder_norm, decoder_norm;
    sb_feed_forward encoder_forward, decoder_forward;
    sb_linear_layer output;
};

static bool attention_init(struct attention *a, sb_parameters *set, const char *const names[5])
{
    return sb_norm_layer_init(&a->norm, set, names[0], C, SB_NORM_KIND_LAYER) &&
           sb_linear_layer_init(&a->query, set, names[1], C, C, false) &&
           sb_linear_layer_init(&a->key, set, names[2], C, C, false) &&
           sb_linear_layer_init(&a->value, set, names[3], C, C, false) &&
           sb_linear_layer_init(&a->output, set, names[4], C, C, false);
}

static bool model_init(struct model *m, sb_parameters *set)
{
    static const char *const encoder[] = {"e.norm", "e.query", "e.key", "e.value", "e.output"};
    static const char *const decoder[] = {"d.norm", "d.query", "d.key", "d.value", "d.output"};
    static const char *const cross[] = {"c.norm", "c.query", "c.key", "c.value", "c.output"};
    return sb_embedding_layer_init(&m->source, set, "source", V, &sizes, NULL) &&
           sb_embedding_layer_init(&m->target, set, "target", V + 1, &sizes, NULL) &&
           attention_init(&m->encoder_self, set, encoder) &&
           attention_init(&m->decoder_self, set, decoder) &&
           attention_init(&m->cross, set, cross) &&
           sb_norm_layer_init(&m->encoder_norm, set, "e.norm2", C, SB_NORM_KIND_LAYER) &&
           sb_norm_layer_init(&m->decoder_norm, set, "d.norm2", C, SB_NORM_KIND_LAYER) &&
           sb_feed_forward_init(&m->encoder_forward, set, "e.forward", &sizes) &&
           sb_feed_forward_init(&m->decoder_forward, set, "d.forward", &sizes) &&
           sb_linear_layer_init(&m->output, set, "output", C, V, true);
}

/* (B, L, C) -> (B, H, L, D) */
static sb_tensor *heads_of(const sb_linear_layer *projection, sb_tensor *x)
{
    sb_tensor *y = sb_linear_layer_forward(projection, x, SB_ACTIVATION_IDENTITY);
    y = sb_reshape(y, 4, (const int64_t[]){B, L, H, D});
    return sb_transpose(y, 1, 2);
}

/* 0 where query i sees key j <= i, -inf elsewhere. */
static sb_tensor *causal(void)
{
    double bias[L * L];
    for (int i = 0; i < L * L; i++)
        bias[i] = i % L <= i / L ? 0 : -INFINITY;
    return sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(L, L), bias));
}

/* x + attention of norm(x) over the memory, or over itself. */
static sb_tensor *attend(const struct model *m, const struct attention *a, sb_tensor *x,
                         sb_tensor *memory, bool is_causal)
{
    sb_tensor *h = sb_norm_layer_forward(&a->norm, x), *over = memory ? memory : h;
    sb_tensor *q = heads_of(&a->query, h), *k = heads_of(&a->key, over);
    sb_tensor *v = heads_of(&a->value, over);
    sb_tensor *s = sb_scale(sb_matmul_nt(q, k), 1 / sqrt(D));
    s = is_causal ? sb_add(s, causal()) : s;
    sb_tensor *y = sb_matmul(wrong_softmax(s, m->wrong), v);
    y = sb_reshape(sb_transpose(y, 1, 2), 3, (const int64_t[]){B, L, C});
    return sb_add(x, sb_linear_layer_forward(&a->output, y, SB_ACTIVATION_IDENTITY));
}

static sb_tensor *feed(const sb_norm_layer *norm, const sb_feed_forward *forward, sb_tensor *x)
{
    return sb_add(x, sb_feed_forward_forward(forward, sb_norm_layer_forward(norm, x)));
}

struct batch {
    sb_tensor *source, *in, *target; /* ids (B, L): the source, the decoder's input, its target */
};

static struct batch batch_make(sb_random *random)
{
    int32_t source[B * L], in[B * L], target[B * L];
    for (int i = 0; i < B * L; i++)
        source[i] = (int32_t)sb_random_below(random, V);
    for (int i = 0; i < B * L; i++) {
        target[i] = source[i / L * L + L - 1 - i % L];
        in[i] = i % L == 0 ? V : target[i - 1];
    }
    return (struct batch){sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(B, L), source)),
                          sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(B, L), in)),
                          sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(B, L), target))};
}

/* The logits (B, L, V). */
static sb_tensor *forward(const struct model *m, const struct batch *batch)
{
    sb_tensor *x = sb_embedding_layer_forward(&m->source, batch->source, 0);
    x = attend(m, &m->encoder_self, x, NULL, false);
    x = feed(&m->encoder_norm, &m->encoder_forward, x);
    sb_tensor *y = sb_embedding_layer_forward(&m->target, batch->in, 0);
    y = attend(m, &m->decoder_self, y, NULL, true);
    y = attend(m, &m->cross, y, x, false);
    y = feed(&m->decoder_norm, &m->decoder_forward, y);
    return sb_linear_layer_forward(&m->output, y, SB_ACTIVATION_IDENTITY);
}

static bool step(const struct model *m, sb_optimiser *adam, sb_random *random, double *value)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    struct batch batch = batch_make(random);
    sb_tensor *loss = sb_cross_entropy(forward(m, &batch), batch.target, NULL);
    bool ok = sb_backward(loss) && sb_optimiser_step(adam);
    *value = ok ? sb_tensor_value(loss) : NAN;
    return sb_tape_end(&tape) && ok;
}

/* The share of right next symbols, given the right symbols before them. */
static bool count_right(const struct model *m, sb_random *random, double *share)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    struct batch batch = batch_make(random);
    sb_tensor *said = sb_argmax(forward(m, &batch), -1);
    const int32_t *got = said ? sb_tensor_data(said) : NULL;
    const int32_t *wanted = got ? sb_tensor_data(batch.target) : NULL;
    int right = 0;
    for (int i = 0; wanted && i < B * L; i++)
        right += got[i] == wanted[i];
    *share = (double)right / (B * L);
    return sb_tape_end(&tape) && wanted;
}

bool reversing_train(enum wrong wrong, uint64_t seed, int64_t steps, struct reversed *result)
{
    struct model model = {.wrong = wrong};
    sb_parameters *set = sb_parameters_of(SB_F64, seed);
    const sb_optimiser_options options = {
        .schedule = {.kind = SB_SCHEDULE_INVERSE_ROOT, .rate = 3e-3, .warmup = 100}};
    sb_optimiser *adam = set && model_init(&model, set) ? sb_adam_new(set, &options) : NULL;
    sb_random random = sb_random_new(seed, SB_STREAM_DATA);
    bool ok = adam != NULL;
    for (int64_t i = 1; ok && i <= steps; i++) {
        ok = step(&model, adam, &random, &result->loss_last);
        if (i == 1)
            result->loss_first = result->loss_last;
        if (i <= 100)
            result->loss_100 = result->loss_last;
    }
    ok = ok && count_right(&model, &random, &result->right);
    sb_optimiser_free(adam);
    sb_parameters_free(set);
    return ok;
}
