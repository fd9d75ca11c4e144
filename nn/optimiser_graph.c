#include "nn/optimiser_graph.h"
#include "nn/flat.h"
#include "nn/optimiser_state.h"
#include "tensor/memory.h"
#include <string.h>

bool optimiser_same_plan(const struct optimiser_plan *a, const struct optimiser_plan *b)
{
    return a->passes == b->passes && a->limit == b->limit &&
           memcmp(a->pass, b->pass, (size_t)a->passes * sizeof *a->pass) == 0;
}

void optimiser_plan_free(struct optimiser_plan *plan)
{
    memory_free(plan->pass);
    *plan = (struct optimiser_plan){0};
}

bool optimiser_queue_step(const sb_optimiser *o, const struct optimiser_plan *plan,
                          const void *loss, const char *numbers, double *outcome)
{
    sb_parameters *set = o->set;
    const sb_tensor *g = parameters_gradients(set);
    const struct update_kernels *k = kernel_row(&update_rows, g);
    if (!k)
        return false;
    parameters_settle_gradients(set);
    bool ok = k->judge(tensor_size(g), g->data, loss, plan->limit, outcome);
    for (int64_t i = 0; ok && i < plan->passes; i++) {
        const struct optimiser_pass *p = &plan->pass[i];
        ok = k->adam_judged(p->n, numbers + p->numbers * ADAM_NUMBERS, outcome, p->g, p->w, p->m,
                            p->v);
    }
    return ok;
}
