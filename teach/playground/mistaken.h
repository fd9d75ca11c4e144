/* Attention whose softmax has a wrong gradient, to see what becomes of training with it. */
#ifndef SOFTBACK_TEACH_PLAYGROUND_MISTAKEN_H
#define SOFTBACK_TEACH_PLAYGROUND_MISTAKEN_H

enum mistake {
    MISTAKE_NONE,     /* ds = a (g - avg): the library's kernel */
    MISTAKE_DIAGONAL, /* ds = a (1 - a) g: by the diagonal of the Jacobian alone */
    MISTAKE_CENTRED,  /* the same, less its mean over the row */
    MISTAKE_ZERO,     /* ds = 0: queries and keys learn nothing */
};

/* The backward of composed attention of f32 on the CPU has this mistake from now on. It serves
   attention without bias, dropout and dense masks. */
void mistake_install(enum mistake mistake);

#endif
