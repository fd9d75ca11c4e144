/*
 * Parameters that a training step on a device rounds to bf16 together: the gradients have the bits
 * of single casts.
 */
#include "nn/rounded_parameters.h"
#include "ops/context.h"
#include "tests/support/test.h"
#include <stdio.h>

enum { LAYERS = 70, WIDTH = 5 }; /* more parameters than a list of casts has */

struct chain {
    sb_parameters *set;
    sb_linear_layer layer[LAYERS];
};

static struct chain chain_new(void)
{
    struct chain c = {.set = sb_parameters_new(3)};
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "layer%d", i);
        MUST(sb_linear_layer_init(&c.layer[i], c.set, name, WIDTH, WIDTH, true));
    }
    return c;
}

/* Forward and backward through the first `layers` layers, the last of them twice. */
static void chain_step(struct chain *c, bool together, int layers)
{
    sb_context context = {0};
    sb_tape tape;
    if (together)
        rounded_parameters_begin(c->set, &tape, &context);
    else
        sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_cast(sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(3, WIDTH), 0.5)), SB_BF16);
    for (int i = 0; i < layers; i++)
        y = sb_add(y, sb_linear_layer_forward(&c->layer[i], y, SB_ACTIVATION_GELU));
    y = sb_linear_layer_forward(&c->layer[layers - 1], y, SB_ACTIVATION_IDENTITY);
    MUST(sb_backward(sb_mean(y, SB_ALL, false)));
    cr_assert(sb_tape_end(&tape));
}

/* Whether both have gradients of the same parameters, of the same bits. */
static void expect_same_gradients(const struct chain *a, const struct chain *b, const char *when)
{
    for (int64_t i = 0; i < sb_parameters_count(a->set); i++) {
        const sb_tensor *p = sb_tensor_grad(sb_parameters_get(a->set, i));
        const sb_tensor *q = sb_tensor_grad(sb_parameters_get(b->set, i));
        cr_expect((!p && !q) || test_same_bits(p, q), "%s: the gradients of %s differ", when,
                  sb_parameters_name(a->set, i));
    }
}

static void chains_free(struct chain *a, struct chain *b)
{
    sb_parameters_free(a->set);
    sb_parameters_free(b->set);
}

TEST(rounded_parameters, gradients_have_the_bits_of_single_casts)
{
    struct chain one = chain_new(), all = chain_new();
    for (int step = 0; step < 3; step++) { /* gradients add up */
        chain_step(&one, false, LAYERS);
        chain_step(&all, true, LAYERS);
        expect_same_gradients(&one, &all, "all layers");
    }
    chains_free(&one, &all);
}

TEST(rounded_parameters, a_parameter_that_a_step_does_not_use_gets_no_gradient)
{
    struct chain one = chain_new(), all = chain_new();
    for (int step = 0; step < 2; step++)
        chain_step(&all, true, LAYERS);
    sb_parameters_clear(all.set);
    chain_step(&one, false, 3);
    chain_step(&all, true, 3);
    expect_same_gradients(&one, &all, "three layers");
    cr_expect(!sb_tensor_grad(all.layer[3].weight));
    chains_free(&one, &all);
}

TEST(rounded_parameters, frozen_ones_get_no_gradient)
{
    struct chain one = chain_new(), all = chain_new();
    chain_step(&all, true, LAYERS);
    sb_parameters_clear(all.set);
    MUST(sb_parameters_freeze(one.set, "layer1*", true) &&
         sb_parameters_freeze(all.set, "layer1*", true));
    chain_step(&one, false, LAYERS);
    chain_step(&all, true, LAYERS);
    expect_same_gradients(&one, &all, "some are frozen");
    cr_expect(!sb_tensor_grad(all.layer[10].weight) && sb_tensor_grad(all.layer[20].weight));
    chains_free(&one, &all);
}

/* Whether the copies of three weights lie in one block at equal distances. */
static bool copies_are_even(sb_tensor *const copy[3])
{
    const char *const at[] = {copy[0]->data, copy[1]->data, copy[2]->data};
    return copy[0]->base && copy[0]->base == copy[1]->base && copy[1]->base == copy[2]->base &&
           at[1] - at[0] == at[2] - at[1];
}

/* Groups of six parameters, which the length of a list is no multiple of. */
static int chain_uneven(struct chain *c)
{
    sb_context context = {0};
    sb_tape tape;
    int uneven = 0;
    rounded_parameters_begin(c->set, &tape, &context);
    for (int i = 0; i + 3 <= LAYERS; i += 3) {
        sb_tensor *copy[3];
        rounded_parameters_in_one_list(c->layer[i].weight, 6);
        for (int k = 0; k < 3; k++) {
            copy[k] = rounded_parameter(c->layer[i + k].weight);
            rounded_parameter(c->layer[i + k].bias);
        }
        uneven += !copies_are_even(copy);
    }
    MUST(sb_tape_end(&tape));
    return uneven;
}

TEST(rounded_parameters, those_of_one_list_lie_at_equal_distances)
{
    device_needed();
    sb_use_device(device_cuda());
    struct chain c = chain_new();
    cr_expect(chain_uneven(&c) == LAYERS / 3, "the first step makes single copies");
    cr_expect(chain_uneven(&c) == 0);
    sb_parameters_free(c.set);
}

static bool chain_begins(void *chain)
{
    struct chain *c = chain;
    sb_context context = {0};
    sb_tape tape;
    rounded_parameters_begin(c->set, &tape, &context);
    sb_tensor *x = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(1, WIDTH), 1));
    sb_tensor *y = sb_linear_layer_forward(&c->layer[0], sb_cast(x, SB_BF16), SB_ACTIVATION_RELU);
    const bool ok = sb_backward(sb_mean(y, SB_ALL, false));
    sb_parameters_clear(c->set);
    return sb_tape_end(&tape) && ok;
}

TEST(rounded_parameters, each_allocation_may_fail)
{
    struct chain c = chain_new();
    chain_step(&c, true, 2);
    sb_parameters_clear(c.set);
    cr_expect(test_each_allocation_fails(chain_begins, &c) > 0);
    sb_parameters_free(c.set);
}
