/* Bad calls of attention, its masks and its biases: golden/errors_of_attention.txt. */
#include "tests/support/errors.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdint.h>

#define ATTEND(...) sb_attention(f->q, f->k, f->k, &(sb_attention_options){__VA_ARGS__})

static void bad_masks(struct errors *f)
{
    CALL(sb_mask_allow(NULL));
    CALL(sb_mask_allow(f->x));
    CALL(sb_mask_block(NULL));
    CALL(sb_mask_block(f->i2));
    CALL(sb_mask_lengths(NULL));
    CALL(sb_mask_lengths(f->x));
    CALL(sb_mask_lengths(f->i22));
    CALL(sb_mask_window(-1, 0));
    CALL(sb_mask_window(0, -5));
    CALL(sb_mask_and(NULL, sb_mask_causal()));
    CALL(sb_mask_and(sb_mask_causal(), NULL));
    CALL(sb_mask_and(sb_mask_causal(), sb_mask_window(-1, 2)));
    CALL(sb_mask_text(NULL, 0, 0, 2, 2));
    CALL(sb_mask_text(sb_mask_causal(), 0, 0, -1, 2));
    CALL(sb_mask_text(sb_mask_lengths(f->len), 5, 0, 7, 7));
    CALL(sb_mask_block(zeros(SB_BOOL, SB_SHAPE(1, 1, 1, 1, 2))));
    CALL(sb_mask_text(sb_mask_lengths(f->len), 2, 0, 1, 1));
    CALL(sb_mask_text(sb_mask_allow(zeros(SB_BOOL, SB_SHAPE(3, 5, 5))), 0, 3, 1, 1));
    CALL(sb_mask_from_bias(NULL));
    CALL(sb_mask_from_bias(f->i2));
    CALL(sb_mask_blocks(NULL, 2));
    CALL(sb_mask_blocks(f->b, 0));
    CALL(sb_mask_local(6, 0, 2, 1));
    CALL(sb_mask_local(6, 6, 2, -1));
    CALL(sb_mask_strided(6, 6, 2, 0, 0));
    CALL(sb_mask_global(6, 6, 2, 0, -3));
    CALL(sb_mask_block_list(6, 6, 2, 1, (const int64_t[][2]){{1, 3}}));
    CALL(sb_mask_block_list(6, 6, 2, 1, NULL));
    CALL(sb_masked_softmax(f->q, sb_mask_blocks(zeros(SB_BOOL, SB_SHAPE(3, 4)), 2), 1));
}

static void bad_positions(struct errors *f)
{
    CALL(sb_sinusoidal(SB_F32, 0, 4, 3));
    CALL(sb_sinusoidal(SB_F32, -1, 4, 6));
    CALL(sb_sinusoidal(SB_F32, 0, -4, 6));
    CALL(sb_sinusoidal(SB_I32, 0, 4, 6));
    CALL(sb_sinusoidal(SB_F32, 0, 4, 0));
    CALL(sb_sinusoidal(SB_F32, INT64_MAX, 1, 2));
    CALL(sb_rotary(NULL, 0, 0));
    CALL(sb_rotary(f->x, 0, 0));
    CALL(sb_rotary(f->kd, 0, 0));
    CALL(sb_rotary(f->q, -1, 0));
    CALL(sb_rotary(f->q, 0, -3));
    CALL(sb_rotary(f->q, INT64_MAX - 4, 0));
    CALL(sb_rotary(f->q, 0, NAN));
    CALL(sb_alibi(SB_F32, 0, 3, 3));
    CALL(sb_alibi(SB_BOOL, 2, 3, 3));
    CALL(sb_alibi(SB_F32, 2, -1, 3));
    CALL(sb_relative_bias(NULL, 3, 3));
    CALL(sb_relative_bias(f->y, 3, 3));
    CALL(sb_relative_bias(f->v3, 3, 3));
    CALL(sb_relative_bias(f->x, -1, 3));
    ALONE(sb_sinusoidal(SB_F32, 0, 1, 4));
    CALL(sb_sinusoidal(SB_F32, 0, -2, 4));
    CALL(sb_rotary(f->i22, 0, 0));
    CALL(sb_rotary(zeros(SB_F32, SB_SHAPE(2, 3, 4)), 0, 0));
    CALL(sb_rotary(f->q, 0, -1));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.scaling = -2}));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.scaling = NAN}));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.original = -1}));
    CALL(sb_rotary_scaled(f->q, 0, &(sb_rotary_options){.low_factor = 4}));
    CALL(sb_relative_bias(f->i22, 1, 1));
    CALL(sb_relative_bias(zeros(SB_F32, SB_SHAPE(2, 4)), 1, 1));
    CALL(sb_relative_bias(zeros(SB_F32, SB_SHAPE(2, 3, 4)), 1, 1));
    CALL(sb_relative_bias(f->x, 1, -1));
}

