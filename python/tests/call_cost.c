/* The time of a call in C, for call_cost.py: nanoseconds of add, softmax, matmul and linear on small
   tensors, each the least of several runs. Every tape has 100 calls. */
#include <softback/softback.h>
#include <stdio.h>
#include <time.h>

enum { RUNS = 300, TAPES = 2, CALLS = 100, FUNCTIONS = 4 };

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
    return 0;
}
