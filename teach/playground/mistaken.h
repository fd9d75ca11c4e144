/* Attention whose softmax has a gradient by a rule, to show what training with a wrong one leads
 * to. */
#ifndef SOFTBACK_TEACH_PLAYGROUND_MISTAKEN_H
#define SOFTBACK_TEACH_PLAYGROUND_MISTAKEN_H

#include <stdbool.h>

/* From now on the backward of composed attention of f32 on the CPU computes ds by this rule
   (rule.h); without a text by the library's kernel again. Bias, dropout, dense masks and more than
   RULE_KEYS keys are not supported. False, with a message, when the text is no rule. */
bool mistake_install(const char *text);

#endif
