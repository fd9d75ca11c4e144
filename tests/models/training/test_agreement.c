#include "models/training/agreement.h"
#include "tests/support/mailbox.h"
#include "tests/support/test.h"
#include <stdio.h>

enum { RANKS = 3 };

struct outcome {
    struct rank_state state[RANKS];
    bool agreed[RANKS], alike[RANKS];
    char message[RANKS][256];
};

static void agree(sb_communicator *c, void *context)
{
    struct outcome *m = context;
    const int r = sb_communicator_rank(c);
    m->agreed[r] = agreement_check(c, &m->state[r], &m->alike[r]);
    snprintf(m->message[r], sizeof m->message[r], "%s", m->agreed[r] ? "" : sb_error());
}

/* All ranks are equal. */
static struct outcome equal_ranks(void)
{
    struct outcome m = {.agreed = {false}};
    for (int r = 0; r < RANKS; r++)
        m.state[r] = (struct rank_state){.version = "0.1.0",
                                         .task = "dates",
                                         .data = 7,
                                         .weights = 8,
                                         .steps = 9,
                                         .settings = settings_default()};
    return m;
}

static void expect(struct outcome *m, const char *message)
{
    mailbox_run(RANKS, agree, m);
    for (int r = 0; r < RANKS; r++) {
        cr_expect(m->agreed[r] == !message[0] && m->alike[r], "rank %d", r);
        cr_expect_str_eq(m->message[r], message);
    }
}

CPU_TEST(agreement, equal_ranks_agree)
{
    struct outcome m = equal_ranks();
    expect(&m, "");
}

CPU_TEST(agreement, all_ranks_report_the_first_difference)
{
    struct outcome m = equal_ranks();
    m.state[2].version = "0.0.9";
    m.state[2].data = 0;
    expect(&m, "rank 2 is softback 0.0.9, rank 0 is 0.1.0");
    m = equal_ranks();
    m.state[1].task = "";
    expect(&m, "rank 1 trains on files, rank 0 on dates");
    m = equal_ranks();
    m.state[1].settings.model.transformer.width = 64;
    expect(&m, "rank 1 has --width 64, rank 0 has 128");
    m = equal_ranks();
    m.state[1].data = 5;
    expect(&m, "rank 1 has different data from rank 0");
    m = equal_ranks();
    m.state[2].steps = 0;
    expect(&m, "rank 2 continues after step 0, rank 0 after 9");
    m = equal_ranks();
    m.state[0].weights = 0;
    expect(&m, "rank 1 starts with different weights from rank 0");
    m = equal_ranks();
    m.state[2].part = 1;
    expect(&m, "rank 2 starts with different weights from rank 0");
}

CPU_TEST(agreement, ranks_of_tensor_parallelism_have_different_parts)
{
    struct outcome m = equal_ranks();
    for (int r = 0; r < RANKS; r++) {
        m.state[r].head_ranks = 2;
        m.state[r].part = (uint64_t)(r % 2);
        m.state[r].threads = 3;
    }
    const struct outcome alike = m;
    expect(&m, "");
    m = alike;
    m.state[2].part = 1;
    expect(&m, "rank 2 starts with different weights from rank 0");
    m = alike;
    m.state[1].head_ranks = 1;
    expect(&m, "rank 1 has --split heads=1, rank 0 has heads=2");
    m = alike;
    m.state[2].threads = 4;
    expect(&m, "rank 2 has 4 threads, rank 0 has 3; --split heads needs equal --threads");
}

CPU_TEST(agreement, a_rank_that_cannot_begin_is_named_unless_none_can)
{
    struct outcome m = equal_ranks();
    m.state[2].failure = "pairs.tsv: cannot be opened";
    expect(&m, "rank 2: pairs.tsv: cannot be opened");
    m = equal_ranks();
    m.state[0].failure = "out of memory";
    expect(&m, "rank 0: out of memory");
    m = equal_ranks();
    for (int r = 0; r < RANKS; r++)
        m.state[r].failure = "m exists already";
    expect(&m, "m exists already");
    bool alike;
    cr_expect(!agreement_check(NULL, &m.state[0], &alike) && alike);
    EXPECT_ERROR("m exists already");
    m = equal_ranks();
    cr_expect(agreement_check(NULL, &m.state[0], &alike));
}
