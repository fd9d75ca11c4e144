/*
 * Training steps that are recorded once as a graph and then replayed, if the device has graphs: in
 * small models, launching each kernel takes longer than running it.
 *
 * The kernels of a batch depend on the shapes of its parts, on its partition, on whether gradients
 * exist already, and on the position in the random stream. So the second batch with the same shapes
 * is recorded, in memory of its own; later ones are copied there, and the graph is launched. The
 * results have the bits of eager execution.
 */
#ifndef SOFTBACK_MODELS_TRAINING_REPLAY_H
#define SOFTBACK_MODELS_TRAINING_REPLAY_H

#include "models/model.h"
#include "nn/optimiser.h"

struct replay;

/* For the device in use; NULL, without a message, where it has no graphs or there is no memory.
   With an optimiser (Adam) the graphs take its step too; NULL: forward and backward alone. */
struct replay *replay_new(const sb_model *model, sb_optimiser *optimiser);
void replay_free(struct replay *replay); /* NULL is allowed */

/*
 * Runs forward and backward of a batch; *value is the loss, a mean or sum. Advances the stream. If
 * the graph took the optimiser's step, as it does unless a number is not finite, the next
 * sb_optimiser_step only counts it.
 * False, with nothing done, when the caller must run the step eagerly: the shapes are new, or no
 * graph could be made of them.
 */
bool replay_run(struct replay *replay, const sb_batch *batch, bool mean, sb_random *random,
                double *value);

/* How many graphs there are, and how often one was launched. */
int64_t replay_graphs(const struct replay *replay);
int64_t replay_launches(const struct replay *replay);

#endif
