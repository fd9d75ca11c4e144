/* An optimiser, for the files that define it. */
#ifndef SOFTBACK_NN_OPTIMISER_STATE_H
#define SOFTBACK_NN_OPTIMISER_STATE_H

#include "nn/moments.h"
#include "nn/optimiser.h"

enum kind { SGD, ADAM, ADAMW };

struct sb_optimiser {
    enum kind kind;
    sb_parameters *set;
    sb_optimiser_options options;
    int64_t steps;
    double rate, norm;
    double own_rate; /* set by the caller; NAN: that of the schedule */
    sb_plateau plateau;
    struct moments moments;
    bool taken; /* a graph has taken the next step, whose rate and norm are set */
};

/* "sgd", "adam" or "adamw". */
const char *optimiser_name(const sb_optimiser *optimiser);

#endif
