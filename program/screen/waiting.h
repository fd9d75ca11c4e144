/* How threads wait for each other between loops. */
#ifndef SOFTBACK_PROGRAM_SCREEN_WAITING_H
#define SOFTBACK_PROGRAM_SCREEN_WAITING_H

/*
 * Restarts the program with GOMP_SPINCOUNT=1000, unless that or OMP_WAIT_POLICY is set: GNU's
 * OpenMP reads them before main. By default its waiting threads spin for milliseconds, which keeps
 * the awaited thread from running when other processes use the processors too. Spinning for about
 * 50 microseconds is enough to start the next loop of a step without delay. If the restart fails,
 * the program continues without it.
 */
void waiting_shorten(char **argv);

#endif
