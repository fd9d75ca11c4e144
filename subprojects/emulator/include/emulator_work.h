/*
 * What a program asks of the emulated device, counted since it was opened. Time on a device is lost
 * to launches, to waits of the host and to copies as much as to kernels, and none of these shows in
 * a result. Programs and shared objects export softback_emulator_work, for tests.
 */
#ifndef SOFTBACK_EMULATOR_EMULATOR_WORK_H
#define SOFTBACK_EMULATOR_EMULATOR_WORK_H

#include <stdint.h>

struct emulator_work {
    int64_t queued;               /* operations that the host queued one by one; a graph is one */
    int64_t graphs;               /* of these, launches of graphs */
    int64_t kernels;              /* that ran: products too, and those of graphs */
    int64_t waits;                /* of the host for the device */
    int64_t uploaded, downloaded; /* bytes */
};

typedef struct emulator_work emulator_work_now(void);

#endif
