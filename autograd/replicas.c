#include "autograd/replicas.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

bool replicas_new(struct replicas *replicas, int64_t n)
{
    *replicas = (struct replicas){.at = memory_new((size_t)(n + 1) * sizeof *replicas->at)};
    return replicas->at || sb_fail("replicas: out of memory");
}

void replicas_free(struct replicas *replicas)
{
    for (int64_t i = 0; i < replicas->count; i++)
        sb_tensor_release(replicas->at[i].leaf);
    memory_free(replicas->at);
    *replicas = (struct replicas){0};
}

bool replicas_add(struct replicas *replicas, sb_tensor *of, sb_tensor *gradient)
{
    sb_tensor *leaf = gradient ? tensor_view("replica", of, 0, of->rank, of->dim) : NULL;
    if (!leaf) {
        sb_tensor_release(gradient);
        return false;
    }
    leaf->requires_grad = true;
    leaf->grad = gradient;
    replicas->at[replicas->count++] = (struct replica){of, leaf};
    return true;
}

sb_tensor *replica_of(struct replicas *replicas, sb_tensor *t)
{
    if (!replicas || replicas->in_place || !t || t->tape != 0 || !t->requires_grad)
        return t;
    for (int64_t i = 0; i < replicas->count; i++) {
        const int64_t at = (replicas->found + i) % replicas->count;
        if (replicas->at[at].of != t)
            continue;
        replicas->found = at;
        return replicas->at[at].leaf;
    }
    return t;
}

bool replicas_may_write(const char *who, int i, const sb_tensor *input)
{
    const struct replicas *replicas = tape_open() ? tape_open()->replicas : NULL;
    for (int64_t k = 0; replicas && k < replicas->count; k++)
        if (replicas->at[k].of == input)
            return sb_fail("%s: input %d, %s, is a parameter that other shares read; call it "
                           "outside of their loss",
                           who, i, tensor_shape(input).text);
    return true;
}
