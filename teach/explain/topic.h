/* The topics of `softback explain`: what each one takes, and how its page is made. */
#ifndef SOFTBACK_TEACH_EXPLAIN_TOPIC_H
#define SOFTBACK_TEACH_EXPLAIN_TOPIC_H

#include "teach/explain/page.h"
#include "teach/lessons/reverse.h"

enum { EXPLAIN_NUMBERS = 32 };

/* A list from the command line; a count of 0 means the topic's default. */
struct numbers {
    int count;
    double value[EXPLAIN_NUMBERS];
};

enum explain_list { SCORES, UPSTREAM, KEPT, VALUES, LOGITS, PERIODS, EXPLAIN_LISTS };

/* What a topic takes besides the lists, of which SCORES is bit 0 and so on. */
enum {
    TAKES_TEMPERATURE = 1 << EXPLAIN_LISTS,
    TAKES_BLOCK = 2 << EXPLAIN_LISTS,
    TAKES_TARGET = 4 << EXPLAIN_LISTS,
    TAKES_STEPS = 8 << EXPLAIN_LISTS,
    TAKES_SEED = 16 << EXPLAIN_LISTS,
    TAKES_WIDTH = 32 << EXPLAIN_LISTS,
    TAKES_SVG = 64 << EXPLAIN_LISTS,       /* it has a picture */
    TAKES_REFERENCE = 128 << EXPLAIN_LISTS /* it is an operation of this name */
};

struct explain_options {
    struct numbers list[EXPLAIN_LISTS];
    double temperature;          /* 0: 1 */
    int64_t block, steps, width; /* 0: the topic's default */
    int64_t target, seed;
    bool reference, code; /* of operations: their documentation in ops.h, their loops, too */
};

struct topic {
    const char *name, *summary;
    unsigned takes;
    /* Whether the options make sense together; NULL: always. A failure is a usage error. */
    bool (*check)(const struct explain_options *options);
    void (*write)(struct page *page, const struct explain_options *options);
};

/* One file each; `write` fills a page. */
extern const struct topic topic_softmax, topic_mask, topic_flash, topic_cross_entropy,
    topic_saturation, topic_scaling, topic_saturated_rows, topic_positions, topic_gradcheck,
    topic_hessian, topic_attention, topic_layer_norm, topic_tape, topic_wrong_gradient,
    topic_claims;

/* In the order in which they are listed, that of a first reading; NULL when i is past the end. */
const struct topic *topic_at(int i);
/* NULL when there is none. */
const struct topic *topic_named(const char *name);

/* The page of a topic or, with a gradient check over its examples, of any other operation of ops.h,
   by its name without "sb_": its block there and, with `code`, its loops. When it cannot be made,
   with a message, it is NULL or has failed. */
struct page *explain_page(const char *name, const struct explain_options *options);

/* The given list, or the topic's default. */
struct numbers list_or(const struct numbers *given, int count, const double own[]);
/* Fails unless a list has n numbers, as many as the list `as` has. */
bool check_count(const char *option, const struct numbers *list, int n, const char *as);

/* Lists the operations; NULL past the last. */
const char *operation_name(const void *unused, int i);
/* The comment of ops.h on an operation, from its first line on; " *" and a slash end it. NULL when
   there is none. */
const char *operation_comment(const char *name);
/* The gradients of softmax that topics compare. */
enum wrong {
    WRONG_NONE,     /* ds = a (g - avg) */
    WRONG_DIAGONAL, /* ds = a (1 - a) g: by the diagonal of the Jacobian alone */
    WRONG_CENTRED,  /* the same, less its mean over the row */
    WRONG_ZERO,     /* ds = 0: queries and keys learn nothing */
    WRONGS,
};
/* In float, for the model of lesson 4. */
extern reverse_gradient *const wrong_gradients[WRONGS];

#endif
