/*
 * softback bench --worker: the program's side of tests/bench/compare.py. It reads lines from
 * standard input and answers each with one line of JSON, so that one run can time several libraries
 * in turns; the workers in tests/bench/peers have the same protocol.
 *
 *     machine                    the processor or device
 *     open KIND KEY=NUMBER ...   opens the job to be measured, in place of an open one
 *     export FILE                its weights and inputs, as safetensors, for the peers to load
 *     check                      numbers that every library must get: {"numbers": [...]}
 *     steps N                    measures N times: {"seconds": [...]}
 *     rate NAME NUMBER ...       the highest rate of this machine: {"rate": ...}
 *
 * A failure is {"error": "..."}.
 */
#ifndef SOFTBACK_PROGRAM_BENCH_WORKER_H
#define SOFTBACK_PROGRAM_BENCH_WORKER_H

/* Returns when the input ends. */
void bench_worker(void);

#endif