static void bad_attention(struct errors *f)
{
    CALL(sb_attention(NULL, f->k, f->k, NULL));
    CALL(sb_attention(f->q, NULL, f->k, NULL));
    CALL(sb_attention(f->q, f->k, NULL, NULL));
    CALL(sb_attention(f->q, f->k3, f->k3, NULL));
    CALL(sb_attention(f->q, f->kd, f->k, NULL));
    CALL(sb_attention(f->q, f->kb, f->kb, NULL));
    CALL(sb_attention(f->q, f->k, f->kl, NULL));
    CALL(sb_attention(f->q, f->k, f->k3, NULL));
    CALL(sb_attention(f->x, f->k, f->k, NULL));
    CALL(sb_attention(f->v3, f->v3, f->v3, NULL));
    CALL(sb_attention(f->d, f->x, f->x, NULL));
    CALL(ATTEND(.dropout = 1));
    CALL(ATTEND(.dropout = -1));
    CALL(ATTEND(.temperature = -1));
    CALL(ATTEND(.temperature = NAN));
    CALL(ATTEND(.scale = NAN));
    CALL(ATTEND(.scale = INFINITY));
    CALL(ATTEND(.score = (sb_score)9));
    CALL(ATTEND(.layout = (sb_layout)9));
    CALL(ATTEND(.bias = f->x));
    CALL(ATTEND(.bias = f->d));
    CALL(ATTEND(.log_temperature = f->x));
    CALL(ATTEND(.log_temperature = f->s, .temperature = 2));
    CALL(ATTEND(.mask = sb_mask_allow(f->b)));
    CALL(ATTEND(.mask = sb_mask_lengths(f->len9)));
    CALL(ATTEND(.mask = sb_mask_allow(NULL)));
    CALL(ATTEND(.bias = sb_softmax(f->s)));
    ALONE(sb_attention(f->q, f->k, f->k, NULL));
    CALL(sb_attention(f->x, zeros(SB_I32, SB_SHAPE(2, 3)), f->x, NULL));
    CALL(sb_attention(f->v4, f->v4, f->v4, NULL));
    CALL(sb_attention(f->x, f->x, zeros(SB_F32, SB_SHAPE(1, 1, 1, 2, 3)), NULL));
    CALL(sb_attention(f->x, zeros(SB_F32, SB_SHAPE(1, 2, 3)), f->x, NULL));
    CALL(sb_attention(f->x, f->y, f->y, NULL));
    CALL(sb_attention(f->e0, f->e0, f->x, NULL));
    CALL(sb_attention(f->q, zeros(SB_F32, SB_SHAPE(2, 7, 0, 6)),
                      zeros(SB_F32, SB_SHAPE(2, 7, 0, 6)), NULL));
    CALL(sb_attention(f->q, f->k, f->kb, NULL));
    CALL(sb_attention(f->x, f->x, f->v3, NULL));
    CALL(sb_attention(zeros(SB_F32, SB_SHAPE(2, 3, 4)), zeros(SB_F32, SB_SHAPE(3, 3, 4)),
                      zeros(SB_F32, SB_SHAPE(3, 3, 4)), NULL));
    CALL(sb_attention(f->x, f->x, zeros(SB_F32, SB_SHAPE(5, 3)), NULL));
    CALL(sb_attention(f->d, f->d, f->x, NULL));
    CALL(ATTEND(.layout = SB_LAYOUT_HEADS_FIRST));
    CALL(ATTEND(.softcap = -1));
    CALL(ATTEND(.softcap = INFINITY));
    CALL(ATTEND(.softcap = 1, .algorithm = SB_ATTENTION_TILED));
    CALL(ATTEND(.bias = sb_alibi(SB_F32, 0, 2, 2)));
    CALL(ATTEND(.bias = sb_relative_bias(f->y, 2, 2)));
    CALL(ATTEND(.bias = zeros(SB_F32, SB_SHAPE(-1))));
    CALL(ATTEND(.scale = -1));
    CALL(ATTEND(.temperature = INFINITY));
    CALL(ATTEND(.dropout = NAN));
    CALL(ATTEND(.log_temperature = zeros(SB_F32, SB_SHAPE(3))));
    CALL(ATTEND(.bias = zeros(SB_F32, SB_SHAPE(4, 3, 2))));
    CALL(ATTEND(.bias = zeros(SB_F32, SB_SHAPE(1, 1, 1, 1, 1))));
    CALL(ATTEND(.bias = zeros(SB_I32, SB_SCALAR)));
    CALL(ATTEND(.bias = zeros(SB_F64, SB_SCALAR)));
}

static void bad_attention_weights(struct errors *f)
{
    sb_tensor *weights;
    sb_attention_options composed = {.algorithm = SB_ATTENTION_COMPOSED},
                         tiled = {.algorithm = SB_ATTENTION_TILED};
    CALL(ATTEND(.algorithm = (sb_attention_algorithm)9));
    CALL(ATTEND(.algorithm = SB_ATTENTION_TILED, .weights = &weights));
    CALL(sb_attention_weights(NULL, 0, 1));
    CALL(sb_attention_weights(f->x, 0, 1));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &composed), 0, 1));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &tiled), 3, 3));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &tiled), -1, 1));
    CALL(sb_attention_weights(sb_attention(f->q, f->k, f->k, &tiled), 0, 0));
    ALONE(sb_kv_cache_append(NULL, f->k, f->k));
    CALL(sb_attention_cached(f->q, NULL, NULL));
    CALL((weights = f->x,
          ATTEND(.weights = &weights, .mask = sb_mask_block(zeros(SB_BOOL, SB_SHAPE(3, 4))))) ||
         weights);
    CALL((weights = f->x, ATTEND(.weights = &weights, .bias = f->d)) || weights);
    CALL((weights = f->x, ATTEND(.weights = &weights, .mask = sb_mask_lengths(f->len9))) ||
         weights);
}

CPU_TEST(errors, each_bad_call_of_attention_gives_its_message)
{
    struct errors f;
    errors_open(&f, "errors_of_attention");
    bad_masks(&f);
    bad_positions(&f);
    bad_attention(&f);
    bad_attention_weights(&f);
    errors_close(&f);
}
