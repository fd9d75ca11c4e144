/*
 * A GPT with its own training loop. A decoder-only transformer reads a text of sums, such as
 * "7+5=12 3+4=07 ", learns to predict each letter from those before it, and writes new sums.
 */
#include <softback/softback.h>
#include <stdio.h>

enum { LETTERS = 128, WIDTH = 64, LENGTH = 32, BATCH = 32, STEPS = 600 };
enum { SUM = 7, ROWS = 128 * SUM, TEXT = ROWS * (LENGTH + 1), SUMS = 40, WRITTEN = SUMS * SUM };

/* Draws the letter that follows LENGTH others by its probability. */
static int32_t next_letter(sb_decoder *gpt, sb_output_head *head, int32_t *text, sb_random *random)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(1, LENGTH), text));
    sb_tensor *y = sb_decoder_forward(gpt, x, NULL, NULL, NULL);
    sb_tensor *p = sb_softmax(sb_output_head_logits(head, sb_slice(y, 1, LENGTH - 1, 1)));
    double rest = sb_random_uniform(random);
    int32_t letter = 0;
    while (letter < LETTERS - 1 && (rest -= sb_tensor_get(p, letter)) >= 0)
        letter++;
    sb_tape_end(&tape);
    return letter;
}

int main(void)
{
    static char text[TEXT + WRITTEN + 1];
    static int32_t letters[TEXT + WRITTEN];
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int n = 0; n < TEXT; n += SUM) {
        const uint32_t a = sb_random_below(&random, 10), b = sb_random_below(&random, 10);
        sprintf(text + n, "%u+%u=%02u ", a, b, a + b);
    }
    for (int n = 0; n < TEXT; n++)
        letters[n] = text[n];
    sb_tensor *rows = sb_tensor_from(SB_I32, SB_SHAPE(ROWS, LENGTH + 1), letters);

    sb_parameters *weights = sb_parameters_new(1);
    const sb_transformer_options sizes = {.width = WIDTH, .decoder_layers = 2};
    sb_decoder *gpt = sb_decoder_new(weights, "gpt", LETTERS, &sizes, false, NULL);
    sb_output_head head;
    bool ok = sb_output_head_init(&head, weights, "output", WIDTH, LETTERS, NULL);
    sb_optimiser *adam = sb_adam_new(weights, &(sb_optimiser_options){.learning_rate = 0.003});
    for (int step = 1; ok && step <= STEPS; step++) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        sb_tensor *batch = sb_slice(rows, 0, step * BATCH % ROWS, BATCH);
        sb_tensor *x = sb_slice(batch, 1, 0, LENGTH), *next = sb_slice(batch, 1, 1, LENGTH);
        sb_tensor *y = sb_decoder_forward(gpt, x, NULL, NULL, NULL);
        sb_tensor *loss = sb_output_head_loss(&head, y, next, NULL);
        ok = sb_backward(loss) && sb_optimiser_step(adam);
        if (ok && step % 100 == 0)
            printf("step %d  loss %.3f\n", step, sb_tensor_value(loss));
        sb_tape_end(&tape);
    }

    for (int n = TEXT; ok && n < TEXT + WRITTEN; n++)
        text[n] = (char)(letters[n] = next_letter(gpt, &head, letters + n - LENGTH, &random));
    int a, b, c, right = 0;
    for (int n = TEXT; n < TEXT + WRITTEN; n += SUM)
        right += sscanf(text + n, "%d+%d=%d", &a, &b, &c) == 3 && a + b == c;
    printf("%s\n%d of %d sums are right\n", ok ? text + TEXT : sb_error(), right, SUMS);
    sb_optimiser_free(adam);
    sb_decoder_free(gpt);
    sb_parameters_free(weights);
    sb_tensor_release(rows);
    return right >= 0.7 * SUMS ? 0 : 1;
}
