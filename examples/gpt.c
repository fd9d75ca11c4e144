/* A GPT made of layers: `./gpt <README.md` learns to predict bytes, and writes a text like that. */
#include <softback/softback.h>
#include <stdio.h>

enum { BYTES = 256, WIDTH = 64, LENGTH = 64, WINDOW = LENGTH + 1, BATCH = 16 };
enum { STEPS = 600, SHARES = 4, READ = 1 << 20, WRITTEN = 400 };
static sb_embedding_layer embedding;
static sb_decoder_layer first, second;
static sb_norm_layer norm;
static sb_output_head head;

/* bytes (B, L) -> (B, L, WIDTH), from which the head predicts the next byte at each place */
static sb_tensor *gpt(sb_tensor *bytes)
{
    const sb_attending causal = {.mask = sb_mask_causal()};
    sb_tensor *x = sb_embedding_layer_forward(&embedding, bytes, 0);
    x = sb_decoder_layer_forward(&first, x, NULL, &causal, NULL);
    x = sb_decoder_layer_forward(&second, x, NULL, &causal, NULL);
    return sb_norm_layer_forward(&norm, x);
}

/* What sequences first .. first + count - 1 of a batch add to its mean loss; threads share them. */
static sb_tensor *loss(void *batch, int64_t first, int64_t count)
{
    const int32_t *at = (const int32_t *)batch + first * WINDOW;
    sb_tensor *bytes = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(count, WINDOW), at));
    sb_tensor *y = gpt(sb_slice(bytes, 1, 0, LENGTH)), *next = sb_slice(bytes, 1, 1, LENGTH);
    return sb_scale(sb_output_head_loss(&head, y, next, NULL), (double)count / BATCH);
}

int main(void)
{
    static int32_t text[LENGTH + READ + BATCH * WINDOW]; /* zeros before and after what is read */
    int n = LENGTH;
    for (int c; n < LENGTH + READ && (c = getchar()) != EOF; n++)
        text[n] = c;
    sb_parameters *weights = sb_parameters_new(1);
    const sb_transformer_options sizes = {.width = WIDTH, .heads = 4};
    bool ok = sb_embedding_layer_init(&embedding, weights, "embedding", BYTES, &sizes, NULL) &&
              sb_decoder_layer_init(&first, weights, "first", &sizes, false) &&
              sb_decoder_layer_init(&second, weights, "second", &sizes, false) &&
              sb_norm_layer_init(&norm, weights, "norm", WIDTH, SB_NORM_KIND_LAYER) &&
              sb_output_head_init(&head, weights, "head", WIDTH, BYTES, true, NULL);
    sb_optimiser *adam = sb_adam_new(weights, &(sb_optimiser_options){.learning_rate = 0.003});
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int step = 1; ok && step <= STEPS; step++) {
        int32_t *batch = text + step * BATCH * WINDOW % n;
        double mean = 0;
        ok = sb_backward_in_shares(weights, BATCH, SHARES, NULL, loss, batch, &mean) &&
             sb_optimiser_step(adam);
        printf("step %d  loss %.3f%c", step, mean, step % 100 ? '\r' : '\n');
    }
    for (const int end = n + WRITTEN; ok && n < end; n++) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_NO_RECORD);
        sb_tensor *x = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(1, LENGTH), text + n - LENGTH));
        sb_tensor *y = sb_reshape(sb_slice(gpt(x), 1, LENGTH - 1, 1), SB_SHAPE(1, WIDTH));
        ok = sb_sample(sb_output_head_logits(&head, y), NULL, &random, &text[n]);
        putchar(text[n]);
        sb_tape_end(&tape);
    }
    printf("\n%s", ok ? "" : sb_error());
    sb_optimiser_free(adam);
    sb_parameters_free(weights);
    return ok ? 0 : 1;
}
