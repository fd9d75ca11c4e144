/* The time of a call in C, for call_cost.py: nanoseconds of processor time of add, softmax, matmul
   and linear on small tensors, and of a training step of a small network, each the least of many
   runs. Every tape has 100 calls. */
#include <softback/softback.h>
#include <stdio.h>
#include <time.h>

enum { RUNS = 300, TAPES = 2, CALLS = 100, FUNCTIONS = 4 };
enum { STEPS = 2000, ITEMS = 256, WIDTH = 128, CLASSES = 10 };

static sb_tensor *x, *w, *b;

static sb_tensor *call(int which)
{
    switch (which) {
    case 0:
        return sb_add(x, x);
    case 1:
        return sb_softmax(x);
    case 2:
        return sb_matmul(x, w);
    default:
        return sb_linear(x, w, b);
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double one_run(int which)
{
    double began = seconds();
    for (int i = 0; i < TAPES; i++) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        for (int k = 0; k < CALLS; k++)
            call(which);
        sb_tape_end(&tape);
    }
    return (seconds() - began) / (TAPES * CALLS);
}

static sb_parameters *weights;
static sb_linear_layer hidden, last;
static sb_optimiser *adam;
static sb_tensor *inputs, *targets;

static bool new_network(void)
{
    static int32_t labels[ITEMS];
    weights = sb_parameters_new(1);
    inputs = sb_tensor_full(SB_F32, SB_SHAPE(ITEMS, WIDTH), 0.5);
    for (int i = 0; i < ITEMS; i++)
        labels[i] = i % CLASSES;
    targets = sb_tensor_from(SB_I32, SB_SHAPE(ITEMS), labels);
    bool ok = sb_linear_layer_init(&hidden, weights, "hidden", WIDTH, 2 * WIDTH, true) &&
              sb_linear_layer_init(&last, weights, "last", 2 * WIDTH, CLASSES, true);
    adam = ok ? sb_adam_new(weights, NULL) : NULL;
    return adam != NULL;
}

static double one_step(void)
{
    double began = seconds();
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *h = sb_linear_layer_forward(&hidden, inputs, SB_ACTIVATION_RELU);
    sb_tensor *y = sb_linear_layer_forward(&last, h, SB_ACTIVATION_IDENTITY);
    sb_tensor *loss = sb_cross_entropy(y, targets, NULL);
    if (!sb_backward(loss) || !sb_optimiser_step(adam))
        puts(sb_error());
    sb_tape_end(&tape);
    return seconds() - began;
}

int main(void)
{
    static const char *const names[FUNCTIONS] = {"add", "softmax", "matmul", "linear"};
    x = sb_tensor_requires_grad(sb_tensor_full(SB_F32, SB_SHAPE(4, 4), 0.5));
    w = sb_tensor_full(SB_F32, SB_SHAPE(4, 4), 0.25);
    b = sb_tensor_full(SB_F32, SB_SHAPE(4), 0.125);
    for (int which = 0; which < FUNCTIONS; which++) {
        double least = 1;
        for (int run = 0; run < RUNS; run++) {
            double time = one_run(which);
            least = time < least ? time : least;
        }
        printf("%s %.0f\n", names[which], 1e9 * least);
    }
    double least = 1;
    for (int step = 0; step < STEPS && (adam || new_network()); step++) {
        double time = one_step();
        least = time < least ? time : least;
    }
    printf("step %.0f\n", 1e9 * least);
    return 0;
}
