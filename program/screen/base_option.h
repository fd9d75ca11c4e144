/* The option of commands that run a model which may be a file of LoRA adapters. */
#ifndef SOFTBACK_PROGRAM_SCREEN_BASE_OPTION_H
#define SOFTBACK_PROGRAM_SCREEN_BASE_OPTION_H

enum { KEY_BASE = 700 };

#define BASE_OPTION(group)                                                                         \
    {                                                                                              \
        "base", KEY_BASE, "FILE", 0, "for a file of LoRA adapters: the model that they are for",   \
            group                                                                                  \
    }

#endif
