#include "tensor/random.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/philox.h"

sb_random sb_random_new(uint64_t seed, sb_stream stream)
{
    return (sb_random){seed, (uint64_t)stream << 48};
}

/* Without a stream all words are 0. */
static struct philox next(sb_random *random)
{
    if (!random) {
        fail_null("random", "random");
        return (struct philox){{0}};
    }
    return philox(random->seed, random->position++, 0);
}

static double unit(uint32_t high, uint32_t low)
{
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

uint32_t sb_random_bits(sb_random *random)
{
    return next(random).word[0];
}

double sb_random_uniform(sb_random *random)
{
    struct philox draw = next(random);
    return unit(draw.word[0], draw.word[1]);
}

uint32_t sb_random_below(sb_random *random, uint32_t limit)
{
    if (limit == 0) {
        sb_fail("random_below: the limit is 0, not at least 1");
        return 0;
    }
    if (!random) {
        fail_null("random_below", "random");
        return 0;
    }
    uint32_t biased = -limit % limit; /* the first 2^32 mod limit products are one too many */
    uint64_t product;
    do
        product = (uint64_t)sb_random_bits(random) * limit;
    while ((uint32_t)product < biased);
    return (uint32_t)(product >> 32);
}

double sb_random_normal(sb_random *random)
{
    struct philox draw = next(random);
    double radius = sqrt(-2 * math_log(1 - unit(draw.word[0], draw.word[1])));
    return radius * math_cos(6.283185307179586 * unit(draw.word[2], draw.word[3]));
}

void sb_random_shuffle(sb_random *random, int64_t n, int64_t *order)
{
    if (!random || !order) {
        fail_null("random_shuffle", random ? "order" : "random");
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t j = (int64_t)(sb_random_uniform(random) * (double)(i + 1));
        order[i] = i;
        order[i] = order[j];
        order[j] = i;
    }
}
