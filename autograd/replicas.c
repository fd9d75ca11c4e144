#include "autograd/replicas.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

bool replicas_new(struct replicas *replicas, int64_t n)
{
    int64_t room = 4;
    while (room < 2 * n)
        room *= 2;
    *replicas = (struct replicas){room, memory_new((size_t)room * sizeof *replicas->at)};
    return replicas->at || sb_fail("replicas: out of memory");
}

void replicas_free(struct replicas *replicas)
{
    for (int64_t i = 0; replicas->at && i < replicas->room; i++)
        sb_tensor_release(replicas->at[i].leaf);
    memory_free(replicas->at);
    *replicas = (struct replicas){0};
}

/* The place of a leaf, or a free one. */
static struct replica *replicas_place(const struct replicas *replicas, const sb_tensor *leaf)
{
    uint64_t hash = (uint64_t)(uintptr_t)leaf * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    while (replicas->at[hash &= (uint64_t)replicas->room - 1].of != leaf &&
           replicas->at[hash].of != NULL)
        hash++;
    return &replicas->at[hash];
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
    *replicas_place(replicas, of) = (struct replica){of, leaf};
    return true;
}

sb_tensor *replica_of(const struct replicas *replicas, sb_tensor *t)
{
    if (!replicas || !t || t->tape != 0 || !t->requires_grad)
        return t;
    const struct replica *replica = replicas_place(replicas, t);
    return replica->of ? replica->leaf : t;
}

void tape_use_replicas(const struct replicas *replicas)
{
    tape_open()->replicas = replicas;
}
