/* How threads wait for each other between loops. */
#ifndef SOFTBACK_PROGRAM_WAITING_H
#define SOFTBACK_PROGRAM_WAITING_H

/*
 * Begins the program again with GOMP_SPINCOUNT=1000, unless that or OMP_WAIT_POLICY is set: GNU's
 * OpenMP reads them before main. Its threads otherwise wait for milliseconds without giving up the
 * processor, which is harmless while they have it to themselves; where others work too, the thread
 * that is waited for does not get to run. Some 50 microseconds are enough to be awake for the next
 * loop of a step. Where it cannot be begun again, all goes on as it was.
 */
void waiting_shorten(char **argv);

#endif
