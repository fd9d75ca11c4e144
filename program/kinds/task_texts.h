/* A built-in task as texts for a language model: "source = target", a document for each pair. */
#ifndef SOFTBACK_PROGRAM_KINDS_TASK_TEXTS_H
#define SOFTBACK_PROGRAM_KINDS_TASK_TEXTS_H

#include "models/text/documents.h"
#include "program/run/training.h"

/* The documents of a task's pairs. */
sb_documents *task_documents(const char *task, const sb_pairs *pairs);

/* "source = ", for memory_free. */
char *task_prompt(const char *source);

#endif
