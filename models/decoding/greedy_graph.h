/*
 * Greedy steps that a device takes without the host: the symbols of a step are the input of the
 * next one, and the host reads those of several steps together. The first step runs eagerly; then
 * the step is captured as a CUDA graph, if the device has graphs, and each later one is one launch.
 *
 * A graph holds for as long as the sequences and the capacity of their caches stay as they are. The
 * results have the bits of single steps.
 */
#ifndef SOFTBACK_MODELS_DECODING_GREEDY_GRAPH_H
#define SOFTBACK_MODELS_DECODING_GREEDY_GRAPH_H

#include "models/decoding/search.h"

enum { GREEDY_STEPS_AHEAD = 8 };

/* How many steps the host waits for at a time, at most GREEDY_STEPS_AHEAD; 0: single steps that it
   chooses itself, for tests. */
extern int64_t greedy_steps_ahead;

struct greedy_graph;

/* How many more steps, at most `most`, the device can take: 0 when it must not take any. */
int64_t greedy_graph_steps(const struct sequences *s, int64_t most);

/*
 * Takes `steps` steps from the symbols ids (count) on: noted (steps, count, 2) has the symbols and
 * their log-probabilities. *graph is NULL at first, and after greedy_graph_free. False, with a
 * message, on failure.
 */
bool greedy_graph_run(struct greedy_graph **graph, const struct search *search,
                      sb_tensor *forbidden, const int32_t *ids, int64_t steps, double *noted);
void greedy_graph_free(struct greedy_graph **graph);

/* The best allowed symbol of each row of log_p, and its log-probability, with operations. */
sb_tensor *greedy_best(sb_tensor *log_p, sb_tensor *forbidden, sb_tensor **value);

#endif
