/*
 * A vision transformer learns to classify shapes: it cuts a noisy image into patches, passes them
 * through encoder layers, and classifies the mean over patches.
 */
#include <math.h>
#include <softback/softback.h>
#include <stdio.h>

enum { DISC, SQUARE, CROSS, SHAPES };
enum { SIDE = 16, PATCH = 4, GRID = SIDE / PATCH, PATCHES = GRID * GRID, WIDTH = 32 };
enum { BATCH = 32, STEPS = 1200, HELD_OUT = 20 };

struct vision {
    sb_linear_layer patch, classifier;
    sb_transformer_layer layer[2];
    sb_norm_layer norm;
};

static bool vision_init(struct vision *v, sb_parameters *set)
{
    const sb_transformer_options sizes = {.width = WIDTH};
    return sb_linear_layer_init(&v->patch, set, "patch", PATCH * PATCH, WIDTH, true) &&
           sb_transformer_layer_init(&v->layer[0], set, "layers.0", &sizes, false) &&
           sb_transformer_layer_init(&v->layer[1], set, "layers.1", &sizes, false) &&
           sb_norm_layer_init(&v->norm, set, "norm", WIDTH, SB_NORM_KIND_LAYER) &&
           sb_linear_layer_init(&v->classifier, set, "classifier", WIDTH, SHAPES, true);
}

/* images (B, SIDE, SIDE) -> logits (B, SHAPES) */
static sb_tensor *vision_forward(const struct vision *v, sb_tensor *images)
{
    sb_tensor *rows = sb_reshape(images, SB_SHAPE(-1, GRID, PATCH, GRID, PATCH));
    sb_tensor *grid = sb_permute(rows, 5, (const int[]){0, 1, 3, 2, 4});
    sb_tensor *patches = sb_reshape(grid, SB_SHAPE(-1, PATCHES, PATCH * PATCH));
    sb_tensor *x = sb_linear_layer_forward(&v->patch, patches, SB_ACTIVATION_IDENTITY);
    x = sb_add(x, sb_sinusoidal(SB_F32, 0, PATCHES, WIDTH));
    x = sb_transformer_layer_forward(&v->layer[0], x, NULL, NULL, NULL);
    x = sb_transformer_layer_forward(&v->layer[1], x, NULL, NULL, NULL);
    sb_tensor *pooled = sb_mean(sb_norm_layer_forward(&v->norm, x), 1, false);
    return sb_linear_layer_forward(&v->classifier, pooled, SB_ACTIVATION_IDENTITY);
}

/* A shape of random size at a random place, under noise. */
static void draw(int32_t shape, float image[SIDE][SIDE], sb_random *random)
{
    const double size = 4 + 2 * sb_random_uniform(random), room = SIDE - 2 * size;
    const double top = room * sb_random_uniform(random), left = room * sb_random_uniform(random);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            const double y = fabs((i + 0.5 - top) / size - 1),
                         x = fabs((j + 0.5 - left) / size - 1);
            const bool inside[SHAPES] = {x * x + y * y < 1, fmax(x, y) < 0.9,
                                         fmax(x, y) < 1 && fmin(x, y) < 0.3};
            image[i][j] = (float)(inside[shape] + 0.2 * sb_random_normal(random));
        }
}

int main(void)
{
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    sb_parameters *set = sb_parameters_new(1);
    sb_optimiser *adam = sb_adam_new(set, &(sb_optimiser_options){.learning_rate = 0.002});
    struct vision vision;
    bool ok = vision_init(&vision, set);
    int right = 0;
    for (int step = 1; ok && step <= STEPS + HELD_OUT; step++) {
        float images[BATCH][SIDE][SIDE];
        int32_t shapes[BATCH];
        for (int b = 0; b < BATCH; b++) {
            shapes[b] = (int32_t)sb_random_below(&random, SHAPES);
            draw(shapes[b], images[b], &random);
        }
        const bool training = step <= STEPS;
        sb_tape tape;
        sb_tape_begin(&tape, training ? SB_RECORD : SB_NO_RECORD);
        sb_tensor *x = sb_tape_own(sb_tensor_from(SB_F32, SB_SHAPE(BATCH, SIDE, SIDE), images));
        sb_tensor *labels = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(BATCH), shapes));
        sb_tensor *logits = vision_forward(&vision, x);
        if (training) {
            sb_tensor *loss = sb_cross_entropy(logits, labels, NULL);
            ok = sb_backward(loss) && sb_optimiser_step(adam);
            if (step % 200 == 0)
                printf("step %d  loss %.3f\n", step, sb_tensor_value(loss));
        } else {
            sb_tensor *found = sb_argmax(logits, -1);
            for (int b = 0; b < BATCH; b++)
                right += sb_tensor_get(found, b) == shapes[b];
        }
        ok &= sb_tape_end(&tape);
    }
    if (!ok)
        puts(sb_error());
    printf("%d of %d new images are classified right\n", right, HELD_OUT * BATCH);
    sb_optimiser_free(adam);
    sb_parameters_free(set);
    return right >= 0.9 * HELD_OUT * BATCH ? 0 : 1;
}
