/*
 * Training steps that are noted once and launched again as a whole, where the device has graphs:
 * for small models launching each kernel costs more than running it.
 *
 * Forward and backward of a batch depend on the host by the shapes of its parts, by its partition,
 * by whether gradients are added to or begun, and by the places in the random stream. So a batch
 * whose shapes come for the second time is noted, in memory of its own, and later ones of these
 * shapes are copied to the place of the first and launched. The bits are those of the plain way.
 */
#ifndef SOFTBACK_MODELS_TRAINING_REPLAY_H
#define SOFTBACK_MODELS_TRAINING_REPLAY_H

#include "models/model.h"

struct replay;

/* For the device in use; NULL, without a message, where it has no graphs or there is no memory. */
struct replay *replay_new(const sb_model *model);
void replay_free(struct replay *replay); /* NULL is allowed */

/*
 * Forward and backward of a batch, the loss being a mean or a sum, in *value. Advances the stream.
 * False, with nothing done, when the caller must run the step eagerly: the shapes are new, or no
 * graph could be made of them.
 */
bool replay_learn(struct replay *replay, const sb_batch *batch, bool mean, sb_random *random,
                  double *value);

/* How many graphs there are, and how often one was launched. */
int64_t replay_graphs(const struct replay *replay);
int64_t replay_launches(const struct replay *replay);

#endif
