/*
 * Trains as the live page does, and prints each hundredth loss to the bit and a fingerprint of the
 * weights: losses [steps [taken [seed [factor [rule [task [rate]]]]]]]. The page, and a portable
 * build for any processor, print the same.
 */
#include "teach/playground/training.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const struct training_options options = {
        .task = argc > 6 ? (sb_task)atoi(argv[6]) : SB_TASK_REVERSE,
        .steps = argc > 1 ? atoi(argv[1]) : 600,
        .seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1,
        .factor = argc > 4 ? atof(argv[4]) : 1,
        .rule = argc > 5 ? argv[5] : "",
        .rate = argc > 7 ? atof(argv[7]) : 0,
    };
    const int taken = argc > 2 ? atoi(argv[2]) : 300;
    struct training training;
    double loss = 0, right = 0;
    bool ok = training_open(&training, &options);
    for (int step = 1; ok && step <= taken; step++) {
        ok = training_step(&training, &loss);
        if (ok && step % 100 == 0)
            printf("step %d  loss %.17g\n", step, loss);
    }
    if (ok && training_right(&training, &right))
        printf("right %.17g\nfingerprint %016llx\n", right,
               (unsigned long long)sb_parameters_fingerprint(training.weights));
    else
        puts(sb_error());
    if (ok)
        training_close(&training);
    return ok ? 0 : 1;
}
