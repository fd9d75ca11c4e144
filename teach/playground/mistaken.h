/* Attention whose softmax has a wrong gradient, to show what training with it leads to. */
#ifndef SOFTBACK_TEACH_PLAYGROUND_MISTAKEN_H
#define SOFTBACK_TEACH_PLAYGROUND_MISTAKEN_H

enum mistake {
    MISTAKE_NONE,     /* ds = a (g - avg): the library's kernel */
    MISTAKE_DIAGONAL, /* ds = a (1 - a) g: by the diagonal of the Jacobian alone */
    MISTAKE_CENTRED,  /* the same, less its mean over the row */
    MISTAKE_ZERO,     /* ds = 0: queries and keys learn nothing */
};

/* From now on the backward of composed attention of f32 on the CPU has this mistake. Bias, dropout
   and dense masks are not supported. */
void mistake_install(enum mistake mistake);

#endif
